//! `/metrics/resource`, with upstream's names and times.

use axum::{extract::State, response::IntoResponse};
use jiff::Timestamp;

use super::{
    super::Desk,
    text::{Line, PLAIN, family, seconds},
};
use crate::figures::{ContainerFigures, PodFigures, Snapshot};

pub(in super::super) async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    (PLAIN, render(&desk.site.figures.latest()))
}

fn pod_lines(snapshot: &Snapshot, value: impl Fn(&PodFigures) -> Option<String>) -> Vec<Line> {
    let line = |pod: &PodFigures| {
        Some(Line {
            labels: format!("{{namespace=\"{}\",pod=\"{}\"}}", pod.namespace, pod.name),
            value: value(pod)?,
            time: Some(pod.taken.as_millisecond()),
        })
    };
    snapshot.pods.iter().filter_map(line).collect()
}

fn container_lines(
    snapshot: &Snapshot,
    is_timed: bool,
    value: impl Fn(&ContainerFigures) -> Option<String>,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for pod in &snapshot.pods {
        for one in &pod.containers {
            let Some(value) = value(one) else { continue };
            lines.push(Line {
                labels: format!(
                    "{{container=\"{}\",namespace=\"{}\",pod=\"{}\"}}",
                    one.stats.name, pod.namespace, pod.name
                ),
                value,
                time: is_timed.then(|| pod.taken.as_millisecond()),
            });
        }
    }
    lines
}

pub(super) fn render(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    of_containers(&mut text, snapshot);
    of_node(&mut text, snapshot);
    of_pods(&mut text, snapshot);
    family(
        &mut text,
        "resource_scrape_error",
        "gauge",
        "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
        &[Line::plain(u64::from(snapshot.trouble.is_some()))],
    );
    text
}

fn of_containers(text: &mut String, snapshot: &Snapshot) {
    let started = |one: &ContainerFigures| Some(unix_seconds(one.started));
    family(
        text,
        "container_cpu_usage_seconds_total",
        "counter",
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
        &container_lines(snapshot, true, |one| {
            Some(seconds(one.work?.done).to_string())
        }),
    );
    family(
        text,
        "container_memory_working_set_bytes",
        "gauge",
        "[STABLE] Current working set of the container in bytes",
        &container_lines(snapshot, true, |one| {
            Some(one.stats.memory?.working_set_bytes.to_string())
        }),
    );
    family(
        text,
        "container_start_time_seconds",
        "gauge",
        "[STABLE] Start time of the container since unix epoch in seconds",
        &container_lines(snapshot, false, started),
    );
}

fn unix_seconds(when: Timestamp) -> String {
    let milliseconds = when.as_millisecond();
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

fn of_node(text: &mut String, snapshot: &Snapshot) {
    let node = &snapshot.node;
    let line = |value: Option<String>| -> Vec<Line> {
        let line = |value| Line {
            labels: String::new(),
            value,
            time: node.taken.map(Timestamp::as_millisecond),
        };
        value.map(line).into_iter().collect()
    };
    family(
        text,
        "node_cpu_usage_seconds_total",
        "counter",
        "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
        &line(node.work.map(|work| seconds(work.done).to_string())),
    );
    let memory = node.counters.memory;
    family(
        text,
        "node_memory_working_set_bytes",
        "gauge",
        "[STABLE] Current working set of the node in bytes",
        &line(memory.map(|memory| memory.working_set.to_string())),
    );
}

fn of_pods(text: &mut String, snapshot: &Snapshot) {
    family(
        text,
        "pod_cpu_usage_seconds_total",
        "counter",
        "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
        &pod_lines(snapshot, |pod| Some(seconds(pod.work()?.done).to_string())),
    );
    family(
        text,
        "pod_memory_working_set_bytes",
        "gauge",
        "[STABLE] Current working set of the pod in bytes",
        &pod_lines(snapshot, |pod| {
            pod.working_set().map(|bytes| bytes.to_string())
        }),
    );
}
