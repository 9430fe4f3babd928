//! Objects as rows: what `kubectl get` prints, decided here so that every client prints the same.
//!
//! A row has one cell for each column, those of the wide form included; the client leaves out what it does not want.

mod access;
mod age;
mod autoscaling;
mod cluster;
mod custom;
mod network;
mod nodes;
mod path;
mod pods;
mod row;
mod storage;
mod workloads;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::row::Row;

pub use self::{
    age::human_duration,
    custom::{CustomColumn, CustomColumns},
    path::{JsonPath, PathError},
};

/// The head of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// `name` for the name of the object, else nothing.
    pub format: &'static str,
    pub description: &'static str,
    /// Columns above zero are only printed in the wide form.
    pub priority: i32,
}

impl Column {
    const fn of(name: &'static str, kind: &'static str, description: &'static str) -> Self {
        Self {
            name,
            kind,
            format: "",
            description,
            priority: 0,
        }
    }

    const fn text(name: &'static str, description: &'static str) -> Self {
        Self::of(name, "string", description)
    }

    const fn integer(name: &'static str, description: &'static str) -> Self {
        Self::of(name, "integer", description)
    }

    const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self::of(name, "boolean", description)
    }

    const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    const fn named(mut self) -> Self {
        self.format = "name";
        self
    }

    /// The form on the wire.
    pub fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

const NAME: Column =
    Column::text("Name", "The name of the object, unique in its namespace.").named();
const AGE: Column = Column::text("Age", "How long ago the object was created.");
const CONTAINERS: Column =
    Column::text("Containers", "Names of each container in the template.").wide();
const IMAGES: Column = Column::text(
    "Images",
    "Images referenced by each container in the template.",
)
.wide();
const SELECTOR: Column = Column::text(
    "Selector",
    "Which pods belong to the object, by their labels.",
)
.wide();

/// How a kind is printed.
struct Printer {
    columns: &'static [Column],
    cells: fn(&Row) -> Vec<Value>,
}

static DEFAULT: Printer = Printer {
    columns: &[
        NAME,
        Column::of("Created At", "date", "When the object was created."),
    ],
    cells: |row| vec![row.name(), row.text("/metadata/creationTimestamp").into()],
};

fn printer(group: &str, kind: &str) -> &'static Printer {
    match group {
        "" => match kind {
            "Pod" => &pods::POD,
            "PodTemplate" => &workloads::POD_TEMPLATE,
            "ReplicationController" => &workloads::REPLICATION_CONTROLLER,
            "Service" => &network::SERVICE,
            "Endpoints" => &network::ENDPOINTS,
            "PersistentVolume" => &storage::PERSISTENT_VOLUME,
            "PersistentVolumeClaim" => &storage::PERSISTENT_VOLUME_CLAIM,
            "Node" => &nodes::NODE,
            "Namespace" => &cluster::NAMESPACE,
            "Event" => &cluster::EVENT,
            "ConfigMap" => &cluster::CONFIG_MAP,
            "Secret" => &cluster::SECRET,
            "ServiceAccount" => &access::SERVICE_ACCOUNT,
            "ResourceQuota" => &cluster::RESOURCE_QUOTA,
            _ => &DEFAULT,
        },
        "events.k8s.io" if kind == "Event" => &cluster::EVENT,
        "apps" => match kind {
            "Deployment" => &workloads::DEPLOYMENT,
            "ReplicaSet" => &workloads::REPLICA_SET,
            "StatefulSet" => &workloads::STATEFUL_SET,
            "DaemonSet" => &workloads::DAEMON_SET,
            "ControllerRevision" => &workloads::CONTROLLER_REVISION,
            _ => &DEFAULT,
        },
        "batch" => match kind {
            "Job" => &workloads::JOB,
            "CronJob" => &workloads::CRON_JOB,
            _ => &DEFAULT,
        },
        "autoscaling" => match kind {
            "HorizontalPodAutoscaler" => &autoscaling::AUTOSCALER,
            "Scale" => &autoscaling::SCALE,
            _ => &DEFAULT,
        },
        "policy" if kind == "PodDisruptionBudget" => &workloads::DISRUPTION_BUDGET,
        "networking.k8s.io" => match kind {
            "Ingress" => &network::INGRESS,
            "IngressClass" => &network::INGRESS_CLASS,
            "NetworkPolicy" => &network::NETWORK_POLICY,
            "ServiceCIDR" => &network::SERVICE_CIDR,
            "IPAddress" => &network::IP_ADDRESS,
            _ => &DEFAULT,
        },
        "discovery.k8s.io" if kind == "EndpointSlice" => &network::ENDPOINT_SLICE,
        "storage.k8s.io" => match kind {
            "StorageClass" => &storage::STORAGE_CLASS,
            "CSINode" => &storage::CSI_NODE,
            "CSIDriver" => &storage::CSI_DRIVER,
            "CSIStorageCapacity" => &storage::CSI_STORAGE_CAPACITY,
            "VolumeAttachment" => &storage::VOLUME_ATTACHMENT,
            "VolumeAttributesClass" => &storage::VOLUME_ATTRIBUTES_CLASS,
            _ => &DEFAULT,
        },
        "rbac.authorization.k8s.io" => match kind {
            "RoleBinding" | "ClusterRoleBinding" => &access::ROLE_BINDING,
            _ => &DEFAULT,
        },
        "certificates.k8s.io" if kind == "CertificateSigningRequest" => &access::SIGNING_REQUEST,
        "coordination.k8s.io" if kind == "Lease" => &cluster::LEASE,
        "scheduling.k8s.io" if kind == "PriorityClass" => &cluster::PRIORITY_CLASS,
        "metrics.k8s.io" => match kind {
            "NodeMetrics" => &nodes::NODE_METRICS,
            _ => &nodes::POD_METRICS,
        },
        "node.k8s.io" if kind == "RuntimeClass" => &nodes::RUNTIME_CLASS,
        _ => &DEFAULT,
    }
}

/// The columns of a built-in kind; those of other kinds are in [`CustomColumns`].
pub fn columns(group: &str, kind: &str) -> &'static [Column] {
    printer(group, kind).columns
}

/// One cell for each column.
pub fn cells(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    (printer(group, kind).cells)(&Row { object, now })
}

/// What is to be said of the row as a whole: pods that are done.
pub fn conditions(group: &str, kind: &str, object: &Value) -> Vec<Value> {
    if !group.is_empty() || kind != "Pod" {
        return Vec::new();
    }
    let message = match object.pointer("/status/phase").and_then(Value::as_str) {
        Some("Succeeded") => "The pod has completed successfully.",
        Some("Failed") => "The pod failed.",
        _ => return Vec::new(),
    };
    let mut condition = Map::new();
    condition.insert("type".to_owned(), json!("Completed"));
    condition.insert("status".to_owned(), json!("True"));
    condition.insert("reason".to_owned(), object["status"]["phase"].clone());
    condition.insert("message".to_owned(), json!(message));
    vec![Value::Object(condition)]
}
