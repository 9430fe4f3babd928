//! Which pod answers for a service.
//!
//! Only addresses of pods of the same namespace are taken: whoever may write endpoints must not be able to
//! send the server anywhere.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::location::{Location, Named};
use crate::{
    cache::Selection,
    selector::{FieldSelector, LabelSelector},
    state::Api,
    status::ApiError,
};

/// Calls take turns over the endpoints.
static TURN: AtomicUsize = AtomicUsize::new(0);

pub(super) async fn locate(
    api: &Api,
    namespace: &str,
    named: &Named<'_>,
    asked: &str,
) -> Result<Location, ApiError> {
    let kinds = api.registry.kinds();
    let unserved = ApiError::no_such_path;
    let services = kinds.resource("", "v1", "services").ok_or_else(unserved)?;
    let slices = kinds
        .resource("discovery.k8s.io", "v1", "endpointslices")
        .ok_or_else(unserved)?;
    let pods = kinds.resource("", "v1", "pods").ok_or_else(unserved)?;
    let service = api
        .find(services, namespace, named.name)
        .await?
        .ok_or_else(|| ApiError::not_found("", "services", named.name))?
        .value();
    let port = port_name(&service, named)?;
    let labels = LabelSelector::parse(&format!("kubernetes.io/service-name={}", named.name))?;
    let selection = Selection {
        namespace: namespace.to_owned(),
        labels,
        fields: FieldSelector::default(),
    };
    let none = || ApiError::unavailable(format!("no endpoints available for service {asked:?}"));
    let listing = api
        .cache_of(slices)
        .list(&selection, None, None, None)
        .map_err(|_| none())?;
    let cache = api.cache_of(pods);
    let has_address = |pod: &str, address: &str| {
        cache
            .get(&format!("{namespace}/{pod}"))
            .is_some_and(|pod| owns(&pod.value(), address))
    };
    let mut ready: Vec<(String, u16)> = Vec::new();
    for slice in &listing.items {
        endpoints(&slice.value(), &port, namespace, &mut ready);
    }
    let first = TURN.fetch_add(1, Ordering::Relaxed);
    let found = (0..ready.len())
        .map(|step| &ready[first.wrapping_add(step) % ready.len()])
        .find_map(|(endpoint, port)| {
            let (pod, address) = endpoint.split_once(' ')?;
            has_address(pod, address).then(|| (address.to_owned(), *port))
        });
    let (host, port) = found.ok_or_else(none)?;
    Ok(Location {
        end: named.end(),
        host,
        port,
        target: "/".to_owned(),
    })
}

/// Endpoints know ports by name; a number is one of the service's own ports.
fn port_name(service: &Value, named: &Named<'_>) -> Result<String, ApiError> {
    let Ok(number) = named.port.parse::<u64>() else {
        return Ok(named.port.to_owned());
    };
    service["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|port| port["port"].as_u64() == Some(number))
        .map(|port| port["name"].as_str().unwrap_or_default().to_owned())
        .ok_or_else(|| {
            ApiError::unavailable(format!(
                "no service port {number} found for service {:?}",
                named.name
            ))
        })
}

/// The ready pods of a slice, as name and address, with the port of that name.
fn endpoints(slice: &Value, port: &str, namespace: &str, ready: &mut Vec<(String, u16)>) {
    let number = slice["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["name"].as_str().unwrap_or_default() == port)
        .and_then(|entry| entry["port"].as_u64())
        .and_then(|number| u16::try_from(number).ok());
    let Some(number) = number else { return };
    for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
        let target = &endpoint["targetRef"];
        let is_ready = endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
        if !is_ready || target["kind"] != "Pod" || target["namespace"] != namespace {
            continue;
        }
        let (Some(pod), Some(address)) =
            (target["name"].as_str(), endpoint["addresses"][0].as_str())
        else {
            continue;
        };
        ready.push((format!("{pod} {address}"), number));
    }
}

fn owns(pod: &Value, address: &str) -> bool {
    pod["status"]["podIPs"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|own| own["ip"] == address)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_ready_pods_of_the_namespace_answer() {
        let pod = |name: &str, namespace: &str, address: &str, ready: bool| {
            json!({
                "addresses": [address], "conditions": {"ready": ready},
                "targetRef": {"kind": "Pod", "name": name, "namespace": namespace},
            })
        };
        let slice = json!({
            "ports": [{"name": "web", "port": 8080}, {"port": 9}],
            "endpoints": [
                pod("a", "shop", "10.0.0.1", true),
                pod("b", "shop", "10.0.0.2", false),
                pod("c", "other", "10.0.0.3", true),
                {"addresses": ["169.254.169.254"]},
            ],
        });
        let mut ready = Vec::new();
        endpoints(&slice, "web", "shop", &mut ready);
        endpoints(&slice, "", "shop", &mut ready);
        endpoints(&slice, "none", "shop", &mut ready);
        assert_eq!(
            ready,
            [
                ("a 10.0.0.1".to_owned(), 8080),
                ("a 10.0.0.1".to_owned(), 9)
            ]
        );
    }

    #[test]
    fn a_number_is_a_port_of_the_service() {
        let service = json!({"spec": {"ports": [{"name": "web", "port": 80}]}});
        let name = |text| port_name(&service, &Named::parse(text, "service").unwrap());
        assert_eq!(name("s:80").unwrap(), "web");
        assert_eq!(name("s:web").unwrap(), "web");
        assert_eq!(name("s").unwrap(), "");
        assert_eq!(
            name("s:81").unwrap_err().message,
            "no service port 81 found for service \"s\""
        );
    }
}
