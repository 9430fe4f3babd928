//! Rows of nodes and of the ways they run containers.

use serde_json::Value;

use crate::schema::quantity::Quantity;

use super::{
    AGE, Column, NAME, Printer,
    row::{Row, plain, text_of},
};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) static NODE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "The status of the node"),
        Column::text("Roles", "The roles of the node"),
        AGE,
        Column::text("Version", "The version of the agent on the node."),
        Column::text("Internal-IP", "The address of the node in the cluster.").wide(),
        Column::text(
            "External-IP",
            "The address of the node outside of the cluster.",
        )
        .wide(),
        Column::text("OS-Image", "The operating system.").wide(),
        Column::text("Kernel-Version", "The kernel of the operating system.").wide(),
        Column::text(
            "Container-Runtime",
            "What runs containers, and its version.",
        )
        .wide(),
    ],
    cells: |row| {
        let address = |kind: &str| -> Value {
            row.list("/status/addresses")
                .iter()
                .find(|address| text_of(address, "type") == kind)
                .map_or("<none>", |address| text_of(address, "address"))
                .into()
        };
        let info = |field: &str| -> Value {
            row.text_or(&format!("/status/nodeInfo/{field}"), "<unknown>")
                .into()
        };
        vec![
            row.name(),
            status(row).into(),
            roles(row).into(),
            row.age(),
            row.text("/status/nodeInfo/kubeletVersion").into(),
            address("InternalIP"),
            address("ExternalIP"),
            info("osImage"),
            info("kernelVersion"),
            info("containerRuntimeVersion"),
        ]
    },
};

fn status(row: &Row) -> String {
    let ready = match row.condition("Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if row.flag("/spec/unschedulable", false) {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

fn roles(row: &Row) -> String {
    let labels = row.get("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(label, value)| match label.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role.to_owned()),
            None if label == ROLE => Some(plain(Some(value))),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.sort();
    roles.dedup();
    roles.join(",")
}

pub(super) static RUNTIME_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Handler",
            "What the runtime calls this way to run containers.",
        ),
        AGE,
    ],
    cells: |row| vec![row.name(), row.text("/handler").into(), row.age()],
};

const CPU: Column = Column::text("cpu", "The processor time in use.");
const MEMORY: Column = Column::text("memory", "The memory in use.");
const WINDOW: Column = Column::text("Window", "Over what time was counted.");

pub(super) static NODE_METRICS: Printer = Printer {
    columns: &[NAME, CPU, MEMORY, WINDOW],
    cells: |row| {
        vec![
            row.name(),
            row.text("/usage/cpu").into(),
            row.text("/usage/memory").into(),
            row.text("/window").into(),
        ]
    },
};

pub(super) static POD_METRICS: Printer = Printer {
    columns: &[NAME, CPU, MEMORY, WINDOW],
    cells: |row| {
        let sum = |resource: &str| -> Value {
            let amounts = row.list("/containers").iter().filter_map(|container| {
                Quantity::parse(container["usage"][resource].as_str()?).ok()
            });
            amounts
                .reduce(Quantity::plus)
                .map_or_else(String::new, |sum| sum.to_string())
                .into()
        };
        vec![
            row.name(),
            sum("cpu"),
            sum("memory"),
            row.text("/window").into(),
        ]
    },
};
