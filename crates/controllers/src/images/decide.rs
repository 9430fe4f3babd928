//! When a registry is asked, what becomes of its answer, and which objects go. No clock, no requests.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use transom_model::images::ImageStatus;

use super::{Answer, Image, LONGEST_MESSAGE};

/// How long an answer about a tag is believed. A digest always stands for the same.
const FRESH: Duration = Duration::from_mins(10);
/// How long a registry that failed is left alone, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// How long an object that no pod needs is kept.
const KEPT: Duration = Duration::from_hours(7 * 24);
/// How many objects there are at most of which no pod needs, and how many go in one round.
const MOST_UNUSED: usize = 2_000;
const BATCH: usize = 200;

/// What is known of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) reference: String,
    pub(super) created: Option<Timestamp>,
    pub(super) status: ImageStatus,
}

impl Facts {
    pub(super) fn read(image: Image) -> Self {
        Self {
            name: image.metadata.name.unwrap_or_default(),
            reference: image.spec.reference,
            created: image.metadata.creation_timestamp.map(|time| time.0),
            status: image.status.unwrap_or_default(),
        }
    }

    fn checked(&self) -> Option<Timestamp> {
        self.status.checked_at.as_deref()?.parse().ok()
    }
}

/// What is to be done about an image that a pod waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Not now.
    Later(Duration),
    /// The registry is asked, and told which digest is known.
    Look {
        known: Option<String>,
    },
}

pub(super) fn decide(facts: Option<&Facts>, failures: u32, now: Timestamp) -> Step {
    let Some(facts) = facts else {
        return Step::Look { known: None };
    };
    let status = &facts.status;
    let is_known = !status.platforms.is_empty();
    let is_fixed = facts.reference.contains('@');
    if is_known && is_fixed && status.message.is_none() {
        return Step::Nothing;
    }
    // What a node told of something that it made has no digest that a registry knows.
    let known = status
        .digest
        .clone()
        .filter(|_| is_known && status.node.is_none());
    let pause = match &status.message {
        Some(_) => pause(failures),
        None if is_known => FRESH,
        None => Duration::ZERO,
    };
    let age = facts.checked().map(|checked| age(checked, now));
    match age.and_then(|age| pause.checked_sub(age)) {
        Some(rest) if !rest.is_zero() => Step::Later(rest),
        _ => Step::Look { known },
    }
}

/// How long ago something was; no time at all if it is yet to come.
fn age(then: Timestamp, now: Timestamp) -> Duration {
    let age: SignedDuration = now.duration_since(then);
    Duration::try_from(age).unwrap_or_default()
}

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << failures.saturating_sub(1).min(10))
        .min(FRESH)
}

/// What is known after a registry was asked. A failure takes nothing away.
pub(super) fn status(
    facts: Option<&Facts>,
    answer: Result<Answer, String>,
    now: Timestamp,
) -> ImageStatus {
    let before = facts.map(|facts| facts.status.clone()).unwrap_or_default();
    let checked_at = Some(now.to_string());
    match answer {
        Ok(Answer::Image { digest, platforms }) => ImageStatus {
            checked_at,
            ..ImageStatus::of(Some(digest), platforms)
        },
        Ok(Answer::Same) => ImageStatus {
            checked_at,
            message: None,
            ..before
        },
        Err(message) => ImageStatus {
            checked_at,
            message: Some(message.chars().take(LONGEST_MESSAGE).collect()),
            ..before
        },
    }
}

