//! What a pod says about itself, and what a template says a pod should be.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodCondition, PodSpec, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    jiff::Timestamp,
};
use transom_model::images::canonical;

pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}

pub(crate) fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether all containers ended and none will start again.
pub(crate) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod counts as a replica.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_over(pod) && !is_going(pod)
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    is_going(pod) && !is_over(pod)
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| one.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when a pod is ready, if it is.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// How long until a pod was ready for long enough: nothing if it is, `None` if it is not ready.
pub(crate) fn until_available(pod: &Pod, min_ready: i32, now: Timestamp) -> Option<Duration> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready <= 0 {
        return Some(Duration::ZERO);
    }
    let ready = ready_since(pod)?;
    let wanted = Duration::from_secs(u64::from(min_ready.unsigned_abs()));
    Some(wanted.saturating_sub(elapsed(ready, now)))
}

pub(crate) fn is_available(pod: &Pod, min_ready: i32, now: Timestamp) -> bool {
    until_available(pod, min_ready, now) == Some(Duration::ZERO)
}

/// The time since, or nothing if that is in the future.
pub(crate) fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO)
}

/// All containers that a pod has from the beginning.
pub(crate) fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let init = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(init)
}

/// The canonical names of a pod's images.
pub(crate) fn images(spec: &PodSpec) -> impl Iterator<Item = String> {
    containers(spec)
        .filter_map(|container| container.image.as_deref())
        .filter(|image| !image.is_empty())
        .map(canonical)
}

/// A pod as a template wants it. Its name is made by the API.
pub(crate) fn from_template(
    template: &PodTemplateSpec,
    namespace: &str,
    prefix: &str,
    owner: OwnerReference,
) -> Pod {
    let metadata = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            generate_name: Some(format!("{prefix}-")),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str, ready: Option<&str>) -> Pod {
        let conditions = ready
            .map(|since| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]));
        let status = json!({"phase": phase, "conditions": conditions});
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    #[test]
    fn a_pod_is_available_when_it_was_ready_for_long_enough() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let ready = pod("Running", Some("2026-01-01T00:00:30Z"));
        assert!(is_available(&ready, 0, now) && is_available(&ready, 30, now));
        assert_eq!(
            until_available(&ready, 40, now),
            Some(Duration::from_secs(10))
        );
        assert_eq!(until_available(&pod("Running", None), 0, now), None);
    }

    #[test]
    fn a_pod_counts_until_it_is_over_or_going() {
        let mut going = pod("Running", None);
        going.metadata.deletion_timestamp = Some(
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
        );
        assert!(is_active(&pod("Pending", None)) && is_active(&Pod::default()));
        assert!(!is_active(&going) && is_terminating(&going));
        assert!(!is_active(&pod("Failed", None)) && !is_active(&pod("Succeeded", None)));
    }
}
