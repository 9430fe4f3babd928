//! What we write on containers over there, and read again. Pure.
//!
//! Invariant: labels as they were given come back as they were given, whatever their names are.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::wire::Labels;
use crate::{ContainerSpec, PodSpec, RuntimeError};

/// Only what carries this label is ours.
pub(super) const OURS: (&str, &str) = ("transom.io/runtime", "docker");
/// The description of a pod, on the container that holds its network.
const POD: &str = "transom.io/pod";
/// The description of a container of a pod.
const CONTAINER: &str = "transom.io/container";
/// The pod of a container.
pub(super) const SANDBOX: &str = "transom.io/sandbox";

/// What is kept of a container. Its variables are not: they are secrets, and over there anyway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) attempt: u32,
    pub(super) image: String,
    pub(super) image_name: String,
    /// The whole path.
    pub(super) log_path: Utf8PathBuf,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// What one of our containers is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Pod(Box<PodSpec>),
    Container { pod: String, kept: Box<Kept> },
}

pub(super) fn of_pod(spec: &PodSpec) -> Result<Labels, RuntimeError> {
    let mut labels = spec.labels.clone();
    labels.extend(for_people(spec));
    labels.insert(POD.to_owned(), write(spec)?);
    Ok(labels)
}

pub(super) fn of_container(
    spec: &ContainerSpec,
    pod: &PodSpec,
    sandbox: &str,
) -> Result<Labels, RuntimeError> {
    let kept = Kept {
        name: spec.name.clone(),
        attempt: spec.attempt,
        image: spec.image.clone(),
        image_name: spec.image_name.clone(),
        log_path: pod.log_directory.join(&spec.log_path),
        labels: spec.labels.clone(),
        annotations: spec.annotations.clone(),
    };
    let mut labels = spec.labels.clone();
    labels.extend(for_people(pod));
    labels.insert("io.kubernetes.container.name".to_owned(), spec.name.clone());
    labels.insert(SANDBOX.to_owned(), sandbox.to_owned());
    labels.insert(CONTAINER.to_owned(), write(&kept)?);
    Ok(labels)
}

/// Labels that people and their tools filter by.
fn for_people(pod: &PodSpec) -> [(String, String); 4] {
    [
        (OURS.0, OURS.1),
        ("io.kubernetes.pod.name", pod.name.as_str()),
        ("io.kubernetes.pod.namespace", pod.namespace.as_str()),
        ("io.kubernetes.pod.uid", pod.uid.as_str()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn write(described: &impl Serialize) -> Result<String, RuntimeError> {
    serde_json::to_string(described)
        .map_err(|error| RuntimeError::Other(format!("it cannot be described: {error}")))
}

/// What a container of ours is.
pub(super) fn read(labels: &Labels) -> Result<Part, RuntimeError> {
    let lost = |error| RuntimeError::Other(format!("a description in a label is lost: {error}"));
    if let Some(text) = labels.get(POD) {
        return Ok(Part::Pod(serde_json::from_str(text).map_err(lost)?));
    }
    let text = labels.get(CONTAINER).map_or("", String::as_str);
    Ok(Part::Container {
        pod: labels.get(SANDBOX).cloned().unwrap_or_default(),
        kept: serde_json::from_str(text).map_err(lost)?,
    })
}

/// The name over there: two of the same cannot be, so that what is made twice at a time is made once.
pub(super) fn name_of_pod(spec: &PodSpec) -> String {
    name(
        &["POD", &spec.name, &spec.namespace, &spec.uid],
        spec.attempt,
    )
}

pub(super) fn name_of_container(spec: &ContainerSpec, pod: &PodSpec, sandbox: &str) -> String {
    let sandbox = sandbox.get(..12).unwrap_or(sandbox);
    name(
        &[&spec.name, &pod.name, &pod.namespace, sandbox],
        spec.attempt,
    )
}

fn name(parts: &[&str], attempt: u32) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
    let clean = |part: &&str| part.replace(|letter| !allowed(letter), "-");
    let parts: Vec<String> = parts.iter().map(clean).collect();
    format!("transom_{}_{attempt}", parts.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodSpec {
        PodSpec {
            uid: "u-1".to_owned(),
            namespace: "space".to_owned(),
            name: "web".to_owned(),
            attempt: 2,
            // Named as ours, on purpose.
            labels: [(OURS.0.to_owned(), "mine".to_owned())].into(),
            log_directory: "/logs".into(),
            ..PodSpec::default()
        }
    }

    #[test]
    fn a_pod_comes_back_from_its_labels() {
        let labels = of_pod(&pod()).unwrap();
        assert_eq!(labels[OURS.0], OURS.1);
        assert_eq!(read(&labels).unwrap(), Part::Pod(Box::new(pod())));
        assert_eq!(name_of_pod(&pod()), "transom_POD_web_space_u-1_2");
    }

    #[test]
    fn a_container_comes_back_from_its_labels_without_its_secrets() {
        let spec = ContainerSpec {
            name: "main".to_owned(),
            log_path: "main/0.log".into(),
            annotations: [("hash".to_owned(), "1".to_owned())].into(),
            environment: vec![crate::Variable {
                name: "PASSWORD".to_owned(),
                value: "hunter2".to_owned(),
            }],
            ..ContainerSpec::default()
        };
        let labels = of_container(&spec, &pod(), "0123456789abcdef").unwrap();
        assert!(!labels.values().any(|value| value.contains("hunter2")));
        let Part::Container { pod: sandbox, kept } = read(&labels).unwrap() else {
            panic!("it is a container");
        };
        assert_eq!(sandbox, "0123456789abcdef");
        assert_eq!(
            (&kept.name, &kept.annotations),
            (&spec.name, &spec.annotations)
        );
        assert_eq!(kept.log_path, "/logs/main/0.log");
        let name = name_of_container(&spec, &pod(), &sandbox);
        assert_eq!(name, "transom_main_web_space_0123456789ab_0");
    }

    #[test]
    fn labels_that_somebody_has_spoiled_are_an_error() {
        assert!(read(&Labels::new()).is_err());
        assert!(read(&[(POD.to_owned(), "{".to_owned())].into()).is_err());
    }
}
