//! `cargo xtask fuzz`: the fuzz targets in `fuzz/`, for as long as one likes. They are built with the
//! project's own compiler: coverage is a pass of LLVM, and only sanitizers need a nightly one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// What tells the fuzzer which code an input reached.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Build scripts and macros of dependencies must not be built so: a target of its own keeps them apart.
const TARGET: &str = "x86_64-unknown-linux-gnu";

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
        let mut targets = targets(workspace)?;
        if let Some(wanted) = &self.target {
            targets.retain(|target| target == wanted);
            if targets.is_empty() {
                bail!("there is no target `{wanted}` in fuzz/");
            }
        }
        run::quietly(&mut build(workspace))?;
        for target in targets {
            console::heading(&format!("fuzz {target} for {}s", self.seconds));
            run::visibly(&mut fuzz(workspace, &target, self.seconds)?)?;
        }
        Ok(())
    }
}

/// The short run of CI: every target, long enough to meet what an early mutation breaks. Always the same
/// inputs, so that a change fails because of what it changed.
pub(crate) fn briefly(workspace: &Workspace) -> Result<()> {
    const SECONDS: u32 = 20;
    run::quietly(&mut build(workspace))?;
    for target in targets(workspace)? {
        let mut command = program(workspace, &target, SECONDS)?;
        command.args(["-seed=1", "-runs=2000"]);
        command.arg(workspace.root.join("fuzz/seeds").join(&target));
        run::quietly(&mut command)
            .with_context(|| format!("`cargo xtask fuzz {target}` looks for more"))?;
    }
    Ok(())
}

/// The names of the files in `fuzz/fuzz_targets`, sorted.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(workspace.root.join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        let name = path.file_stem().context("a target has a name")?;
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn target_folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("fuzz")
}

fn build(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command
        .args(["build", "--release", "--locked", "--target", TARGET])
        .arg("--manifest-path")
        .arg(workspace.root.join("fuzz/Cargo.toml"))
        // Its flags would rebuild everything else in the shared build output.
        .env("CARGO_TARGET_DIR", target_folder(workspace))
        .env("RUSTFLAGS", COVERAGE);
    command
}

/// Runs one target on what earlier runs found and on the seeds.
fn fuzz(workspace: &Workspace, target: &str, seconds: u32) -> Result<Command> {
    let corpus = target_folder(workspace).join("corpus").join(target);
    fs_err::create_dir_all(&corpus)?;
    let mut command = program(workspace, target, seconds)?;
    command.arg(corpus);
    command.arg(workspace.root.join("fuzz/seeds").join(target));
    Ok(command)
}

/// One target with its limits, and nothing to begin with.
fn program(workspace: &Workspace, target: &str, seconds: u32) -> Result<Command> {
    let crashes = target_folder(workspace).join("crashes");
    fs_err::create_dir_all(&crashes)?;
    let program = target_folder(workspace)
        .join(TARGET)
        .join("release")
        .join(target);
    let mut command = workspace.command(program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=20", "-rss_limit_mb=3000", "-max_len=65536"])
        .arg(format!("-artifact_prefix={}/", crashes.display()));
    Ok(command)
}
