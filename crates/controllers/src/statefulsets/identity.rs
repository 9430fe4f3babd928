//! Who a pod of a set is: its number, its name, its volumes.

use k8s_openapi::api::{
    apps::v1::{StatefulSet, StatefulSetSpec},
    core::v1::{
        PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
    },
};
use kube::ResourceExt as _;

use crate::workloads::{owners::reference_to, pods, revisions::REVISION};

const NAME: &str = "statefulset.kubernetes.io/pod-name";
const NUMBER: &str = "apps.kubernetes.io/pod-index";

/// The number of a pod that has a name of a set.
pub(super) fn number(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The first number of a set.
pub(super) fn first(spec: &StatefulSetSpec) -> i32 {
    spec.ordinals
        .as_ref()
        .and_then(|ordinals| ordinals.start)
        .unwrap_or(0)
}

pub(super) fn replicas(spec: &StatefulSetSpec) -> i32 {
    spec.replicas.unwrap_or(1).max(0)
}

/// Whether a number is one that the set wants.
pub(super) fn is_wanted(spec: &StatefulSetSpec, number: i32) -> bool {
    let first = first(spec);
    number >= first && i64::from(number) < i64::from(first) + i64::from(replicas(spec))
}

pub(super) fn claim_name(template: &PersistentVolumeClaim, set: &str, number: i32) -> String {
    format!("{}-{set}-{number}", template.name_any())
}

/// The pod with a number, as a template wants it.
pub(super) fn new_pod(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    template: &PodTemplateSpec,
    revision: &str,
    number: i32,
) -> Pod {
    let set_name = set.name_any();
    let namespace = set.namespace().unwrap_or_default();
    let mut pod = pods::from_template(template, &namespace, &set_name, reference_to(set));
    let name = format!("{set_name}-{number}");
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(name.clone());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION.to_owned(), revision.to_owned());
    for (key, value) in labels_of(&name, number) {
        labels.insert(key.to_owned(), value);
    }
    let body = pod.spec.get_or_insert_default();
    body.hostname = Some(name);
    body.subdomain = spec
        .service_name
        .clone()
        .filter(|service| !service.is_empty());
    let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
    let volumes = claims.iter().map(|claim| Volume {
        name: claim.name_any(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(claim, &set_name, number),
            read_only: None,
        }),
        ..Volume::default()
    });
    let own = body.volumes.take().unwrap_or_default();
    let is_claimed = |volume: &Volume| claims.iter().any(|claim| claim.name_any() == volume.name);
    let all: Vec<Volume> = volumes
        .chain(own.into_iter().filter(|volume| !is_claimed(volume)))
        .collect();
    body.volumes = (!all.is_empty()).then_some(all);
    pod
}

/// The labels that tell who a pod is.
pub(super) fn labels_of(name: &str, number: i32) -> [(&'static str, String); 2] {
    [(NAME, name.to_owned()), (NUMBER, number.to_string())]
}

/// Whether a pod says who it is.
pub(super) fn is_labelled(pod: &Pod, number: i32) -> bool {
    let labels = pod.labels();
    let wanted = labels_of(pod.metadata.name.as_deref().unwrap_or_default(), number);
    wanted
        .iter()
        .all(|(key, value)| labels.get(*key) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_from_names() {
        for (name, wanted) in [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-", None),
            ("web", None),
            ("web-a", None),
            ("web-+1", None),
            ("web-db-1", None),
            ("other-1", None),
            ("web-99999999999", None),
        ] {
            assert_eq!(number("web", name), wanted, "{name}");
        }
    }

    #[test]
    fn a_pod_has_its_name_everywhere_and_its_own_volumes() {
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "n"},
            "spec": {
                "serviceName": "svc", "selector": {}, "ordinals": {"start": 3}, "replicas": 2,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
                "template": {"spec": {"containers": [], "volumes": [{"name": "data"}, {"name": "more"}]}},
            },
        }))
        .unwrap();
        let spec = set.spec.as_ref().unwrap();
        let pod = new_pod(&set, spec, &spec.template, "r", 3);
        assert_eq!(pod.name_any(), "web-3");
        assert!(is_labelled(&pod, 3) && !is_labelled(&pod, 4));
        assert_eq!(pod.labels()[REVISION], "r");
        let body = pod.spec.unwrap();
        assert_eq!(
            (body.hostname.as_deref(), body.subdomain.as_deref()),
            (Some("web-3"), Some("svc"))
        );
        let volumes = json!(body.volumes);
        let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}});
        assert_eq!(volumes, json!([claim, {"name": "more"}]));
        assert!(
            is_wanted(spec, 3) && is_wanted(spec, 4) && !is_wanted(spec, 5) && !is_wanted(spec, 2)
        );
    }
}
