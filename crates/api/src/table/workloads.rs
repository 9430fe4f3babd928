//! Rows of what makes pods, and of what limits their disruption.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    AGE, CONTAINERS, Column, IMAGES, NAME, Printer, SELECTOR,
    age::human_duration,
    row::{Row, plain, selector, text_of},
};

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(super) static POD_TEMPLATE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Containers", "Names of each container in the template."),
        Column::text(
            "Images",
            "Images referenced by each container in the template.",
        ),
        Column::text("Pod Labels", "The labels for the pod template."),
    ],
    cells: |row| {
        let [names, images] = row.containers("/template/spec/containers");
        vec![
            row.name(),
            names,
            images,
            row.labels("/template/metadata/labels").into(),
        ]
    },
};

const REPLICAS: [Column; 8] = [
    NAME,
    Column::integer("Desired", "How many pods there shall be."),
    Column::integer("Current", "How many pods there are."),
    Column::integer("Ready", "How many pods are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn replicas(row: &Row, selector: String) -> Vec<Value> {
    let [names, images] = row.containers(TEMPLATE);
    vec![
        row.name(),
        row.number("/spec/replicas").into(),
        row.number("/status/replicas").into(),
        row.number("/status/readyReplicas").into(),
        row.age(),
        names,
        images,
        selector.into(),
    ]
}

pub(super) static REPLICATION_CONTROLLER: Printer = Printer {
    columns: &REPLICAS,
    cells: |row| replicas(row, row.labels("/spec/selector")),
};

pub(super) static REPLICA_SET: Printer = Printer {
    columns: &REPLICAS,
    cells: |row| replicas(row, row.selector("/spec/selector")),
};

fn ready_of_desired(row: &Row) -> Value {
    let ready = row.number("/status/readyReplicas");
    format!("{ready}/{}", row.number("/spec/replicas")).into()
}

pub(super) static DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Ready",
            "How many pods are ready, of how many there shall be.",
        ),
        Column::text("Up-to-date", "How many pods are of the newest template."),
        Column::text(
            "Available",
            "How many pods have been ready for long enough.",
        ),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let [names, images] = row.containers(TEMPLATE);
        vec![
            row.name(),
            ready_of_desired(row),
            row.number("/status/updatedReplicas").into(),
            row.number("/status/availableReplicas").into(),
            row.age(),
            names,
            images,
            row.get("/spec/selector")
                .map(selector)
                .unwrap_or_default()
                .into(),
        ]
    },
};

pub(super) static STATEFUL_SET: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Ready",
            "How many pods are ready, of how many there shall be.",
        ),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    cells: |row| {
        let [names, images] = row.containers(TEMPLATE);
        vec![row.name(), ready_of_desired(row), row.age(), names, images]
    },
};

pub(super) static DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        Column::integer("Desired", "How many nodes shall run the pod."),
        Column::integer("Current", "How many of these nodes run it."),
        Column::integer("Ready", "On how many of them it is ready."),
        Column::integer("Up-to-date", "How many run the newest template."),
        Column::integer(
            "Available",
            "On how many it has been ready for long enough.",
        ),
        Column::text("Node Selector", "Which nodes run the pod, by their labels."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let [names, images] = row.containers(TEMPLATE);
        vec![
            row.name(),
            row.number("/status/desiredNumberScheduled").into(),
            row.number("/status/currentNumberScheduled").into(),
            row.number("/status/numberReady").into(),
            row.number("/status/updatedNumberScheduled").into(),
            row.number("/status/numberAvailable").into(),
            row.labels("/spec/template/spec/nodeSelector").into(),
            row.age(),
            names,
            images,
            row.selector("/spec/selector").into(),
        ]
    },
};

pub(super) static CONTROLLER_REVISION: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Controller", "Whose revision it is."),
        Column::text("Revision", "The number of the revision."),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            controller(row).into(),
            row.number("/revision").into(),
            row.age(),
        ]
    },
};

/// The owner in the form `statefulset.apps/web`.
fn controller(row: &Row) -> String {
    let owners = row.list("/metadata/ownerReferences");
    let is_controller =
        |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(owner) = owners.iter().find(is_controller) else {
        return "<none>".to_owned();
    };
    let kind = text_of(owner, "kind").to_lowercase();
    let name = text_of(owner, "name");
    match text_of(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None => format!("{kind}/{name}"),
    }
}

pub(super) static JOB: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "Status of the job."),
        Column::text(
            "Completions",
            "How many pods succeeded, of how many there shall.",
        ),
        Column::text("Duration", "Time required to complete the job."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let [names, images] = row.containers(TEMPLATE);
        vec![
            row.name(),
            job_status(row).into(),
            job_completions(row).into(),
            job_duration(row).into(),
            row.age(),
            names,
            images,
            row.selector("/spec/selector").into(),
        ]
    },
};

fn job_status(row: &Row) -> &'static str {
    let has = |condition: &str| row.condition(condition) == Some("True");
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if row.is_deleted() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else {
        "Running"
    }
}

fn job_completions(row: &Row) -> String {
    let succeeded = row.number("/status/succeeded");
    if let Some(completions) = row.get("/spec/completions") {
        return format!("{succeeded}/{completions}");
    }
    match row.number("/spec/parallelism") {
        parallelism if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn job_duration(row: &Row) -> String {
    let time = |pointer| row.text(pointer).parse::<Timestamp>().ok();
    let Some(start) = time("/status/startTime") else {
        return String::new();
    };
    let end = time("/status/completionTime").unwrap_or(row.now);
    human_duration(end.duration_since(start))
}

pub(super) static CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Schedule", "When jobs are made."),
        Column::text("Timezone", "Where that time is."),
        Column::boolean("Suspend", "Whether no jobs are made for now."),
        Column::integer("Active", "How many jobs are running."),
        Column::text("Last Schedule", "How long ago the last job was made."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |row| {
        let [names, images] = row.containers("/spec/jobTemplate/spec/template/spec/containers");
        let suspend = match row.get("/spec/suspend").and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        let last = match row.text("/status/lastScheduleTime") {
            "" => "<none>".to_owned(),
            _ => row.since("/status/lastScheduleTime"),
        };
        vec![
            row.name(),
            row.text("/spec/schedule").into(),
            row.text_or("/spec/timeZone", "<none>").into(),
            suspend.into(),
            row.length("/status/active").into(),
            last.into(),
            row.age(),
            names,
            images,
            row.selector("/spec/jobTemplate/spec/selector").into(),
        ]
    },
};

pub(super) static DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Min Available",
            "The minimum number of pods that must be available.",
        ),
        Column::text(
            "Max Unavailable",
            "The maximum number of pods that may be unavailable.",
        ),
        Column::integer("Allowed Disruptions", "How many pods may be disrupted now."),
        AGE,
    ],
    cells: |row| {
        let limit = |pointer: &str| match row.get(pointer) {
            None => Value::from("N/A"),
            value => plain(value).into(),
        };
        vec![
            row.name(),
            limit("/spec/minAvailable"),
            limit("/spec/maxUnavailable"),
            row.number("/status/disruptionsAllowed").into(),
            row.age(),
        ]
    },
};
