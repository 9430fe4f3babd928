//! The cases, in the order of the page. A manifest is the same for both systems but for the word `OS`.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Case, Needs, Scene, Verdict, until};

const CONFIGURATION: &str = "Configuration";
const VOLUMES: &str = "Volumes";
const LIFE: &str = "Containers and probes";
const LOGS: &str = "Logs and figures";

/// A case that works if its log says all of this in the end.
macro_rules! says {
    ($part:expr, $title:literal, $file:literal, $pod:literal, [$($text:literal),+]) => {
        Case {
            part: $part,
            title: $title,
            manifest: include_str!(concat!("manifests/", $file)),
            check: |scene| scene.log_has($pod, &[$($text),+]).map(|_| Verdict::Works),
            needs: Needs::Nothing,
        }
    };
}

macro_rules! case {
    ($part:expr, $title:literal, $file:literal, $check:expr) => {
        case!($part, $title, $file, Needs::Nothing, $check)
    };
    ($part:expr, $title:literal, $file:literal, $needs:expr, $check:expr) => {
        Case {
            part: $part,
            title: $title,
            manifest: include_str!(concat!("manifests/", $file)),
            check: $check,
            needs: $needs,
        }
    };
}

pub(super) const CASES: &[Case] = &[
    says!(
        CONFIGURATION,
        "environment from config maps, secrets, fields and limits",
        "environment.yaml",
        "reader",
        [
            "GREETING=hello",
            "SECRET=open-sesame",
            "MISSING=(not set)",
            "NODE=case-",
            "CPU=2"
        ]
    ),
    says!(
        CONFIGURATION,
        "whole config maps and secrets as environment, with a prefix",
        "environment-whole.yaml",
        "reader",
        ["GREETING=hello", "KEY_PASSWORD=open-sesame"]
    ),
    case!(
        CONFIGURATION,
        "a container waits for a config map that comes later",
        "environment-missing.yaml",
        |scene| {
            scene.event("configmap \"nobody\" not found")?;
            scene.kubectl(&["create", "configmap", "nobody", "--from-literal=GREETING=x"])?;
            scene.log_has("reader", &["started"])?;
            Ok(Verdict::Works)
        }
    ),
    says!(
        CONFIGURATION,
        "config maps as files, whole and by item",
        "config-map-volume.yaml",
        "reader",
        [
            "/config/colour.txt: blue",
            "/config: GREETING colour.txt",
            "/items/deep/greeting: hello"
        ]
    ),
    case!(
        CONFIGURATION,
        "files follow the config map while the pod runs",
        "config-map-update.yaml",
        Needs::Links,
        |scene| {
            scene.settled("reader")?;
            let change = r#"{"data":{"colour.txt":"red","new.txt":"new"}}"#;
            scene.kubectl(&["patch", "configmap", "settings", "-p", change])?;
            until(|| {
                let said = scene.act("reader", "cat:/config/colour.txt")?;
                ensure!(said.contains("red"), "{said}");
                // Both at once, or none of them.
                let said = scene.act("reader", "cat:/config/new.txt")?;
                ensure!(said.contains("new"), "{said}");
                Ok(Verdict::Works)
            })
        }
    ),
    says!(
        CONFIGURATION,
        "secrets as files; optional ones that are missing",
        "secret-volume.yaml",
        "reader",
        ["/keys/PASSWORD: open-sesame", "/absent:"]
    ),
    says!(
        CONFIGURATION,
        "config map, secret, labels and token in one folder",
        "projected.yaml",
        "reader",
        [
            "/all/colour.txt: blue",
            "/all/password: open-sesame",
            "/all/labels: tier=\"front\"",
            "/all: GREETING colour.txt labels password token"
        ]
    ),
    says!(
        CONFIGURATION,
        "one file or folder of a volume (subPath)",
        "sub-path.yaml",
        "reader",
        ["/etc/app/colour: blue", "/data:"]
    ),
    case!(
        VOLUMES,
        "emptyDir is shared by containers and survives their end",
        "empty-dir.yaml",
        Needs::Links,
        |scene| {
            let pod = until(|| {
                let pod = scene.settled("worker")?;
                ensure!(restarts(&pod, 0) == 1, "{:#}", pod["status"]);
                Ok(pod)
            })?;
            ensure!(restarts(&pod, 1) == 0);
            let read = ["testkit-echo", "act", "cat:/shared/note"];
            let words = ["exec", "worker", "-c", "other", "--"];
            // The container runs a moment before it has written.
            until(|| {
                let said = scene.kubectl(&[&words[..], &read].concat())?;
                ensure!(said.contains("kept"), "{said}");
                Ok(Verdict::Works)
            })
        }
    ),
    case!(
        VOLUMES,
        "emptyDir in memory",
        "empty-dir-memory.yaml",
        memory
    ),
    case!(
        VOLUMES,
        "hostPath and its types",
        "host-path.yaml",
        |scene| {
            scene.log_has("writer", &["/data/note: kept"])?;
            scene.event("hostPath type check failed")?;
            Ok(Verdict::Works)
        }
    ),
    case!(
        LIFE,
        "init containers and sidecars",
        "init-and-sidecar.yaml",
        |scene| {
            let pod = scene.settled("worker")?;
            until(|| {
                for (container, word) in [("prepare", "prepared"), ("beside", "beside")] {
                    let log = scene.kubectl(&["logs", "worker", "-c", container])?;
                    ensure!(log.contains(word), "{log}");
                }
                Ok(())
            })?;
            // One after the other, and the second of them goes on beside the rest.
            let status = &pod["status"];
            let (init, main) = (
                &status["initContainerStatuses"],
                &status["containerStatuses"],
            );
            let first = &init[0]["state"]["terminated"];
            ensure!(first["exitCode"] == 0, "{status:#}");
            let times = [
                &first["finishedAt"],
                &init[1]["state"]["running"]["startedAt"],
                &main[0]["state"]["running"]["startedAt"],
            ];
            let times: Option<Vec<&str>> = times.iter().map(|time| time.as_str()).collect();
            ensure!(times.is_some_and(|all| all.is_sorted()), "{status:#}");
            Ok(Verdict::Works)
        }
    ),
    case!(
        LIFE,
        "a container that fails is started again",
        "restart.yaml",
        |scene| {
            has_failed(scene)?;
            scene.kubectl(&["create", "configmap", "later", "--from-literal=GO=yes"])?;
            scene.log_has("worker", &["through"])?;
            scene.settled("worker")?;
            Ok(Verdict::Works)
        }
    ),
    case!(LIFE, "exit codes and phases", "exit-code.yaml", |scene| {
        until(|| {
            let pod = scene.pod("worker")?;
            let status = &pod["status"];
            ensure!(status["phase"] == "Failed", "{status:#}");
            let end = &status["containerStatuses"][0]["state"]["terminated"];
            ensure!(
                end["exitCode"] == 3 && end["reason"] == "Error",
                "{status:#}"
            );
            Ok(Verdict::Works)
        })
    }),
    case!(
        LIFE,
        "a pod is ready when its probe says so, and not any longer",
        "readiness.yaml",
        |scene| {
            until(|| {
                let pod = scene.pod("worker")?;
                ensure!(pod["status"]["phase"] == "Running", "{:#}", pod["status"]);
                Ok(())
            })?;
            ensure!(!is_ready(&scene.pod("worker")?));
            scene.act("worker", "write:/data/ready=yes")?;
            scene.settled("worker")?;
            Ok(Verdict::Works)
        }
    ),
    case!(
        LIFE,
        "probes by HTTP, TCP and command; who is not alive is started again",
        "liveness.yaml",
        |scene| {
            until(|| {
                let pod = scene.pod("worker")?;
                ensure!(restarts(&pod, 0) > 0, "{:#}", pod["status"]);
                Ok(())
            })?;
            scene.event("Liveness probe failed")?;
            Ok(Verdict::Works)
        }
    ),
    case!(LIFE, "hooks after the start", "hooks.yaml", |scene| {
        scene.settled("worker")?;
        let said = scene.act("worker", "cat:/data/hook")?;
        ensure!(said.contains("was here"), "{said}");
        Ok(Verdict::Works)
    }),
    case!(
        LOGS,
        "logs of several containers, with times and limits",
        "logs.yaml",
        |scene| {
            scene.settled("worker")?;
            scene.log_has("worker", &["one", "two"])?;
            until(|| {
                let last = scene.kubectl(&["logs", "worker", "-c", "second", "--tail=1"])?;
                ensure!(last.contains("serving"), "{last}");
                Ok(())
            })?;
            let all = ["logs", "worker", "--all-containers", "--prefix"];
            let all = scene.kubectl(&all)?;
            ensure!(all.contains("[pod/worker/second] three"), "{all}");
            let times = scene.kubectl(&["logs", "worker", "-c", "main", "--timestamps"])?;
            ensure!(times.lines().all(|line| line.contains('Z')), "{times}");
            let later = "--since-time=2100-01-01T00:00:00Z";
            let none = scene.kubectl(&["logs", "worker", "-c", "main", later])?;
            ensure!(none.is_empty(), "{none}");
            Ok(Verdict::Works)
        }
    ),
    case!(
        LOGS,
        "logs of the container before (--previous)",
        "restart.yaml",
        |scene| {
            has_failed(scene)?;
            until(|| {
                let log = scene.kubectl(&["logs", "worker", "--previous"])?;
                ensure!(log.contains("GO is not set"), "{log}");
                Ok(Verdict::Works)
            })
        }
    ),
    case!(LOGS, "kubectl top", "serving.yaml", |scene| {
        scene.settled("worker")?;
        until(|| {
            let said = scene.kubectl(&["top", "pod", "worker", "--containers"])?;
            ensure!(said.contains("main"), "{said}");
            Ok(Verdict::Works)
        })
    }),
];

/// Waits until the container was started again at least once.
fn has_failed(scene: &Scene<'_>) -> Result<()> {
    until(|| {
        let pod = scene.pod("worker")?;
        ensure!(restarts(&pod, 0) > 0, "{:#}", pod["status"]);
        Ok(())
    })
}

fn restarts(pod: &Value, container: usize) -> u64 {
    let count = &pod["status"]["containerStatuses"][container]["restartCount"];
    count.as_u64().unwrap_or(0)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned();
    conditions
        .unwrap_or_default()
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Memory of a volume: a system without it says so.
fn memory(scene: &Scene<'_>) -> Result<Verdict> {
    until(|| {
        if let Ok(log) = scene.kubectl(&["logs", "worker"])
            && log.contains("kept")
        {
            return Ok(Verdict::Works);
        }
        let message = scene.failed_mount()?;
        Ok(Verdict::Refused(message))
    })
}
