//! Every number that the controllers tell about themselves, under upstream's names where the meaning is the same.
//!
//! There is one set of them in a process, as there is one set of controllers. Labels are names of controllers and
//! leases, so there are only so many lines.

use std::{
    fmt,
    sync::{LazyLock, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// The bounds of the histogram of durations, in seconds: upstream's.
const BOUNDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Name {
    name: String,
}

struct Telemetry {
    registry: Registry,
    lengths: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    retries: Family<Name, Counter>,
    errors: Family<Name, Counter>,
    durations: Family<Name, Histogram>,
    leads: Family<Name, Gauge<i64>>,
}

static TELEMETRY: LazyLock<Telemetry> = LazyLock::new(Telemetry::new);

impl Telemetry {
    fn new() -> Self {
        let mut telemetry = Self {
            registry: Registry::default(),
            lengths: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            errors: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            leads: Family::default(),
        };
        let registry = &mut telemetry.registry;
        registry.register(
            "transom_controller_queue_length",
            "Objects that a controller is to look at, now or at a later time",
            telemetry.lengths.clone(),
        );
        registry.register(
            "workqueue_adds",
            "Total number of adds handled by workqueue",
            telemetry.adds.clone(),
        );
        registry.register(
            "workqueue_retries",
            "Total number of retries handled by workqueue",
            telemetry.retries.clone(),
        );
        registry.register(
            "transom_controller_errors",
            "Looks at an object that failed and are tried again",
            telemetry.errors.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            telemetry.durations.clone(),
        );
        registry.register(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master",
            telemetry.leads.clone(),
        );
        telemetry
    }
}

/// The numbers of one controller.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    length: Gauge,
    adds: Counter<u64, AtomicU64>,
    retries: Counter<u64, AtomicU64>,
    errors: Counter<u64, AtomicU64>,
    durations: Histogram,
}

impl Meter {
    pub(crate) fn of(controller: &'static str) -> Self {
        let name = Name {
            name: controller.to_owned(),
        };
        let all = &*TELEMETRY;
        Self {
            length: all.lengths.get_or_create_owned(&name),
            adds: all.adds.get_or_create_owned(&name),
            retries: all.retries.get_or_create_owned(&name),
            errors: all.errors.get_or_create_owned(&name),
            durations: all.durations.get_or_create_owned(&name),
        }
    }

    /// What waited before anybody counted.
    pub(crate) fn found(&self, length: usize) {
        self.adds.inc_by(length as u64);
        self.waiting(length);
    }

    pub(crate) fn added(&self) {
        self.adds.inc();
    }

    pub(crate) fn waiting(&self, length: usize) {
        self.length.set(i64::try_from(length).unwrap_or(i64::MAX));
    }

    pub(crate) fn worked(&self, took: Duration) {
        self.durations.observe(took.as_secs_f64());
    }

    pub(crate) fn comes_back(&self, failed: bool) {
        self.retries.inc();
        if failed {
            self.errors.inc();
        }
    }
}

/// Tells whether this process holds a lease.
pub(crate) fn leads(lease: &str, does: bool) {
    let name = Name {
        name: lease.to_owned(),
    };
    TELEMETRY.leads.get_or_create(&name).set(i64::from(does));
}

/// All numbers of the controllers, in the text format of Prometheus.
pub fn metrics() -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, &TELEMETRY.registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_fails_is_seen() {
        let meter = Meter::of("telemetry-test");
        meter.added();
        meter.waiting(3);
        meter.worked(Duration::from_millis(20));
        meter.comes_back(true);
        leads("telemetry-test", true);
        let text = metrics().unwrap();
        for line in [
            "workqueue_adds_total{name=\"telemetry-test\"} 1\n",
            "transom_controller_queue_length{name=\"telemetry-test\"} 3\n",
            "transom_controller_errors_total{name=\"telemetry-test\"} 1\n",
            "workqueue_work_duration_seconds_count{name=\"telemetry-test\"} 1\n",
            "leader_election_master_status{name=\"telemetry-test\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
