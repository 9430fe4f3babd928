//! What the end of a pod means to its job: whether it counts, and when another may be tried.

use std::time::Duration;

use k8s_openapi::{
    api::{
        batch::v1::{JobSpec, PodFailurePolicyRule},
        core::v1::{ContainerStatus, Pod},
    },
    jiff::Timestamp,
};
use kube::ResourceExt as _;

use crate::workloads::pods;

const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// What a failed pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Count,
    Ignore,
    FailIndex,
    /// The whole job fails, for this reason.
    FailJob(String),
}

/// Whether a job waits until a pod is really over before it makes another.
pub(super) fn waits_for_end(spec: &JobSpec) -> bool {
    spec.pod_failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed")
}

/// Whether a pod failed as far as its job is concerned.
pub(super) fn is_failed(spec: &JobSpec, pod: &Pod) -> bool {
    match pods::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        // One that is deleted may never get to say how it ended.
        _ => pods::is_going(pod) && !waits_for_end(spec),
    }
}

/// What the rules of a job say about a failed pod.
pub(super) fn judge(spec: &JobSpec, pod: &Pod) -> Verdict {
    let rules = spec
        .pod_failure_policy
        .iter()
        .flat_map(|policy| &policy.rules);
    for (number, rule) in rules.enumerate() {
        let Some(reason) = matches(rule, pod) else {
            continue;
        };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignore,
            "FailIndex" if spec.backoff_limit_per_index.is_some() => Verdict::FailIndex,
            "FailJob" => {
                Verdict::FailJob(format!("{reason} matching FailJob rule at index {number}"))
            }
            _ => Verdict::Count,
        };
    }
    Verdict::Count
}

/// Why a rule is about a pod, if it is.
fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let place = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    if let Some(codes) = &rule.on_exit_codes {
        let status = pod.status.as_ref()?;
        let ended = containers(status.init_container_statuses.as_deref())
            .chain(containers(status.container_statuses.as_deref()));
        for (name, code) in ended {
            let is_named = codes
                .container_name
                .as_deref()
                .is_none_or(|wanted| wanted == name);
            let is_listed = codes.values.contains(&code) == (codes.operator == "In");
            if code != 0 && is_named && is_listed {
                return Some(format!(
                    "Container {name} for pod {place} failed with exit code {code}"
                ));
            }
        }
        return None;
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let found = patterns.iter().find(|pattern| {
        let wanted = pattern.status.as_deref().unwrap_or("True");
        pods::condition(pod, &pattern.type_).is_some_and(|one| one.status == wanted)
    })?;
    Some(format!("Pod {place} has condition {}", found.type_))
}

fn containers(statuses: Option<&[ContainerStatus]>) -> impl Iterator<Item = (&str, i32)> {
    let statuses = statuses.unwrap_or_default().iter();
    statuses.filter_map(|status| {
        let ended = status.state.as_ref()?.terminated.as_ref()?;
        Some((status.name.as_str(), ended.exit_code))
    })
}

/// When a pod ended, as well as can be told.
pub(super) fn ended(pod: &Pod, now: Timestamp) -> Timestamp {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_ref());
    let ends = statuses.into_iter().flatten().filter_map(|status| {
        let ended = status.state.as_ref()?.terminated.as_ref()?;
        ended.finished_at.as_ref().map(|time| time.0)
    });
    let changed = pods::condition(pod, "Ready").and_then(|one| one.last_transition_time.as_ref());
    let deleted = pod.metadata.deletion_timestamp.as_ref();
    ends.max()
        .or(changed.or(deleted).map(|time| time.0))
        .unwrap_or(now)
}

/// How long to wait before another pod, after so many failures in a row.
pub(super) fn pause(failures: usize, last: Timestamp, now: Timestamp) -> Duration {
    let Some(more) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let power = u32::try_from(more.min(16)).unwrap_or(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << power).min(LONGEST_PAUSE);
    pause.saturating_sub(pods::elapsed(last, now))
}

/// How often containers of pods that go on were started again.
pub(super) fn restarts(pod: &Pod) -> i32 {
    let Some(status) = &pod.status else { return 0 };
    let all = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses)
        .flatten();
    all.map(|one| one.restart_count).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(rules: &Value) -> JobSpec {
        serde_json::from_value(json!({
            "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": rules}, "template": {},
        }))
        .unwrap()
    }

    fn pod(code: i32) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{
                    "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 2,
                    "state": {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}},
                }],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_first_rule_that_is_about_a_pod_decides() {
        let codes = |action: &str, operator: &str, values: &[i32]| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let disrupted = json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
        for (rules, code, wanted) in [
            (json!([]), 1, Verdict::Count),
            (
                json!([disrupted, codes("FailJob", "In", &[1])]),
                1,
                Verdict::Ignore,
            ),
            (
                json!([codes("FailIndex", "In", &[3])]),
                3,
                Verdict::FailIndex,
            ),
            (json!([codes("FailIndex", "In", &[3])]), 4, Verdict::Count),
            (
                json!([codes("Count", "NotIn", &[3]), disrupted]),
                4,
                Verdict::Count,
            ),
            (json!([codes("FailJob", "NotIn", &[3])]), 0, Verdict::Count),
        ] {
            assert_eq!(judge(&spec(&rules), &pod(code)), wanted, "{rules}");
        }
        let text =
            "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        let rules = json!([codes("Ignore", "In", &[1]), codes("FailJob", "In", &[42])]);
        assert_eq!(
            judge(&spec(&rules), &pod(42)),
            Verdict::FailJob(text.to_owned())
        );
    }

    #[test]
    fn pauses_grow_with_the_failures_and_pass_with_the_time() {
        let last: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-01-01T00:00:04Z".parse().unwrap();
        assert_eq!(ended(&pod(1), now), last);
        assert_eq!(pause(0, last, now), Duration::ZERO);
        assert_eq!(pause(1, last, now), Duration::from_secs(6));
        assert_eq!(pause(2, last, now), Duration::from_secs(16));
        assert_eq!(pause(99, last, last), LONGEST_PAUSE);
        assert_eq!(restarts(&pod(1)), 2);
    }
}
