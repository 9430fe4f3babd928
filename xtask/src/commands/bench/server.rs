//! The API server as clients and operators meet it, over TLS: creates, watches, memory, the time to be ready. What is
//! durable is measured on a disk, since in memory nothing is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::memory::{MEBIBYTE, resident};
use super::{Amount, Outcome, Section, Stage, median};
use crate::run;

pub(super) const SERVER: Section = Section {
    name: "the API over TLS",
    measure,
};

const CREATES: &str = "6400";
const WATCHERS: &str = "1000";
const CHANGES: &str = "51";
const STARTS: usize = 9;
const NODES: &str = "5000";
const PODS: &str = "50000";
const PATIENCE: Duration = Duration::from_mins(1);
/// What is freed after a start or a storm is given back a little later.
const SETTLE: Duration = Duration::from_secs(5);
const READY_WITHIN: Duration = Duration::from_millis(150);
const HEARD_WITHIN: Duration = Duration::from_millis(20);

fn measure(stage: &Stage<'_>) -> Result<Vec<Outcome>> {
    let mut build = stage.workspace.cargo();
    build.args(["build", "--release", "--package", "transom-api"]);
    run::quietly(build.args(["--example", "load"]))?;

    let mut outcomes = vec![ready(stage)?];
    outcomes.push(idle(stage)?);
    outcomes.extend(storm(stage)?);
    outcomes.push(filled(stage)?);
    Ok(outcomes)
}

/// From the start of the program to its first good answer, on a folder that it has used before.
fn ready(stage: &Stage<'_>) -> Result<Outcome> {
    let data = stage.fresh("starts")?;
    Server::start(stage, &data, &[])?.stop()?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let server = Server::start(stage, &data, &[])?;
        times.push(begun.elapsed());
        server.stop()?;
    }
    Ok(Outcome {
        name: "a server from start to ready, median",
        peer: "150 ms",
        limit: Some(1.0),
        ours: Amount::Time(median(times).context("nothing was measured")?),
        theirs: Amount::Time(READY_WITHIN),
    })
}

fn idle(stage: &Stage<'_>) -> Result<Outcome> {
    let server = Server::start(stage, &stage.fresh("idle-server")?, &[])?;
    std::thread::sleep(SETTLE);
    let memory = resident(server.process.id())?;
    server.stop()?;
    Ok(Outcome {
        name: "an idle server",
        peer: "40 MiB",
        limit: Some(1.0),
        ours: Amount::Memory(memory),
        theirs: Amount::Memory(40 * MEBIBYTE),
    })
}

/// Creates against puts into etcd, both on the disk; then a change that many watches hear of.
fn storm(stage: &Stage<'_>) -> Result<Vec<Outcome>> {
    let etcd = super::api::etcd_on_disk(stage)?;
    let server = Server::start(stage, &stage.fresh_on_disk("server")?, &ALONE)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        ours.push(server.load(stage, &["creates", CREATES])?);
        let answer = run::output(super::api::storm(stage).args(["etcd", &etcd, CREATES]))?;
        theirs.push(seconds(&answer)?);
    }
    let heard = server.load(stage, &["watchers", WATCHERS, CHANGES])?;
    server.stop()?;
    Ok(vec![
        Outcome {
            name: "6,400 creates of 2 KiB through the API, 64 clients, on disk",
            peer: "etcd's puts alone",
            limit: None,
            ours: Amount::Time(median(ours).context("nothing was measured")?),
            theirs: Amount::Time(median(theirs).context("nothing was measured")?),
        },
        Outcome {
            name: "a change until the last of 1,000 watches has it, median",
            peer: "20 ms",
            limit: Some(1.0),
            ours: Amount::Time(heard),
            theirs: Amount::Time(HEARD_WITHIN),
        },
    ])
}

fn filled(stage: &Stage<'_>) -> Result<Outcome> {
    let server = Server::start(stage, &stage.fresh("filled")?, &ALONE)?;
    server.load(stage, &["fill", NODES, PODS])?;
    std::thread::sleep(SETTLE);
    let memory = resident(server.process.id())?;
    server.stop()?;
    Ok(Outcome {
        name: "a server with 5,000 nodes and 50,000 pods",
        peer: "1 GiB",
        limit: Some(1.0),
        ours: Amount::Memory(memory),
        theirs: Amount::Memory(1024 * MEBIBYTE),
    })
}

/// Without what would work on the objects of a measurement.
const ALONE: [&str; 4] = ["--disable", "scheduler", "--disable", "workloads"];

/// A server that ends with the value.
struct Server {
    process: std::process::Child,
    kubeconfig: PathBuf,
}

impl Server {
    /// Returns when it answers that it is ready.
    fn start(stage: &Stage<'_>, data: &Path, words: &[&str]) -> Result<Self> {
        let mut command = stage.transom();
        command
            .args(["server", "--listen", ADDRESS, "--data-dir"])
            .arg(data)
            .args(words);
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("could not start the server")?;
        let server = Self {
            process,
            kubeconfig: data.join("admin.kubeconfig"),
        };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if is_ready() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("the server did not become ready")
    }

    /// Runs the program that is in a hurry, and tells the time that it measured.
    fn load(&self, stage: &Stage<'_>, words: &[&str]) -> Result<Duration> {
        // A thousand watches are a thousand connections.
        let mut load = stage.workspace.command("prlimit");
        load.arg("--nofile=8192")
            .arg(stage.workspace.target.join("release/examples/load"))
            .args(words)
            .env("KUBECONFIG", &self.kubeconfig);
        seconds(&run::output(&mut load)?)
    }

    fn stop(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was stopped already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const ADDRESS: &str = "127.0.0.1:46448";

fn is_ready() -> bool {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--insecure", "--max-time", "5"])
        .arg(format!("https://{ADDRESS}/readyz"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    curl.status().is_ok_and(|status| status.success())
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.trim().parse().context("no number of seconds")?;
    Ok(Duration::try_from_secs_f64(seconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_measured_is_read_as_seconds() {
        assert_eq!(seconds("0.25\n").ok(), Some(Duration::from_millis(250)));
        assert!(seconds("soon").is_err());
        assert!(seconds("-1").is_err());
    }
}
