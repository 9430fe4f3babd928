//! Debian packages. What is installed is asked of dpkg in one call; apt is only started when
//! something is missing, once for everything.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Purpose, State, Tool};
use crate::run;
use crate::workspace::Workspace;

/// Tests on this machine: hosts in network namespaces, firewalls, processes, sources in git, archives of
/// others, a fuzzer in C++; for the API a store of others, a web server to compare with, certificates that
/// we did not make, client libraries in Python; for pods container runtimes of others, and something to run in them.
const LINUX: &[&str] = &[
    "busybox-static",
    "containerd",
    "curl",
    "docker.io",
    "etcd-server",
    "g++",
    "gcc",
    "git",
    "iproute2",
    "nftables",
    "nginx-light",
    "openssl",
    "procps",
    "python3",
    "python3-pip",
    "runc",
    "util-linux",
    "xz-utils",
    "zstd",
];
/// A compiler whose own library source is packaged, so that a standard library for Windows can be
/// built; a linker; an assembler for cryptography.
const WINDOWS_BUILD: &[&str] = &[
    "cargo-web",
    "gcc-mingw-w64-x86-64-posix",
    "nasm",
    "rust-web-clippy",
    "rust-web-src",
    "rustc-web",
];
/// What Wine loads, and what fits it to this machine's libraries.
const WINE: &[&str] = &[
    "binutils-mingw-w64-x86-64",
    "debian-archive-keyring",
    "libfontconfig1",
    "libfreetype6",
    "libgnutls30",
    "libunwind8",
    "patchelf",
];

/// The packages for some purposes, in alphabetical order.
pub(crate) fn packages_for(purposes: &[Purpose]) -> Vec<&'static str> {
    let mut packages: Vec<_> = purposes
        .iter()
        .flat_map(|purpose| match purpose {
            Purpose::Linux => LINUX,
            Purpose::WindowsBuild => WINDOWS_BUILD,
            Purpose::Wine => WINE,
            Purpose::Checks => &[],
        })
        .copied()
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// A set of packages, installed together.
pub(crate) struct Packages<'w> {
    workspace: &'w Workspace,
    wanted: Vec<&'static str>,
}

impl<'w> Packages<'w> {
    pub(crate) fn new(workspace: &'w Workspace, wanted: Vec<&'static str>) -> Self {
        Self { workspace, wanted }
    }

    fn missing(&self) -> Result<Vec<&'static str>> {
        let output = Command::new("dpkg-query")
            .args(["--show", "--showformat=${Package} ${db:Status-Abbrev}\n"])
            .args(&self.wanted)
            .output()
            .context("no dpkg-query here: the project's tools install themselves on Debian only")?;
        // It exits with 1 when it does not know one of the names; what it printed still counts.
        Ok(absent(
            &self.wanted,
            &String::from_utf8_lossy(&output.stdout),
        ))
    }

    fn apt_get(&self) -> Command {
        let mut command = self.workspace.command("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args([
            "-qq",
            "-o",
            "DPkg::Lock::Timeout=300",
        ]);
        command
    }
}

/// Which of `wanted` dpkg does not call installed.
fn absent<'p>(wanted: &[&'p str], listing: &str) -> Vec<&'p str> {
    let installed: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| status.starts_with("ii") || status.starts_with("hi"))
        .map(|(name, _)| name)
        .collect();
    wanted
        .iter()
        .filter(|name| !installed.contains(name))
        .copied()
        .collect()
}

impl Tool for Packages<'_> {
    fn name(&self) -> String {
        format!("{} Debian packages", self.wanted.len())
    }

    fn state(&self) -> Result<State> {
        let missing = self.missing()?;
        Ok(if missing.is_empty() {
            State::Present
        } else {
            State::Missing(missing.join(" "))
        })
    }

    fn needs_root(&self) -> bool {
        true
    }

    fn install(&self) -> Result<()> {
        // One unreachable source must not keep us from the others: the install tells whether it mattered.
        if let Err(error) = run::announced(self.apt_get().arg("update")) {
            crate::console::line(&format!(
                "  going on with the package lists there are: {error:#}"
            ));
        }
        let missing = self.missing()?;
        let mut install = self.apt_get();
        install
            .args(["install", "--yes", "--no-install-recommends"])
            .args(&missing);
        if run::announced(&mut install).is_err() {
            // An install that was cut off leaves packages unpacked but not configured.
            run::announced(self.workspace.command("dpkg").args(["--configure", "-a"]))?;
            run::announced(&mut install)
                .context("these packages are the ones of Debian 12 with its security updates")?;
        }
        Ok(())
    }

    fn by_hand(&self) -> String {
        let missing = self.missing().unwrap_or_else(|_| self.wanted.clone());
        format!(
            "sudo apt-get update && sudo apt-get install --yes --no-install-recommends {}",
            missing.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_removed_and_half_installed_packages_are_absent() {
        let listing = "curl ii \nnftables rc \nprocps iU \niproute2 hi \n";
        let wanted = ["curl", "iproute2", "nasm", "nftables", "procps"];
        assert_eq!(absent(&wanted, listing), ["nasm", "nftables", "procps"]);
    }

    #[test]
    fn nothing_is_absent_when_all_are_installed() {
        assert!(absent(&["curl"], "curl ii \n").is_empty());
        assert_eq!(absent(&["curl"], ""), ["curl"]);
    }

    #[test]
    fn each_package_is_asked_for_once() {
        let all = packages_for(&Purpose::ALL);
        let mut once = all.clone();
        once.dedup();
        assert_eq!(all, once);
        assert!(packages_for(&[Purpose::Checks]).is_empty());
    }
}
