//! Every number that the scheduler tells about itself, under upstream's names where the meaning is the same.
//!
//! There is one set of them in a process. Labels are words of this crate, so there are only so many lines.

use std::{fmt, sync::LazyLock, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// The bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 12] = [
    0.000_01, 0.000_1, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.512, 2.048,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueLabel {
    queue: &'static str,
}

struct Telemetry {
    registry: Registry,
    attempts: Family<ResultLabel, Counter>,
    durations: Histogram,
    pending: Family<QueueLabel, Gauge>,
}

static TELEMETRY: LazyLock<Telemetry> = LazyLock::new(Telemetry::new);

impl Telemetry {
    fn new() -> Self {
        let mut telemetry = Self {
            registry: Registry::default(),
            attempts: Family::default(),
            durations: Histogram::new(BOUNDS),
            pending: Family::default(),
        };
        let registry = &mut telemetry.registry;
        registry.register(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem",
            telemetry.attempts.clone(),
        );
        registry.register(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            telemetry.durations.clone(),
        );
        registry.register(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type",
            telemetry.pending.clone(),
        );
        telemetry
    }
}

/// How an attempt to place a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Scheduled,
    Unschedulable,
    Error,
}

pub(crate) fn attempted(how: Attempt) {
    let result = match how {
        Attempt::Scheduled => "scheduled",
        Attempt::Unschedulable => "unschedulable",
        Attempt::Error => "error",
    };
    let labels = ResultLabel { result };
    TELEMETRY.attempts.get_or_create(&labels).inc();
}

pub(crate) fn searched(took: Duration) {
    TELEMETRY.durations.observe(took.as_secs_f64());
}

/// How many pods are tried at once, after a rest, and when something changes.
pub(crate) fn pending(active: usize, resting: usize, parked: usize) {
    for (queue, count) in [
        ("active", active),
        ("backoff", resting),
        ("unschedulable", parked),
    ] {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        TELEMETRY
            .pending
            .get_or_create(&QueueLabel { queue })
            .set(count);
    }
}

/// All numbers of the scheduler, in the text format of Prometheus.
pub fn metrics() -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, &TELEMETRY.registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_by_how_they_ended() {
        attempted(Attempt::Error);
        searched(Duration::from_millis(3));
        pending(1, 2, 3);
        let text = metrics().unwrap();
        for part in [
            "scheduler_schedule_attempts_total{result=\"error\"} ",
            "scheduler_scheduling_algorithm_duration_seconds_count ",
            "scheduler_pending_pods{queue=\"backoff\"} ",
        ] {
            assert!(text.contains(part), "{part}{text}");
        }
    }
}
