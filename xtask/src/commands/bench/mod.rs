//! `cargo xtask bench`: named measurements, each against a peer that is measured in the same run on the
//! same machine. Only the ratio says something; the times are there to judge it by.

mod api;
mod memory;
mod packages;
mod pods;
mod server;
mod simulation;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// Measure Transom against peers; fails when a limit is not kept
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

/// What is measured against a time that we set ourselves, for want of a peer.
struct Gauge {
    name: &'static str,
    peer: &'static str,
    allowed: Duration,
    rounds: usize,
    measure: fn(&Stage<'_>) -> Result<Duration>,
}

/// Several measurements that share what they are made with.
struct Section {
    name: &'static str,
    measure: fn(&Stage<'_>) -> Result<Vec<Outcome>>,
}

/// What was measured.
#[derive(Clone, Copy)]
enum Amount {
    Time(Duration),
    /// Bytes.
    Memory(u64),
}

/// Where a measurement happens.
struct Stage<'a> {
    workspace: &'a Workspace,
    /// Its own folder, gone afterwards.
    folder: PathBuf,
    /// Programs that run as long as the measurement.
    beside: RefCell<Vec<Child>>,
}

impl Stage<'_> {
    /// Our program, as it is shipped.
    fn transom(&self) -> Command {
        self.workspace
            .command(self.workspace.target.join("release/transom"))
    }

    /// Starts a program that is ended with the measurement.
    fn beside(&self, command: &mut Command) -> Result<()> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("could not start `{}`", run::shown(command)))?;
        self.beside.borrow_mut().push(child);
        Ok(())
    }

    /// The program that was started last.
    fn last_beside(&self) -> Result<u32> {
        let beside = self.beside.borrow();
        Ok(beside.last().context("nothing was started")?.id())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.join(below)
    }

    /// A folder that is empty, whatever the round before left in it.
    fn fresh(&self, below: &str) -> Result<PathBuf> {
        empty(self.path(below))
    }

    /// The same on the disk that builds are on: a file system in memory cannot show what durable costs.
    fn fresh_on_disk(&self, below: &str) -> Result<PathBuf> {
        empty(self.disk().join(below))
    }

    fn disk(&self) -> PathBuf {
        let name = format!("bench-{}", std::process::id());
        self.workspace.target.join(name)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for child in self.beside.borrow_mut().iter_mut() {
            // One that ended by itself is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
        // A folder of temporary files that stays is no failure of a measurement.
        let _ = remove(&self.folder);
        let _ = remove(&self.disk());
    }
}

fn empty(path: PathBuf) -> Result<PathBuf> {
    remove(&path)?;
    fs_err::create_dir_all(&path)?;
    Ok(path)
}

fn remove(path: &Path) -> Result<()> {
    match fs_err::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

const MEASUREMENTS: [Measurement; 6] = [
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
    api::WRITE,
    api::LIST,
];

const GAUGES: [Gauge; 1] = [simulation::BIND];

const SECTIONS: [Section; 2] = [server::SERVER, pods::PODS];

struct Outcome {
    name: &'static str,
    peer: &'static str,
    limit: Option<f64>,
    ours: Amount,
    theirs: Amount,
}

impl Bench {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        let filter = self.filter.unwrap_or_default();
        let chosen: Vec<_> = MEASUREMENTS
            .iter()
            .filter(|one| one.name.contains(&filter))
            .collect();
        let gauges: Vec<_> = GAUGES
            .iter()
            .filter(|one| one.name.contains(&filter))
            .collect();
        let sections: Vec<_> = SECTIONS
            .iter()
            .filter(|one| one.name.contains(&filter))
            .collect();
        if chosen.is_empty() && gauges.is_empty() && sections.is_empty() {
            let names = MEASUREMENTS.iter().map(|one| one.name);
            let names = names.chain(GAUGES.iter().map(|one| one.name));
            let names: Vec<_> = names.chain(SECTIONS.iter().map(|one| one.name)).collect();
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
        for one in gauges {
            outcomes.push(gauge(workspace, one, &parent)?);
        }
        for one in sections {
            outcomes.extend((one.measure)(&stage(workspace, &parent)?)?);
        }
        print(&outcomes, self.output);
        let above: Vec<_> = outcomes
            .iter()
            .filter(|one| !one.is_within())
            .map(|one| one.name)
            .collect();
        if !above.is_empty() {
            bail!("above the limit: {}", above.join(", "));
        }
        Ok(())
    }
}

/// Takes turns, so that whatever else the machine does meets both alike.
fn measure(workspace: &Workspace, measurement: &Measurement, parent: &Path) -> Result<Outcome> {
    let stage = stage(workspace, parent)?;
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
        ours: Amount::Time(median(ours).context("nothing was measured")?),
        theirs: Amount::Time(median(theirs).context("nothing was measured")?),
    })
}

/// As often as it says, and the median against what is allowed.
fn gauge(workspace: &Workspace, gauge: &Gauge, parent: &Path) -> Result<Outcome> {
    let stage = stage(workspace, parent)?;
    let times: Result<Vec<_>> = (0..gauge.rounds).map(|_| (gauge.measure)(&stage)).collect();
    Ok(Outcome {
        name: gauge.name,
        peer: gauge.peer,
        limit: Some(1.0),
        ours: Amount::Time(median(times?).context("nothing was measured")?),
        theirs: Amount::Time(gauge.allowed),
    })
}

fn stage<'a>(workspace: &'a Workspace, parent: &Path) -> Result<Stage<'a>> {
    let stage = Stage {
        workspace,
        folder: parent.join(format!("transom-bench-{}", std::process::id())),
        beside: RefCell::default(),
    };
    stage.fresh("")?;
    Ok(stage)
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
        self.ours.number() / self.theirs.number()
    }

    fn is_within(&self) -> bool {
        self.limit.is_none_or(|limit| self.ratio() <= limit)
    }
}

impl Amount {
    /// In seconds or mebibytes.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody measures so many bytes that it mattered"
    )]
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Memory(bytes) => bytes as f64 / f64::from(1 << 20),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Time(time) => format!("{} µs", time.as_micros()),
            Self::Memory(_) => format!("{:.2} MiB", self.number()),
        }
    }
}

fn print(outcomes: &[Outcome], format: Format) {
    match format {
        Format::Json => {
            let list: Vec<_> = outcomes
                .iter()
                .map(|one| {
                    json!({
                        "name": one.name,
                        "peer": one.peer,
                        "unit": match one.ours {
                            Amount::Time(_) => "seconds",
                            Amount::Memory(_) => "MiB",
                        },
                        "median": one.ours.number(),
                        "peerMedian": one.theirs.number(),
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
                        one.ours.shown(),
                        one.peer.to_owned(),
                        one.theirs.shown(),
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
    fn a_limit_is_kept_or_not_and_without_one_all_is_well() {
        let outcome = |limit| Outcome {
            name: "x",
            peer: "y",
            limit,
            ours: Amount::Memory(3),
            theirs: Amount::Memory(2),
        };
        assert!(outcome(None).is_within());
        assert!(outcome(Some(1.5)).is_within());
        assert!(!outcome(Some(1.4)).is_within());
    }

    #[test]
    fn a_program_that_fails_is_not_timed() {
        assert!(time(&mut Command::new("/bin/false")).is_err());
    }
}
