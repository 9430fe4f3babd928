//! `/metrics`: what the agent says of itself, under upstream's names where the meaning is the same.

use std::collections::BTreeMap;

use axum::{extract::State, response::IntoResponse};
use transom_runtime::{ContainerState, PodState};

use super::{
    super::Desk,
    text::{Line, PLAIN, family},
};
use crate::{site::Site, telemetry::Tally};

pub(in super::super) async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    let mut text = String::new();
    of_pods(&mut text, &desk);
    of_node(&mut text, &desk.site);
    of_operations(&mut text, &desk.site.operations.all());
    (PLAIN, text)
}

fn labelled(name: &str, value: &str, number: u64) -> Line {
    Line {
        labels: format!("{{{name}=\"{value}\"}}"),
        ..Line::plain(number)
    }
}

fn of_pods(text: &mut String, desk: &Desk) {
    let observer = &desk.site.observer;
    let mut pods = 0_u64;
    let mut containers = BTreeMap::from([("created", 0_u64), ("exited", 0), ("running", 0)]);
    for uid in observer.uids() {
        let sandboxes = observer.sandboxes(&uid);
        pods += u64::from(sandboxes.iter().any(|one| one.state == PodState::Ready));
        for one in sandboxes.iter().flat_map(|one| &one.containers) {
            let state = match one.state {
                ContainerState::Created => "created",
                ContainerState::Running { .. } => "running",
                ContainerState::Exited(_) => "exited",
            };
            *containers.entry(state).or_default() += 1;
        }
    }
    family(
        text,
        "kubelet_desired_pods",
        "gauge",
        "[ALPHA] The number of pods the kubelet is being instructed to run",
        &[Line::plain(desk.pods.list().len() as u64)],
    );
    family(
        text,
        "kubelet_running_pods",
        "gauge",
        "[BETA] Number of pods that have a running pod sandbox",
        &[Line::plain(pods)],
    );
    let lines: Vec<_> = containers
        .into_iter()
        .map(|(state, count)| labelled("container_state", state, count))
        .collect();
    family(
        text,
        "kubelet_running_containers",
        "gauge",
        "[BETA] Number of containers currently running",
        &lines,
    );
}

fn of_node(text: &mut String, site: &Site) {
    family(
        text,
        "kubelet_node_name",
        "gauge",
        "[ALPHA] The node's name. The count is always 1.",
        &[labelled("node", &site.options.node, 1)],
    );
    let evictions: Vec<_> = site
        .pressure
        .evictions()
        .into_iter()
        .map(|(signal, count)| labelled("eviction_signal", signal.name(), count))
        .collect();
    family(
        text,
        "kubelet_evictions",
        "counter",
        "[ALPHA] Cumulative number of pod evictions by eviction signal",
        &evictions,
    );
    family(
        text,
        "transom_agent_runtime_trouble",
        "gauge",
        "1 while the runtime cannot be listed",
        &[Line::plain(u64::from(site.observer.trouble().is_some()))],
    );
}

fn of_operations(text: &mut String, all: &BTreeMap<&'static str, Tally>) {
    let counted = |number: fn(&Tally) -> u64| -> Vec<Line> {
        let some = all.iter().map(|(name, tally)| (name, number(tally)));
        some.filter(|(_, number)| *number > 0)
            .map(|(name, number)| labelled("operation_type", name, number))
            .collect()
    };
    family(
        text,
        "kubelet_runtime_operations_total",
        "counter",
        "[ALPHA] Cumulative number of runtime operations by operation type.",
        &counted(|tally| tally.count),
    );
    family(
        text,
        "kubelet_runtime_operations_errors_total",
        "counter",
        "[ALPHA] Cumulative number of runtime operation errors by operation type.",
        &counted(|tally| tally.errors),
    );
    let mut lines = Vec::new();
    for (name, tally) in all {
        let buckets = tally
            .buckets()
            .map(|(bound, count)| (bound.to_string(), count));
        for (bound, count) in buckets.chain([("+Inf".to_owned(), tally.count)]) {
            lines.push(Line {
                labels: format!("_bucket{{operation_type=\"{name}\",le=\"{bound}\"}}"),
                ..Line::plain(count)
            });
        }
        for (part, value) in [
            ("_sum", tally.took.as_secs_f64().to_string()),
            ("_count", tally.count.to_string()),
        ] {
            lines.push(Line {
                labels: format!("{part}{{operation_type=\"{name}\"}}"),
                value,
                time: None,
            });
        }
    }
    family(
        text,
        "kubelet_runtime_operations_duration_seconds",
        "histogram",
        "[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.",
        &lines,
    );
}
