//! Versions of one object: the few kinds that are served in two forms and stored in one.

use serde_json::{Map, Value, json};

use crate::object::as_map;

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}

/// core/v1 `Event` → events.k8s.io/v1.
pub(crate) fn event_from_core(event: &mut Value) {
    let map = as_map(event);
    for (core, new) in [
        ("involvedObject", "regarding"),
        ("message", "note"),
        ("reportingComponent", "reportingController"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
    ] {
        rename(map, core, new);
    }
}

/// events.k8s.io/v1 `Event` → core/v1.
pub(crate) fn event_to_core(event: &mut Value) {
    let map = as_map(event);
    for (core, new) in [
        ("involvedObject", "regarding"),
        ("message", "note"),
        ("reportingComponent", "reportingController"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
    ] {
        rename(map, new, core);
    }
    map.entry("involvedObject").or_insert_with(|| json!({}));
}

/// Where autoscaling/v1 keeps what it has no fields for, so that nothing is lost on the way.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

fn is_cpu_utilization(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && (metric["resource"]["target"]["type"] == "Utilization"
            || metric["resource"]["current"]["averageUtilization"].is_i64())
}

/// autoscaling/v2 → autoscaling/v1.
pub(crate) fn autoscaler_from_v2(autoscaler: &mut Value) {
    let mut annotations = Vec::new();
    if let Some(spec) = autoscaler.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(Value::Array(mut metrics)) = spec.remove("metrics") {
            if let Some(at) = metrics.iter().position(is_cpu_utilization) {
                let target = &metrics[at]["resource"]["target"]["averageUtilization"];
                spec.insert("targetCPUUtilizationPercentage".to_owned(), target.clone());
                metrics.remove(at);
            }
            if !metrics.is_empty() {
                annotations.push((METRICS, Value::Array(metrics)));
            }
        }
        if let Some(behavior) = spec.remove("behavior") {
            annotations.push((BEHAVIOR, behavior));
        }
    }
    if let Some(status) = autoscaler.get_mut("status").and_then(Value::as_object_mut) {
        if let Some(Value::Array(mut metrics)) = status.remove("currentMetrics") {
            if let Some(at) = metrics.iter().position(is_cpu_utilization) {
                let current = &metrics[at]["resource"]["current"]["averageUtilization"];
                status.insert(
                    "currentCPUUtilizationPercentage".to_owned(),
                    current.clone(),
                );
                metrics.remove(at);
            }
            if !metrics.is_empty() {
                annotations.push((CURRENT_METRICS, Value::Array(metrics)));
            }
        }
        if let Some(conditions) = status.remove("conditions") {
            annotations.push((CONDITIONS, conditions));
        }
    }
    for (name, value) in annotations {
        let metadata = as_map(
            as_map(autoscaler)
                .entry("metadata")
                .or_insert_with(|| json!({})),
        );
        as_map(metadata.entry("annotations").or_insert_with(|| json!({})))
            .insert(name.to_owned(), value.to_string().into());
    }
}

/// autoscaling/v1 → autoscaling/v2.
pub(crate) fn autoscaler_to_v2(autoscaler: &mut Value) {
    let mut take = |name: &str| -> Option<Value> {
        let annotations = autoscaler["metadata"]["annotations"].as_object_mut()?;
        let text = annotations.remove(name)?;
        serde_json::from_str(text.as_str()?).ok()
    };
    let metrics = take(METRICS);
    let current = take(CURRENT_METRICS);
    let conditions = take(CONDITIONS);
    let behavior = take(BEHAVIOR);
    if let Some(spec) = autoscaler.get_mut("spec").and_then(Value::as_object_mut) {
        let mut list = metrics
            .and_then(|value| value.as_array().cloned())
            .unwrap_or_default();
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            let target = json!({"type": "Utilization", "averageUtilization": percent});
            list.insert(
                0,
                json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}),
            );
        }
        if !list.is_empty() {
            spec.insert("metrics".to_owned(), list.into());
        }
        if let Some(behavior) = behavior {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = autoscaler.get_mut("status").and_then(Value::as_object_mut) {
        let mut list = current
            .and_then(|value| value.as_array().cloned())
            .unwrap_or_default();
        if let Some(percent) = status.remove("currentCPUUtilizationPercentage") {
            let current = json!({"averageUtilization": percent});
            list.insert(
                0,
                json!({"type": "Resource", "resource": {"name": "cpu", "current": current}}),
            );
        }
        if !list.is_empty() {
            status.insert("currentMetrics".to_owned(), list.into());
        }
        if let Some(conditions) = conditions {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_comes_back_from_v1_as_it_was() {
        let original = json!({
            "metadata": {"name": "a", "annotations": {"own": "x"}},
            "spec": {
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
                    {"type": "Pods", "pods": {"metric": {"name": "q"}}},
                ],
                "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}},
            },
            "status": {"conditions": [{"type": "AbleToScale", "status": "True"}]},
        });
        let mut converted = original.clone();
        autoscaler_from_v2(&mut converted);
        assert_eq!(converted["spec"]["targetCPUUtilizationPercentage"], 80);
        assert!(converted["spec"].get("metrics").is_none());
        autoscaler_to_v2(&mut converted);
        assert_eq!(converted, original);
    }

    #[test]
    fn an_event_comes_back_from_its_new_form_as_it_was() {
        let original = json!({
            "metadata": {"name": "a"},
            "involvedObject": {"kind": "Pod"}, "message": "m", "reason": "r",
            "source": {"component": "c"}, "count": 2, "firstTimestamp": "2026-01-01T00:00:00Z",
        });
        let mut converted = original.clone();
        event_from_core(&mut converted);
        assert_eq!(converted["regarding"]["kind"], "Pod");
        assert_eq!(converted["note"], "m");
        event_to_core(&mut converted);
        assert_eq!(converted, original);
    }
}
