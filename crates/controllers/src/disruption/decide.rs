//! Decides how many of the pods of a budget may be disrupted now.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, OwnerReference, Time},
        util::intstr::IntOrString,
    },
    jiff::{SignedDuration, Timestamp},
};

/// How long a pod that was promised to go counts as gone.
const PROMISE: SignedDuration = SignedDuration::from_mins(2);

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodFacts {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) controller: Option<OwnerReference>,
    pub(super) is_ready: bool,
    pub(super) is_going: bool,
}

impl PodFacts {
    pub(super) fn read(pod: &Pod) -> Self {
        let status = pod.status.iter();
        let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
        let metadata = &pod.metadata;
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            controller: controller(metadata.owner_references.as_deref()),
            is_ready: conditions.any(|each| each.type_ == "Ready" && each.status == "True"),
            is_going: pod.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// The owner that looks after an object.
pub(super) fn controller(owners: Option<&[OwnerReference]>) -> Option<OwnerReference> {
    let mut owners = owners.into_iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).cloned()
}

/// What a budget says from now on, and when to look again though nothing happened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) status: PodDisruptionBudgetStatus,
    pub(super) again: Option<Duration>,
    /// Pods that were promised to go and did not.
    pub(super) broken: Vec<String>,
}

/// Whether the size of the controllers must be known: shares of nothing are nothing.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    let spec = budget.spec.clone().unwrap_or_default();
    spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
}

