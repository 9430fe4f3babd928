//! Conditions of an autoscaler.

use k8s_openapi::{
    api::autoscaling::v2::{HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

/// Sets a condition: whether it holds, its reason and its message. The time moves with the state only.
pub(super) fn set_condition(
    status: &mut HorizontalPodAutoscalerStatus,
    kind: &str,
    (holds, reason, message): (bool, &str, &str),
    now: Timestamp,
) {
    let state = if holds { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    let place = conditions.iter().position(|each| each.type_ == kind);
    let since = place
        .map(|place| &conditions[place])
        .filter(|old| old.status == state)
        .and_then(|old| old.last_transition_time.clone());
    let condition = HorizontalPodAutoscalerCondition {
        type_: kind.to_owned(),
        status: state.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: since.or(Some(Time(now))),
    };
    match place {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::SignedDuration;

    use super::*;

    #[test]
    fn the_time_of_a_condition_moves_with_its_state() {
        let mut status = HorizontalPodAutoscalerStatus::default();
        let first = Timestamp::UNIX_EPOCH;
        let second = first + SignedDuration::from_secs(9);
        let mut set = |holds, now| {
            set_condition(&mut status, "AbleToScale", (holds, "r", "m"), now);
            let conditions = status.conditions.as_ref().unwrap();
            assert_eq!(conditions.len(), 1);
            conditions[0].last_transition_time.clone().unwrap().0
        };
        assert_eq!(set(true, first), first);
        assert_eq!(set(true, second), first);
        assert_eq!(set(false, second), second);
    }
}
