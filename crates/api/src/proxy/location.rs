//! Where requests for running pods, nodes and services go, in the kubelet's paths.
//!
//! A location is decided from objects alone; nothing here opens a connection.

use std::net::IpAddr;

use rustls::pki_types::ServerName;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::{http::options::Options, status::ApiError};

/// The port of an agent that did not say which one it has.
const KUBELET_PORT: u16 = 10250;
/// In this order an agent is reached.
const ADDRESS_TYPES: [&str; 5] = [
    "InternalIP",
    "InternalDNS",
    "Hostname",
    "ExternalIP",
    "ExternalDNS",
];

/// Who is expected at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A node's agent, which shows a certificate for one of these names.
    Agent(Vec<String>),
    /// A node's agent, whatever certificate it shows: the user asked for that.
    UnverifiedAgent,
    /// What runs in a pod or on a node: over TLS with any certificate, or without.
    Workload { tls: bool },
}

/// A place to send a request to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) end: End,
    /// An address or a name.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query, as they go over the wire.
    pub(crate) target: String,
}

impl Location {
    /// `host:port`, with brackets around an address of version 6.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The whole address, for messages.
    pub(crate) fn address(&self) -> String {
        let scheme = match self.end {
            End::Workload { tls: false } => "http",
            _ => "https",
        };
        format!("{scheme}://{}{}", self.authority(), self.target)
    }

    pub(crate) fn with_target(mut self, target: String) -> Self {
        self.target = target;
        self
    }
}

/// The agent of a node.
pub(crate) fn agent(node: &Value) -> Result<Location, ApiError> {
    let addresses = node["status"]["addresses"].as_array();
    let addresses = || addresses.into_iter().flatten();
    let text = |address: &Value| address["address"].as_str().unwrap_or_default().to_owned();
    let found = ADDRESS_TYPES.iter().find_map(|wanted| {
        addresses()
            .find(|address| address["type"] == *wanted)
            .map(text)
            .filter(|address| !address.is_empty())
    });
    let host = found.ok_or_else(|| {
        let known: Vec<String> = addresses().map(text).collect();
        ApiError::new(
            500,
            "",
            format!(
                "no preferred addresses found; known addresses: [{}]",
                known.join(" ")
            ),
        )
    })?;
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port != 0)
        .unwrap_or(KUBELET_PORT);
    let name = crate::object::name(node).to_owned();
    Ok(Location {
        end: End::Agent(vec![host.clone(), name]),
        host,
        port,
        target: "/".to_owned(),
    })
}

/// The names of an agent's certificate, as TLS has them.
pub(crate) fn server_names(names: &[String]) -> Vec<ServerName<'static>> {
    names
        .iter()
        .filter_map(|name| ServerName::try_from(name.clone()).ok())
        .collect()
}

/// The containers of a pod, in upstream's order.
fn container_names(pod: &Value) -> Vec<&str> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .filter_map(|list| pod["spec"][*list].as_array())
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect()
}

/// The container that is meant: the only one needs no name.
pub(crate) fn container(pod: &Value, wanted: &str) -> Result<String, ApiError> {
    let pod_name = crate::object::name(pod);
    if !wanted.is_empty() {
        return if container_names(pod).contains(&wanted) {
            Ok(wanted.to_owned())
        } else {
            Err(ApiError::bad_request(format!(
                "container {wanted} is not valid for pod {pod_name}"
            )))
        };
    }
    let own = pod["spec"]["containers"].as_array();
    match own.map_or(&[][..], Vec::as_slice) {
        [only] => Ok(only["name"].as_str().unwrap_or_default().to_owned()),
        [] => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {pod_name}"
        ))),
        _ => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]",
            container_names(pod).join(" ")
        ))),
    }
}

/// The agent's path for a shell in a container.
pub(crate) fn stream_target(
    pod: &Value,
    action: &str,
    options: &Options,
) -> Result<String, ApiError> {
    let container = container(pod, options.get("container").unwrap_or_default())?;
    let mut query = Serializer::new(String::new());
    for (name, theirs) in [
        ("stdin", "input"),
        ("stdout", "output"),
        ("stderr", "error"),
        ("tty", "tty"),
    ] {
        if options.get(name).is_some_and(is_set) {
            query.append_pair(theirs, "1");
        }
    }
    if action == "exec" {
        for (name, part) in &options.all {
            if name == "command" {
                query.append_pair("command", part);
            }
        }
    }
    let (namespace, name) = (crate::object::namespace(pod), crate::object::name(pod));
    let query = query.finish();
    Ok(format!("/{action}/{namespace}/{name}/{container}?{query}"))
}

/// The agent's path for a pod's ports.
pub(crate) fn port_target(pod: &Value, options: &Options) -> String {
    let ports: Vec<&str> = options
        .all
        .iter()
        .filter(|(name, _)| name == "ports")
        .map(|(_, port)| port.as_str())
        .collect();
    let (namespace, name) = (crate::object::namespace(pod), crate::object::name(pod));
    let path = format!("/portForward/{namespace}/{name}");
    if ports.is_empty() {
        return path;
    }
    let mut query = Serializer::new(String::new());
    query.append_pair("port", &ports.join(","));
    format!("{path}?{}", query.finish())
}

/// How upstream reads a flag of a query.
pub(crate) fn is_set(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "0" | "false")
}

/// What stands in a proxy's path for an object: `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) name: &'a str,
    pub(crate) port: &'a str,
}

