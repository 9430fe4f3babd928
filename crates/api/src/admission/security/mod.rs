//! Pod security: how much power over its node a pod may have, as the labels of its namespace say.
//!
//! Pods that are too powerful are refused; workloads that would make such pods only earn a warning.

mod baseline;
mod restricted;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Attributes, Context, Operation, Outcome, Plugin};
use crate::{
    field::{FieldError, Path},
    status::ApiError,
    validation::read::Read,
};

const PREFIX: &str = "pod-security.kubernetes.io/";
const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// The most pods that are looked at when the level of their namespace is raised.
const MOST_CHECKED: usize = 3000;

/// A level as it was in a version of Kubernetes, whose rules grew with time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Policy {
    level: String,
    version: String,
    /// The second number of the version.
    minor: u32,
}

impl Policy {
    /// The policy of a mode. A level that is none is the strictest where it is enforced, and else no level.
    fn of(labels: &Value, mode: &str) -> Self {
        let given = labels.text(&format!("{PREFIX}{mode}"));
        let level = match given {
            "" => LEVELS[0],
            given if LEVELS.contains(&given) => given,
            _ if mode == "enforce" => LEVELS[2],
            _ => LEVELS[0],
        };
        let version = labels.text(&format!("{PREFIX}{mode}-version"));
        let minor = version
            .strip_prefix("v1.")
            .and_then(|minor| minor.parse().ok());
        Self {
            level: level.to_owned(),
            version: minor.map_or("latest", |_| version).to_owned(),
            minor: minor.unwrap_or(u32::MAX),
        }
    }

    fn rank(&self) -> Option<usize> {
        LEVELS.iter().position(|level| *level == self.level)
    }

    /// What of the level a pod violates.
    fn violations(&self, metadata: &Value, spec: &Value) -> Vec<Violation> {
        match self.level.as_str() {
            "baseline" => baseline::check(metadata, spec, false, self.minor),
            "restricted" => {
                let mut found = baseline::check(metadata, spec, true, self.minor);
                found.extend(restricted::check(spec, self.minor));
                found
            }
            _ => Vec::new(),
        }
    }

    /// The same in one sentence.
    fn judge(&self, metadata: &Value, spec: &Value) -> Option<String> {
        let found = self.violations(metadata, spec);
        let sentences: Vec<String> = found
            .into_iter()
            .map(|violation| {
                if violation.detail.is_empty() {
                    violation.reason
                } else {
                    format!("{} ({})", violation.reason, violation.detail)
                }
            })
            .collect();
        (!sentences.is_empty()).then(|| sentences.join(", "))
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

/// Why a pod is too powerful: what it is called, and what exactly it is.
struct Violation {
    reason: String,
    detail: String,
}

impl Violation {
    fn new(reason: &str, detail: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            detail: detail.into(),
        }
    }
}

pub(super) struct PodSecurity;

impl Plugin for PodSecurity {
    fn name(&self) -> &'static str {
        "PodSecurity"
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), ApiError> {
        if !matches!(request.operation, Operation::Create | Operation::Update) {
            return Ok(());
        }
        if request.is("", "Namespace") {
            namespace(request)?;
            outcome.warnings.extend(raised(request, context));
            return Ok(());
        }
        let is_pod = request.group.is_empty()
            && request.kind == "Pod"
            && matches!(
                request.subresource.as_str(),
                "" | "ephemeralcontainers" | "resize"
            );
        let Some((metadata, spec)) = pod_of(request, is_pod) else {
            return Ok(());
        };
        if is_pod && request.operation == Operation::Update && !is_significant(request) {
            return Ok(());
        }
        let Some(namespace) = context.objects.get("", "Namespace", "", &request.namespace) else {
            return Ok(());
        };
        let labels = &namespace["metadata"]["labels"];
        let judge = |mode: &str| -> Option<String> {
            let policy = Policy::of(labels, mode);
            let text = policy.judge(metadata, spec)?;
            Some(format!(
                "violate PodSecurity {:?}: {text}",
                policy.to_string()
            ))
        };
        if is_pod && let Some(text) = judge("enforce") {
            return Err(request.refuse(text.replacen("violate", "violates", 1)));
        }
        if let Some(text) = judge("audit") {
            let key = format!("{PREFIX}audit-violations");
            outcome.audit.push((key, format!("would {text}")));
        }
        if let Some(text) = judge("warn") {
            outcome.warnings.push(format!("would {text}"));
        }
        Ok(())
    }
}

