//! What works where: each case is one manifest that is applied on a Linux node and on a Windows node, and the same
//! questions are asked of both. The outcome is the page `docs/reference/parity.md`; a case that ends otherwise than the
//! page says fails.

mod cases;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use transom_model::os::Os;
use transom_testkit::Host;

use crate::cluster::{Cluster, KUBECONFIG};

use cases::CASES;

/// How many cases are under way at once: most of them wait for something.
const AT_ONCE: usize = 6;
/// How long something may take that happens by itself; volumes are brought up to date once a minute.
const PATIENCE: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(200);
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/parity.md"
);

/// One thing that people expect of a node.
struct Case {
    /// The part of the page it is in.
    part: &'static str,
    title: &'static str,
    /// Objects for a namespace of their own. `OS` stands for the system of the node.
    manifest: &'static str,
    check: fn(&Scene<'_>) -> Result<Verdict>,
    needs: Needs,
}

/// What a case needs that Wine has not, though every Windows has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Folders that are links to others: where there are none, a volume is a copy for each container.
    Links,
}

/// What became of a case that went as it should.
enum Verdict {
    Works,
    /// The node said that it cannot, and this is the reason it gave.
    Refused(String),
}

/// A case on one system.
struct Scene<'a> {
    desk: &'a Host,
    namespace: String,
    os: Os,
}

impl Scene<'_> {
    /// Runs kubectl in the namespace of the case.
    fn kubectl(&self, words: &[&str]) -> Result<String> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG, "-n", &self.namespace];
        let output = self.desk.run(line.iter().chain(words).copied())?;
        Ok(output.success().with_context(|| words.join(" "))?.stdout)
    }

    fn apply(&self, manifest: &str) -> Result<()> {
        let text = manifest.replace("OS", self.os.as_str());
        let line = ["kubectl", "--kubeconfig", KUBECONFIG, "-n"];
        let line = line
            .into_iter()
            .chain([&self.namespace, "apply", "-f", "-"]);
        self.desk.command(line).input(text).run()?.success()?;
        Ok(())
    }

    fn pod(&self, name: &str) -> Result<Value> {
        let text = self.kubectl(&["get", "pod", name, "-o", "json"])?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Waits until the log of a container contains all of these, in any order.
    fn log_has(&self, pod: &str, wanted: &[&str]) -> Result<String> {
        until(|| {
            let log = self.kubectl(&["logs", pod])?;
            for text in wanted {
                ensure!(log.contains(text), "no `{text}` in the log:\n{log}");
            }
            Ok(log)
        })
    }

    /// Runs a step of the test program in a pod, and returns what it printed.
    fn act(&self, pod: &str, step: &str) -> Result<String> {
        self.kubectl(&["exec", pod, "--", "testkit-echo", "act", step])
    }

    /// Waits for the pod to be ready or done, and returns it.
    fn settled(&self, pod: &str) -> Result<Value> {
        until(|| {
            let pod = self.pod(pod)?;
            let status = &pod["status"];
            let ready =
                |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            let conditions = status["conditions"].as_array().cloned();
            let is_ready = conditions.unwrap_or_default().iter().any(ready);
            ensure!(is_ready || status["phase"] == "Succeeded", "{status:#}");
            Ok(pod)
        })
    }

    /// Waits for an event that contains this.
    fn event(&self, wanted: &str) -> Result<()> {
        until(|| {
            let messages = self.messages("")?;
            let found = messages.iter().any(|message| message.contains(wanted));
            ensure!(found, "no `{wanted}` in {messages:#?}");
            Ok(())
        })
    }

    /// Why a volume is not there, in the last words of its cause.
    fn failed_mount(&self) -> Result<String> {
        let messages = self.messages("FailedMount")?;
        let first = messages.first().context("no volume has failed")?;
        let cause = first.rsplit(" : ").next().unwrap_or(first);
        Ok(cause.to_owned())
    }

    /// The messages of all events, or of those with a reason.
    fn messages(&self, reason: &str) -> Result<Vec<String>> {
        let text = self.kubectl(&["get", "events", "-o", "json"])?;
        let events: Value = serde_json::from_str(&text)?;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        Ok(events
            .iter()
            .filter(|event| reason.is_empty() || event["reason"] == reason)
            .filter_map(|event| event["message"].as_str().map(str::to_owned))
            .collect())
    }
}

/// Looks again and again until it is so.
fn until<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match look() {
            Err(_) if Instant::now() < end => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}

