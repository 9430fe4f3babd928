//! Pods in containers, with API and agent in place: how soon one runs, against runc with the same files; how soon a
//! node is full; what pods cost in memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::memory::{MEBIBYTE, proportional, resident};
use super::{Amount, Outcome, Section, Stage, median};
use crate::run;

pub(super) const PODS: Section = Section {
    name: "pods in containers",
    measure,
};

/// How many pods start one after the other.
const ROUNDS: usize = 20;
/// All that a node takes; the demonstration is one of them.
const FULL: usize = 110;
const PATIENCE: Duration = Duration::from_mins(2);
/// What runs in each pod and under runc.
const PROGRAM: [&str; 4] = ["/transom", "hello", "--pod=bench", "--node=bench"];

fn measure(stage: &Stage<'_>) -> Result<Vec<Outcome>> {
    let idle = idle_agent(stage)?;
    let cluster = Cluster::start(stage)?;
    let mut starts = Vec::new();
    for round in 0..ROUNDS {
        let name = format!("single-{round}");
        cluster.create(&[pod(&name)])?;
        starts.push(cluster.wait_for(std::slice::from_ref(&name))?[&name]);
        cluster.delete(&[&name])?;
    }
    let start = median(starts).context("nothing was measured")?;
    let alone = runc(stage, &cluster.data)?;

    let before = cluster.memory()?;
    let names: Vec<String> = (1..FULL).map(|number| format!("full-{number}")).collect();
    let pods: Vec<Value> = names.iter().map(|name| pod(name)).collect();
    let begun = Instant::now();
    cluster.create(&pods)?;
    cluster.wait_for(&names)?;
    let full = begun.elapsed();
    let grown = cluster.memory()?.saturating_sub(before);
    let each = grown / u64::try_from(names.len())?;

    let limit = |name, ours, peer, theirs| Outcome {
        name,
        peer,
        limit: Some(1.0),
        ours,
        theirs,
    };
    Ok(vec![
        limit(
            "a pod from created to running, median",
            Amount::Time(start),
            "150 ms",
            Amount::Time(Duration::from_millis(150)),
        ),
        Outcome {
            name: "a pod from created to running, median",
            peer: "runc run",
            limit: Some(3.0),
            ours: Amount::Time(start),
            theirs: Amount::Time(alone),
        },
        limit(
            "a node filled with 110 pods",
            Amount::Time(full),
            "20 s",
            Amount::Time(Duration::from_secs(20)),
        ),
        limit(
            "an idle agent",
            Amount::Memory(idle),
            "25 MiB",
            Amount::Memory(25 * MEBIBYTE),
        ),
        limit(
            "each pod, with its shim and what the cluster keeps of it",
            Amount::Memory(each),
            "1.5 MiB",
            Amount::Memory(3 * MEBIBYTE / 2),
        ),
    ])
}

fn pod(name: &str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "hello",
                "image": format!("transom.dev/transom:{version}"),
                "imagePullPolicy": "IfNotPresent",
                "command": PROGRAM,
            }],
        },
    })
}

/// The memory of an agent that is a process of its own and runs nothing.
fn idle_agent(stage: &Stage<'_>) -> Result<u64> {
    let data = stage.fresh("idle")?;
    let address = "127.0.0.1:46446";
    let mut server = stage.transom();
    server
        .args(["server", "--listen", address, "--data-dir"])
        .arg(data.join("server"));
    stage.beside(&mut server)?;
    let kubeconfig = data.join("server/admin.kubeconfig");
    let token = patiently(|| {
        let mut create = stage.transom();
        create
            .args(["token", "create", "--kubeconfig"])
            .arg(&kubeconfig);
        run::output(&mut create)
    })?;
    fs_err::write(data.join("token"), token)?;
    let mut agent = stage.transom();
    agent
        .args(["agent", "--runtime", "oci", "--node-name", "idle"])
        .args(["--listen", "127.0.0.1:46447", "--server"])
        .arg(format!("https://{address}"))
        .arg("--token-file")
        .arg(data.join("token"))
        .arg("--data-dir")
        .arg(data.join("agent"));
    stage.beside(&mut agent)?;
    let wait = ["wait", "--for=condition=Ready", "node/idle"];
    patiently(|| run::output(kubectl(&kubeconfig).args(wait)))?;
    // What is freed after the start is given back a little later.
    std::thread::sleep(Duration::from_secs(5));
    resident(stage.last_beside()?)
}

/// A cluster of one machine, and what happens to its pods.
struct Cluster {
    data: PathBuf,
    process: u32,
    watch: Child,
    events: Receiver<Event>,
}

struct Event {
    at: Instant,
    pod: String,
    runs: bool,
}

