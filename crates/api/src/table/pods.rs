//! The row of a pod: one word for the state of all its containers.
//!
//! The word comes from the first container that holds things up: an init container that is not done, else the
//! first container that waits or has ended.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    AGE, Column, NAME, Printer,
    age::since,
    row::{Row, text_of},
};

pub(super) static POD: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Ready",
            "How many containers of the pod are ready, of how many.",
        ),
        Column::text(
            "Status",
            "The state of the pod and its containers in one word.",
        ),
        Column::text(
            "Restarts",
            "How often containers of the pod were restarted, and when the last time.",
        ),
        AGE,
        Column::text("IP", "The address of the pod.").wide(),
        Column::text("Node", "The node the pod is bound to.").wide(),
        Column::text(
            "Nominated Node",
            "The node that is being cleared for the pod.",
        )
        .wide(),
        Column::text(
            "Readiness Gates",
            "How many readiness gates are passed, of how many.",
        )
        .wide(),
    ],
    cells,
};

fn cells(row: &Row) -> Vec<Value> {
    let state = State::of(row);
    let mut restarts = state.restarts.to_string();
    if state.restarts != 0
        && let Some(last) = state.last_restart
    {
        restarts = format!("{restarts} ({} ago)", since(&last.to_string(), row.now));
    }
    let address = match row.list("/status/podIPs").first() {
        Some(first) => text_of(first, "ip"),
        None => row.text("/status/podIP"),
    };
    let none = |text: &str| Value::from(if text.is_empty() { "<none>" } else { text });
    vec![
        row.name(),
        format!("{}/{}", state.ready, state.total).into(),
        state.reason.into(),
        restarts.into(),
        row.age(),
        none(address),
        none(row.text("/spec/nodeName")),
        none(row.text("/status/nominatedNodeName")),
        readiness_gates(row),
    ]
}

fn readiness_gates(row: &Row) -> Value {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let passed = gates
        .iter()
        .filter(|gate| row.condition(text_of(gate, "conditionType")) == Some("True"))
        .count();
    format!("{passed}/{}", gates.len()).into()
}

struct State {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl State {
    fn of(row: &Row) -> Self {
        let phase = row.text("/status/phase");
        let mut state = Self {
            reason: row.text_or("/status/reason", phase).to_owned(),
            ready: 0,
            total: row.length("/spec/containers"),
            restarts: 0,
            last_restart: None,
        };
        let gated = row.list("/status/conditions").iter().any(|condition| {
            text_of(condition, "type") == "PodScheduled"
                && text_of(condition, "reason") == "SchedulingGated"
        });
        if gated {
            "SchedulingGated".clone_into(&mut state.reason);
        }
        let sidecars = state.add_init_containers(row);
        if !sidecars.initializing || row.condition("Initialized") == Some("True") {
            state.restarts = sidecars.restarts;
            state.last_restart = sidecars.last_restart;
            state.add_containers(row);
        }
        if row.is_deleted() {
            if row.text("/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut state.reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut state.reason);
            }
        }
        state
    }

    /// Counts what is started by init containers, up to the first that is not done.
    fn add_init_containers(&mut self, row: &Row) -> Sidecars {
        let specs = row.list("/spec/initContainers");
        let is_sidecar = |name: &str| {
            specs.iter().any(|spec| {
                text_of(spec, "name") == name && text_of(spec, "restartPolicy") == "Always"
            })
        };
        self.total += specs
            .iter()
            .filter(|spec| text_of(spec, "restartPolicy") == "Always")
            .count();
        let mut sidecars = Sidecars::default();
        for (index, status) in row.list("/status/initContainerStatuses").iter().enumerate() {
            let container = Container(status);
            self.restarts += container.restarts();
            self.last_restart = self.last_restart.max(container.last_end());
            let sidecar = is_sidecar(text_of(status, "name"));
            if sidecar {
                sidecars.restarts += container.restarts();
                sidecars.last_restart = sidecars.last_restart.max(container.last_end());
            }
            if container.ended_well() {
                continue;
            }
            if sidecar && container.flag("started") {
                self.ready += usize::from(container.flag("ready"));
                continue;
            }
            self.reason = match (container.end_reason(), container.waits_for()) {
                (Some(reason), _) => format!("Init:{reason}"),
                (None, Some(reason)) if reason != "PodInitializing" => format!("Init:{reason}"),
                _ => format!("Init:{index}/{}", specs.len()),
            };
            sidecars.initializing = true;
            break;
        }
        sidecars
    }

    fn add_containers(&mut self, row: &Row) {
        let mut running = false;
        for status in row.list("/status/containerStatuses").iter().rev() {
            let container = Container(status);
            self.restarts += container.restarts();
            self.last_restart = self.last_restart.max(container.last_end());
            if let Some(reason) = container.waits_for() {
                reason.clone_into(&mut self.reason);
            } else if let Some(reason) = container.end_reason() {
                self.reason = reason;
            } else if container.flag("ready") && container.is_running() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = row.condition("Ready") == Some("True");
            let word = if ready { "Running" } else { "NotReady" };
            word.clone_into(&mut self.reason);
        }
    }
}

#[derive(Default)]
struct Sidecars {
    initializing: bool,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// The status of one container.
struct Container<'a>(&'a Value);

impl<'a> Container<'a> {
    fn flag(&self, name: &str) -> bool {
        self.0
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    fn restarts(&self) -> i64 {
        self.0
            .get("restartCount")
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }

    fn last_end(&self) -> Option<Timestamp> {
        let end = self.0.pointer("/lastState/terminated/finishedAt")?;
        end.as_str()?.parse().ok()
    }

    fn state(&self, name: &str) -> Option<&'a Value> {
        self.0
            .get("state")?
            .get(name)
            .filter(|state| !state.is_null())
    }

    fn is_running(&self) -> bool {
        self.state("running").is_some()
    }

    fn waits_for(&self) -> Option<&'a str> {
        let reason = text_of(self.state("waiting")?, "reason");
        (!reason.is_empty()).then_some(reason)
    }

    fn ended_well(&self) -> bool {
        self.state("terminated")
            .is_some_and(|end| number_of(end, "exitCode") == 0)
    }

    fn end_reason(&self) -> Option<String> {
        let end = self.state("terminated")?;
        let reason = text_of(end, "reason");
        Some(match number_of(end, "signal") {
            _ if !reason.is_empty() => reason.to_owned(),
            0 => format!("ExitCode:{}", number_of(end, "exitCode")),
            signal => format!("Signal:{signal}"),
        })
    }
}

fn number_of(value: &Value, field: &str) -> i64 {
    value.get(field).and_then(Value::as_i64).unwrap_or_default()
}
