//! Defaults of pods and of the pod templates inside other kinds.
//!
//! Templates get less than pods: what only a pod has (requests from limits, host ports) would otherwise
//! change templates that exist already.

use serde_json::{Value, json};

use super::{fill::Fill, image, resources, volumes};

/// The lists of containers in a pod spec.
pub(super) const CONTAINER_LISTS: [&str; 3] =
    ["initContainers", "containers", "ephemeralContainers"];

/// A whole pod.
pub(super) fn pod(pod: &mut Value) {
    pod.within("spec", |spec| {
        self::spec(spec);
        for list in ["containers", "initContainers"] {
            spec.each(list, |container| {
                container.when_there("resources", resources::requests_from_limits);
            });
        }
        resources::of_pod(spec);
        spec.fill("enableServiceLinks", true);
        if spec["hostNetwork"] == true {
            spec.each("containers", host_ports);
            spec.each("initContainers", host_ports);
        }
    });
    pod.within("status", |_| {});
}

/// A pod template in `holder`.
pub(super) fn template(holder: &mut Value) {
    holder.within("template", |template| {
        template.within("metadata", |_| {});
        template.within("spec", spec);
    });
}

/// The spec of a pod or of a template.
pub(super) fn spec(spec: &mut Value) {
    spec.fill_text("dnsPolicy", "ClusterFirst");
    spec.fill_text("restartPolicy", "Always");
    spec.fill("securityContext", json!({}));
    spec.fill("terminationGracePeriodSeconds", 30);
    spec.fill_text("schedulerName", "default-scheduler");
    same_account(spec);
    spec.each("volumes", volumes::volume);
    for list in CONTAINER_LISTS {
        spec.each(list, container);
    }
}

/// The account has an old name and a new one on the wire.
fn same_account(spec: &mut Value) {
    let named = |field: &str, spec: &Value| spec[field].as_str().unwrap_or_default().to_owned();
    let (new, old) = (
        named("serviceAccountName", spec),
        named("serviceAccount", spec),
    );
    let name = if new.is_empty() { old } else { new };
    if !name.is_empty() {
        spec.put("serviceAccountName", name.clone());
        spec.put("serviceAccount", name);
    }
}

fn container(container: &mut Value) {
    let policy = image::pull_policy(container["image"].as_str().unwrap_or_default());
    container.fill_text("imagePullPolicy", policy);
    container.fill_text("terminationMessagePath", "/dev/termination-log");
    container.fill_text("terminationMessagePolicy", "File");
    container.within("resources", |_| {});
    container.each("ports", |port| port.fill_text("protocol", "TCP"));
    container.each("env", |variable| {
        variable.when_there("valueFrom", |source| {
            source.when_there("fieldRef", |field| field.fill_text("apiVersion", "v1"));
        });
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        container.when_there(name, probe);
    }
    container.when_there("lifecycle", |lifecycle| {
        lifecycle.when_there("postStart", http_get);
        lifecycle.when_there("preStop", http_get);
    });
}

fn probe(probe: &mut Value) {
    probe.fill_number("timeoutSeconds", 1);
    probe.fill_number("periodSeconds", 10);
    probe.fill_number("successThreshold", 1);
    probe.fill_number("failureThreshold", 3);
    probe.when_there("grpc", |grpc| grpc.fill("service", ""));
    http_get(probe);
}

fn http_get(handler: &mut Value) {
    handler.when_there("httpGet", |get| {
        get.fill_text("path", "/");
        get.fill_text("scheme", "HTTP");
    });
}

/// On the network of the host a port of a container is a port of the host.
fn host_ports(container: &mut Value) {
    container.each("ports", |port| {
        if let Some(number) = port["containerPort"].as_i64() {
            port.fill_number("hostPort", number);
        }
    });
}
