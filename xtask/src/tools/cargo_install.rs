//! Tools that come from crates.io. One found on the search path is good enough when it is not older
//! than we need; otherwise a fixed version is compiled into our own folder.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::{State, Tool, stamp};
use crate::run;
use crate::workspace::Workspace;

pub(crate) struct CargoTool<'w> {
    workspace: &'w Workspace,
    /// The crate, which is also the program's name.
    name: &'static str,
    /// How the program prints `name version`.
    version_arguments: &'static [&'static str],
    oldest: &'static str,
    installed: &'static str,
}

impl<'w> CargoTool<'w> {
    pub(crate) fn nextest(workspace: &'w Workspace) -> Self {
        Self {
            workspace,
            name: "cargo-nextest",
            version_arguments: &["nextest", "--version"],
            oldest: "0.9.100",
            installed: "0.9.143",
        }
    }

    pub(crate) fn deny(workspace: &'w Workspace) -> Self {
        Self {
            workspace,
            name: "cargo-deny",
            version_arguments: &["--version"],
            oldest: "0.20.0",
            installed: "0.20.2",
        }
    }

    fn program(&self) -> Option<PathBuf> {
        std::iter::once(self.workspace.bin())
            .chain(self.workspace.environment.search_path())
            .map(|folder| folder.join(self.name))
            .find(|path| path.is_file())
    }

    fn install_command(&self, build: &std::path::Path) -> Command {
        let mut command = self.workspace.cargo();
        command
            .args([
                "install",
                self.name,
                "--locked",
                "--version",
                self.installed,
                "--root",
            ])
            .arg(&self.workspace.tools)
            .env("CARGO_TARGET_DIR", build)
            // Compiling the tool costs more than it ever runs.
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        command
    }
}

/// Whether a program that prints `text` as its version is at least `oldest`.
fn is_new_enough(text: &str, oldest: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        version.split('.').map(|part| part.parse().ok()).collect()
    };
    let printed = text.split_whitespace().nth(1).and_then(numbers);
    printed.is_some_and(|printed| Some(printed) >= numbers(oldest))
}

impl Tool for CargoTool<'_> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn state(&self) -> Result<State> {
        let Some(program) = self.program() else {
            return Ok(State::Missing("not on the search path".into()));
        };
        let mut version = Command::new(program);
        version.args(self.version_arguments);
        Ok(match run::bounded(&mut version, Duration::from_secs(20)) {
            Ok(text) if is_new_enough(&text, self.oldest) => State::Present,
            Ok(text) => State::Missing(format!("{} is older than {}", text.trim(), self.oldest)),
            Err(error) => State::Missing(format!("it does not run: {error:#}")),
        })
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        // Kept when interrupted: the next try goes on from there.
        let build = self.workspace.tools.join("build").join(self.name);
        run::visibly(&mut self.install_command(&build))?;
        stamp::remove(&build)
    }

    fn by_hand(&self) -> String {
        run::shown(&self.install_command(std::path::Path::new("")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_new_enough(
            "cargo-nextest 0.9.143 (60fa45f63)\nrelease: 0.9.143",
            "0.9.100"
        ));
        assert!(is_new_enough("cargo-deny 0.20.2", "0.20.0"));
        assert!(!is_new_enough("cargo-deny 0.9.30", "0.20.0"));
    }

    #[test]
    fn an_unreadable_version_is_too_old() {
        assert!(!is_new_enough("", "0.1.0"));
        assert!(!is_new_enough("cargo-deny unknown", "0.1.0"));
        assert!(!is_new_enough("cargo-deny 1.0.0-beta", "0.1.0"));
    }
}