impl<'a> Named<'a> {
    pub(crate) fn parse(text: &'a str, what: &str) -> Result<Self, ApiError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme @ ("" | "http" | "https"), name, port] => (*scheme, *name, *port),
            _ => ("", "", ""),
        };
        if name.is_empty() {
            return Err(ApiError::bad_request(format!(
                "invalid {what} request {text:?}"
            )));
        }
        Ok(Self { scheme, name, port })
    }

    pub(crate) fn end(&self) -> End {
        End::Workload {
            tls: self.scheme == "https",
        }
    }

    /// The port as a number, or the usual one of the scheme.
    pub(crate) fn port_number(&self) -> Result<u16, ApiError> {
        match (self.port, self.scheme) {
            ("", "https") => Ok(443),
            ("", _) => Ok(80),
            (port, _) => port
                .parse()
                .map_err(|_| ApiError::bad_request(format!("invalid port {port:?}"))),
        }
    }
}

/// Where a pod listens.
pub(crate) fn pod(pod: &Value, named: &Named<'_>) -> Result<Location, ApiError> {
    let first = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .find_map(|container| container["ports"][0]["containerPort"].as_u64())
        .and_then(|port| u16::try_from(port).ok());
    let port = match first {
        Some(port) if named.port.is_empty() => port,
        _ => named.port_number()?,
    };
    let host = pod["status"]["podIPs"][0]["ip"]
        .as_str()
        .or_else(|| pod["status"]["podIP"].as_str())
        .unwrap_or_default();
    if host.parse::<IpAddr>().is_err() {
        return Err(not_allowed());
    }
    Ok(Location {
        end: named.end(),
        host: host.to_owned(),
        port,
        target: "/".to_owned(),
    })
}

pub(crate) fn not_allowed() -> ApiError {
    ApiError::bad_request("address not allowed")
}

/// Whether what runs in the cluster may be at an address: not on this machine itself, not in its link.
pub(crate) fn is_global_unicast(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address
            .to_ipv4_mapped()
            .map_or(address.is_unicast_link_local(), |inner| {
                !is_global_unicast(inner.into())
            }),
    };
    !(is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn web() -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "initContainers": [{"name": "init"}],
                "containers": [{"name": "app", "ports": [{"containerPort": 8080}]}, {"name": "side"}],
            },
            "status": {"podIPs": [{"ip": "10.1.2.3"}]},
        })
    }

    #[test]
    fn an_agent_is_reached_at_the_address_of_its_node() {
        let node = json!({
            "metadata": {"name": "n1"},
            "status": {
                "addresses": [
                    {"type": "Hostname", "address": "n1.example"},
                    {"type": "InternalIP", "address": "fd00::7"},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10350}},
            },
        });
        let found = agent(&node).unwrap();
        assert_eq!(found.authority(), "[fd00::7]:10350");
        assert_eq!(found.end, End::Agent(vec!["fd00::7".into(), "n1".into()]));
        let lost = json!({"metadata": {"name": "n"}, "status": {"addresses": [{"type": "Odd", "address": "x"}]}});
        assert_eq!(
            agent(&lost).unwrap_err().message,
            "no preferred addresses found; known addresses: [x]"
        );
    }

    #[test]
    fn a_container_must_be_named_where_there_are_several() {
        let pod = web();
        assert_eq!(
            container(&pod, "").unwrap_err().message,
            "a container name must be specified for pod web, choose one of: [init app side]"
        );
        assert_eq!(
            container(&pod, "x").unwrap_err().message,
            "container x is not valid for pod web"
        );
        assert_eq!(container(&pod, "init").unwrap(), "init");
        let single =
            json!({"metadata": {"name": "one"}, "spec": {"containers": [{"name": "only"}]}});
        assert_eq!(container(&single, "").unwrap(), "only");
    }

    #[test]
    fn a_shell_is_asked_for_in_the_words_of_the_kubelet() {
        let options = Options::parse(
            "container=app&command=sh&command=-c&command=a%26b&stdin=true&stdout=1&stderr=false&tty=true",
        )
        .unwrap();
        assert_eq!(
            stream_target(&web(), "exec", &options).unwrap(),
            "/exec/shop/web/app?input=1&output=1&tty=1&command=sh&command=-c&command=a%26b"
        );
        let options = Options::parse("ports=80&ports=443").unwrap();
        assert_eq!(
            port_target(&web(), &options),
            "/portForward/shop/web?port=80%2C443"
        );
        assert_eq!(
            port_target(&web(), &Options::default()),
            "/portForward/shop/web"
        );
    }

    #[test]
    fn a_proxy_names_scheme_and_port_in_the_name() {
        let parse = |text| Named::parse(text, "pod");
        let pod_port = |text| pod(&web(), &parse(text).unwrap()).unwrap();
        assert_eq!(pod_port("web").authority(), "10.1.2.3:8080");
        assert_eq!(pod_port("web:9").authority(), "10.1.2.3:9");
        assert_eq!(pod_port("https:web:9").address(), "https://10.1.2.3:9/");
        for text in ["", "ftp:web:1", "a:b:c:d", "http::80"] {
            let message = parse(text).unwrap_err().message;
            assert_eq!(message, format!("invalid pod request {text:?}"));
        }
        assert_eq!(
            pod(&json!({}), &parse("web").unwrap()).unwrap_err(),
            not_allowed()
        );
    }

    #[test]
    fn addresses_of_the_machine_itself_are_not_of_the_cluster() {
        for text in [
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "::ffff:127.0.0.1",
            "fe80::1",
        ] {
            assert!(!is_global_unicast(text.parse().unwrap()), "{text}");
        }
        for text in ["10.0.0.1", "192.168.1.1", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(is_global_unicast(text.parse().unwrap()), "{text}");
        }
    }
}
