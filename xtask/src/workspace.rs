//! The places that every command works with: the checkout, our tools, the build output, the Windows
//! compiler. Build output and tools are outside the checkout, so clones share them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::environment::{self, Environment};

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
pub(crate) const WINDOWS_TARGET: &str = "x86_64-pc-windows-gnu";

/// Crates that only make sense on a Linux developer machine: not built for Windows.
const LINUX_ONLY: [&str; 1] = ["xtask"];

#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The checkout.
    pub(crate) root: PathBuf,
    /// Our own tools.
    pub(crate) tools: PathBuf,
    /// Cargo's build output.
    pub(crate) target: PathBuf,
    /// The Windows compiler's sysroot.
    pub(crate) sysroot: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) is_root: bool,
}

impl Workspace {
    pub(crate) fn locate(environment: Environment) -> Result<Self> {
        let start = match environment.path("CARGO_MANIFEST_DIR") {
            Some(folder) => folder,
            None => std::env::current_dir().context("no current folder")?,
        };
        let root = start
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .with_context(|| format!("{} is not inside a checkout of Transom", start.display()))?
            .to_owned();
        Self::new(root, environment, runs_as_root()?)
    }

    fn new(root: PathBuf, environment: Environment, is_root: bool) -> Result<Self> {
        let cache = environment
            .path("XDG_CACHE_HOME")
            .or_else(|| Some(environment.path("HOME")?.join(".cache")))
            .map(|cache| cache.join("transom"))
            .context("neither HOME nor XDG_CACHE_HOME is set")?;
        let tools = environment.path(environment::TOOLS).unwrap_or_else(|| {
            if is_root {
                PathBuf::from("/opt/transom-dev")
            } else {
                cache.join("tools")
            }
        });
        let target = environment
            .path("CARGO_TARGET_DIR")
            .or_else(|| environment.path(environment::TARGET_DIR))
            .unwrap_or_else(|| cache.join("target"));
        let sysroot = environment
            .path(environment::WINDOWS_SYSROOT)
            .unwrap_or_else(|| {
                if is_root {
                    PathBuf::from("/usr")
                } else {
                    tools.join("sysroot")
                }
            });
        Ok(Self {
            tools: std::path::absolute(tools)?,
            target: std::path::absolute(target)?,
            sysroot: std::path::absolute(sysroot)?,
            root,
            environment,
            is_root,
        })
    }

    /// A command that sees our tools first and works in the checkout.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("PATH", self.search_path())
            .env("CARGO_TARGET_DIR", &self.target);
        // What `cargo run` told us about ourselves would make cargo rebuild what reads it.
        for name in [
            "CARGO",
            "CARGO_MANIFEST_DIR",
            "CARGO_MANIFEST_PATH",
            "CARGO_PKG_NAME",
            "RUST_RECURSION_COUNT",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// The compiler for this machine.
    pub(crate) fn cargo(&self) -> Command {
        self.command("cargo")
    }

    /// The compiler for Windows: Debian's, which has a standard library for that target.
    pub(crate) fn windows_cargo(&self) -> Command {
        self.with_windows_compiler(DEBIAN_CARGO)
    }

    /// Debian's clippy. Asked for a `clippy`, its cargo might find the one of another compiler first.
    pub(crate) fn windows_clippy(&self) -> Command {
        let mut command = self.with_windows_compiler("/usr/bin/cargo-clippy");
        command.env("CARGO", DEBIAN_CARGO).arg("clippy");
        command
    }

    fn with_windows_compiler(&self, program: &str) -> Command {
        let mut command = self.command(program);
        command
            .env("RUSTC", "/usr/bin/rustc")
            .env("RUSTDOC", "/usr/bin/rustdoc")
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", self.winrun());
        if self.sysroot != Path::new("/usr") {
            let mut flag = OsString::from("--sysroot=");
            flag.push(&self.sysroot);
            command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS", flag);
        }
        command
    }

    /// `--target … --workspace` without the crates that are for Linux only.
    pub(crate) fn windows_selection() -> Vec<&'static str> {
        let mut arguments = vec!["--target", WINDOWS_TARGET, "--workspace"];
        for name in LINUX_ONLY {
            arguments.extend(["--exclude", name]);
        }
        arguments
    }

    /// Where cargo keeps what it downloads.
    pub(crate) fn cargo_home(&self) -> Option<PathBuf> {
        let home = || Some(self.environment.path("HOME")?.join(".cargo"));
        self.environment.path("CARGO_HOME").or_else(home)
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.tools.join("bin")
    }

    pub(crate) fn winrun(&self) -> PathBuf {
        self.bin().join("winrun")
    }

    pub(crate) fn wine(&self) -> PathBuf {
        self.tools.join("wine")
    }

    /// The development build of `transom`, for this machine or for Windows.
    pub(crate) fn transom(&self) -> PathBuf {
        self.target.join("debug/transom")
    }

    pub(crate) fn windows_transom(&self) -> PathBuf {
        self.target.join(WINDOWS_TARGET).join("debug/transom.exe")
    }

    fn search_path(&self) -> OsString {
        let folders = std::iter::once(self.bin()).chain(self.environment.search_path());
        // A folder with a `:` in its name cannot be in the list; then ours is the one left out.
        std::env::join_paths(folders)
            .unwrap_or_else(|_| self.environment.get("PATH").unwrap_or_default().to_owned())
    }
}

fn runs_as_root() -> Result<bool> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    effective_user_is_root(&status).context("/proc/self/status has no Uid line")
}

fn effective_user_is_root(status: &str) -> Option<bool> {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    Some(ids.split_whitespace().nth(1)? == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pairs: &[(&str, &str)], is_root: bool) -> Workspace {
        Workspace::new("/src/transom".into(), Environment::made_of(pairs), is_root).unwrap()
    }

    #[test]
    fn root_gets_shared_tools_and_others_get_their_cache() {
        let root = at(&[("HOME", "/h")], true);
        assert_eq!(root.tools, Path::new("/opt/transom-dev"));
        assert_eq!(root.sysroot, Path::new("/usr"));
        assert_eq!(root.target, Path::new("/h/.cache/transom/target"));
        let user = at(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")], false);
        assert_eq!(user.tools, Path::new("/c/transom/tools"));
        assert_eq!(user.sysroot, Path::new("/c/transom/tools/sysroot"));
    }

    #[test]
    fn cargo_target_dir_wins_over_ours() {
        let both = [
            ("HOME", "/h"),
            ("CARGO_TARGET_DIR", "/t"),
            ("TRANSOM_TARGET_DIR", "/u"),
        ];
        assert_eq!(at(&both, true).target, Path::new("/t"));
        assert_eq!(at(&[both[0], both[2]], true).target, Path::new("/u"));
    }

    #[test]
    fn a_home_is_needed_to_find_the_cache() {
        assert!(Workspace::new("/src".into(), Environment::default(), true).is_err());
    }

    #[test]
    fn the_effective_user_decides_who_is_root() {
        assert_eq!(
            effective_user_is_root("Name:\tx\nUid:\t1000\t0\t0\t0\n"),
            Some(true)
        );
        assert_eq!(effective_user_is_root("Uid:\t0\t1000\t0\t0\n"), Some(false));
        assert_eq!(effective_user_is_root("Name:\tx\n"), None);
    }
}
