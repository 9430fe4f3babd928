//! Defaults of the kinds that make pods: the groups `apps`, `batch` and `autoscaling`.

use serde_json::{Value, json};

use super::{core::inherit_labels, fill::Fill, pod, volumes};

/// Sets the fields that each kind in `apps` has.
pub(super) fn apps(kind: &str, object: &mut Value) {
    match kind {
        "Deployment" => object.within("spec", deployment),
        "DaemonSet" => object.within("spec", daemon_set),
        "StatefulSet" => object.within("spec", stateful_set),
        "ReplicaSet" => object.within("spec", replica_set),
        _ => return,
    }
    object.within("status", |status| match kind {
        "ReplicaSet" => status.fill("replicas", 0),
        "StatefulSet" => {
            status.fill("replicas", 0);
            status.fill("availableReplicas", 0);
        }
        "DaemonSet" => {
            for count in [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
            ] {
                status.fill(count, 0);
            }
        }
        _ => {}
    });
}

fn deployment(spec: &mut Value) {
    spec.fill("replicas", 1);
    spec.within("strategy", |strategy| {
        strategy.fill_text("type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate" {
            strategy.within("rollingUpdate", |rolling| {
                rolling.fill("maxUnavailable", "25%");
                rolling.fill("maxSurge", "25%");
            });
        }
    });
    spec.fill("revisionHistoryLimit", 10);
    spec.fill("progressDeadlineSeconds", 600);
    pod::template(spec);
}

fn daemon_set(spec: &mut Value) {
    spec.within("updateStrategy", |strategy| {
        strategy.fill_text("type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate" {
            strategy.within("rollingUpdate", |rolling| {
                rolling.fill("maxUnavailable", 1);
                rolling.fill("maxSurge", 0);
            });
        }
    });
    spec.fill("revisionHistoryLimit", 10);
    pod::template(spec);
}

fn stateful_set(spec: &mut Value) {
    spec.fill_text("podManagementPolicy", "OrderedReady");
    spec.within("updateStrategy", |strategy| {
        if strategy["type"].as_str().is_none_or(str::is_empty) {
            strategy.put("type", "RollingUpdate");
            strategy.within("rollingUpdate", |_| {});
        }
        if strategy["type"] == "RollingUpdate" {
            strategy.when_there("rollingUpdate", |rolling| rolling.fill("partition", 0));
        }
    });
    spec.within("persistentVolumeClaimRetentionPolicy", |policy| {
        policy.fill_text("whenDeleted", "Retain");
        policy.fill_text("whenScaled", "Retain");
    });
    spec.fill("replicas", 1);
    spec.fill("revisionHistoryLimit", 10);
    spec.each("volumeClaimTemplates", |claim| {
        claim.fill_text("apiVersion", "v1");
        claim.fill_text("kind", "PersistentVolumeClaim");
        volumes::claim(claim);
    });
    pod::template(spec);
}

fn replica_set(spec: &mut Value) {
    spec.fill("replicas", 1);
    pod::template(spec);
}

/// Sets the fields that each kind in `batch` has.
pub(super) fn batch(kind: &str, object: &mut Value) {
    match kind {
        "Job" => {
            object.within("spec", job);
            if let Some(labels) = object["spec"]["template"]["metadata"]["labels"]
                .as_object()
                .cloned()
            {
                inherit_labels(object, labels);
            }
        }
        "CronJob" => object.within("spec", |spec| {
            spec.fill_text("concurrencyPolicy", "Allow");
            spec.fill("suspend", false);
            spec.fill("successfulJobsHistoryLimit", 3);
            spec.fill("failedJobsHistoryLimit", 1);
            // The defaults of a job are for the controller to make: here only the pods get theirs.
            spec.within("jobTemplate", |job| {
                job.within("metadata", |_| {});
                job.within("spec", |spec| {
                    pod_failure_policy(spec);
                    pod::template(spec);
                });
            });
        }),
        _ => return,
    }
    object.within("status", |_| {});
}

fn job(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec.put("completions", 1);
    }
    spec.fill("parallelism", 1);
    let retries = if spec["backoffLimitPerIndex"].is_null() {
        6
    } else {
        i64::from(i32::MAX)
    };
    spec.fill("backoffLimit", retries);
    spec.fill("completionMode", "NonIndexed");
    spec.fill("suspend", false);
    let replacement = if spec["podFailurePolicy"].is_null() {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    spec.fill("podReplacementPolicy", replacement);
    spec.fill("manualSelector", false);
    pod_failure_policy(spec);
    pod::template(spec);
}

fn pod_failure_policy(spec: &mut Value) {
    spec.when_there("podFailurePolicy", |policy| {
        policy.each("rules", |rule| {
            rule.each("onPodConditions", |condition| {
                condition.fill_text("status", "True");
            });
        });
    });
}

/// Sets the fields of a horizontal pod autoscaler.
pub(super) fn autoscaling(version: &str, kind: &str, object: &mut Value) {
    if kind != "HorizontalPodAutoscaler" {
        return;
    }
    object.within("spec", |spec| {
        spec.fill("minReplicas", 1);
        if version == "v1" {
            return;
        }
        if spec["metrics"].as_array().is_none_or(Vec::is_empty) {
            spec.put(
                "metrics",
                json!([{
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80},
                    },
                }]),
            );
        }
        spec.when_there("behavior", |behavior| {
            behavior.within("scaleUp", |rules| {
                rules.fill("stabilizationWindowSeconds", 0);
                rules.fill("selectPolicy", "Max");
                rules.fill(
                    "policies",
                    json!([
                        {"type": "Pods", "value": 4, "periodSeconds": 15},
                        {"type": "Percent", "value": 100, "periodSeconds": 15},
                    ]),
                );
            });
            behavior.within("scaleDown", |rules| {
                rules.fill("selectPolicy", "Max");
                rules.fill(
                    "policies",
                    json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
                );
            });
        });
    });
    object.within("status", |status| {
        status.fill("desiredReplicas", 0);
        if version == "v1" {
            status.fill("currentReplicas", 0);
        }
    });
}
