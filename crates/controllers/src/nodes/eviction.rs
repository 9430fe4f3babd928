//! Decides how long a pod stays on a node with taints.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use super::facts::NO_EXECUTE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Stay,
    /// It may stay this long after the taints came.
    Leave(Duration),
}

pub(super) fn judge(taints: &[Taint], tolerations: &[Toleration]) -> Verdict {
    let mut shortest: Option<Duration> = None;
    for taint in taints.iter().filter(|taint| taint.effect == NO_EXECUTE) {
        let Some(toleration) = tolerations.iter().find(|each| tolerates(each, taint)) else {
            return Verdict::Leave(Duration::ZERO);
        };
        if let Some(seconds) = toleration.toleration_seconds {
            let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            shortest = Some(shortest.map_or(limit, |shortest| shortest.min(limit)));
        }
    }
    shortest.map_or(Verdict::Stay, Verdict::Leave)
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |field: &'_ Option<String>| field.clone().unwrap_or_default();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => text(&toleration.value) == text(&taint.value),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn verdict(taints: Value, tolerations: Value) -> Verdict {
        let taints: Vec<Taint> = serde_json::from_value(taints).unwrap();
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
        judge(&taints, &tolerations)
    }

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates_all_taints() {
        let down = json!([{"key": "down", "effect": "NoExecute"}]);
        let leave = |seconds| Verdict::Leave(Duration::from_secs(seconds));
        for (taints, tolerations, expected) in [
            (json!([]), json!([]), Verdict::Stay),
            (
                json!([{"key": "k", "effect": "NoSchedule"}]),
                json!([]),
                Verdict::Stay,
            ),
            (down.clone(), json!([]), leave(0)),
            (down.clone(), json!([{"operator": "Exists"}]), Verdict::Stay),
            (
                down.clone(),
                json!([{"key": "down", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]),
                leave(300),
            ),
            (
                down.clone(),
                json!([{"key": "down", "operator": "Exists", "tolerationSeconds": -3}]),
                leave(0),
            ),
            (
                down.clone(),
                json!([{"key": "down", "value": "other"}]),
                leave(0),
            ),
            (
                down.clone(),
                json!([{"key": "down", "operator": "Exists", "effect": "NoSchedule"}]),
                leave(0),
            ),
            (
                json!([{"key": "a", "value": "1", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}]),
                json!([
                    {"key": "a", "operator": "Equal", "value": "1", "tolerationSeconds": 9},
                    {"key": "b", "operator": "Exists", "tolerationSeconds": 5},
                ]),
                leave(5),
            ),
        ] {
            let shown = format!("{taints} {tolerations}");
            assert_eq!(verdict(taints, tolerations), expected, "{shown}");
        }
    }
}