/// The names of objects that can go: unused for long, or unused and too many, the oldest first.
pub(super) fn unused(
    all: &[Arc<Facts>],
    is_used: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Vec<String> {
    let mut idle: Vec<(Option<Timestamp>, &Facts)> = all
        .iter()
        .filter(|facts| !is_used(&facts.reference))
        .map(|facts| (facts.checked().or(facts.created), &**facts))
        .collect();
    idle.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
    let surplus = idle.len().saturating_sub(MOST_UNUSED);
    let is_old = |seen: &Option<Timestamp>| seen.is_none_or(|seen| age(seen, now) >= KEPT);
    idle.iter()
        .enumerate()
        .filter(|(index, (seen, _))| *index < surplus || is_old(seen))
        .map(|(_, (_, facts))| facts.name.clone())
        .take(BATCH)
        .collect()
}

#[cfg(test)]
mod tests {
    use transom_model::images::ImagePlatform;

    use super::*;

    const NOW: &str = "2026-01-02T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn before(duration: Duration) -> Timestamp {
        now() - SignedDuration::try_from(duration).unwrap()
    }

    fn linux() -> Vec<ImagePlatform> {
        vec![ImagePlatform {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: None,
        }]
    }

    fn facts(reference: &str, age: Duration) -> Facts {
        Facts {
            name: reference.to_owned(),
            reference: reference.to_owned(),
            created: None,
            status: ImageStatus {
                checked_at: Some(before(age).to_string()),
                ..ImageStatus::of(Some("sha256:1".to_owned()), linux())
            },
        }
    }

    #[test]
    fn a_registry_is_asked_when_nothing_is_known_and_when_a_tag_is_old() {
        assert_eq!(decide(None, 0, now()), Step::Look { known: None });
        let minute = Duration::from_mins(1);
        assert_eq!(
            decide(Some(&facts("app:1", minute)), 0, now()),
            Step::Later(FRESH.saturating_sub(minute))
        );
        let known = Some("sha256:1".to_owned());
        assert_eq!(
            decide(Some(&facts("app:1", FRESH)), 0, now()),
            Step::Look { known }
        );
        let fixed = facts("app@sha256:1", KEPT);
        assert_eq!(decide(Some(&fixed), 0, now()), Step::Nothing);
        // An object that somebody made and nobody filled.
        let empty = Facts {
            status: ImageStatus::default(),
            ..facts("app:1", minute)
        };
        assert_eq!(decide(Some(&empty), 0, now()), Step::Look { known: None });
    }

    #[test]
    fn a_registry_that_fails_is_left_alone_longer_each_time() {
        let failed = |age: Duration| {
            let answer = Err("no route".to_owned());
            let then = before(age);
            Facts {
                status: status(None, answer, then),
                ..facts("app:1", age)
            }
        };
        let second = Duration::from_secs(1);
        for (failures, wait) in [(0, 9), (1, 9), (2, 19), (3, 39), (7, 599), (90, 599)] {
            assert_eq!(
                decide(Some(&failed(second)), failures, now()),
                Step::Later(Duration::from_secs(wait)),
                "{failures}"
            );
        }
        assert_eq!(
            decide(Some(&failed(FRESH)), 90, now()),
            Step::Look { known: None }
        );
    }

    #[test]
    fn what_a_node_told_is_asked_of_the_registry_as_if_new() {
        let mut told = facts("app:1", FRESH);
        told.status.node = Some("a".to_owned());
        assert_eq!(decide(Some(&told), 0, now()), Step::Look { known: None });
    }

    #[test]
    fn a_failure_takes_nothing_away_and_an_answer_replaces_all() {
        let mut old = facts("app:1", FRESH);
        old.status.node = Some("a".to_owned());
        let failed = status(Some(&old), Err("x".repeat(9_000)), now());
        assert_eq!(failed.platforms, linux());
        assert_eq!(failed.node.as_deref(), Some("a"));
        assert_eq!(
            failed.message.as_ref().map(String::len),
            Some(LONGEST_MESSAGE)
        );
        assert_eq!(failed.checked_at.as_deref(), Some(NOW));
        let failed = Facts {
            status: failed,
            ..old
        };
        let same = status(Some(&failed), Ok(Answer::Same), now());
        assert_eq!((same.message, same.platforms), (None, linux()));
        let answer = Answer::Image {
            digest: "sha256:2".to_owned(),
            platforms: linux(),
        };
        let new = status(Some(&failed), Ok(answer), now());
        assert_eq!(
            (new.node, new.message, new.digest.as_deref()),
            (None, None, Some("sha256:2"))
        );
    }

    #[test]
    fn objects_go_when_nobody_needed_them_for_long_or_when_there_are_too_many() {
        let hour = Duration::from_hours(1);
        let all = [
            Arc::new(facts("old", KEPT)),
            Arc::new(facts("used", KEPT)),
            Arc::new(facts("new", hour)),
        ];
        assert_eq!(
            unused(&all, |reference| reference == "used", now()),
            ["old"]
        );
        let many: Vec<Arc<Facts>> = (0..MOST_UNUSED as u64 + 2)
            .map(|number| {
                let age = hour + Duration::from_secs(number);
                Arc::new(facts(&format!("a{number}"), age))
            })
            .collect();
        assert_eq!(
            unused(&many, |_| false, now()),
            [format!("a{}", MOST_UNUSED + 1), format!("a{MOST_UNUSED}")]
        );
    }
}
