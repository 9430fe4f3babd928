//! `cargo xtask fuzz`: the fuzz targets in `fuzz/`, for as long as one likes. They need a nightly
//! compiler and cargo-fuzz, which are not installed by themselves: nothing else needs them.

use std::process::Command;

use anyhow::{Result, bail};

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// Feed random input to the parsers
#[derive(Debug, clap::Args)]
pub(crate) struct Fuzz {
    /// One target of `fuzz/`; all of them if not given
    target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

impl Fuzz {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        let missing = what_is_missing(workspace);
        if !missing.is_empty() {
            bail!(
                "fuzzing needs more than is here:\n  {}",
                missing.join("\n  ")
            );
        }
        let targets = match self.target {
            Some(target) => vec![target],
            None => run::output(cargo_fuzz(workspace).arg("list"))?
                .lines()
                .map(str::to_owned)
                .collect(),
        };
        if targets.is_empty() {
            bail!("there is no target in fuzz/");
        }
        for target in targets {
            console::heading(&format!("fuzz {target} for {}s", self.seconds));
            let limit = format!("-max_total_time={}", self.seconds);
            run::visibly(cargo_fuzz(workspace).args(["run", &target, "--", &limit]))?;
        }
        Ok(())
    }
}

fn cargo_fuzz(workspace: &Workspace) -> Command {
    let mut command = workspace.command("cargo");
    // Its flags would rebuild everything else in the shared build output.
    command.env("CARGO_TARGET_DIR", workspace.target.join("fuzz"));
    command.env("RUSTUP_TOOLCHAIN", "nightly").arg("fuzz");
    command
}

fn what_is_missing(workspace: &Workspace) -> Vec<&'static str> {
    let works = |command: &mut Command| run::output(command).is_ok();
    let mut missing = Vec::new();
    if !workspace.root.join("fuzz/Cargo.toml").is_file() {
        missing.push("the folder fuzz/ with its targets");
    }
    let mut nightly = workspace.command("rustc");
    if !works(nightly.env("RUSTUP_TOOLCHAIN", "nightly").arg("--version")) {
        missing.push("a nightly compiler: rustup toolchain install nightly");
    }
    if !works(workspace.cargo().args(["fuzz", "--version"])) {
        missing.push("cargo-fuzz: cargo install cargo-fuzz --locked");
    }
    missing
}
