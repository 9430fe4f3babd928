//! The pods of a job.

use k8s_openapi::api::{
    batch::v1::{Job, JobSpec},
    core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};
use kube::ResourceExt as _;

use crate::workloads::{owners::reference_to, pods};

/// What keeps a pod until it is counted.
pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// What the API leaves of a prefix that it makes a name of.
const PREFIX_LENGTH: usize = 57;

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|one| one == FINALIZER)
}

/// The index of a pod.
pub(super) fn index_of(pod: &Pod) -> Option<i32> {
    let text = pod.annotations().get(INDEX)?;
    text.parse().ok().filter(|index| *index >= 0)
}

/// How often the index of a pod had failed before the pod was made.
pub(super) fn former_failures(pod: &Pod) -> i32 {
    let text = pod.annotations().get(FAILURES);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A pod of a job, for an index if it has indexes.
pub(super) fn new_pod(job: &Job, spec: &JobSpec, index: Option<i32>, failures: i32) -> Pod {
    let (name, namespace) = (job.name_any(), job.namespace().unwrap_or_default());
    let mut pod = pods::from_template(&spec.template, &namespace, &name, reference_to(job));
    pod.metadata
        .finalizers
        .get_or_insert_default()
        .push(FINALIZER.to_owned());
    let Some(index) = index else { return pod };
    let suffix = format!("-{index}-");
    let kept = name.len().min(PREFIX_LENGTH.saturating_sub(suffix.len()));
    pod.metadata.generate_name = Some(format!("{}{suffix}", &name[..kept]));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    if spec.backoff_limit_per_index.is_some() {
        annotations.insert(FAILURES.to_owned(), failures.to_string());
    }
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(INDEX.to_owned(), index.to_string());
    let body = pod.spec.get_or_insert_default();
    body.hostname = Some(format!("{name}-{index}"));
    for container in body
        .containers
        .iter_mut()
        .chain(body.init_containers.iter_mut().flatten())
    {
        tell_index(container);
    }
    pod
}

fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|one| one.name == VARIABLE) {
        return;
    }
    variables.push(EnvVar {
        name: VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: None,
                field_path: format!("metadata.labels['{INDEX}']"),
            }),
            ..EnvVarSource::default()
        }),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_knows_its_index_and_is_kept_until_it_is_counted() {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "j", "namespace": "n", "uid": "u"},
            "spec": {
                "completionMode": "Indexed", "backoffLimitPerIndex": 2,
                "template": {"spec": {"containers": [{"name": "c"}]}},
            },
        }))
        .unwrap();
        let spec = job.spec.as_ref().unwrap();
        let pod = new_pod(&job, spec, Some(4), 1);
        assert_eq!((index_of(&pod), former_failures(&pod)), (Some(4), 1));
        assert!(is_tracked(&pod));
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("j-4-"));
        let body = json!(pod.spec);
        assert_eq!(body["hostname"], "j-4");
        assert_eq!(
            body["containers"][0]["env"][0]["name"],
            "JOB_COMPLETION_INDEX"
        );
        let pod = new_pod(&job, spec, None, 0);
        assert_eq!(
            (index_of(&pod), pod.metadata.generate_name.as_deref()),
            (None, Some("j-"))
        );
    }
}