/// Decides from the pods of a budget, and from how many there should be in all. That is an error's text if nobody
/// can tell.
pub(super) fn judge(
    budget: &PodDisruptionBudget,
    pods: &[Arc<PodFacts>],
    scale: Result<i32, &str>,
    now: Timestamp,
) -> Verdict {
    let (promised, again, broken) = promised(budget, pods, now);
    let old = budget.status.clone().unwrap_or_default();
    let mut status = PodDisruptionBudgetStatus {
        disrupted_pods: Some(promised.clone()).filter(|pods| !pods.is_empty()),
        observed_generation: budget.metadata.generation,
        ..old.clone()
    };
    let counts = scale.and_then(|scale| {
        expected(budget, pods.len(), scale).ok_or("the budget has neither minimum nor maximum")
    });
    match counts {
        Ok((expected, desired)) => {
            let is_healthy = |pod: &&Arc<PodFacts>| {
                pod.is_ready && !pod.is_going && !promised.contains_key(&pod.name)
            };
            let healthy = count(pods.iter().filter(is_healthy).count());
            let allowed = if expected > 0 {
                healthy.saturating_sub(desired).max(0)
            } else {
                0
            };
            status.expected_pods = Some(expected);
            status.desired_healthy = Some(desired);
            status.current_healthy = Some(healthy);
            status.disruptions_allowed = Some(allowed);
            let (state, reason) = if allowed > 0 {
                ("True", "SufficientPods")
            } else {
                ("False", "InsufficientPods")
            };
            set_condition(&mut status, state, reason, "", now);
        }
        Err(why) => {
            // Nothing is allowed when it is not known what is needed.
            status.disruptions_allowed = Some(0);
            status.observed_generation = old.observed_generation;
            set_condition(&mut status, "False", "SyncFailed", why, now);
        }
    }
    Verdict {
        status,
        again,
        broken,
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// How many pods there should be, and how many of them must be well.
fn expected(budget: &PodDisruptionBudget, pods: usize, scale: i32) -> Option<(i32, i32)> {
    let spec = budget.spec.as_ref()?;
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let most = share(most, scale)?;
            Some((scale, scale.saturating_sub(most).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Some((count(pods), *least)),
        (None, Some(least)) => Some((scale, share(least, scale)?)),
        (None, None) => None,
    }
}

/// A number, or so many per cent of the whole, rounded up.
fn share(wanted: &IntOrString, whole: i32) -> Option<i32> {
    match wanted {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let hundredths = percent.checked_mul(i64::from(whole))?;
            i32::try_from(hundredths.checked_add(99)?.div_euclid(100)).ok()
        }
    }
}

/// Pods that were promised to go and still count as gone.
fn promised(
    budget: &PodDisruptionBudget,
    pods: &[Arc<PodFacts>],
    now: Timestamp,
) -> (BTreeMap<String, Time>, Option<Duration>, Vec<String>) {
    let mut kept = BTreeMap::new();
    let mut again: Option<Duration> = None;
    let mut broken = Vec::new();
    let status = budget.status.iter();
    for (name, time) in status.flat_map(|status| status.disrupted_pods.iter().flatten()) {
        let pod = pods.iter().find(|pod| pod.name == *name);
        // It goes, or is gone.
        if pod.is_none_or(|pod| pod.is_going) {
            continue;
        }
        let until = time.0.saturating_add(PROMISE).unwrap_or(Timestamp::MAX);
        match Duration::try_from(until.duration_since(now)) {
            Ok(left) if !left.is_zero() => {
                again = Some(again.map_or(left, |again| again.min(left)));
                kept.insert(name.clone(), time.clone());
            }
            _ => broken.push(name.clone()),
        }
    }
    (kept, again, broken)
}

fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    state: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    let kind = "DisruptionAllowed";
    let old = conditions.iter().find(|each| each.type_ == kind);
    let since = old
        .filter(|old| old.status == state)
        .map_or(Time(now), |old| old.last_transition_time.clone());
    conditions.retain(|each| each.type_ != kind);
    conditions.push(Condition {
        type_: kind.to_owned(),
        status: state.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: status.observed_generation,
        last_transition_time: since,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn budget(spec: &Value, status: &Value) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": {"name": "b", "generation": 3}, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn pods(ready: usize, not_ready: usize) -> Vec<Arc<PodFacts>> {
        let pod = |number: usize| {
            Arc::new(PodFacts {
                name: format!("p{number}"),
                is_ready: number < ready,
                ..PodFacts::default()
            })
        };
        (0..ready + not_ready).map(pod).collect()
    }

    /// Expected, desired, healthy, allowed.
    fn numbers(spec: &Value, pods: &[Arc<PodFacts>], scale: i32) -> [i32; 4] {
        let status = judge(&budget(spec, &json!(null)), pods, Ok(scale), NOW).status;
        assert_eq!(status.observed_generation, Some(3));
        [
            status.expected_pods.unwrap(),
            status.desired_healthy.unwrap(),
            status.current_healthy.unwrap(),
            status.disruptions_allowed.unwrap(),
        ]
    }

    #[test]
    fn what_is_allowed_is_what_is_well_beyond_what_must_be() {
        for (spec, ready, not_ready, scale, expected) in [
            (json!({"minAvailable": 2}), 3, 0, 0, [3, 2, 3, 1]),
            (json!({"minAvailable": 2}), 1, 2, 0, [3, 2, 1, 0]),
            (json!({"minAvailable": 0}), 0, 0, 0, [0, 0, 0, 0]),
            (json!({"minAvailable": "50%"}), 5, 0, 5, [5, 3, 5, 2]),
            (json!({"minAvailable": "100%"}), 5, 0, 5, [5, 5, 5, 0]),
            (json!({"maxUnavailable": 1}), 5, 0, 5, [5, 4, 5, 1]),
            (json!({"maxUnavailable": 1}), 4, 0, 5, [5, 4, 4, 0]),
            (json!({"maxUnavailable": "30%"}), 10, 0, 10, [10, 7, 10, 3]),
            (json!({"maxUnavailable": 7}), 3, 0, 3, [3, 0, 3, 3]),
        ] {
            let found = numbers(&spec, &pods(ready, not_ready), scale);
            assert_eq!(found, expected, "{spec}");
        }
    }

    #[test]
    fn a_pod_that_was_promised_to_go_counts_as_gone_for_a_while() {
        let status = json!({"disruptedPods": {
            "p0": "1969-12-31T23:59:00Z", "p1": "1969-12-31T23:00:00Z", "gone": "1969-12-31T23:59:00Z",
        }});
        let budget = budget(&json!({"minAvailable": 1}), &status);
        let verdict = judge(&budget, &pods(3, 0), Ok(0), NOW);
        let promised = verdict.status.disrupted_pods.unwrap();
        assert_eq!(promised.keys().collect::<Vec<_>>(), ["p0"]);
        assert_eq!(verdict.status.current_healthy, Some(2));
        assert_eq!(verdict.again, Some(Duration::from_mins(1)));
        assert_eq!(verdict.broken, ["p1"]);
    }

    #[test]
    fn nothing_is_allowed_when_nobody_knows_how_many_there_should_be() {
        let budget = budget(
            &json!({"maxUnavailable": 1}),
            &json!({"disruptionsAllowed": 4}),
        );
        let status = judge(&budget, &pods(3, 0), Err("no such thing"), NOW).status;
        assert_eq!(status.disruptions_allowed, Some(0));
        assert_eq!(status.observed_generation, None);
        let condition = &status.conditions.unwrap()[0];
        assert_eq!(
            (&*condition.reason, &*condition.message),
            ("SyncFailed", "no such thing")
        );
    }

    #[test]
    fn the_time_of_the_condition_moves_with_its_state() {
        let first = budget(&json!({"minAvailable": 1}), &json!(null));
        let mut second = first.clone();
        second.status = Some(judge(&first, &pods(3, 0), Ok(0), NOW).status);
        let later = NOW + SignedDuration::from_secs(9);
        let again = judge(&second, &pods(3, 0), Ok(0), later).status;
        assert_eq!(Some(&again), second.status.as_ref());
        let changed = judge(&second, &pods(1, 0), Ok(0), later).status;
        let condition = &changed.conditions.unwrap()[0];
        assert_eq!(condition.last_transition_time, Time(later));
    }
}
