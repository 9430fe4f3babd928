//! Every number that the server tells about itself, under upstream's names where the meaning is the same.

use std::{
    fmt,
    sync::{Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{
    access::limits::{Class, Gate},
    cache::Cache,
};

/// The bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DurationLabels {
    verb: String,
    group: String,
    resource: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabels {
    request_kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResourceLabels {
    group: String,
    resource: String,
}

/// What a request was about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
}

/// Numbers of somebody beside the server, in the text format of Prometheus.
type Source = Box<dyn Fn() -> Result<String, fmt::Error> + Send + Sync>;

/// What ends a text.
const END: &str = "# EOF\n";

/// All counters of one server.
pub(crate) struct Telemetry {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram>,
    running: Family<KindLabels, Gauge>,
    waiting: Family<KindLabels, Gauge>,
    objects: Family<ResourceLabels, Gauge>,
    bytes: Family<ResourceLabels, Gauge>,
    watchers: Family<ResourceLabels, Gauge>,
    revision: Gauge<u64, AtomicU64>,
    others: Mutex<Vec<Source>>,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telemetry")
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        let mut telemetry = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            running: Family::default(),
            waiting: Family::default(),
            objects: Family::default(),
            bytes: Family::default(),
            watchers: Family::default(),
            revision: Gauge::default(),
            others: Mutex::default(),
        };
        let registry = &mut telemetry.registry;
        registry.register(
            "apiserver_request",
            "Requests that were answered",
            telemetry.requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "Time to the answer",
            telemetry.durations.clone(),
        );
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests being worked on",
            telemetry.running.clone(),
        );
        registry.register(
            "apiserver_current_inqueue_requests",
            "Requests that wait for their turn",
            telemetry.waiting.clone(),
        );
        registry.register(
            "apiserver_storage_objects",
            "Objects in the cache",
            telemetry.objects.clone(),
        );
        registry.register(
            "transom_cache_object_bytes",
            "Size of the objects in the cache",
            telemetry.bytes.clone(),
        );
        registry.register(
            "apiserver_registered_watchers",
            "Watches that are open",
            telemetry.watchers.clone(),
        );
        registry.register(
            "transom_cache_revision",
            "The newest revision in the cache",
            telemetry.revision.clone(),
        );
        telemetry
    }
}

impl Telemetry {
    pub(crate) fn request(&self, subject: &Subject, code: u16, took: Duration) {
        let labels = RequestLabels {
            verb: subject.verb.to_owned(),
            group: subject.group.clone(),
            resource: subject.resource.clone(),
            subresource: subject.subresource.clone(),
            code,
        };
        self.requests.get_or_create(&labels).inc();
        // A watch lasts as long as it is wanted: its time says nothing.
        if subject.verb != "watch" {
            let labels = DurationLabels {
                verb: subject.verb.to_owned(),
                group: subject.group.clone(),
                resource: subject.resource.clone(),
            };
            self.durations
                .get_or_create(&labels)
                .observe(took.as_secs_f64());
        }
    }

    /// Tells the numbers of somebody else along with those of the server.
    pub(crate) fn tell_beside(&self, source: Source) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.push(source);
    }

    /// Everything in the text format of Prometheus, with what is only looked at now.
    pub(crate) fn render(&self, cache: &Cache, gate: &Gate) -> Result<String, fmt::Error> {
        for (class, name) in [
            (Class::System, "system"),
            (Class::Ordinary, "ordinary"),
            (Class::Lasting, "lasting"),
        ] {
            let usage = gate.usage(class);
            let labels = KindLabels { request_kind: name };
            self.running
                .get_or_create(&labels)
                .set(number(usage.running));
            self.waiting
                .get_or_create(&labels)
                .set(number(usage.waiting));
        }
        for resource in cache.all() {
            let kind = resource.kind();
            let labels = ResourceLabels {
                group: kind.group.clone(),
                resource: kind.plural.clone(),
            };
            self.objects
                .get_or_create(&labels)
                .set(number(resource.len()));
            self.bytes
                .get_or_create(&labels)
                .set(number(resource.bytes()));
            self.watchers
                .get_or_create(&labels)
                .set(number(resource.watchers()));
        }
        self.revision.set(cache.revision());
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        for other in &*self.others.lock().unwrap_or_else(PoisonError::into_inner) {
            text.truncate(text.trim_end_matches(END).len());
            text.push_str(&other()?);
        }
        Ok(text)
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
