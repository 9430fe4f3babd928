//! `cargo xtask bench`: named measurements, each against a peer that is measured in the same run on the
//! same machine. Only the ratio says something; the times are there to judge it by.

mod packages;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// Measure Transom against peers
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// Run only the measurements whose name contains this
    filter: Option<String>,
    /// Where to work [default: a file system in memory where there is one, because what else a disk
    /// has to do is no property of ours]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

/// One measurement: what is timed, and the peer it is timed against.
struct Measurement {
    name: &'static str,
    peer: &'static str,
    /// How much of the peer's time we may take, where a limit was set.
    limit: Option<f64>,
    rounds: usize,
    /// Makes what both work on, once.
    prepare: fn(&Stage<'_>) -> Result<()>,
    ours: fn(&Stage<'_>) -> Result<Command>,
    theirs: fn(&Stage<'_>) -> Result<Command>,
}

/// Where a measurement happens.
struct Stage<'a> {
    workspace: &'a Workspace,
    /// Its own folder, gone afterwards.
    folder: PathBuf,
}

impl Stage<'_> {
    /// Our program, as it is shipped.
    fn transom(&self) -> Command {
        self.workspace
            .command(self.workspace.target.join("release/transom"))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below)
    }

    /// A folder that is empty, whatever the round before left in it.
    fn fresh(&self, below: &str) -> Result<PathBuf> {
        let path = self.path(below);
        remove(&path)?;
        fs_err::create_dir_all(&path)?;
        Ok(path)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // A folder of temporary files that stays is no failure of a measurement.
        let _ = remove(&self.folder);
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs_err::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

const MEASUREMENTS: [Measurement; 4] = [
    Measurement {
        name: "start `transom version`",
        peer: "start `/bin/true`",
        limit: None,
        rounds: 60,
        prepare: |_| Ok(()),
        ours: |stage| {
            let mut command = stage.transom();
            command.arg("version");
            Ok(command)
        },
        theirs: |stage| Ok(stage.workspace.command("/bin/true")),
    },
    packages::IDS,
    packages::UNPACK,
    packages::ACTIVATE,
];

struct Outcome {
    name: &'static str,
    peer: &'static str,
    limit: Option<f64>,
    ours: Duration,
    theirs: Duration,
}

impl Bench {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        let filter = self.filter.unwrap_or_default();
        let chosen: Vec<_> = MEASUREMENTS
            .iter()
            .filter(|one| one.name.contains(&filter))
            .collect();
        if chosen.is_empty() {
            let names: Vec<_> = MEASUREMENTS.iter().map(|one| one.name).collect();
            bail!(
                "no measurement is called `{filter}`; there are: {}",
                names.join(", ")
            );
        }
        run::quietly(
            workspace
                .cargo()
                .args(["build", "--release", "--package", "transom"]),
        )?;
        let parent = self.folder.unwrap_or_else(usual_folder);
        let mut outcomes = Vec::new();
        for measurement in chosen {
            outcomes.push(measure(workspace, measurement, &parent)?);
        }
        print(&outcomes, self.output);
        Ok(())
    }
}

/// Takes turns, so that whatever else the machine does meets both alike.
fn measure(workspace: &Workspace, measurement: &Measurement, parent: &Path) -> Result<Outcome> {
    let folder = parent.join(format!("transom-bench-{}", std::process::id()));
    let stage = Stage { workspace, folder };
    stage.fresh("")?;
    (measurement.prepare)(&stage)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..measurement.rounds {
        ours.push(time(&mut (measurement.ours)(&stage)?)?);
        theirs.push(time(&mut (measurement.theirs)(&stage)?)?);
    }
    Ok(Outcome {
        name: measurement.name,
        peer: measurement.peer,
        limit: measurement.limit,
        ours: median(ours).context("nothing was measured")?,
        theirs: median(theirs).context("nothing was measured")?,
    })
}

fn usual_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn time(command: &mut Command) -> Result<Duration> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("could not start `{}`", run::shown(command)))?;
    let time = started.elapsed();
    if !status.success() {
        bail!(
            "`{}` failed: a failure is not worth timing",
            run::shown(command)
        );
    }
    Ok(time)
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

impl Outcome {
    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.theirs.as_secs_f64()
    }
}

fn print(outcomes: &[Outcome], format: Format) {
    let microseconds = |time: Duration| format!("{} µs", time.as_micros());
    match format {
        Format::Json => {
            let list: Vec<_> = outcomes
                .iter()
                .map(|one| {
                    json!({
                        "name": one.name,
                        "peer": one.peer,
                        "medianSeconds": one.ours.as_secs_f64(),
                        "peerMedianSeconds": one.theirs.as_secs_f64(),
                        "ratio": one.ratio(),
                        "limit": one.limit,
                    })
                })
                .collect();
            console::line(&format!("{:#}", json!(list)));
        }
        Format::Table => {
            let rows: Vec<_> = outcomes
                .iter()
                .map(|one| {
                    vec![
                        one.name.to_owned(),
                        microseconds(one.ours),
                        one.peer.to_owned(),
                        microseconds(one.theirs),
                        format!("{:.2}", one.ratio()),
                        one.limit
                            .map_or_else(|| "-".to_owned(), |limit| format!("{limit:.1}")),
                    ]
                })
                .collect();
            console::table(
                &["measurement", "median", "peer", "median", "ratio", "limit"],
                &rows,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_does_not_change_the_median() {
        let times = [1, 2, 900].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Some(Duration::from_millis(2)));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_program_that_fails_is_not_timed() {
        assert!(time(&mut Command::new("/bin/false")).is_err());
    }
}