/// Who raises the level of a namespace is told which of its pods would not come back.
fn raised(request: &Attributes, context: &Context<'_>) -> Vec<String> {
    if request.operation != Operation::Update {
        return Vec::new();
    }
    let of = |namespace: &Value| Policy::of(&namespace["metadata"]["labels"], "enforce");
    let (new, old) = (of(&request.object), of(request.old()));
    let is_relaxed = new.minor == old.minor && new.rank() <= old.rank();
    if new == old || new.level == LEVELS[0] || is_relaxed {
        return Vec::new();
    }
    let pods = context.objects.list("", "Pod", &request.name);
    // One line for pods that are too powerful in the same way, which mostly have the same owner.
    let mut ways: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in pods.iter().take(MOST_CHECKED) {
        let found = new.violations(&pod["metadata"], &pod["spec"]);
        if found.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = found.iter().map(|each| each.reason.as_str()).collect();
        let name = pod["metadata"].text("name");
        ways.entry(reasons.join(", "))
            .or_insert_with(|| (name.to_owned(), 0))
            .1 += 1;
    }
    if ways.is_empty() {
        return Vec::new();
    }
    let mut warnings = vec![format!(
        "existing pods in namespace {:?} violate the new PodSecurity enforce level {:?}",
        request.name,
        new.to_string()
    )];
    let mut lines: Vec<String> = ways
        .into_iter()
        .map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            _ => format!("{name} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    lines.sort();
    warnings.extend(lines);
    if pods.len() > MOST_CHECKED {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MOST_CHECKED} of {} existing pods",
            pods.len()
        ));
    }
    warnings
}

/// Levels that do not exist are refused where somebody writes them.
fn namespace(request: &Attributes) -> Result<(), ApiError> {
    let path = Path::new("metadata").child("labels");
    let mut faults = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        let key = format!("{PREFIX}{mode}");
        let labels = &request.object["metadata"]["labels"];
        if let Some(level) = labels.maybe_text(&key)
            && !LEVELS.contains(&level)
        {
            faults.push(FieldError::invalid(
                &path.key(&key),
                level,
                "must be one of privileged, baseline, restricted",
            ));
        }
        let key = format!("{key}-version");
        if let Some(version) = labels.maybe_text(&key)
            && !is_version(version)
        {
            faults.push(FieldError::invalid(
                &path.key(&key),
                version,
                "must be \"latest\" or \"v1.x\"",
            ));
        }
    }
    // What was wrong before may stay, so that other labels can still change.
    let unchanged = request.operation == Operation::Update
        && request.object["metadata"]["labels"] == request.old()["metadata"]["labels"];
    if faults.is_empty() || unchanged {
        return Ok(());
    }
    Err(ApiError::invalid(
        "",
        "Namespace",
        request.shown_name(),
        &faults,
    ))
}

fn is_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text == "latest" || text.strip_prefix("v1.").is_some_and(digits)
}

/// The pod in a request: itself, or the template of a workload.
fn pod_of(request: &Attributes, is_pod: bool) -> Option<(&Value, &Value)> {
    let object = &request.object;
    if is_pod {
        return Some((&object["metadata"], &object["spec"]));
    }
    if !request.subresource.is_empty() {
        return None;
    }
    let template = match (request.group.as_str(), request.kind.as_str()) {
        ("", "PodTemplate") => &object["template"],
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet")
        | ("batch", "Job") => &object["spec"]["template"],
        ("batch", "CronJob") => &object["spec"]["jobTemplate"]["spec"]["template"],
        _ => return None,
    };
    (!template["spec"].is_null()).then_some((&template["metadata"], &template["spec"]))
}

/// Whether an update changes anything that this is about.
fn is_significant(request: &Attributes) -> bool {
    let old = request.old();
    let annotations = |pod: &Value| -> Map<String, Value> {
        let mut map = pod["metadata"].entries("annotations").clone();
        map.retain(|key, _| key.contains("apparmor") || key.contains("seccomp"));
        map
    };
    request.object["spec"] != old["spec"] || annotations(&request.object) != annotations(old)
}

/// Every container of a pod.
fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| spec.items(list))
}

/// The names of containers with a property.
fn names<'a>(spec: &'a Value, property: impl Fn(&'a Value) -> bool) -> Vec<&'a str> {
    containers(spec)
        .filter(|container| property(container))
        .map(|container| container.text("name"))
        .collect()
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    words.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// Like `container "a"` or `containers "a", "b"`.
fn listed(names: &[&str]) -> String {
    format!(
        "{} {}",
        plural("container", "containers", names.len()),
        quoted(names)
    )
}

/// Who sets something: the pod, containers, or both.
fn setters(pod: bool, names: &[&str]) -> Option<String> {
    match (pod, names.is_empty()) {
        (true, true) => Some("pod".to_owned()),
        (true, false) => Some(format!("pod and {}", listed(names))),
        (false, false) => Some(listed(names)),
        (false, true) => None,
    }
}

fn is_windows(spec: &Value) -> bool {
    spec["os"].text("name") == "windows"
}
