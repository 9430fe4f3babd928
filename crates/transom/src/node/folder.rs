//! The folder of an agent. Invariant: nothing but the names that are listed here is ever removed, since the folder
//! may be anybody's.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{FileError, Files, path};
use transom_model::Os;

/// Pods and their volumes, what runs them, and their images.
const CONTENTS: [&str; 4] = ["pods", "process", "oci", "images"];

/// Where the certificates of the node are.
pub(crate) fn certificates(data: &Utf8Path) -> Utf8PathBuf {
    data.join("pki")
}

/// Where an installed agent finds its token.
pub(crate) fn token_file(os: Os, data: &Utf8Path) -> Utf8PathBuf {
    path::join(os, data, "token")
}

/// Whether an agent has joined from this folder.
pub(crate) fn is_agents(files: &dyn Files, data: &Utf8Path) -> bool {
    let certificate = certificates(data).join("client.pem");
    files.metadata(&certificate).is_ok()
}

/// Removes what an agent has in its folder, and the folder if nothing else is in it. The certificates go last: without
/// them a removal that died would not know that there is more to do.
pub(crate) fn remove(files: &dyn Files, data: &Utf8Path) -> Result<(), FileError> {
    let os = files.os();
    for name in CONTENTS {
        files.remove_tree(&path::join(os, data, name))?;
    }
    match files.remove_file(&token_file(os, data)) {
        Ok(()) | Err(FileError::NotFound { .. }) => {}
        Err(fault) => return Err(fault),
    }
    files.remove_tree(&certificates(data))?;
    match files.names(data) {
        Ok(names) if names.is_empty() => files.remove_tree(data),
        Ok(_) | Err(FileError::NotFound { .. }) => Ok(()),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use transom_host::files::Native;

    use super::*;

    #[test]
    fn only_what_is_an_agents_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let data: Utf8PathBuf = folder.path().join("data").try_into().unwrap();
        for name in CONTENTS {
            fs_err::create_dir_all(data.join(name).join("below")).unwrap();
        }
        fs_err::create_dir_all(certificates(&data)).unwrap();
        assert!(!is_agents(&Native, &data), "anybody may have such a folder");
        fs_err::write(certificates(&data).join("client.pem"), "").unwrap();
        fs_err::write(token_file(Native.os(), &data), "").unwrap();
        fs_err::write(data.join("letter"), "mine").unwrap();
        assert!(is_agents(&Native, &data));
        remove(&Native, &data).unwrap();
        let left: Vec<_> = fs_err::read_dir(&data).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        fs_err::remove_file(data.join("letter")).unwrap();
        remove(&Native, &data).unwrap();
        assert!(!data.exists());
        // Once more, when nothing is there.
        remove(&Native, &data).unwrap();
    }
}
