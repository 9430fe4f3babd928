//! `metrics.k8s.io`: what nodes and pods use now, in the words of metrics-server.
//!
//! Nothing is stored: numbers come from the agents of the nodes that a request is about.

mod collect;
mod summary;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::{Value, json};

pub(crate) use collect::Numbers;

use self::summary::{Summary, Usage};
use crate::{
    cache::{Cached, Listing},
    object,
    registry::Kind,
    state::Api,
    status::ApiError,
    verbs::{Call, Reply, ReplyBody},
};

pub(crate) const GROUP: &str = "metrics.k8s.io";
/// Over what time agents count that do not say it: the kubelet's own.
const WINDOW: u64 = 10_000_000_000;

pub(crate) async fn get(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    api.catch_up().await?;
    let path = &call.path;
    let (resource, name) = if call.kind.namespaced {
        ("podmetrics", format!("{}/{}", path.namespace, path.name))
    } else {
        ("nodemetrics", path.name.clone())
    };
    let missing = || ApiError::not_found(GROUP, resource, &name);
    let core = core_kind(api, call)?;
    let found = api.cache_of(&core).get(&name).ok_or_else(missing)?;
    let measured = measure(api, call, &[found]).await?;
    let value = measured.into_iter().next().ok_or_else(missing)?;
    Ok(Reply::object(200, value, Vec::new()))
}

pub(crate) async fn list(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    api.catch_up().await?;
    let core = core_kind(api, call)?;
    let listing = api
        .cache_of(&core)
        .list(&call.selection()?, None, None, None)
        .map_err(|_| ApiError::internal("the newest state cannot be listed"))?;
    let measured = measure(api, call, &listing.items).await?;
    let items = measured
        .into_iter()
        .map(|value| cached(&call.kind, &value))
        .collect::<Result<_, _>>()?;
    let listing = Listing {
        items,
        revision: listing.revision,
        next: None,
        remaining: None,
    };
    Ok(Reply {
        code: 200,
        body: ReplyBody::List(listing, None),
        warnings: Vec::new(),
    })
}

/// The nodes or pods themselves.
fn core_kind(api: &Api, call: &Call) -> Result<Arc<Kind>, ApiError> {
    let kinds = api.registry.kinds();
    let kind = kinds.resource("", "v1", &call.kind.plural);
    kind.cloned().ok_or_else(ApiError::no_such_path)
}

fn cached(kind: &Kind, value: &Value) -> Result<Arc<Cached>, ApiError> {
    let key = crate::state::cache_key(kind, object::namespace(value), object::name(value));
    let bytes = object::to_stored(value).map_err(|error| ApiError::internal(error.to_string()))?;
    Cached::read(kind, &key, &bytes, 0)
        .map(Arc::new)
        .map_err(|error| ApiError::internal(error.to_string()))
}

/// The numbers of nodes or pods, without those that have none.
async fn measure(api: &Api, call: &Call, of: &[Arc<Cached>]) -> Result<Vec<Value>, ApiError> {
    let kinds = api.registry.kinds();
    let nodes = kinds
        .resource("", "v1", "nodes")
        .ok_or_else(ApiError::no_such_path)?;
    let values: Vec<Value> = of.iter().map(|object| object.value()).collect();
    let is_pods = call.kind.namespaced;
    let asked: Vec<Value> = if is_pods {
        let names: BTreeSet<&str> = values.iter().filter_map(node_of).collect();
        let cache = api.cache_of(nodes);
        let found = names.into_iter().filter_map(|name| cache.get(name));
        found.map(|node| node.value()).collect()
    } else {
        values.clone()
    };
    let numbers = api.numbers.of(api, asked).await;
    let now = object::time(api.now());
    let measured = values.iter().filter_map(|value| {
        if is_pods {
            pod_metrics(value, &numbers, &now)
        } else {
            let usage = numbers.get(object::name(value))?.node.as_ref()?;
            Some(node_metrics(value, usage, &now))
        }
    });
    Ok(measured.collect())
}

/// Where a pod runs, if it does.
fn node_of(pod: &Value) -> Option<&str> {
    let node = pod["spec"]["nodeName"].as_str()?;
    (pod["status"]["phase"] == "Running").then_some(node)
}

fn metadata(of: &Value, now: &Value) -> Value {
    let mut metadata = json!({"name": object::name(of), "creationTimestamp": now});
    for field in ["namespace", "labels"] {
        if let Some(found) = of["metadata"].get(field) {
            metadata[field] = found.clone();
        }
    }
    metadata
}

