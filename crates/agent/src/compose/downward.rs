//! The downward API: what a pod may learn about itself.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};

use super::ComposeError;
use crate::quantity;

/// What a node offers to a container that has no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocatable {
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) storage_bytes: u64,
}

/// A field of the pod object as text. Addresses come from the sandbox, as the object may be older.
pub(crate) fn field(
    pod: &Pod,
    path: &str,
    pod_addresses: &[String],
    host_addresses: &[String],
) -> Result<String, ComposeError> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |value: Option<&String>| Ok(value.cloned().unwrap_or_default());
    match path {
        "metadata.name" => text(meta.name.as_ref()),
        "metadata.namespace" => text(meta.namespace.as_ref()),
        "metadata.uid" => text(meta.uid.as_ref()),
        "metadata.labels" => Ok(lines(meta.labels.as_ref())),
        "metadata.annotations" => Ok(lines(meta.annotations.as_ref())),
        "spec.nodeName" => text(spec.and_then(|spec| spec.node_name.as_ref())),
        "spec.serviceAccountName" => text(spec.and_then(|spec| spec.service_account_name.as_ref())),
        "status.hostIP" => text(host_addresses.first()),
        "status.hostIPs" => Ok(host_addresses.join(",")),
        "status.podIP" => text(pod_addresses.first()),
        "status.podIPs" => Ok(pod_addresses.join(",")),
        _ => {
            let list = |name: &str| {
                let key = path
                    .strip_prefix(name)?
                    .strip_prefix("['")?
                    .strip_suffix("']")?;
                Some(key.to_owned())
            };
            if let Some(key) = list("metadata.labels") {
                return text(meta.labels.as_ref().and_then(|labels| labels.get(&key)));
            }
            if let Some(key) = list("metadata.annotations") {
                return text(meta.annotations.as_ref().and_then(|all| all.get(&key)));
            }
            Err(ComposeError::Invalid(format!(
                "unsupported fieldPath: {path}"
            )))
        }
    }
}

fn lines(map: Option<&std::collections::BTreeMap<String, String>>) -> String {
    let line = |(key, value): (&String, &String)| format!("{key}={value:?}");
    map.into_iter()
        .flatten()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A request or limit of a container as a number, in units of the divisor, rounded up.
pub(crate) fn resource_field(
    container: &Container,
    selector: &ResourceFieldSelector,
    node: Allocatable,
) -> Result<String, ComposeError> {
    let unsupported = || {
        ComposeError::Invalid(format!(
            "unsupported container resource : {}",
            selector.resource
        ))
    };
    let (list, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let resources = container.resources.as_ref();
    let listed = match list {
        "limits" => resources.and_then(|resources| resources.limits.as_ref()),
        "requests" => resources.and_then(|resources| resources.requests.as_ref()),
        _ => return Err(unsupported()),
    };
    let own = listed
        .and_then(|listed| listed.get(name))
        .and_then(quantity::millis)
        .filter(|own| *own > 0);
    let whole = match (list, name) {
        ("limits", "cpu") => i128::from(node.cpu_millis),
        ("limits", "memory") => i128::from(node.memory_bytes) * 1000,
        ("limits", "ephemeral-storage") => i128::from(node.storage_bytes) * 1000,
        _ => 0,
    };
    let amount = own.unwrap_or(whole);
    let divisor = selector
        .divisor
        .as_ref()
        .and_then(quantity::millis)
        .filter(|divisor| *divisor > 0);
    let divisor = divisor.unwrap_or(1000);
    Ok((amount / divisor + i128::from(amount % divisor != 0)).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_learns_its_fields() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"app": "x", "b.c/d": "y\"z"}},
            "spec": {"containers": [], "nodeName": "n"},
        }))
        .unwrap();
        let (own, host) = (
            ["10.0.0.1".to_owned(), "fd::1".to_owned()],
            ["192.0.2.1".to_owned()],
        );
        for (path, wanted) in [
            ("metadata.name", "a"),
            ("metadata.labels['b.c/d']", "y\"z"),
            ("metadata.labels['none']", ""),
            ("metadata.labels", "app=\"x\"\nb.c/d=\"y\\\"z\""),
            ("spec.nodeName", "n"),
            ("status.podIP", "10.0.0.1"),
            ("status.podIPs", "10.0.0.1,fd::1"),
            ("status.hostIP", "192.0.2.1"),
        ] {
            assert_eq!(field(&pod, path, &own, &host).unwrap(), wanted, "{path}");
        }
        assert!(field(&pod, "spec.secret", &own, &host).is_err());
    }

    #[test]
    fn amounts_are_rounded_up_and_default_to_the_node() {
        let container: Container = serde_json::from_value(json!({
            "name": "c", "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "64Mi"}},
        }))
        .unwrap();
        let node = Allocatable {
            cpu_millis: 4000,
            memory_bytes: 1 << 30,
            storage_bytes: 0,
        };
        for (resource, divisor, wanted) in [
            ("limits.cpu", "1", "2"),
            ("limits.cpu", "1m", "1500"),
            ("limits.memory", "1Mi", "1024"),
            ("requests.memory", "1Mi", "64"),
            ("requests.cpu", "0", "0"),
        ] {
            let selector =
                serde_json::from_value(json!({"resource": resource, "divisor": divisor})).unwrap();
            assert_eq!(
                resource_field(&container, &selector, node).unwrap(),
                wanted,
                "{resource}/{divisor}"
            );
        }
        let selector = serde_json::from_value(json!({"resource": "cpu"})).unwrap();
        assert!(resource_field(&container, &selector, node).is_err());
    }
}