impl Cluster {
    fn start(stage: &Stage<'_>) -> Result<Self> {
        let data = stage.fresh("up")?;
        let mut up = stage.transom();
        up.args(["up", "--foreground", "--runtime=oci", "--node-name=bench"])
            .args(["--listen=127.0.0.1:46445", "--agent-listen=127.0.0.1:46450"])
            .args(["--demo-listen=127.0.0.1:46480", "--data-dir"])
            .arg(&data);
        stage.beside(&mut up)?;
        let process = stage.last_beside()?;
        let kubeconfig = data.join("server/admin.kubeconfig");
        let wait = ["wait", "--for=condition=Available", "deployment/hello"];
        patiently(|| run::output(kubectl(&kubeconfig).args(wait).arg("--timeout=60s")))?;
        let mut watch = kubectl(&kubeconfig)
            .args(["get", "pods", "--watch", "--output-watch-events"])
            .args(["--output", "json"])
            .stdout(Stdio::piped())
            .spawn()?;
        let output = watch.stdout.take().context("kubectl has no output")?;
        let (sender, events) = channel();
        std::thread::spawn(move || {
            let documents = serde_json::Deserializer::from_reader(output).into_iter::<Value>();
            for document in documents.map_while(Result::ok) {
                let object = &document["object"];
                let event = Event {
                    at: Instant::now(),
                    pod: object["metadata"]["name"].as_str().unwrap_or("").to_owned(),
                    runs: object["status"]["phase"] == "Running",
                };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            data,
            process,
            watch,
            events,
        })
    }

    fn kubectl(&self) -> Command {
        kubectl(&self.data.join("server/admin.kubeconfig"))
    }

    fn create(&self, pods: &[Value]) -> Result<()> {
        let file = self.data.join("pods.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
        fs_err::write(&file, list.to_string())?;
        let create = ["create", "--validate=false", "-f"];
        run::quietly(self.kubectl().args(create).arg(&file))
    }

    fn delete(&self, pods: &[&str]) -> Result<()> {
        run::quietly(self.kubectl().args(["delete", "pod"]).args(pods))
    }

    /// Waits until all run, and tells how long each took from the first that was heard of it.
    fn wait_for(&self, names: &[String]) -> Result<HashMap<String, Duration>> {
        let end = Instant::now() + PATIENCE;
        let mut first: HashMap<String, Instant> = HashMap::new();
        let mut took: HashMap<String, Duration> = HashMap::new();
        while took.len() < names.len() {
            let left = end.saturating_duration_since(Instant::now());
            let event = match self.events.recv_timeout(left) {
                Ok(event) if names.contains(&event.pod) => event,
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{} of {} pods run", took.len(), names.len())
                }
                Err(RecvTimeoutError::Disconnected) => bail!("kubectl ended its watch"),
            };
            let begun = *first.entry(event.pod.clone()).or_insert(event.at);
            if event.runs {
                took.entry(event.pod).or_insert(event.at - begun);
            }
        }
        Ok(took)
    }

    /// The memory of the cluster's process and of all shims below it.
    fn memory(&self) -> Result<u64> {
        let mut sum = resident(self.process)?;
        for entry in fs_err::read_dir("/proc")? {
            let path = entry?.path();
            // Others come and go in the meantime.
            let Ok(line) = fs_err::read(path.join("cmdline")) else {
                continue;
            };
            let line = String::from_utf8_lossy(&line);
            if line.contains("agent\0shim") && line.contains(&*self.data.to_string_lossy()) {
                sum += proportional(&path).unwrap_or(0);
            }
        }
        Ok(sum)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // One that ended by itself is as good.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
        let _ = run::output(self.kubectl().args(["delete", "deployment", "hello"]));
        let _ = run::output(self.kubectl().args(["delete", "pods", "--all", "--now"]));
    }
}

fn kubectl(kubeconfig: &Path) -> Command {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(kubeconfig);
    kubectl
}

fn patiently<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(200)),
            outcome => return outcome,
        }
    }
}

/// The time that `runc run` takes for the same program with the same files.
fn runc(stage: &Stage<'_>, data: &Path) -> Result<Duration> {
    let root = unpacked(data)?.context("the image of the demonstration is not unpacked")?;
    let bundle = stage.fresh("bundle")?;
    run::quietly(
        Command::new("runc")
            .arg("spec")
            .arg("--bundle")
            .arg(&bundle),
    )?;
    let file = bundle.join("config.json");
    let mut config: Value = serde_json::from_str(&fs_err::read_to_string(&file)?)?;
    config["root"] = json!({"path": root, "readonly": true});
    config["process"]["args"] = json!(PROGRAM);
    config["process"]["terminal"] = json!(false);
    fs_err::write(&file, config.to_string())?;
    let containers = stage.path("runc");
    let runc = |words: &[&str]| {
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(&containers).args(words);
        runc.stdout(Stdio::null()).stderr(Stdio::null());
        runc
    };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut start = runc(&["run", "--detach", "--bundle"]);
        times.push(super::time(start.arg(&bundle).arg("bench"))?);
        run::quietly(&mut runc(&["delete", "--force", "bench"]))?;
    }
    median(times).context("nothing was measured")
}

/// The folder below `folder` that has our program in it, as an unpacked layer has.
fn unpacked(folder: &Path) -> Result<Option<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.join("transom").is_file() && folder.join("lib64").is_dir() {
            return Ok(Some(folder));
        }
        for entry in fs_err::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(None)
}
