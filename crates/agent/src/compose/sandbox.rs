//! The sandbox of a pod: its names, its network, its limits.

use camino::Utf8Path;
use k8s_openapi::api::core::v1::{Pod, PodSpec as Wanted};
use transom_model::{
    Os,
    labels::{ANY_ADDRESS, POD_ADDRESS},
};
use transom_runtime::{Dns, PodNetwork, PodSpec, PortMap, Protocol, Resources};

use super::log_folder;
use crate::{ClusterDns, resources};

/// Kernel and resolvers take no longer names.
const LONGEST_HOST_NAME: usize = 63;

pub(crate) fn sandbox_spec(
    pod: &Pod,
    attempt: u32,
    os: Os,
    logs: &Utf8Path,
    dns: &ClusterDns,
) -> PodSpec {
    let meta = &pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    let uid = text(&meta.uid);
    let class = resources::class_of_service(&spec);
    let cgroup_parent = match class {
        "Guaranteed" => format!("kubepods/pod{uid}"),
        "Burstable" => format!("kubepods/burstable/pod{uid}"),
        _ => format!("kubepods/besteffort/pod{uid}"),
    };
    let in_host = spec.host_network == Some(true);
    let sysctls = spec
        .security_context
        .as_ref()
        .and_then(|context| context.sysctls.clone());
    PodSpec {
        hostname: hostname(pod, &dns.domain),
        log_directory: log_folder(os, logs, pod),
        network: if in_host {
            PodNetwork::Host
        } else {
            PodNetwork::Own
        },
        dns: names(&spec, &text(&meta.namespace), dns),
        ports: if in_host {
            Vec::new()
        } else {
            ports(&spec, given_address(pod))
        },
        share_processes: spec.share_process_namespace == Some(true),
        host_pid: spec.host_pid == Some(true),
        host_ipc: spec.host_ipc == Some(true),
        privileged: wants_privileges(&spec),
        sysctls: sysctls
            .into_iter()
            .flatten()
            .map(|one| (one.name, one.value))
            .collect(),
        cgroup_parent,
        resources: pod_limits(&spec),
        namespace: text(&meta.namespace),
        name: text(&meta.name),
        labels: meta.labels.clone().unwrap_or_default(),
        annotations: meta.annotations.clone().unwrap_or_default(),
        uid,
        attempt,
    }
}

fn wants_privileges(spec: &Wanted) -> bool {
    let contexts = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    contexts
        .filter_map(|one| one.security_context.as_ref())
        .any(|context| context.privileged == Some(true))
}

/// What all containers may use together; a limit only if each has one.
pub(crate) fn pod_limits(spec: &Wanted) -> Resources {
    let sum = |limits: bool, name: &str| -> Option<i128> {
        spec.containers
            .iter()
            .map(|one| resources::amount(one, limits, name))
            .sum()
    };
    let number = |amount: Option<i128>| amount.and_then(|amount| u64::try_from(amount).ok());
    let request = resources::pod_requests(spec).get("cpu").copied();
    Resources {
        cpu_request_millis: number(request),
        cpu_limit_millis: number(sum(true, "cpu")),
        memory_limit_bytes: number(sum(true, "memory").map(|millis| millis / 1000)),
        ..Resources::default()
    }
}

pub(crate) fn hostname(pod: &Pod, domain: &str) -> String {
    let spec = pod.spec.as_ref();
    if let Some(name) = spec.and_then(|spec| spec.hostname_override.clone()) {
        return name;
    }
    let asked = spec
        .and_then(|spec| spec.hostname.clone())
        .filter(|name| !name.is_empty());
    let mut name = asked
        .or_else(|| pod.metadata.name.clone())
        .unwrap_or_default();
    if name.len() > LONGEST_HOST_NAME {
        name.truncate(LONGEST_HOST_NAME);
        name.truncate(name.trim_end_matches(['-', '.']).len());
    }
    match (
        spec.and_then(|spec| spec.set_hostname_as_fqdn),
        full_domain(pod, domain),
    ) {
        (Some(true), Some(domain)) => format!("{name}.{domain}"),
        _ => name,
    }
}