/// The outcome of one case on one system, in the words of the page.
fn run(cluster: &Cluster, number: usize, case: &Case, os: Os) -> Result<String> {
    if case.needs == Needs::Links && os == Os::Windows {
        return Ok("not run: Wine cannot link folders".to_owned());
    }
    let scene = Scene {
        desk: cluster.desk(),
        namespace: format!("case-{number}-{}", os.as_str()),
        os,
    };
    scene.kubectl(&["create", "namespace", &scene.namespace])?;
    // Made after the account; without it the first try to mount the token of a pod fails.
    let map = "configmap/kube-root-ca.crt";
    scene.kubectl(&["wait", "--for=create", map, "--timeout=110s"])?;
    scene.apply(case.manifest)?;
    let verdict = (case.check)(&scene);
    let verdict = verdict.with_context(|| {
        let pods = scene.kubectl(&["describe", "pods"]);
        format!("{pods:?}")
    })?;
    // Not waited for: what is left ends with the lab.
    scene.kubectl(&["delete", "namespace", &scene.namespace, "--wait=false"])?;
    Ok(match verdict {
        Verdict::Works => "works".to_owned(),
        Verdict::Refused(reason) => format!("refused: {reason}"),
    })
}

#[test]
fn the_same_manifests_work_on_both_systems() {
    let hosts = [("alpha", Os::Linux), ("gamma", Os::Windows)];
    let cluster = Cluster::set_up("parity", &hosts).unwrap();
    let todo: Vec<(usize, Os)> = (0..CASES.len())
        .flat_map(|number| [(number, Os::Linux), (number, Os::Windows)])
        .collect();
    let todo = Mutex::new(todo.into_iter());
    let done = Mutex::new(Vec::new());
    thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                loop {
                    let next = todo.lock().unwrap().next();
                    let Some((number, os)) = next else { return };
                    let begun = Instant::now();
                    let outcome = run(&cluster, number, &CASES[number], os);
                    let (title, ok, took) = (CASES[number].title, outcome.is_ok(), begun.elapsed());
                    eprintln!("{title} on {}: {ok} after {took:.1?}", os.as_str());
                    done.lock().unwrap().push((number, os, outcome));
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    let mut faults = String::new();
    let mut page = HEAD.to_owned();
    let mut part = "";
    for (number, case) in CASES.iter().enumerate() {
        if case.part != part {
            part = case.part;
            let _ = write!(
                page,
                "\n## {part}\n\n| case | Linux | Windows |\n|---|---|---|\n"
            );
        }
        let of = |wanted: Os| {
            let found = done
                .iter()
                .find(|(each, os, _)| *each == number && *os == wanted);
            found.map(|(_, _, outcome)| outcome)
        };
        let mut cells = Vec::new();
        for os in [Os::Linux, Os::Windows] {
            match of(os) {
                Some(Ok(word)) => cells.push(word.as_str()),
                Some(Err(error)) => {
                    cells.push("FAILED");
                    let _ = writeln!(faults, "{} on {}: {error:#}\n", case.title, os.as_str());
                }
                None => cells.push("was not run"),
            }
        }
        let _ = writeln!(page, "| {} | {} |", case.title, cells.join(" | "));
    }
    // Shown by a test that fails, and by one that is asked to.
    eprintln!("{page}");
    assert!(faults.is_empty(), "{faults}");
    check_page(&page).unwrap();
}

/// The page in the repository is the one that this run would write; `TRANSOM_WRITE_PARITY=1` writes it.
#[expect(
    clippy::disallowed_methods,
    reason = "a wish of the developer, not a setting of the program"
)]
fn check_page(page: &str) -> Result<()> {
    if std::env::var_os("TRANSOM_WRITE_PARITY").is_some() {
        fs_err::write(PAGE, page)?;
        return Ok(());
    }
    if fs_err::read_to_string(PAGE)? == page {
        return Ok(());
    }
    bail!("docs/reference/parity.md says otherwise; TRANSOM_WRITE_PARITY=1 writes it anew")
}

const HEAD: &str = "\
# What works where

Each case is one manifest, applied on a Linux node and on a Windows node, with the same questions asked of both. This page
is written by the test `the_same_manifests_work_on_both_systems`; CI fails when it is not true. The Windows node is a host
under Wine with the `process` runtime; what a real Windows adds is in [the compatibility page](../compatibility.md).
";
