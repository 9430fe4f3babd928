//! What makes a host a Windows host: a Wine prefix laid over the machine's template, and the way to
//! start a program in it. A Windows path of the host maps to exactly one file of its disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::environment;
use crate::init::SEARCH_PATH;

/// Where a host has its prefix.
pub(crate) const PREFIX: &str = "/windows";

/// The Wine that a Windows host runs on.
#[derive(Debug, Clone)]
pub(crate) struct Wine {
    folder: PathBuf,
}

impl Wine {
    pub(crate) fn find() -> Result<Self> {
        Ok(Self {
            folder: environment::wine_folder()?,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command that starts `program`, a Windows path, in the host's prefix.
    pub(crate) fn command(&self, program: &str) -> Command {
        let bin = self.folder.join("usr/lib/wine");
        let mut command = Command::new(bin.join("wine64"));
        // No TMPDIR: Wine 10 aborts at its start when it is set. The host's /tmp is its own anyway.
        command
            .arg(program)
            .env_clear()
            .env("PATH", format!("{}:{SEARCH_PATH}", bin.display()))
            .env("WINEPREFIX", PREFIX)
            .env("WINEDEBUG", "-all")
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .env("XDG_RUNTIME_DIR", "/run")
            .current_dir(format!("{PREFIX}/drive_c"));
        command
    }
}

/// Turns `C:\…` into the path that the file has on the host's disk.
pub(crate) fn unix_path(windows: &str) -> Result<PathBuf> {
    let rest = match windows.as_bytes() {
        [b'C' | b'c', b':', b'\\' | b'/', ..] => &windows[3..],
        _ => bail!("`{windows}` is no absolute path on drive C"),
    };
    Ok(Path::new(PREFIX)
        .join("drive_c")
        .join(rest.replace('\\', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_on_drive_c_are_below_the_prefix() {
        let expected = Path::new("/windows/drive_c/Program Files/x.txt");
        assert_eq!(unix_path(r"C:\Program Files\x.txt").unwrap(), expected);
        assert_eq!(unix_path("c:/Program Files/x.txt").unwrap(), expected);
        assert_eq!(unix_path(r"C:\").unwrap(), Path::new("/windows/drive_c/"));
    }

    #[test]
    fn paths_that_name_no_place_on_drive_c_are_refused() {
        for path in [
            "",
            "C:",
            "C:relative",
            r"D:\x",
            r"\\server\share",
            "/etc/passwd",
            r"x\y",
        ] {
            assert!(unix_path(path).is_err(), "{path}");
        }
    }
}
