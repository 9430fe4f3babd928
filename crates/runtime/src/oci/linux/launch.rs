//! What a helper has to know to run a container beyond its OCI configuration: the stack of its root file
//! system, and what its last steps give up.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use nix::mount::{MsFlags, mount};
use serde::{Deserialize, Serialize};

use super::records;
use crate::{RuntimeError, Seccomp};

const FILE: &str = "launch.json";
/// The kernel takes the options of a mount in one page.
const LONGEST_OPTIONS: usize = 4000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    /// Without `CAP_`.
    pub(super) capabilities: Vec<String>,
    pub(super) seccomp: Seccomp,
    /// Folders of layers, the highest first. None: the root is a folder that was filled.
    pub(super) layers: Vec<Utf8PathBuf>,
}

impl Launch {
    pub(super) fn write(&self, container: &Utf8Path) -> Result<(), RuntimeError> {
        records::write(&container.join(FILE), self)
    }

    pub(super) fn read(container: &Utf8Path) -> Result<Self, String> {
        records::read(&container.join(FILE))
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("the container in {container} is not prepared"))
    }

    /// Puts the layers over each other, in the mount namespace of this process.
    pub(super) fn mount_root(&self, container: &Utf8Path) -> Result<(), String> {
        if self.layers.is_empty() {
            return Ok(());
        }
        self.try_mount(container)
            .map_err(|error| format!("the root file system cannot be mounted: {error}"))
    }

    fn try_mount(&self, container: &Utf8Path) -> io::Result<()> {
        // The kernel takes little text: layers are named by links with short names, all else from there.
        let folder = container.join("l");
        fs_err::create_dir_all(&folder)?;
        let mut names = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let name = number.to_string();
            match std::os::unix::fs::symlink(layer, folder.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => names.push(name),
            }
        }
        let options = format!(
            "lowerdir={},upperdir=../upper,workdir=../work",
            names.join(":")
        );
        if options.len() > LONGEST_OPTIONS {
            return Err(io::Error::other(format!(
                "{} layers are more than can be stacked",
                names.len()
            )));
        }
        let before = std::env::current_dir()?;
        std::env::set_current_dir(&folder)?;
        let mounted = mount(
            Some("overlay"),
            container.join("rootfs").as_str(),
            Some("overlay"),
            MsFlags::empty(),
            Some(options.as_str()),
        );
        std::env::set_current_dir(before)?;
        Ok(mounted?)
    }
}
