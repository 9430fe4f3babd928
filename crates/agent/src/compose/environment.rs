//! The environment of a container: services, then whole maps, then single variables, the later winning.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod, Service};
use transom_runtime::Variable;

use super::{ComposeError, downward::Allocatable, expand, field, resource_field};
use crate::config::Config;

/// Where values come from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) config: &'a Config,
    pub(crate) services: &'a BTreeMap<String, String>,
    pub(crate) pod_addresses: &'a [String],
    pub(crate) host_addresses: &'a [String],
    pub(crate) node: Allocatable,
}

/// The variables that tell a pod about the services of its namespace, and of the API.
pub(crate) fn service_variables<'a>(
    services: impl IntoIterator<Item = &'a Service>,
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for service in services {
        let meta = &service.metadata;
        let (home, name) = (
            meta.namespace.as_deref(),
            meta.name.as_deref().unwrap_or_default(),
        );
        let is_api = home == Some("default") && name == "kubernetes";
        if !(is_api || links && home == Some(namespace)) {
            continue;
        }
        let Some(spec) = &service.spec else { continue };
        let address = spec
            .cluster_ip
            .as_deref()
            .filter(|ip| !ip.is_empty() && *ip != "None");
        let (Some(address), Some(ports)) = (address, &spec.ports) else {
            continue;
        };
        let prefix = name.to_uppercase().replace('-', "_");
        let host = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        variables.insert(format!("{prefix}_SERVICE_HOST"), address.to_owned());
        for (index, port) in ports.iter().enumerate() {
            let number = port.port;
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let url = format!("{}://{host}:{number}", protocol.to_lowercase());
            if index == 0 {
                variables.insert(format!("{prefix}_SERVICE_PORT"), number.to_string());
                variables.insert(format!("{prefix}_PORT"), url.clone());
            }
            if let Some(label) = port.name.as_deref().filter(|label| !label.is_empty()) {
                let label = label.to_uppercase().replace('-', "_");
                variables.insert(format!("{prefix}_SERVICE_PORT_{label}"), number.to_string());
            }
            let stem = format!("{prefix}_PORT_{number}_{}", protocol.to_uppercase());
            variables.insert(stem.clone(), url);
            variables.insert(format!("{stem}_PROTO"), protocol.to_lowercase());
            variables.insert(format!("{stem}_PORT"), number.to_string());
            variables.insert(format!("{stem}_ADDR"), address.to_owned());
        }
    }
    variables
}

/// All variables of a container, each once.
pub(crate) async fn environment(
    container: &Container,
    from: Sources<'_>,
) -> Result<Vec<Variable>, ComposeError> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut set = |values: &mut BTreeMap<String, String>, name: String, value: String| {
        if values.insert(name.clone(), value).is_none() {
            order.push(name);
        }
    };
    for (name, value) in whole_maps(container, from).await? {
        set(&mut values, name, value);
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(source)) => match single(container, source, from).await? {
                Some(value) => value,
                None => continue,
            },
            (text, None) => {
                let lookup = |name: &str| {
                    values
                        .get(name)
                        .or_else(|| from.services.get(name))
                        .cloned()
                };
                expand(text.as_deref().unwrap_or_default(), lookup)
            }
        };
        set(&mut values, variable.name.clone(), value);
    }
    for (name, value) in from.services {
        if !values.contains_key(name) {
            set(&mut values, name.clone(), value.clone());
        }
    }
    let take = |name: String| {
        let value = values.remove(&name).unwrap_or_default();
        Variable { name, value }
    };
    Ok(order.into_iter().map(take).collect())
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn whole_maps(
    container: &Container,
    from: Sources<'_>,
) -> Result<Vec<(String, String)>, ComposeError> {
    let namespace = from.pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut all = Vec::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        if let Some(wanted) = &source.config_map_ref {
            match from.config.config_map(namespace, &wanted.name).await? {
                Some(map) => {
                    let data = map.data.into_iter().flatten();
                    all.extend(data.map(|(key, value)| (format!("{prefix}{key}"), value)));
                }
                None if wanted.optional == Some(true) => {}
                None => return Err(absent("configmap", &wanted.name)),
            }
        } else if let Some(wanted) = &source.secret_ref {
            match from.config.secret(namespace, &wanted.name).await? {
                Some(secret) => {
                    let data = secret.data.into_iter().flatten();
                    all.extend(
                        data.map(|(key, value)| (format!("{prefix}{key}"), text_of(&value.0))),
                    );
                }
                None if wanted.optional == Some(true) => {}
                None => return Err(absent("secret", &wanted.name)),
            }
        }
    }
    Ok(all)
}

fn absent(kind: &'static str, name: &str) -> ComposeError {
    ComposeError::Absent {
        kind,
        name: name.to_owned(),
    }
}

/// The value of one variable; `None` if it is optional and not there.
async fn single(
    container: &Container,
    source: &EnvVarSource,
    from: Sources<'_>,
) -> Result<Option<String>, ComposeError> {
    let namespace = from.pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(wanted) = &source.field_ref {
        return field(
            from.pod,
            &wanted.field_path,
            from.pod_addresses,
            from.host_addresses,
        )
        .map(Some);
    }
    if let Some(wanted) = &source.resource_field_ref {
        let named = wanted
            .container_name
            .as_deref()
            .filter(|name| !name.is_empty());
        let other = named
            .and_then(|name| crate::pods::find(from.pod, name))
            .map(|(_, other)| other);
        return resource_field(other.as_ref().unwrap_or(container), wanted, from.node).map(Some);
    }
    let (kind, label, name, key, optional, value, there) =
        if let Some(wanted) = &source.config_map_key_ref {
            let map = from.config.config_map(namespace, &wanted.name).await?;
            let there = map.is_some();
            let value = map.and_then(|map| map.data?.remove(&wanted.key));
            (
                "configmap",
                "ConfigMap",
                &wanted.name,
                &wanted.key,
                wanted.optional,
                value,
                there,
            )
        } else if let Some(wanted) = &source.secret_key_ref {
            let secret = from.config.secret(namespace, &wanted.name).await?;
            let there = secret.is_some();
            let value = secret
                .and_then(|secret| secret.data?.remove(&wanted.key))
                .map(|value| text_of(&value.0));
            (
                "secret",
                "Secret",
                &wanted.name,
                &wanted.key,
                wanted.optional,
                value,
                there,
            )
        } else {
            return Ok(None);
        };
    match value {
        Some(value) => Ok(Some(value)),
        None if optional == Some(true) => Ok(None),
        None if !there => Err(absent(kind, name)),
        None => Err(ComposeError::NoKey {
            kind: label,
            namespace: namespace.to_owned(),
            name: name.clone(),
            key: key.clone(),
        }),
    }
}