fn full_domain(pod: &Pod, domain: &str) -> Option<String> {
    let subdomain = pod
        .spec
        .as_ref()?
        .subdomain
        .as_deref()
        .filter(|name| !name.is_empty())?;
    let namespace = pod.metadata.namespace.as_deref()?;
    Some(format!("{subdomain}.{namespace}.svc.{domain}"))
}

/// The address of the node that the scheduler found for the ports of a pod that asked for one.
pub(crate) fn given_address(pod: &Pod) -> Option<&str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let address = annotations.get(POD_ADDRESS)?.as_str();
    let is_one = !matches!(address, "" | "0.0.0.0" | ANY_ADDRESS);
    is_one.then_some(address)
}

/// The ports of the node that lead to a pod; those without an address of their own are at the given one.
fn ports(spec: &Wanted, given: Option<&str>) -> Vec<PortMap> {
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|one| resources::is_sidecar(one));
    let all = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|one| one.ports.iter().flatten());
    all.filter_map(|port| {
        let host_port = u16::try_from(port.host_port?)
            .ok()
            .filter(|port| *port > 0)?;
        let own = port.host_ip.as_deref().filter(|ip| !ip.is_empty());
        Some(PortMap {
            protocol: match port.protocol.as_deref() {
                Some("UDP") => Protocol::Udp,
                Some("SCTP") => Protocol::Sctp,
                _ => Protocol::Tcp,
            },
            container_port: u16::try_from(port.container_port).ok()?,
            host_port,
            host_address: own.or(given).and_then(|address| address.parse().ok()),
        })
    })
    .collect()
}

/// Whom the pod asks for names, after its policy and its own additions.
fn names(spec: &Wanted, namespace: &str, cluster: &ClusterDns) -> Dns {
    let policy = spec.dns_policy.as_deref().unwrap_or("ClusterFirst");
    let in_host = spec.host_network == Some(true);
    let of_cluster = match policy {
        "ClusterFirst" => !in_host,
        "ClusterFirstWithHostNet" => true,
        _ => false,
    };
    let mut dns = match policy {
        "None" => Dns::default(),
        _ if of_cluster && !cluster.servers.is_empty() => {
            let domain = &cluster.domain;
            let mut searches = vec![
                format!("{namespace}.svc.{domain}"),
                format!("svc.{domain}"),
                domain.clone(),
            ];
            searches.extend(cluster.node.searches.iter().cloned());
            Dns {
                servers: cluster.servers.iter().map(ToString::to_string).collect(),
                searches,
                options: vec!["ndots:5".to_owned()],
            }
        }
        _ => cluster.node.clone(),
    };
    let Some(own) = &spec.dns_config else {
        return dns;
    };
    let add = |list: &mut Vec<String>, more: &Option<Vec<String>>| {
        for one in more.iter().flatten() {
            if !list.contains(one) {
                list.push(one.clone());
            }
        }
    };
    add(&mut dns.servers, &own.nameservers);
    add(&mut dns.searches, &own.searches);
    for option in own.options.iter().flatten() {
        let Some(name) = &option.name else { continue };
        dns.options
            .retain(|one| one.split(':').next() != Some(name));
        dns.options.push(match option.value.as_deref() {
            Some(value) if !value.is_empty() => format!("{name}:{value}"),
            _ => name.clone(),
        });
    }
    dns
}

