//! Rows of autoscalers: what is measured against what is wanted.

use serde_json::Value;

use super::{
    AGE, Column, NAME, Printer,
    row::{Row, plain, some_of, text_of},
};

/// How many metrics stand in a cell.
const SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

pub(super) static AUTOSCALER: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Reference", "What is scaled."),
        Column::text("Targets", "What is measured, and what it shall be."),
        Column::text("MinPods", "How many pods there are at least."),
        Column::text("MaxPods", "How many pods there are at most."),
        Column::text("Replicas", "How many pods there are."),
        AGE,
    ],
    cells: |row| {
        let target = "/spec/scaleTargetRef";
        let reference = format!(
            "{}/{}",
            row.text(&format!("{target}/kind")),
            row.text(&format!("{target}/name"))
        );
        let least = row
            .get("/spec/minReplicas")
            .map_or_else(|| "<unset>".to_owned(), ToString::to_string);
        vec![
            row.name(),
            reference.into(),
            targets(row).into(),
            least.into(),
            row.number("/spec/maxReplicas").into(),
            row.number("/status/currentReplicas").into(),
            row.age(),
        ]
    },
};

pub(super) static SCALE: Printer = Printer {
    columns: &[
        Column::text("Name", "The name of the object, unique in its namespace."),
        Column::integer("Desired", "How many pods there shall be."),
        Column::integer("Available", "How many pods there are."),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            row.number("/spec/replicas").into(),
            row.number("/status/replicas").into(),
            row.age(),
        ]
    },
};

fn targets(row: &Row) -> String {
    // The first version of the API knew only this one metric.
    if let Some(wanted) = row.get("/spec/targetCPUUtilizationPercentage") {
        let current = row
            .get("/status/currentCPUUtilizationPercentage")
            .map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{percent}%"));
        return format!("cpu: {current}/{wanted}%");
    }
    let specs = row.list("/spec/metrics");
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let statuses = row.list("/status/currentMetrics");
    let all: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index)))
        .collect();
    some_of(&all, SHOWN, ", ")
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let field = match text_of(spec, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let source = spec.get(field).unwrap_or(&Value::Null);
    let target = |name: &str| {
        source
            .pointer(&format!("/target/{name}"))
            .filter(|value| !value.is_null())
    };
    let current = |name: &str| {
        let value = status?.get(field)?.get("current")?.get(name)?;
        (!value.is_null()).then(|| plain(Some(value)))
    };
    let known = |value: Option<String>| value.unwrap_or_else(|| UNKNOWN.to_owned());
    let average =
        target("averageValue").map(|value| (known(current("averageValue")), plain(Some(value))));
    match (field, average) {
        ("resource" | "containerResource", average) => {
            let (current, target) = average.unwrap_or_else(|| {
                let percent = |value: String| format!("{value}%");
                let wanted = target("averageUtilization").map(|value| percent(plain(Some(value))));
                (
                    known(current("averageUtilization").map(percent)),
                    wanted.unwrap_or_else(|| "<auto>".to_owned()),
                )
            });
            format!("{}: {current}/{target}", text_of(source, "name"))
        }
        ("pods", average) => {
            let (current, target) = average.unwrap_or_else(|| (UNKNOWN.to_owned(), "0".to_owned()));
            format!("{current}/{target}")
        }
        (_, Some((current, target))) => format!("{current}/{target} (avg)"),
        (_, None) => format!("{}/{}", known(current("value")), plain(target("value"))),
    }
}
