//! Defaults of the small groups: networking, storage, access, scheduling, discovery, custom resources.

use serde_json::{Value, json};

use super::fill::Fill;

/// The group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn networking(kind: &str, object: &mut Value) {
    match kind {
        "NetworkPolicy" => object.within("spec", |spec| {
            spec.within("podSelector", |_| {});
            if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
                let leaves = spec["egress"]
                    .as_array()
                    .is_some_and(|rules| !rules.is_empty());
                let types = if leaves {
                    json!(["Ingress", "Egress"])
                } else {
                    json!(["Ingress"])
                };
                spec.put("policyTypes", types);
            }
            for rules in ["ingress", "egress"] {
                spec.each(rules, |rule| {
                    rule.each("ports", |port| port.fill("protocol", "TCP"));
                });
            }
        }),
        "IngressClass" => object.within("spec", |spec| {
            spec.when_there("parameters", |parameters| {
                parameters.fill("scope", "Cluster");
            });
        }),
        "Ingress" => {
            object.within("spec", |_| {});
            object.within("status", |status| status.within("loadBalancer", |_| {}));
        }
        "ServiceCIDR" => object.within("status", |_| {}),
        _ => {}
    }
}

pub(super) fn storage(kind: &str, object: &mut Value) {
    match kind {
        "StorageClass" => {
            object.fill("reclaimPolicy", "Delete");
            object.fill("volumeBindingMode", "Immediate");
        }
        "CSIDriver" => object.within("spec", |spec| {
            spec.fill("attachRequired", true);
            spec.fill("podInfoOnMount", false);
            spec.fill("storageCapacity", false);
            spec.fill("fsGroupPolicy", "ReadWriteOnceWithFSType");
            if spec["volumeLifecycleModes"]
                .as_array()
                .is_none_or(Vec::is_empty)
            {
                spec.put("volumeLifecycleModes", json!(["Persistent"]));
            }
            spec.fill("requiresRepublish", false);
            spec.fill("seLinuxMount", false);
        }),
        "VolumeAttachment" => object.within("status", |status| status.fill("attached", false)),
        _ => {}
    }
}

pub(super) fn rbac(kind: &str, object: &mut Value) {
    if !matches!(kind, "RoleBinding" | "ClusterRoleBinding") {
        return;
    }
    object.within("roleRef", |role| role.fill_text("apiGroup", RBAC));
    object.each("subjects", |subject| {
        if subject["kind"] == "User" || subject["kind"] == "Group" {
            subject.fill_text("apiGroup", RBAC);
        }
    });
}

pub(super) fn scheduling(kind: &str, object: &mut Value) {
    if kind == "PriorityClass" {
        object.fill("preemptionPolicy", "PreemptLowerPriority");
    }
}

pub(super) fn discovery(kind: &str, object: &mut Value) {
    if kind == "EndpointSlice" {
        object.each("ports", |port| {
            port.fill("name", "");
            port.fill("protocol", "TCP");
        });
    }
}

pub(super) fn policy(kind: &str, object: &mut Value) {
    if kind == "PodDisruptionBudget" {
        object.within("spec", |_| {});
        object.within("status", |status| {
            for count in [
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ] {
                status.fill(count, 0);
            }
        });
    }
}

pub(super) fn authentication(kind: &str, object: &mut Value) {
    if kind == "TokenRequest" {
        object.within("spec", |spec| spec.fill("expirationSeconds", 3600));
    }
}

pub(super) fn certificates(kind: &str, object: &mut Value) {
    if kind == "CertificateSigningRequest" {
        object.within("status", |_| {});
    }
}

pub(super) fn extensions(kind: &str, object: &mut Value) {
    if kind != "CustomResourceDefinition" {
        return;
    }
    object.within("spec", |spec| {
        spec.within("names", |names| {
            let kind = names["kind"].as_str().unwrap_or_default().to_owned();
            if !kind.is_empty() {
                names.fill_text("singular", &kind.to_lowercase());
                names.fill_text("listKind", &format!("{kind}List"));
            }
        });
        spec.within("conversion", |conversion| {
            conversion.fill_text("strategy", "None");
            if conversion["strategy"] == "Webhook" {
                conversion.when_there("webhook", |webhook| {
                    webhook.when_there("clientConfig", |config| {
                        config.when_there("service", |service| service.fill("port", 443));
                    });
                });
            }
        });
    });
    let stored = object["spec"]["versions"]
        .as_array()
        .and_then(|versions| versions.iter().find(|version| version["storage"] == true))
        .map(|version| version["name"].clone());
    object.within("status", |status| {
        if let Some(name) = stored
            && status["storedVersions"]
                .as_array()
                .is_none_or(Vec::is_empty)
        {
            status.put("storedVersions", json!([name]));
        }
    });
}
