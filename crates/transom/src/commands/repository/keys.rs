//! The keys that a verb signs with, and making new ones.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{Privacy, Restricted};
use transom_host::files::{Files as _, Native};
use transom_package::repository::{KeyRing, RoleType, SigningKey};

use super::usual_key_folder;
use crate::context::Context;

/// Where the keys are.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Keys {
    /// The folder with the keys; usually beside the repository, with `.keys` behind its name
    #[arg(long, value_name = "DIR")]
    key_folder: Option<Utf8PathBuf>,

    /// A key that is kept elsewhere; can be repeated
    #[arg(long = "key", value_name = "FILE")]
    key_files: Vec<Utf8PathBuf>,
}

impl Keys {
    pub(super) fn folder(&self, repository: &Utf8Path) -> Utf8PathBuf {
        self.key_folder
            .clone()
            .unwrap_or_else(|| usual_key_folder(repository))
    }

    /// All keys at hand. Warns when somebody else could read one.
    pub(super) fn load(&self, cx: &Context, repository: &Utf8Path) -> anyhow::Result<KeyRing> {
        let folder = self.folder(repository);
        for path in &self.key_files {
            warn_if_exposed(cx, path)?;
        }
        if Native.metadata(&folder).is_ok() {
            warn_if_exposed(cx, &folder)?;
        }
        Ok(KeyRing::load(Some(&folder), &self.key_files)?)
    }
}

fn warn_if_exposed(cx: &Context, path: &Utf8Path) -> anyhow::Result<()> {
    if let Privacy::Exposed { who } = SigningKey::privacy(path)? {
        cx.out.warn(&format!(
            "`{path}` holds private keys and can be read by {}",
            who.join(", ")
        ));
    }
    Ok(())
}

/// A key of a role, and where it is.
#[derive(Debug, serde::Serialize)]
pub(super) struct Holder {
    pub(super) role: String,
    pub(super) key: String,
    pub(super) path: String,
}

/// The keys of one role: those at `paths`, or `count` in the folder. What is not there yet is made.
pub(super) fn ensure_keys(
    cx: &Context,
    role: RoleType,
    paths: &[Utf8PathBuf],
) -> anyhow::Result<(Vec<SigningKey>, Vec<Holder>)> {
    let (mut keys, mut holders) = (Vec::new(), Vec::new());
    for path in paths {
        let key = if Native.metadata(path).is_ok() {
            SigningKey::load(path)?
        } else {
            let (key, restricted) = SigningKey::create(path)?;
            if let Restricted::NotVerified { why } = restricted {
                cx.out.warn(&format!(
                    "it could not be verified that only you can read `{path}`: {why}"
                ));
            }
            key
        };
        holders.push(Holder {
            role: role.to_string(),
            key: key.id(),
            path: path.to_string(),
        });
        keys.push(key);
    }
    Ok((keys, holders))
}

/// The folder of keys, readable by its owner only.
pub(super) fn ensure_folder(cx: &Context, folder: &Utf8Path) -> anyhow::Result<()> {
    use transom_host::access::{self, Access as _};
    if Native.metadata(folder).is_ok() {
        return Ok(());
    }
    Native.create_dir_all(folder)?;
    if let Restricted::NotVerified { why } = access::Native.restrict_to_owner(folder)? {
        cx.out.warn(&format!(
            "it could not be verified that only you can read `{folder}`: {why}"
        ));
    }
    Ok(())
}
