//! `cargo xtask dist`: the files a release consists of. Each is run once before it counts: a binary
//! that does not start is not a release.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::run;
use crate::tools::wine::machine::Machine;
use crate::tools::{self, Purpose};
use crate::workspace::{WINDOWS_TARGET, Workspace};

const LINUX_TARGET: &str = "x86_64-unknown-linux-gnu";
/// The profile of `Cargo.toml` that programs are shipped with, and the folder that cargo puts them into.
const PROFILE: &str = "dist";
const PATIENCE: Duration = Duration::from_mins(1);

/// Build release binaries for Linux and Windows, with checksums, into `dist/`
#[derive(Debug, clap::Args)]
pub(crate) struct Dist {}

impl Dist {
    #[expect(clippy::unused_self, reason = "all commands are run the same way")]
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        tools::ensure(workspace, &[Purpose::WindowsBuild, Purpose::Wine])?;
        let version = env!("CARGO_PKG_VERSION");
        let linux = format!("transom-{version}-linux-amd64");
        let windows = format!("transom-{version}-windows-amd64.exe");
        let folder = workspace.root.join("dist");
        tools::remove_folder(&folder)?;
        fs_err::create_dir_all(&folder)?;

        console::heading("Linux, static");
        fs_err::copy(build_for_linux(workspace)?, folder.join(&linux))?;
        check_linux(&folder.join(&linux))?;
        console::heading("Windows");
        fs_err::copy(build_for_windows(workspace)?, folder.join(&windows))?;
        check_windows(workspace, &folder.join(&windows))?;

        console::heading("checksums");
        let sums = run::output(
            Command::new("sha256sum")
                .current_dir(&folder)
                .args([&linux, &windows]),
        )?;
        fs_err::write(folder.join("SHA256SUMS"), &sums)?;
        console::line(sums.trim_end());
        Ok(())
    }
}

fn build_for_linux(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo
        .args([
            "build",
            "--profile",
            PROFILE,
            "--locked",
            "--package",
            "transom",
            "--target",
            LINUX_TARGET,
        ])
        // With an explicit target these reach the program but not the build scripts and macros.
        .env(
            "RUSTFLAGS",
            format!(
                "-C target-feature=+crt-static {}",
                without_our_paths(workspace)
            ),
        );
    run::visibly(&mut cargo)?;
    Ok(workspace
        .target
        .join(LINUX_TARGET)
        .join(PROFILE)
        .join("transom"))
}

fn build_for_windows(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.windows_cargo();
    let sysroot = format!("--sysroot={}", workspace.sysroot.display());
    cargo
        .args([
            "build",
            "--profile",
            PROFILE,
            "--locked",
            "--package",
            "transom",
            "--target",
            WINDOWS_TARGET,
        ])
        // Our standard library for Windows carries no bitcode, which optimizing across crates needs.
        .env("CARGO_PROFILE_DIST_LTO", "false")
        .env(
            "RUSTFLAGS",
            format!("{sysroot} {}", without_our_paths(workspace)),
        );
    run::visibly(&mut cargo)?;
    Ok(workspace
        .target
        .join(WINDOWS_TARGET)
        .join(PROFILE)
        .join("transom.exe"))
}

/// The same sources give the same program wherever the checkout is.
fn without_our_paths(workspace: &Workspace) -> String {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![remap(&workspace.root, "transom")];
    flags.extend(workspace.cargo_home().map(|home| remap(&home, "cargo")));
    flags.join(" ")
}

fn check_linux(program: &Path) -> Result<()> {
    if !is_static(&fs_err::read(program)?)? {
        bail!(
            "{} is not static: it names a dynamic loader",
            program.display()
        );
    }
    let version = run::bounded(Command::new(program).arg("version"), PATIENCE)?;
    console::line(&format!("  static, and runs: {}", first_line(&version)?));
    Ok(())
}

fn check_windows(workspace: &Workspace, program: &Path) -> Result<()> {
    let machine = Machine::start(workspace)?;
    let mut winrun = workspace.command(workspace.winrun());
    winrun
        .arg(program)
        .arg("version")
        .env("WINEPREFIX", machine.prefix());
    let version = run::bounded(&mut winrun, PATIENCE)?;
    console::line(&format!("  runs under Wine: {}", first_line(&version)?));
    Ok(())
}

fn first_line(text: &str) -> Result<&str> {
    text.lines()
        .next()
        .context("`transom version` printed nothing")
}

/// Whether a 64-bit little-endian ELF program starts without a dynamic loader.
fn is_static(program: &[u8]) -> Result<bool> {
    const INTERPRETER: u64 = 3;
    let number = |at: usize, bytes: usize| -> Result<u64> {
        let bytes = program
            .get(at..at + bytes)
            .context("the program is cut off")?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    if program.get(..6) != Some(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit ELF program");
    }
    let (start, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..count {
        let header = usize::try_from(start + index * size)?;
        if number(header, 4)? == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        // This very test is an ordinary dynamic program.
        let this = fs_err::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&this).unwrap());
        // Without its program headers nothing names a loader any more.
        let mut bare = this;
        bare[0x38..0x3a].fill(0);
        assert!(is_static(&bare).unwrap());
    }

    #[test]
    fn what_is_not_a_program_is_refused() {
        assert!(is_static(b"#!/bin/sh\n").is_err());
        assert!(is_static(b"\x7fELF\x02\x01").is_err());
    }
}