/// The hosts file of a pod's containers.
pub(crate) fn hosts_file(pod: &Pod, addresses: &[String], domain: &str) -> String {
    let mut text = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
        fe00::\tip6-localnet\nfe00::\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
        .to_owned();
    let name = hostname(pod, domain);
    let short = name.split('.').next().unwrap_or_default();
    for address in addresses {
        let names = match full_domain(pod, domain) {
            Some(domain) => format!("{short}.{domain}\t{short}"),
            None => name.clone(),
        };
        text.extend([address, "\t", &names, "\n"]);
    }
    let aliases = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.host_aliases.as_ref());
    let aliases: Vec<_> = aliases.into_iter().flatten().collect();
    if !aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        let names = alias.hostnames.clone().unwrap_or_default().join("\t");
        text.extend([&alias.ip, "\t", &names, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: serde_json::Value) -> Pod {
        let mut pod = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u"}});
        pod["spec"] = spec;
        serde_json::from_value(pod).unwrap()
    }

    fn cluster() -> ClusterDns {
        ClusterDns {
            servers: vec!["10.0.0.10".parse().unwrap()],
            domain: "cluster.local".to_owned(),
            node: Dns {
                servers: vec!["192.0.2.1".to_owned()],
                searches: vec!["home".to_owned()],
                options: Vec::new(),
            },
        }
    }

    #[test]
    fn names_are_asked_after_the_policy() {
        for (spec, servers, searches) in [
            (
                json!({"containers": []}),
                "10.0.0.10",
                "n.svc.cluster.local svc.cluster.local cluster.local home",
            ),
            (
                json!({"containers": [], "dnsPolicy": "Default"}),
                "192.0.2.1",
                "home",
            ),
            (
                json!({"containers": [], "hostNetwork": true}),
                "192.0.2.1",
                "home",
            ),
            (
                json!({"containers": [], "dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["x"]}}),
                "1.1.1.1",
                "x",
            ),
        ] {
            let made = sandbox_spec(
                &pod(spec.clone()),
                0,
                Os::Linux,
                Utf8Path::new("/logs"),
                &cluster(),
            );
            assert_eq!(
                (made.dns.servers.join(" "), made.dns.searches.join(" ")),
                (servers.to_owned(), searches.to_owned()),
                "{spec}"
            );
        }
    }

    #[test]
    fn ports_are_at_the_address_that_the_scheduler_found() {
        let mut asking = pod(json!({"containers": [{"name": "a", "ports": [
            {"containerPort": 80, "hostPort": 8080},
            {"containerPort": 81, "hostPort": 8081, "hostIP": "192.0.2.9"},
        ]}]}));
        let mut addresses = |given: &str| {
            let name = POD_ADDRESS.to_owned();
            asking.metadata.annotations = Some([(name, given.to_owned())].into());
            let logs = Utf8Path::new("/logs");
            let made = sandbox_spec(&asking, 0, Os::Linux, logs, &cluster());
            let ports = made.ports.into_iter();
            ports
                .map(|port| port.host_address.map(|address| address.to_string()))
                .collect::<Vec<_>>()
        };
        let own = Some("192.0.2.9".to_owned());
        assert_eq!(
            addresses("192.0.2.1"),
            [Some("192.0.2.1".to_owned()), own.clone()]
        );
        assert_eq!(addresses("auto"), [None, own.clone()]);
        assert_eq!(addresses("0.0.0.0"), [None, own]);
    }

    #[test]
    fn a_sandbox_has_the_ports_and_limits_of_its_containers() {
        let made = sandbox_spec(
            &pod(json!({"containers": [
                {"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}, {"containerPort": 81}],
                 "resources": {"limits": {"cpu": "500m", "memory": "1Mi"}}},
            ]})),
            2,
            Os::Linux,
            Utf8Path::new("/logs"),
            &cluster(),
        );
        assert_eq!(made.ports.len(), 1);
        assert_eq!(
            (made.ports[0].host_port, made.ports[0].protocol),
            (8080, Protocol::Udp)
        );
        assert_eq!(made.resources.cpu_limit_millis, Some(500));
        assert_eq!(made.resources.memory_limit_bytes, Some(1 << 20));
        assert_eq!(made.log_directory, "/logs/n_a_u");
        assert_eq!(made.cgroup_parent, "kubepods/podu");
    }

    #[test]
    fn a_sandbox_is_privileged_if_any_of_its_containers_is() {
        let with = |context: serde_json::Value| json!([{"name": "a", "securityContext": context}]);
        for (spec, expected) in [
            (
                json!({"containers": with(json!({"privileged": true}))}),
                true,
            ),
            (
                json!({"containers": [], "initContainers": with(json!({"privileged": true}))}),
                true,
            ),
            (
                json!({"containers": with(json!({"privileged": false}))}),
                false,
            ),
            (json!({"containers": [{"name": "a"}]}), false),
        ] {
            let logs = Utf8Path::new("/logs");
            let made = sandbox_spec(&pod(spec.clone()), 0, Os::Linux, logs, &cluster());
            assert_eq!(made.privileged, expected, "{spec}");
        }
    }
}
