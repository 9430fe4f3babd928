//! Rows of services, what is behind them and what is before them.

use serde_json::Value;

use super::{
    AGE, Column, NAME, Printer, SELECTOR,
    row::{Row, plain, some_of, text_of},
};

/// How many hosts, ports or addresses stand in a cell.
const SHOWN: usize = 3;

pub(super) static SERVICE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Type", "How the service is reached."),
        Column::text("Cluster-IP", "The address of the service in the cluster."),
        Column::text(
            "External-IP",
            "The addresses of the service outside of the cluster.",
        ),
        Column::text("Port(s)", "The ports of the service."),
        AGE,
        SELECTOR,
    ],
    cells: |row| {
        let address = row.list("/spec/clusterIPs").first().and_then(Value::as_str);
        let address = address.unwrap_or_else(|| row.text_or("/spec/clusterIP", "<none>"));
        vec![
            row.name(),
            row.text("/spec/type").into(),
            address.into(),
            external_address(row).into(),
            service_ports(row).into(),
            row.age(),
            row.labels("/spec/selector").into(),
        ]
    },
};

fn external_address(row: &Row) -> String {
    let mut external: Vec<String> = texts(row.list("/spec/externalIPs"));
    match row.text("/spec/type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let mut all = balancer_addresses(row);
            all.append(&mut external);
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses a load balancer gave, each once and in order.
fn balancer_addresses(row: &Row) -> Vec<String> {
    let mut addresses: Vec<String> = row
        .list("/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| match text_of(ingress, "ip") {
            "" => text_of(ingress, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .map(str::to_owned)
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

fn service_ports(row: &Row) -> String {
    let ports: Vec<String> = row
        .list("/spec/ports")
        .iter()
        .map(|port| {
            let number = plain(port.get("port"));
            let protocol = text_of(port, "protocol");
            match port.get("nodePort").and_then(Value::as_i64) {
                Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() {
        "<none>".to_owned()
    } else {
        ports.join(",")
    }
}

fn texts(list: &[Value]) -> Vec<String> {
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

pub(super) static ENDPOINTS: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Endpoints", "Addresses and ports behind the service."),
        AGE,
    ],
    cells: |row| vec![row.name(), endpoints(row).into(), row.age()],
};

fn endpoints(row: &Row) -> String {
    let subsets = row.list("/subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let list = |name: &str| {
            subset
                .get(name)
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice)
        };
        let addresses = || {
            list("addresses")
                .iter()
                .map(|address| text_of(address, "ip"))
        };
        if list("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in list("ports") {
            let port = plain(port.get("port"));
            all.extend(addresses().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    some_of(&all, SHOWN, ",")
}

pub(super) static ENDPOINT_SLICE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("AddressType", "What kind of addresses these are."),
        Column::text("Ports", "The ports of all endpoints."),
        Column::text("Endpoints", "The addresses of the endpoints."),
        AGE,
    ],
    cells: |row| {
        let ports: Vec<String> = row
            .list("/ports")
            .iter()
            .map(|port| match (port.get("port"), text_of(port, "name")) {
                (Some(number), _) if !number.is_null() => number.to_string(),
                (_, "") => "*".to_owned(),
                (_, name) => name.to_owned(),
            })
            .collect();
        let addresses: Vec<String> = row
            .list("/endpoints")
            .iter()
            .filter_map(|endpoint| endpoint.get("addresses")?.as_array())
            .flat_map(|addresses| texts(addresses))
            .collect();
        let set = |text: String| {
            if text.is_empty() {
                "<unset>".to_owned()
            } else {
                text
            }
        };
        vec![
            row.name(),
            row.text("/addressType").into(),
            set(some_of(&ports, SHOWN, ",")).into(),
            set(some_of(&addresses, SHOWN, ",")).into(),
            row.age(),
        ]
    },
};

pub(super) static INGRESS: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Class", "The class whose controller serves the ingress."),
        Column::text("Hosts", "The hosts the rules are for."),
        Column::text("Address", "Where the ingress is reached."),
        Column::text("Ports", "The ports that are open."),
        AGE,
    ],
    cells: |row| {
        let ports = if row.length("/spec/tls") == 0 {
            "80"
        } else {
            "80, 443"
        };
        vec![
            row.name(),
            row.text_or("/spec/ingressClassName", "<none>").into(),
            hosts(row).into(),
            balancer_addresses(row).join(",").into(),
            ports.into(),
            row.age(),
        ]
    },
};

fn hosts(row: &Row) -> String {
    let rules = row.list("/spec/rules");
    let hosts: Vec<String> = rules
        .iter()
        .map(|rule| text_of(rule, "host"))
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect();
    match hosts.len() {
        0 => "*".to_owned(),
        // Upstream counts the rules here, not the hosts.
        count if count >= SHOWN && rules.len() > SHOWN => {
            format!(
                "{} + {} more...",
                hosts[..SHOWN].join(","),
                rules.len() - SHOWN
            )
        }
        _ => hosts.join(","),
    }
}

pub(super) static INGRESS_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Controller", "Who serves ingresses of this class."),
        Column::text("Parameters", "An object with more settings of the class."),
        AGE,
    ],
    cells: |row| {
        let parameters = match row.get("/spec/parameters") {
            None => "<none>".to_owned(),
            Some(parameters) => {
                let kind = text_of(parameters, "kind");
                let name = text_of(parameters, "name");
                match parameters.get("apiGroup").and_then(Value::as_str) {
                    Some(group) => format!("{kind}.{group}/{name}"),
                    None => format!("{kind}/{name}"),
                }
            }
        };
        vec![
            row.name(),
            row.text("/spec/controller").into(),
            parameters.into(),
            row.age(),
        ]
    },
};

pub(super) static NETWORK_POLICY: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Pod-Selector",
            "Which pods the policy is for, by their labels.",
        ),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            row.selector("/spec/podSelector").into(),
            row.age(),
        ]
    },
};

pub(super) static SERVICE_CIDR: Printer = Printer {
    columns: &[
        NAME,
        Column::text("CIDRs", "The ranges addresses of services are from."),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            texts(row.list("/spec/cidrs")).join(",").into(),
            row.age(),
        ]
    },
};

pub(super) static IP_ADDRESS: Printer = Printer {
    columns: &[NAME, Column::text("ParentRef", "What has the address.")],
    cells: |row| {
        let parent = match row.get("/spec/parentRef") {
            None => "<none>".to_owned(),
            Some(parent) => {
                let mut text = text_of(parent, "resource").to_lowercase();
                for (separator, field) in [(".", "group"), ("/", "namespace")] {
                    let part = text_of(parent, field);
                    if !part.is_empty() {
                        text = format!("{text}{separator}{}", part.to_lowercase());
                    }
                }
                format!("{text}/{}", text_of(parent, "name"))
            }
        };
        vec![row.name(), parent.into()]
    },
};
