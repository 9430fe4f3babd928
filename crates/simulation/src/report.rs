//! What a simulation found out.

use std::time::Duration;

use serde::Serialize;

use crate::ledger::Times;
use crate::plan::{Plan, Wishes};

/// The whole result.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub wishes: Wishes,
    pub settings: Settings,
    pub windows_nodes: usize,
    pub workloads: usize,
    pub phases: Vec<Phase>,
    pub samples: Vec<Sample>,
}

/// What was set for this run, some of it other than a cluster has it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Seconds that a node may be silent.
    pub grace_seconds: f64,
    /// Seconds that pods stay on a node that is silent.
    pub tolerate_seconds: u64,
    /// Seconds that a container takes to start.
    pub start_seconds: f64,
}

/// One part of a simulation.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    pub name: &'static str,
    /// Since the simulation began.
    pub begun_seconds: f64,
    pub seconds: f64,
    /// What was counted, and how much of it.
    pub what: &'static str,
    pub count: usize,
    pub per_second: f64,
    /// Pods that were bound in this phase, and from the first request to the last of them.
    pub bound: usize,
    pub bound_per_second: f64,
    /// From the moment that a pod was there until it had a node.
    pub to_bound: Option<Percentiles>,
    /// The same until it ran.
    pub to_running: Option<Percentiles>,
    /// Of this whole process at the end of the phase.
    pub memory_bytes: u64,
}

/// How long it took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// How things were at one moment.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    pub seconds: f64,
    pub pods: usize,
    pub bound: usize,
    pub running: usize,
    pub memory_bytes: u64,
}

impl Percentiles {
    /// Of these times; `None` if there are none.
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        // The nearest rank: the smallest time that so many are not above.
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            milliseconds(times[rank - 1])
        };
        Some(Self {
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max: milliseconds(times[last]),
        })
    }
}

fn milliseconds(time: Duration) -> f64 {
    // Microseconds are as exact as the clock is worth.
    Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)).as_secs_f64() * 1e3
}

impl Report {
    pub(crate) fn new(wishes: &Wishes, plan: &Plan, settings: Settings) -> Self {
        let windows = plan.nodes.iter();
        let windows = windows.filter(|node| node.windows_build.is_some());
        Self {
            wishes: wishes.clone(),
            settings,
            windows_nodes: windows.count(),
            workloads: plan.workloads.len(),
            phases: Vec::new(),
            samples: Vec::new(),
        }
    }
}

impl Phase {
    /// What a phase was that took so long, and in which pods took these times.
    pub(crate) fn new(
        name: &'static str,
        (what, count): (&'static str, usize),
        (begun, took): (Duration, Duration),
        (times, to_last_bound): (Times, Option<Duration>),
        memory_bytes: u64,
    ) -> Self {
        let bound = times.to_bound.len();
        Self {
            name,
            begun_seconds: begun.as_secs_f64(),
            seconds: took.as_secs_f64(),
            what,
            count,
            per_second: rate(count, took),
            bound,
            bound_per_second: rate(bound, to_last_bound.unwrap_or_default()),
            to_bound: Percentiles::of(times.to_bound),
            to_running: Percentiles::of(times.to_running),
            memory_bytes,
        }
    }
}

fn rate(count: usize, time: Duration) -> f64 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if time.is_zero() {
        return 0.0;
    }
    f64::from(count) / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_there() {
        let times = |count| (1..=count).rev().map(Duration::from_millis).collect();
        let found = Percentiles::of(times(200)).unwrap();
        let wanted = Percentiles {
            p50: 100.0,
            p90: 180.0,
            p99: 198.0,
            max: 200.0,
        };
        assert_eq!(found, wanted);
        let all_one = Percentiles {
            p50: 1.0,
            p90: 1.0,
            p99: 1.0,
            max: 1.0,
        };
        assert_eq!(Percentiles::of(times(1)), Some(all_one));
        assert_eq!(Percentiles::of(Vec::new()), None);
    }

    #[test]
    fn nothing_in_no_time_is_no_rate() {
        let is = |count, seconds| rate(count, Duration::from_secs(seconds)).to_bits();
        assert_eq!(is(10, 0), 0.0_f64.to_bits());
        assert_eq!(is(10, 5), 2.0_f64.to_bits());
    }
}