/// When a number was taken; agents that do not say have it from now.
fn time(usage: &Usage, now: &Value) -> Value {
    usage
        .time
        .parse::<jiff::Timestamp>()
        .map_or_else(|_| now.clone(), object::time)
}

/// A duration as Go writes it, to the millisecond: `1m10.012s`.
fn window(nanoseconds: Option<u64>) -> String {
    let milliseconds = nanoseconds.unwrap_or(WINDOW) / 1_000_000;
    let (minutes, seconds) = (milliseconds / 60_000, milliseconds % 60_000 / 1000);
    let rest = format!("{:03}", milliseconds % 1000);
    let fraction = match rest.trim_end_matches('0') {
        "" => String::new(),
        digits => format!(".{digits}"),
    };
    match (minutes, seconds) {
        (0, 0) => format!("{milliseconds}ms"),
        (0, seconds) => format!("{seconds}{fraction}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}{fraction}s"),
    }
}

fn node_metrics(node: &Value, usage: &Usage, now: &Value) -> Value {
    json!({
        "metadata": metadata(node, now),
        "timestamp": time(usage, now),
        "window": window(usage.window),
        "usage": usage.to_value(),
    })
}

fn pod_metrics(pod: &Value, numbers: &HashMap<String, Arc<Summary>>, now: &Value) -> Option<Value> {
    let summary = numbers.get(node_of(pod)?)?;
    let key = format!("{}/{}", object::namespace(pod), object::name(pod));
    let containers = summary.pods.get(&key)?;
    // The oldest number says when, the longest look says over what time.
    let oldest = containers
        .iter()
        .map(|(_, usage)| usage)
        .min_by(|one, other| one.time.cmp(&other.time))?;
    let longest = containers
        .iter()
        .filter_map(|(_, usage)| usage.window)
        .max();
    let used: Vec<Value> = containers
        .iter()
        .map(|(name, usage)| json!({"name": name, "usage": usage.to_value()}))
        .collect();
    Some(json!({
        "metadata": metadata(pod, now),
        "timestamp": time(oldest, now),
        "window": window(longest),
        "containers": used,
    }))
}

/// What `OpenAPI` says of these kinds; they stand in no table, since they are never stored.
pub(crate) fn schema(kind: &Kind) -> Option<Value> {
    if kind.group != GROUP {
        return None;
    }
    let usage = json!({
        "type": "object",
        "description": "The amounts in use, by resource.",
        "additionalProperties": {"type": "string"},
    });
    let text = |format: &str| json!({"type": "string", "format": format});
    let mut properties = json!({
        "timestamp": text("date-time"),
        "window": {"type": "string", "description": "Over what time was counted."},
    });
    let mut required = vec!["timestamp", "window"];
    if kind.namespaced {
        properties["containers"] = json!({"type": "array", "items": {
            "type": "object",
            "required": ["name", "usage"],
            "properties": {"name": {"type": "string"}, "usage": usage},
        }});
        required.push("containers");
    } else {
        properties["usage"] = usage;
        required.push("usage");
    }
    Some(json!({
        "type": "object",
        "description": "What is in use now.",
        "required": required,
        "properties": properties,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_written_as_go_writes_durations() {
        for (nanoseconds, wanted) in [
            (None, "10s"),
            (Some(2_000_000_000), "2s"),
            (Some(9_876_543_210), "9.876s"),
            (Some(1_500_000_000), "1.5s"),
            (Some(90_000_000_000), "1m30s"),
            (Some(200_000_000), "200ms"),
        ] {
            assert_eq!(window(nanoseconds), wanted);
        }
    }

    #[test]
    fn a_pod_is_as_old_as_its_oldest_number() {
        let usage = |time: &str, window| Usage {
            nanocores: 1,
            bytes: 1,
            time: time.to_owned(),
            window,
        };
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}},
            "spec": {"nodeName": "node"}, "status": {"phase": "Running"},
        });
        let containers = vec![
            (
                "a".to_owned(),
                usage("2026-01-01T00:00:09Z", Some(3_000_000_000)),
            ),
            (
                "b".to_owned(),
                usage("2026-01-01T00:00:05Z", Some(9_000_000_000)),
            ),
        ];
        let summary = Summary {
            node: None,
            pods: [("n/p".to_owned(), containers)].into(),
        };
        let numbers = [("node".to_owned(), Arc::new(summary))].into();
        let found = pod_metrics(&pod, &numbers, &json!("now")).unwrap();
        assert_eq!(found["timestamp"], "2026-01-01T00:00:05Z");
        assert_eq!(found["window"], "9s");
        assert_eq!(found["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(
            found["containers"][1],
            json!({"name": "b", "usage": {"cpu": "1n", "memory": "1"}})
        );
    }
}
