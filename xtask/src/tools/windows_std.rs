//! The standard library for Windows, built once from the source that belongs to Debian's compiler,
//! and kept like any other target of that compiler. It is made again when the compiler changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::stamp::{self, Stamped};
use super::{State, Tool};
use crate::run;
use crate::workspace::{WINDOWS_TARGET, Workspace};

const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

pub(crate) struct WindowsStd<'w> {
    workspace: &'w Workspace,
}

impl<'w> WindowsStd<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn place(&self) -> PathBuf {
        self.workspace
            .sysroot
            .join("lib/rustlib")
            .join(WINDOWS_TARGET)
    }

    /// Whether the compiler can use what is there: the only proof that it was built by this compiler.
    fn compiles(&self) -> Result<bool> {
        let folder = self.workspace.tools.join("build/probe");
        fs_err::create_dir_all(&folder)?;
        let source = folder.join("probe.rs");
        fs_err::write(
            &source,
            "fn main() { println!(\"{}\", std::process::id()); }\n",
        )?;
        let status = Command::new(RUSTC)
            .args([
                "--edition=2024",
                "--emit=metadata",
                "--target",
                WINDOWS_TARGET,
                "--out-dir",
            ])
            .arg(&folder)
            .arg(format!("--sysroot={}", self.workspace.sysroot.display()))
            .arg(&source)
            .output()
            .context("could not start Debian's compiler")?
            .status;
        Ok(status.success())
    }
}

/// Compiles the library in `scratch`, by way of a crate that has nothing in it.
fn build(scratch: &Path) -> Result<()> {
    fs_err::create_dir_all(scratch.join("src"))?;
    fs_err::write(scratch.join("src/lib.rs"), "")?;
    fs_err::write(
        scratch.join("Cargo.toml"),
        "[package]\nname = \"carrier\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n",
    )?;
    let mut cargo = Command::new(CARGO);
    cargo
        .current_dir(scratch)
        .args(["build", "--quiet", "--release", "--target", WINDOWS_TARGET])
        .arg("-Zbuild-std=std,panic_abort,proc_macro,test")
        // The compiler is stable; building its own library is what this switch is for.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", RUSTC)
        .env("CARGO_TARGET_DIR", scratch.join("target"));
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "RUSTC_WRAPPER",
    ] {
        cargo.env_remove(name);
    }
    run::visibly(&mut cargo)
}

/// The version that a standard library must have been built by.
fn compiler_version() -> Result<String> {
    run::output(Command::new(RUSTC).arg("-vV"))
}

/// Copies the libraries that cargo left in `from`, and nothing of our carrier.
fn copy_libraries(from: &Path, to: &Path) -> Result<usize> {
    fs_err::create_dir_all(to)?;
    let mut copied = 0;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_library = Path::new(&name)
            .extension()
            .is_some_and(|end| end == "rlib");
        if is_library && !name.starts_with("libcarrier-") {
            fs_err::copy(entry.path(), to.join(&name))?;
            copied += 1;
        }
    }
    Ok(copied)
}

impl Tool for WindowsStd<'_> {
    fn name(&self) -> String {
        format!("standard library for {WINDOWS_TARGET}")
    }

    fn state(&self) -> Result<State> {
        if !Path::new(RUSTC).exists() {
            return Ok(State::Missing("Debian's compiler is not installed".into()));
        }
        if !self.place().join("lib").exists() {
            return Ok(State::Missing("not built".into()));
        }
        Ok(if self.compiles()? {
            State::Present
        } else {
            State::Missing("built by another compiler".into())
        })
    }

    fn needs_root(&self) -> bool {
        self.workspace.sysroot == Path::new("/usr")
    }

    fn install(&self) -> Result<()> {
        let scratch = self.workspace.tools.join("build/windows-std");
        stamp::remove(&scratch)?;
        build(&scratch)?;
        let built = scratch
            .join("target")
            .join(WINDOWS_TARGET)
            .join("release/deps");
        Stamped {
            folder: self.place(),
            made_from: compiler_version()?,
        }
        .make(|fresh| {
            if copy_libraries(&built, &fresh.join("lib"))? == 0 {
                bail!("the compiler left no library in {}", built.display());
            }
            Ok(())
        })?;
        stamp::remove(&scratch)
    }

    fn by_hand(&self) -> String {
        "sudo cargo xtask tools install windows-build".to_owned()
    }
}

/// `cargo +win`, for people: our own commands call Debian's compiler by its path.
pub(crate) struct RustupLink<'w> {
    workspace: &'w Workspace,
}

impl<'w> RustupLink<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn rustup(&self) -> Option<PathBuf> {
        let folders = self.workspace.environment.search_path();
        folders
            .into_iter()
            .map(|folder| folder.join("rustup"))
            .find(|path| path.is_file())
    }
}

impl Tool for RustupLink<'_> {
    fn name(&self) -> String {
        "rustup toolchain `win`".to_owned()
    }

    fn state(&self) -> Result<State> {
        if self.rustup().is_none() {
            return Ok(State::Present);
        }
        let environment = &self.workspace.environment;
        let home = environment
            .path("RUSTUP_HOME")
            .or_else(|| Some(environment.path("HOME")?.join(".rustup")))
            .context("neither HOME nor RUSTUP_HOME is set")?;
        Ok(if home.join("toolchains/win/bin/rustc").exists() {
            State::Present
        } else {
            State::Missing("not linked".into())
        })
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        let rustup = self.rustup().context("rustup went away")?;
        run::visibly(
            self.workspace
                .command(rustup)
                .args(["toolchain", "link", "win", "/usr"]),
        )
    }

    fn by_hand(&self) -> String {
        "rustup toolchain link win /usr".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_are_copied_and_not_the_carrier() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("deps");
        fs_err::create_dir_all(&from).unwrap();
        for name in [
            "libstd-1.rlib",
            "libcore-2.rlib",
            "libcarrier-3.rlib",
            "libstd-1.rmeta",
            "std.d",
        ] {
            fs_err::write(from.join(name), "").unwrap();
        }
        let to = folder.path().join("lib");
        assert_eq!(copy_libraries(&from, &to).unwrap(), 2);
        assert!(to.join("libstd-1.rlib").exists() && to.join("libcore-2.rlib").exists());
        assert_eq!(fs_err::read_dir(&to).unwrap().count(), 2);
    }
}
