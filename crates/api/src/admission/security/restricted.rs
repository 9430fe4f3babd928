//! The level `restricted`: what current advice on hardening asks for.
//!
//! What only Linux has is not asked of pods for Windows.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Violation, containers, is_windows, listed, names, plural, quoted, setters};
use crate::validation::read::Read;

const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// All violations in upstream's order, as they were in a version.
pub(super) fn check(spec: &Value, minor: u32) -> Vec<Violation> {
    // Pods could not say before that they are for Windows.
    let is_excused = is_windows(spec) && minor >= 25;
    let asks = |since: u32| minor >= since && !is_excused;
    let found = [
        asks(8).then(|| escalation(spec)).flatten(),
        asks(22).then(|| capabilities(spec)).flatten(),
        volumes(spec),
        not_root(spec),
        (minor >= 23).then(|| user(spec)).flatten(),
        asks(19).then(|| seccomp(spec)).flatten(),
    ];
    found.into_iter().flatten().collect()
}

fn escalation(spec: &Value) -> Option<Violation> {
    let bad = names(spec, |container| {
        container["securityContext"].maybe_flag("allowPrivilegeEscalation") != Some(false)
    });
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "allowPrivilegeEscalation != false",
        format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            listed(&bad)
        ),
    ))
}

fn capabilities(spec: &Value) -> Option<Violation> {
    let own = |container: &Value| container["securityContext"]["capabilities"].clone();
    let keeps = names(spec, |container| {
        !own(container).texts("drop").any(|name| name == "ALL")
    });
    let added = |container: &Value| -> Vec<String> {
        own(container)
            .texts("add")
            .filter(|name| *name != "NET_BIND_SERVICE")
            .map(str::to_owned)
            .collect()
    };
    let adds = names(spec, |container| !added(container).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(added).collect();
    let mut details = Vec::new();
    if !keeps.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            listed(&keeps)
        ));
    }
    if !adds.is_empty() {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            listed(&adds),
            quoted(&all)
        ));
    }
    if details.is_empty() {
        return None;
    }
    Some(Violation::new(
        "unrestricted capabilities",
        details.join("; "),
    ))
}

fn volumes(spec: &Value) -> Option<Violation> {
    let kind = |volume: &Value| -> Option<String> {
        let fields = volume.as_object()?;
        let source = fields
            .iter()
            .find(|(name, value)| *name != "name" && !value.is_null())?;
        let known = VOLUMES.contains(&source.0.as_str());
        (!known).then(|| source.0.clone())
    };
    let bad: Vec<&Value> = spec
        .items("volumes")
        .iter()
        .filter(|volume| kind(volume).is_some())
        .collect();
    if bad.is_empty() {
        return None;
    }
    let kinds: BTreeSet<String> = bad.iter().filter_map(|volume| kind(volume)).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let shown: Vec<&str> = bad.iter().map(|volume| volume.text("name")).collect();
    Some(Violation::new(
        "restricted volume types",
        format!(
            "{} {} {} restricted volume {} {}",
            plural("volume", "volumes", shown.len()),
            quoted(&shown),
            plural("uses", "use", shown.len()),
            plural("type", "types", kinds.len()),
            quoted(&kinds)
        ),
    ))
}

/// Root inside is nobody outside for a pod with users of its own.
fn has_own_users(spec: &Value) -> bool {
    spec.maybe_flag("hostUsers") == Some(false)
}

fn not_root(spec: &Value) -> Option<Violation> {
    if has_own_users(spec) {
        return None;
    }
    let choice = |holder: &Value| holder["securityContext"].maybe_flag("runAsNonRoot");
    let of_pod = choice(spec);
    let bad = names(spec, |container| choice(container) == Some(false));
    let silent = names(spec, |container| choice(container).is_none());
    if let Some(who) = setters(of_pod == Some(false), &bad) {
        return Some(Violation::new(
            "runAsNonRoot != true",
            format!("{who} must not set securityContext.runAsNonRoot=false"),
        ));
    }
    if of_pod.is_none() && !silent.is_empty() {
        return Some(Violation::new(
            "runAsNonRoot != true",
            format!(
                "pod or {} must set securityContext.runAsNonRoot=true",
                listed(&silent)
            ),
        ));
    }
    None
}

fn user(spec: &Value) -> Option<Violation> {
    if has_own_users(spec) {
        return None;
    }
    let is_root = |holder: &Value| holder["securityContext"].maybe_number("runAsUser") == Some(0);
    let who = setters(is_root(spec), &names(spec, is_root))?;
    Some(Violation::new(
        "runAsUser=0",
        format!("{who} must not set runAsUser=0"),
    ))
}

fn seccomp(spec: &Value) -> Option<Violation> {
    let kind = |holder: &Value| {
        holder["securityContext"]["seccompProfile"]
            .maybe_text("type")
            .map(str::to_owned)
    };
    let is_fine =
        |kind: &Option<String>| matches!(kind.as_deref(), Some("RuntimeDefault" | "Localhost"));
    let of_pod = kind(spec);
    let bad = names(spec, |container| {
        let own = kind(container);
        own.is_some() && !is_fine(&own)
    });
    let silent = names(spec, |container| kind(container).is_none());
    let pod_is_bad = of_pod.is_some() && !is_fine(&of_pod);
    if let Some(who) = setters(pod_is_bad, &bad) {
        let kinds: BTreeSet<String> = std::iter::once(spec)
            .chain(containers(spec))
            .map(kind)
            .filter(|kind| kind.is_some() && !is_fine(kind))
            .flatten()
            .collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        return Some(Violation::new(
            "seccompProfile",
            format!(
                "{who} must not set securityContext.seccompProfile.type to {}",
                quoted(&kinds)
            ),
        ));
    }
    if of_pod.is_none() && !silent.is_empty() {
        return Some(Violation::new(
            "seccompProfile",
            format!(
                "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
                listed(&silent)
            ),
        ));
    }
    None
}
