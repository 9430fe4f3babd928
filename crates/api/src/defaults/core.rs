//! Defaults of the kinds of the core group, pods apart.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::{fill::Fill, pod, resources, volumes};

/// The label that every namespace has with its own name.
pub(super) const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn apply(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => pod::pod(object),
        "PodTemplate" => pod::template(object),
        "ReplicationController" => replication_controller(object),
        "Service" => service(object),
        "Namespace" => namespace(object),
        "Secret" => secret(object),
        "PersistentVolume" => persistent_volume(object),
        "PersistentVolumeClaim" => volumes::claim(object),
        "Endpoints" => object.each("subsets", |subset| {
            subset.each("ports", |port| port.fill_text("protocol", "TCP"));
        }),
        "Node" => node(object),
        "LimitRange" => object.within("spec", |spec| spec.each("limits", limit)),
        "ResourceQuota" => {
            object.within("spec", |_| {});
            object.within("status", |_| {});
        }
        "Event" => {
            object.within("source", |_| {});
            object.within("involvedObject", |_| {});
        }
        "Binding" => object.within("target", |_| {}),
        _ => {}
    }
}

/// Texts that are easier to write become data; nobody reads them back.
fn secret(secret: &mut Value) {
    secret.fill_text("type", "Opaque");
    let texts = secret
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(texts)) = texts else {
        return;
    };
    secret.within("data", |data| {
        for (key, text) in texts {
            if let Some(text) = text.as_str() {
                data.put(&key, BASE64_STANDARD.encode(text));
            }
        }
    });
}

fn service(service: &mut Value) {
    service.within("spec", |spec| {
        spec.fill_text("sessionAffinity", "None");
        session_affinity(spec);
        spec.fill_text("type", "ClusterIP");
        spec.each("ports", service_port);
        let kind = spec["type"].as_str().unwrap_or_default().to_owned();
        let balanced = kind == "LoadBalancer";
        let has_external_address = spec["externalIPs"]
            .as_array()
            .is_some_and(|addresses| !addresses.is_empty());
        let external =
            balanced || kind == "NodePort" || (kind == "ClusterIP" && has_external_address);
        if external {
            spec.fill_text("externalTrafficPolicy", "Cluster");
        }
        if balanced || matches!(kind.as_str(), "NodePort" | "ClusterIP") {
            spec.fill("internalTrafficPolicy", "Cluster");
        }
        if balanced {
            spec.fill("allocateLoadBalancerNodePorts", true);
        }
    });
    let balanced = service["spec"]["type"] == "LoadBalancer";
    service.within("status", |status| {
        status.within("loadBalancer", |balancer| {
            if balanced {
                balancer.each("ingress", |ingress| {
                    if ingress["ip"].as_str().is_some_and(|ip| !ip.is_empty()) {
                        ingress.fill("ipMode", "VIP");
                    }
                });
            }
        });
    });
}

fn session_affinity(spec: &mut Value) {
    if spec["sessionAffinity"] == "None" {
        if let Some(fields) = spec.as_object_mut() {
            fields.remove("sessionAffinityConfig");
        }
    } else if spec["sessionAffinity"] == "ClientIP"
        && spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null()
    {
        spec.put(
            "sessionAffinityConfig",
            json!({"clientIP": {"timeoutSeconds": 10800}}),
        );
    }
}

fn service_port(port: &mut Value) {
    port.fill_text("protocol", "TCP");
    let target = &port["targetPort"];
    if target.is_null() || *target == 0 || *target == "" {
        let number = port["port"].as_i64().unwrap_or_default();
        port.put("targetPort", number);
    }
}

fn namespace(namespace: &mut Value) {
    let name = namespace["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if !name.is_empty() {
        namespace.within("metadata", |metadata| {
            metadata.within("labels", |labels| labels.put(NAMESPACE_NAME_LABEL, name));
        });
    }
    namespace.within("spec", |_| {});
    namespace.within("status", |status| status.fill_text("phase", "Active"));
}

fn replication_controller(controller: &mut Value) {
    let labels = controller["spec"]["template"]["metadata"]["labels"]
        .as_object()
        .cloned();
    controller.within("spec", |spec| {
        spec.fill("replicas", 1);
        if !spec["template"].is_null() {
            pod::template(spec);
        }
        if let Some(labels) = &labels
            && is_empty_map(&spec["selector"])
        {
            spec.put("selector", labels.clone());
        }
    });
    if let Some(labels) = labels {
        inherit_labels(controller, labels);
    }
    controller.within("status", |status| status.fill("replicas", 0));
}

/// A workload without labels has those of its pods.
pub(super) fn inherit_labels(workload: &mut Value, labels: Map<String, Value>) {
    workload.within("metadata", |metadata| {
        if is_empty_map(&metadata["labels"]) {
            metadata.put("labels", labels);
        }
    });
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

fn persistent_volume(volume: &mut Value) {
    volume.within("spec", |spec| {
        spec.fill_text("persistentVolumeReclaimPolicy", "Retain");
        spec.fill("volumeMode", "Filesystem");
        volumes::source(spec);
    });
    volume.within("status", |status| status.fill_text("phase", "Pending"));
}

fn node(node: &mut Value) {
    node.within("spec", |_| {});
    node.within("status", |status| {
        if let Some(capacity) = status["capacity"].as_object().cloned() {
            status.fill("allocatable", capacity);
        }
        status.within("daemonEndpoints", |endpoints| {
            endpoints.within("kubeletEndpoint", |endpoint| endpoint.fill("Port", 0));
        });
        status.within("nodeInfo", |information| {
            for field in NODE_INFORMATION {
                information.fill(field, "");
            }
        });
    });
}

/// Texts that are on the wire even when nothing is known.
const NODE_INFORMATION: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];

/// What a container gets by default follows from what it may have at most and must have at least.
fn limit(item: &mut Value) {
    if item["type"] != "Container" {
        return;
    }
    let entries = |item: &Value, field: &str| item[field].as_object().cloned().unwrap_or_default();
    let most = entries(item, "max");
    item.within("default", |defaults| {
        resources::copy_absent(&most, defaults);
    });
    let defaults = entries(item, "default");
    let least = entries(item, "min");
    item.within("defaultRequest", |requests| {
        resources::copy_absent(&defaults, requests);
        resources::copy_absent(&least, requests);
    });
    // On the wire an empty map is no map.
    if let Some(fields) = item.as_object_mut() {
        fields.retain(|name, value| {
            !(matches!(name.as_str(), "default" | "defaultRequest") && is_empty_map(value))
        });
    }
}
