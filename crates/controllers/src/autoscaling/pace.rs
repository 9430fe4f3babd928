//! Decides how fast a size may change: what was wanted lately, and how much changed already, hold it back.

use std::{cmp::Ordering, time::Duration};

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerSpec,
};
use tokio::time::Instant;

/// How long smaller sizes are remembered at most; the API allows no longer window.
const LONGEST: Duration = Duration::from_hours(1);
const DOWN_WINDOW: i32 = 300;

/// What was wanted and done lately for one target.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    wanted: Vec<(Instant, i32)>,
    /// Changes, up or down.
    changes: Vec<(Instant, i32)>,
}

/// A condition that follows from a decision: its state, reason and message.
pub(super) type Said = (bool, &'static str, &'static str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paced {
    pub(super) replicas: i32,
    pub(super) able: Said,
    pub(super) limited: Said,
}

impl History {
    /// Takes note of a change that was made.
    pub(super) fn note_change(&mut self, change: i32, now: Instant) {
        self.changes.push((now, change));
    }

    /// The size to go to now, if `wanted` is the right one.
    pub(super) fn pace(
        &mut self,
        spec: &HorizontalPodAutoscalerSpec,
        current: i32,
        wanted: i32,
        now: Instant,
    ) -> Paced {
        let is_young = |at: &Instant| now.duration_since(*at) < LONGEST;
        self.wanted.retain(|(at, _)| is_young(at));
        self.changes.retain(|(at, _)| is_young(at));
        if self.wanted.is_empty() {
            // Who comes newly to this must not take away at once what another had decided.
            self.wanted.push((now, current));
        }
        let behavior = spec.behavior.clone().unwrap_or_default();
        let (up, down) = (behavior.scale_up, behavior.scale_down);
        let window = |rules: Option<&HPAScalingRules>, usual: i32| {
            let seconds = rules.and_then(|rules| rules.stabilization_window_seconds);
            Duration::from_secs(u64::try_from(seconds.unwrap_or(usual)).unwrap_or_default())
        };
        let lately = |window: Duration| {
            let recent = self.wanted.iter();
            let recent = recent.filter(move |(at, _)| now.duration_since(*at) < window);
            recent.map(|(_, replicas)| *replicas)
        };
        let lowest = lately(window(up.as_ref(), 0)).fold(wanted, i32::min);
        let highest = lately(window(down.as_ref(), DOWN_WINDOW)).fold(wanted, i32::max);
        let steady = if highest < lowest {
            wanted
        } else {
            current.clamp(lowest, highest)
        };
        self.wanted.push((now, wanted));
        let able = match steady.cmp(&wanted) {
            Ordering::Less => (
                true,
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent recommendation",
            ),
            Ordering::Greater => (
                true,
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent recommendation",
            ),
            Ordering::Equal => (
                true,
                "ReadyForNewScale",
                "recommended size matches current size",
            ),
        };
        let (replicas, limited) = match steady.cmp(&current) {
            Ordering::Greater => {
                let fastest = self.fastest_up(up.as_ref(), current, now).max(current);
                limit_up(steady, fastest, spec.max_replicas)
            }
            Ordering::Less => {
                let fastest = self.fastest_down(down.as_ref(), current, now).min(current);
                limit_down(steady, fastest, spec.min_replicas.unwrap_or(1))
            }
            Ordering::Equal => (steady, WITHIN),
        };
        Paced {
            replicas,
            able,
            limited,
        }
    }

    /// What changed within a period: what was added, and what was taken away.
    fn changed(&self, policy: &HPAScalingPolicy, now: Instant) -> i32 {
        let period = u64::try_from(policy.period_seconds).unwrap_or_default();
        let period = Duration::from_secs(period);
        let recent = self.changes.iter();
        let recent = recent.filter(|(at, _)| now.duration_since(*at) < period);
        recent.map(|(_, change)| *change).sum()
    }

    fn fastest_up(&self, rules: Option<&HPAScalingRules>, current: i32, now: Instant) -> i32 {
        let Some(rules) = rules else {
            return current.saturating_mul(2).max(4);
        };
        let usual = [policy("Pods", 4), policy("Percent", 100)];
        let proposals = rules.policies.as_deref().unwrap_or(&usual).iter();
        let proposals = proposals.map(|policy| {
            let before = current.saturating_sub(self.changed(policy, now));
            if policy.type_ == "Pods" {
                before.saturating_add(policy.value)
            } else {
                percent(before, 100_i64.saturating_add(policy.value.into()), true)
            }
        });
        match rules.select_policy.as_deref() {
            Some("Disabled") => current,
            Some("Min") => proposals.min().unwrap_or(current),
            _ => proposals.max().unwrap_or(current),
        }
    }

    fn fastest_down(&self, rules: Option<&HPAScalingRules>, current: i32, now: Instant) -> i32 {
        let Some(rules) = rules else {
            return 0;
        };
        let usual = [policy("Percent", 100)];
        let proposals = rules.policies.as_deref().unwrap_or(&usual).iter();
        let proposals = proposals.map(|policy| {
            let before = current.saturating_sub(self.changed(policy, now));
            if policy.type_ == "Pods" {
                before.saturating_sub(policy.value)
            } else {
                percent(before, 100_i64.saturating_sub(policy.value.into()), false)
            }
        });
        match rules.select_policy.as_deref() {
            Some("Disabled") => current,
            // The smallest change leaves the most.
            Some("Min") => proposals.max().unwrap_or(current),
            _ => proposals.min().unwrap_or(current),
        }
    }
}

fn policy(kind: &str, value: i32) -> HPAScalingPolicy {
    HPAScalingPolicy {
        type_: kind.to_owned(),
        value,
        period_seconds: 15,
    }
}

/// So many per cent of a number; of what is no whole number, the next above or below.
fn percent(number: i32, percent: i64, is_up: bool) -> i32 {
    let hundredths = i64::from(number).saturating_mul(percent);
    let up = if is_up { 99 } else { 0 };
    let whole = hundredths.saturating_add(up).div_euclid(100);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

const WITHIN: Said = (
    false,
    "DesiredWithinRange",
    "the desired count is within the acceptable range",
);
const TOO_MANY: Said = (
    true,
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
);
const TOO_FEW: Said = (
    true,
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
);

fn limit_up(wanted: i32, fastest: i32, most: i32) -> (i32, Said) {
    if wanted <= fastest.min(most) {
        (wanted, WITHIN)
    } else if most <= fastest {
        (most, TOO_MANY)
    } else {
        let text = "the desired replica count is increasing faster than the maximum scale rate";
        (fastest, (true, "ScaleUpLimit", text))
    }
}

fn limit_down(wanted: i32, fastest: i32, least: i32) -> (i32, Said) {
    if wanted >= fastest.max(least) {
        (wanted, WITHIN)
    } else if least >= fastest {
        (least, TOO_FEW)
    } else {
        let text = "the desired replica count is decreasing faster than the maximum scale rate";
        (fastest, (true, "ScaleDownLimit", text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(behavior: &Value) -> HorizontalPodAutoscalerSpec {
        serde_json::from_value(json!({
            "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 2, "maxReplicas": 40,
            "behavior": behavior,
        }))
        .unwrap()
    }

    #[test]
    fn by_default_it_doubles_at_most_and_shrinks_after_five_minutes() {
        let spec = spec(&json!(null));
        let mut history = History::default();
        let mut now = Instant::now();
        let first = history.pace(&spec, 3, 30, now);
        assert_eq!((first.replicas, first.limited.1), (6, "ScaleUpLimit"));
        let most = history.pace(&spec, 30, 90, now);
        assert_eq!((most.replicas, most.limited.1), (40, "TooManyReplicas"));
        now += Duration::from_secs(299);
        let kept = history.pace(&spec, 40, 5, now);
        assert_eq!((kept.replicas, kept.able.1), (40, "ScaleDownStabilized"));
        now += Duration::from_secs(1);
        assert_eq!(history.pace(&spec, 40, 5, now).replicas, 5);
        assert_eq!(
            history
                .pace(&spec, 5, 0, now + Duration::from_mins(10))
                .replicas,
            2
        );
    }

    #[test]
    fn the_first_look_after_a_start_takes_nothing_away() {
        let paced = History::default().pace(&spec(&json!(null)), 20, 3, Instant::now());
        assert_eq!(paced.replicas, 20);
    }

    #[test]
    fn policies_count_what_changed_within_their_period() {
        let rules = |select: &str| {
            spec(&json!({
                "scaleUp": {"selectPolicy": select, "policies": [
                    {"type": "Pods", "value": 3, "periodSeconds": 60},
                    {"type": "Percent", "value": 10, "periodSeconds": 60},
                ]},
                "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": select, "policies": [
                    {"type": "Pods", "value": 5, "periodSeconds": 60},
                    {"type": "Percent", "value": 10, "periodSeconds": 60},
                ]},
            }))
        };
        let now = Instant::now();
        let pace = |select: &str, change: i32, current: i32, wanted: i32| {
            let mut history = History::default();
            history.note_change(change, now);
            history.pace(&rules(select), current, wanted, now).replicas
        };
        assert_eq!(pace("Max", 0, 10, 40), 13);
        assert_eq!(pace("Min", 0, 10, 40), 11);
        assert_eq!(pace("Disabled", 0, 10, 40), 10);
        assert_eq!(
            pace("Max", 2, 12, 40),
            13,
            "two of three were added already"
        );
        assert_eq!(pace("Max", 0, 20, 2), 15);
        assert_eq!(pace("Min", 0, 20, 2), 18);
        assert_eq!(pace("Disabled", 0, 20, 2), 20);
        assert_eq!(pace("Max", -5, 15, 2), 15, "all five were taken already");
    }

    #[test]
    fn growing_can_be_made_steady_too() {
        let spec = spec(&json!({"scaleUp": {"stabilizationWindowSeconds": 60}}));
        let mut history = History::default();
        let now = Instant::now();
        let paced = history.pace(&spec, 4, 10, now);
        assert_eq!((paced.replicas, paced.able.1), (4, "ScaleUpStabilized"));
        let later = now + Duration::from_secs(61);
        assert_eq!(history.pace(&spec, 4, 10, later).replicas, 8);
    }
}
