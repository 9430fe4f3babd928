//! A host whose pods are containers: the image that they have, and the control groups that they leave on the machine
//! when their host loses its power.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use transom_runtime::images::{BuildFile, BuildKind, ImageSettings, Images, Platform, Registries};
use transom_runtime::oci::LinuxUnpacker;
use transom_testkit::echo_program;

use crate::Node;

/// The name by which pods of host processes know their host, so that one manifest does for both.
const IMAGE: &str = "transom.dev/host:1";

/// Where the agent of such a host keeps its data: on a disk on which containers can have theirs, and at a place that no
/// other test has, because control groups are named after it.
pub(super) fn data() -> String {
    format!("/run/agent-{}", std::process::id())
}

/// Gives the agent an image with the program of the tests and a shell.
pub(super) fn give_image(node: &Node) -> Result<()> {
    let store = node.host.path(&format!("{}/images", data()))?;
    fs_err::create_dir_all(&store)?;
    let store = Utf8PathBuf::try_from(store)?;
    let platform = Platform {
        os: "linux".to_owned(),
        architecture: match std::env::consts::ARCH {
            "aarch64" => "arm64".to_owned(),
            _ => "amd64".to_owned(),
        },
        os_version: None,
    };
    let unpacker = Arc::new(LinuxUnpacker);
    let images = Images::open(&store, platform, Registries::default(), unpacker)?;
    let settings = ImageSettings {
        environment: vec!["PATH=/bin:/usr/local/bin".to_owned()],
        ..ImageSettings::default()
    };
    images.build(IMAGE, &files(node)?, &settings, Timestamp::now())?;
    Ok(())
}

fn files(node: &Node) -> Result<Vec<BuildFile>> {
    let file = |path: &str, from: &Utf8Path| BuildFile {
        path: path.trim_start_matches('/').to_owned(),
        kind: BuildKind::File(from.to_owned()),
        mode: 0o755,
    };
    let echo = Utf8PathBuf::try_from(echo_program()?)?;
    let mut files = vec![file(node.echo(), &echo)];
    for library in libraries(&echo)? {
        files.push(file(library.as_str(), &library));
    }
    let busybox = ["/usr/bin/busybox", "/bin/busybox"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .context("busybox is not installed (`cargo xtask tools`)")?;
    files.push(file("bin/busybox", busybox.into()));
    for tool in ["sh", "sleep", "cat", "tar", "tty"] {
        files.push(BuildFile {
            path: format!("bin/{tool}"),
            kind: BuildKind::Link("busybox".to_owned()),
            mode: 0o777,
        });
    }
    files.push(BuildFile {
        path: "tmp".to_owned(),
        kind: BuildKind::Folder,
        mode: 0o1777,
    });
    Ok(files)
}

/// The files that a program needs beside itself to be started.
fn libraries(program: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let output = Command::new("ldd").arg(program).output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(Utf8PathBuf::from).collect())
}

/// The control groups of a host's containers. They are the machine's, not the host's, so a host that loses its power
/// leaves them behind: they are removed with this value, which must outlive the lab.
#[derive(Debug)]
pub(super) struct Groups(String);

impl Groups {
    /// Those of the node that has its data in this folder.
    pub(super) fn of(data: &str) -> Self {
        let digest = Sha256::digest(data);
        let [first, second, third, fourth] = [digest[0], digest[1], digest[2], digest[3]];
        Self(format!("tr{first:02x}{second:02x}{third:02x}{fourth:02x}"))
    }

    /// The top of each hierarchy that there is.
    pub(super) fn found(&self) -> Vec<PathBuf> {
        let top = Path::new("/sys/fs/cgroup");
        let hierarchies = fs_err::read_dir(top).into_iter().flatten().flatten();
        hierarchies
            .map(|entry| entry.path())
            .chain([top.to_owned()])
            .map(|hierarchy| hierarchy.join(&self.0))
            .filter(|group| group.exists())
            .collect()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in self.found() {
            remove(&group);
        }
    }
}

/// Removes a control group with those below it.
fn remove(group: &Path) {
    let inner = fs_err::read_dir(group).into_iter().flatten().flatten();
    for below in inner.map(|entry| entry.path()).filter(|path| path.is_dir()) {
        remove(&below);
    }
    let _ = fs_err::remove_dir(group);
}
