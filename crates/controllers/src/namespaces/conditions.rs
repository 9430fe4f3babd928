//! What a namespace that is on its way out says about itself, in upstream's words.
//!
//! A condition changes its time only when it changes its status, and nothing is written when nothing changed.

use k8s_openapi::{
    api::core::v1::{NamespaceCondition, NamespaceStatus},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

use super::content::Sight;

struct Finding {
    kind: &'static str,
    is_bad: bool,
    reason: &'static str,
    message: String,
}

/// Writes what was seen into the status and tells whether that changed anything.
pub(super) fn set(status: &mut NamespaceStatus, sight: &Sight, now: Timestamp) -> bool {
    let before = status.clone();
    status.phase = Some("Terminating".to_owned());
    let conditions = status.conditions.get_or_insert_default();
    for finding in findings(sight) {
        let known = conditions.iter_mut().find(|old| old.type_ == finding.kind);
        match known {
            Some(old) => update(old, finding, now),
            None => conditions.push(NamespaceCondition {
                last_transition_time: Some(Time(now)),
                type_: finding.kind.to_owned(),
                status: status_text(finding.is_bad).to_owned(),
                reason: Some(finding.reason.to_owned()),
                message: Some(finding.message),
            }),
        }
    }
    *status != before
}

fn update(old: &mut NamespaceCondition, finding: Finding, now: Timestamp) {
    if old.status != status_text(finding.is_bad) {
        status_text(finding.is_bad).clone_into(&mut old.status);
        old.last_transition_time = Some(Time(now));
    }
    old.reason = Some(finding.reason.to_owned());
    old.message = Some(finding.message);
}

fn status_text(is_bad: bool) -> &'static str {
    if is_bad { "True" } else { "False" }
}

fn findings(sight: &Sight) -> [Finding; 5] {
    [
        finding(
            "NamespaceDeletionDiscoveryFailure",
            sight.discovery_failure.clone(),
            "DiscoveryFailed",
            (
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
        ),
        // Discovery has parsed them all, or it has failed.
        finding(
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            "GroupVersionParsingFailed",
            (
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
        ),
        finding(
            "NamespaceDeletionContentFailure",
            failures(sight),
            "ContentDeletionFailed",
            (
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
        ),
        finding(
            "NamespaceContentRemaining",
            remaining(sight),
            "SomeResourcesRemain",
            ("ContentRemoved", "All content successfully removed"),
        ),
        finding(
            "NamespaceFinalizersRemaining",
            finalizers(sight),
            "SomeFinalizersRemain",
            (
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ),
    ]
}

fn finding(
    kind: &'static str,
    trouble: Option<String>,
    bad: &'static str,
    (good, fine): (&'static str, &'static str),
) -> Finding {
    Finding {
        kind,
        is_bad: trouble.is_some(),
        reason: if trouble.is_some() { bad } else { good },
        message: trouble.unwrap_or_else(|| fine.to_owned()),
    }
}

fn failures(sight: &Sight) -> Option<String> {
    let mut texts = sight.failures.clone();
    texts.sort_unstable();
    (!texts.is_empty()).then(|| {
        format!(
            "Failed to delete all resource types, {} remaining: {}",
            texts.len(),
            texts.join(", ")
        )
    })
}

fn remaining(sight: &Sight) -> Option<String> {
    let texts: Vec<String> = sight
        .remaining
        .iter()
        .map(|((resource, group), count)| {
            format!("{resource}.{group} has {count} resource instances")
        })
        .collect();
    (!texts.is_empty()).then(|| format!("Some resources are remaining: {}", texts.join(", ")))
}

fn finalizers(sight: &Sight) -> Option<String> {
    let texts: Vec<String> = sight
        .finalizers
        .iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
        .collect();
    (!texts.is_empty()).then(|| {
        format!(
            "Some content in the namespace has finalizers remaining: {}",
            texts.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(status: &'a NamespaceStatus, kind: &str) -> (&'a str, &'a str, &'a str) {
        let conditions = status.conditions.as_ref().unwrap();
        let one = conditions.iter().find(|one| one.type_ == kind).unwrap();
        (
            &one.status,
            one.reason.as_deref().unwrap(),
            one.message.as_deref().unwrap(),
        )
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn held() -> Sight {
        Sight {
            remaining: [(("pods".to_owned(), String::new()), 2)].into(),
            finalizers: [("example.org/a".to_owned(), 1)].into(),
            ..Sight::default()
        }
    }

    #[test]
    fn what_is_left_is_told_in_upstreams_words() {
        let mut status = NamespaceStatus::default();
        assert!(set(&mut status, &held(), at(0)));
        assert_eq!(status.phase.as_deref(), Some("Terminating"));
        assert_eq!(
            text(&status, "NamespaceContentRemaining"),
            (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: pods. has 2 resource instances"
            )
        );
        assert_eq!(
            text(&status, "NamespaceFinalizersRemaining"),
            (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: example.org/a in 1 resource instances"
            )
        );
        assert_eq!(
            text(&status, "NamespaceDeletionContentFailure"),
            (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization"
            )
        );
        assert_eq!(status.conditions.unwrap().len(), 5);
    }

    #[test]
    fn the_same_sight_again_changes_nothing() {
        let mut status = NamespaceStatus::default();
        set(&mut status, &held(), at(0));
        assert!(!set(&mut status, &held(), at(9)));
    }

    #[test]
    fn the_time_moves_with_the_status_and_not_with_the_text() {
        let mut status = NamespaceStatus::default();
        set(&mut status, &held(), at(0));
        let mut fewer = held();
        fewer.remaining = [(("pods".to_owned(), String::new()), 1)].into();
        fewer.finalizers.clear();
        assert!(set(&mut status, &fewer, at(9)));
        let time = |kind: &str| {
            let conditions = status.conditions.as_ref().unwrap();
            let one = conditions.iter().find(|one| one.type_ == kind).unwrap();
            one.last_transition_time.as_ref().unwrap().0
        };
        assert_eq!(time("NamespaceContentRemaining"), at(0));
        assert_eq!(time("NamespaceFinalizersRemaining"), at(9));
    }

    #[test]
    fn failures_are_counted_and_conditions_of_others_stay() {
        let mut status = NamespaceStatus {
            conditions: Some(vec![NamespaceCondition {
                type_: "Other".to_owned(),
                status: "True".to_owned(),
                ..NamespaceCondition::default()
            }]),
            ..NamespaceStatus::default()
        };
        let sight = Sight {
            failures: vec!["b".to_owned(), "a".to_owned()],
            discovery_failure: Some("no answer".to_owned()),
            ..Sight::default()
        };
        assert!(!sight.is_empty());
        set(&mut status, &sight, at(0));
        assert_eq!(
            text(&status, "NamespaceDeletionContentFailure"),
            (
                "True",
                "ContentDeletionFailed",
                "Failed to delete all resource types, 2 remaining: a, b"
            )
        );
        assert_eq!(
            text(&status, "NamespaceDeletionDiscoveryFailure"),
            ("True", "DiscoveryFailed", "no answer")
        );
        assert_eq!(status.conditions.unwrap().len(), 6);
    }
}
