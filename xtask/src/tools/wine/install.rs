//! Wine 10 from Debian's next release, unpacked into a folder of its own with that release's C library;
//! every other library comes from this machine. Nothing outside the folder is changed.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::sources;
use crate::run;
use crate::tools::stamp::{self, Stamped};
use crate::tools::{State, Tool};
use crate::workspace::Workspace;

/// To be raised when the steps below change.
const RECIPE: u32 = 1;
const RELEASE: &str = "trixie";
const PACKAGES: [&str; 4] = ["libc6", "libwine", "libz-mingw-w64", "wine64"];
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// What marks a library as Wine's own, at a fixed place behind the DOS header.
const BUILTIN_MARK: &[u8; 32] = b"Wine builtin DLL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const BUILTIN_MARK_AT: usize = 64;

pub(crate) struct Wine<'w> {
    workspace: &'w Workspace,
}

impl<'w> Wine<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn place(&self) -> Stamped {
        let folder = self.workspace.wine();
        // The folder's own path is written into Wine's programs: moved, it must be made again.
        let made_from = format!("{RELEASE}, recipe {RECIPE}, at {}", folder.display());
        Stamped { folder, made_from }
    }

    /// Downloads the packages into `scratch`, with an apt that knows only the other release.
    fn download(&self, scratch: &Path) -> Result<Vec<PathBuf>> {
        for folder in ["lists/partial", "cache/archives/partial"] {
            fs_err::create_dir_all(scratch.join(folder))?;
        }
        let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let mirror = this_machines_mirror()?;
        fs_err::write(
            scratch.join("sources.list"),
            format!("deb [signed-by={keyring}] {mirror} {RELEASE} main\n"),
        )?;
        fs_err::write(scratch.join("apt.conf"), apt_configuration(scratch))?;
        run::announced(self.apt_get(scratch).arg("update"))?;
        run::announced(self.apt_get(scratch).arg("download").args(PACKAGES))?;
        let mut archives = Vec::new();
        for entry in fs_err::read_dir(scratch)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "deb") {
                archives.push(path);
            }
        }
        if archives.len() != PACKAGES.len() {
            bail!("apt left {} of {} packages", archives.len(), PACKAGES.len());
        }
        Ok(archives)
    }

    fn apt_get(&self, scratch: &Path) -> Command {
        let mut command = self.workspace.command("apt-get");
        command.current_dir(scratch).args(["-qq", "-c", "apt.conf"]);
        command
    }

    fn fill(&self, fresh: &Path, archives: &[PathBuf]) -> Result<()> {
        for archive in archives {
            run::quietly(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(archive)
                    .arg(fresh),
            )?;
        }
        let programs = fresh.join(LIBRARIES).join("wine/x86_64-windows");
        strip(&programs)?;
        let zlib = fs_err::read(fresh.join("usr/x86_64-w64-mingw32/lib/zlib1.dll"))?;
        fs_err::write(programs.join("zlib1.dll"), marked_as_builtin(zlib)?)?;
        // The server looks for its tables one folder deeper than Debian puts them.
        symlink(".", fresh.join("usr/share/wine/wine"))?;
        self.use_own_c_library(fresh)?;
        write_server_script(fresh, &self.workspace.wine())?;
        stamp::remove(&fresh.join("usr/share/doc"))
    }

    fn use_own_c_library(&self, fresh: &Path) -> Result<()> {
        let libraries = self.workspace.wine().join(LIBRARIES);
        let search = format!("{}:/{LIBRARIES}:/lib/x86_64-linux-gnu", libraries.display());
        for program in ["wine64", "wineserver64"] {
            run::quietly(
                Command::new("patchelf")
                    .arg("--set-interpreter")
                    .arg(libraries.join("ld-linux-x86-64.so.2"))
                    .args(["--force-rpath", "--set-rpath", &search])
                    .arg(fresh.join("usr/lib/wine").join(program)),
            )?;
        }
        Ok(())
    }
}

/// An apt that reads nothing of this machine's and writes only below `scratch`.
fn apt_configuration(scratch: &Path) -> String {
    let scratch = scratch.display();
    format!(
        "Dir::Etc::sourcelist \"{scratch}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::State::lists \"{scratch}/lists\";\n\
         Dir::State::status \"/dev/null\";\n\
         Dir::Cache \"{scratch}/cache\";\n\
         APT::Sandbox::User \"root\";\n"
    )
}

fn this_machines_mirror() -> Result<String> {
    let mut candidates = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(folder) = fs_err::read_dir("/etc/apt/sources.list.d") {
        candidates.extend(folder.flatten().map(|entry| entry.path()));
    }
    candidates
        .iter()
        .filter_map(|path| fs_err::read_to_string(path).ok())
        .find_map(|text| sources::mirror(&text).map(str::to_owned))
        .context("found no Debian mirror in /etc/apt/sources.list or /etc/apt/sources.list.d")
}

/// Drops debug information: a third of the size, for every Windows machine that is made.
fn strip(folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        files.push(entry?.path());
    }
    let half = files.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        let halves: Vec<_> = files
            .chunks(half)
            .map(|files| scope.spawn(move || files.chunks(40).try_for_each(strip_some)))
            .collect();
        for half in halves {
            half.join()
                .map_err(|_| anyhow::anyhow!("a thread that strips files panicked"))??;
        }
        Ok(())
    })
}

fn strip_some(files: &[PathBuf]) -> Result<()> {
    run::quietly(
        Command::new("x86_64-w64-mingw32-strip")
            .arg("--strip-debug")
            .args(files),
    )
}

/// Wine loads a library from its own folder only if it is marked as its own.
fn marked_as_builtin(mut library: Vec<u8>) -> Result<Vec<u8>> {
    let place = BUILTIN_MARK_AT..BUILTIN_MARK_AT + BUILTIN_MARK.len();
    library
        .get_mut(place)
        .context("zlib1.dll is too short to be a library")?
        .copy_from_slice(BUILTIN_MARK);
    Ok(library)
}

fn write_server_script(fresh: &Path, place: &Path) -> Result<()> {
    let script = fresh.join("usr/lib/wine/wineserver");
    let server = place.join("usr/lib/wine/wineserver64");
    // It ends at once when the last program does, so that no test leaves one behind.
    fs_err::write(
        &script,
        format!("#!/bin/sh\nexec '{}' -p0 \"$@\"\n", server.display()),
    )?;
    fs_err::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

impl Tool for Wine<'_> {
    fn name(&self) -> String {
        "Wine 10".to_owned()
    }

    fn state(&self) -> Result<State> {
        self.place().state()
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        let scratch = self.workspace.tools.join("build/wine");
        stamp::remove(&scratch)?;
        fs_err::create_dir_all(&scratch)?;
        let archives = self.download(&scratch)?;
        self.place().make(|fresh| self.fill(fresh, &archives))?;
        stamp::remove(&scratch)
    }

    fn by_hand(&self) -> String {
        "cargo xtask tools install wine".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_replaces_what_stands_behind_the_header() {
        let marked = marked_as_builtin(vec![7; 200]).unwrap();
        assert_eq!(&marked[64..80], b"Wine builtin DLL");
        assert_eq!(&marked[80..96], &[0; 16]);
        assert_eq!((marked[63], marked[96], marked.len()), (7, 7, 200));
    }

    #[test]
    fn a_library_without_room_for_the_mark_is_refused() {
        assert!(marked_as_builtin(vec![0; 95]).is_err());
    }
}
