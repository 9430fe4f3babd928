//! What the server decides about a new object, whatever its author says: a status that nobody has worked
//! on yet, and selectors that only the server can make.

use serde_json::{Value, json};

use super::fill::Fill;
use crate::validation::{amounts, read::Read};

/// Kinds whose status only controllers write.
const WITH_STATUS: [(&str, &str); 19] = [
    ("", "Pod"),
    ("", "Namespace"),
    ("", "Service"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "ReplicationController"),
    ("", "ResourceQuota"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("networking.k8s.io", "Ingress"),
    ("policy", "PodDisruptionBudget"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// Makes a new object what it is before anybody has worked on it. Its name and uid are known already.
pub fn prepare_create(group: &str, version: &str, kind: &str, object: &mut Value) {
    if WITH_STATUS.contains(&(group, kind))
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    match (group, kind) {
        ("", "Pod") => pod(object),
        ("", "Namespace") => namespace(object),
        ("batch", "Job") => job(object),
        _ => {}
    }
    super::apply(group, version, kind, object);
}

fn pod(pod: &mut Value) {
    match_label_keys(pod);
    let class = amounts::quality_of_service(&pod["spec"]);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if !pod["spec"].items("schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": null,
        }]);
    }
    pod.put("status", status);
}

/// Keys of labels become expressions with the values that the pod has.
fn match_label_keys(pod: &mut Value) {
    let labels = pod["metadata"].entries("labels").clone();
    let complete = |term: &mut Value| {
        for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
            let wanted: Vec<Value> = term
                .texts(field)
                .filter_map(|key| {
                    let value = labels.get(key)?;
                    Some(json!({"key": key, "operator": operator, "values": [value]}))
                })
                .collect();
            term.when_there("labelSelector", |selector| {
                let mut all = selector.items("matchExpressions").to_vec();
                all.extend(wanted);
                if !all.is_empty() {
                    selector.put("matchExpressions", all);
                }
            });
        }
    };
    pod.when_there("spec", |spec| {
        spec.when_there("affinity", |affinity| {
            for kind in ["podAffinity", "podAntiAffinity"] {
                affinity.when_there(kind, |terms| {
                    terms.each("requiredDuringSchedulingIgnoredDuringExecution", complete);
                    terms.each("preferredDuringSchedulingIgnoredDuringExecution", |term| {
                        term.when_there("podAffinityTerm", complete);
                    });
                });
            }
        });
    });
}

/// A namespace is emptied before it goes.
fn namespace(namespace: &mut Value) {
    namespace.within("spec", |spec| {
        let mut finalizers = spec.items("finalizers").to_vec();
        if !finalizers.iter().any(|each| each == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        spec.put("finalizers", finalizers);
    });
}

/// The pods of a job carry its uid, so that no two jobs ever share pods.
fn job(job: &mut Value) {
    if job["spec"].flag("manualSelector") {
        return;
    }
    let metadata = &job["metadata"];
    let (id, name) = (
        metadata.text("uid").to_owned(),
        metadata.text("name").to_owned(),
    );
    job.within("spec", |spec| {
        spec.within("template", |template| {
            template.within("metadata", |metadata| {
                metadata.within("labels", |labels| {
                    for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
                        labels.fill(key, id.clone());
                    }
                    for key in ["job-name", "batch.kubernetes.io/job-name"] {
                        labels.fill(key, name.clone());
                    }
                });
            });
        });
        spec.within("selector", |selector| {
            selector.within("matchLabels", |labels| {
                labels.fill("batch.kubernetes.io/controller-uid", id);
            });
        });
    });
}
