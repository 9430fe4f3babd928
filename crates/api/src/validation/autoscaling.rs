//! Horizontal pod autoscalers.

use serde_json::Value;

use super::{
    fault::{Faults, Report},
    formats,
    metadata::{self, NameRule, Scope},
    quantities::{self, Amount},
    read::Read,
    selector,
};
use crate::field::{FieldError, Path};

const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("External", "external"),
];

pub(super) fn create(faults: &mut Faults, autoscaler: &Value) {
    metadata::create(faults, autoscaler, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &autoscaler["spec"];
    let least = spec.maybe_number("minReplicas");
    let most = spec.number("maxReplicas");
    if let Some(least) = least
        && least < 1
    {
        faults.invalid(
            &path.child("minReplicas"),
            least,
            "must be greater than or equal to 1",
        );
    }
    if most < 1 {
        faults.invalid(&path.child("maxReplicas"), most, "must be greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        faults.invalid(
            &path.child("maxReplicas"),
            most,
            "must be greater than or equal to `minReplicas`",
        );
    }
    reference(
        faults,
        &spec["scaleTargetRef"],
        &path.child("scaleTargetRef"),
    );
    for (index, metric) in spec.items("metrics").iter().enumerate() {
        self::metric(faults, metric, &path.child("metrics").index(index));
    }
    behavior(faults, &spec["behavior"], &path.child("behavior"));
    // The first version of this kind has one target only.
    if let Some(percentage) = spec.maybe_number("targetCPUUtilizationPercentage")
        && percentage < 1
    {
        faults.invalid(
            &path.child("targetCPUUtilizationPercentage"),
            percentage,
            "must be greater than 0",
        );
    }
}

fn reference(faults: &mut Faults, reference: &Value, path: &Path) {
    for field in ["kind", "name"] {
        let text = reference.text(field);
        if text.is_empty() {
            faults.required(&path.child(field), "");
        } else {
            faults.messages(&path.child(field), text, formats::path_segment(text));
        }
    }
}

fn metric(faults: &mut Faults, metric: &Value, path: &Path) {
    let kind = metric.text("type");
    let mut kinds: Vec<&str> = SOURCES.iter().map(|source| source.0).collect();
    kinds.sort_unstable();
    if kind.is_empty() {
        faults.required(&path.child("type"), "must specify a metric source type");
    }
    if !kinds.contains(&kind) {
        faults.push(FieldError::not_supported(&path.child("type"), kind, &kinds));
    }
    let expected = SOURCES
        .iter()
        .find(|source| source.0 == kind)
        .map_or("", |source| source.1);
    let present: Vec<&str> = SOURCES
        .iter()
        .map(|source| source.1)
        .filter(|field| metric.has(field))
        .collect();
    if let Some(first) = present.first() {
        source(faults, first, &metric[*first], &path.child(first));
    }
    if !present.contains(&expected) {
        faults.required(
            &path.child(expected),
            "must populate information for the given metric source",
        );
    }
    if present.len() != 1 {
        for field in present.iter().filter(|field| **field != expected) {
            faults.forbidden(
                &path.child(field),
                "must populate the given metric source only",
            );
        }
    }
}

fn source(faults: &mut Faults, kind: &str, source: &Value, path: &Path) {
    match kind {
        "resource" | "containerResource" => {
            if source.text("name").is_empty() {
                faults.required(&path.child("name"), "must specify a resource name");
            }
            if kind == "containerResource" && source.text("container").is_empty() {
                faults.required(&path.child("container"), "must specify a container");
            }
        }
        _ => {
            let metric = &source["metric"];
            let metric_path = path.child("metric");
            let name = metric.text("name");
            if name.is_empty() {
                faults.required(&metric_path.child("name"), "must specify a metric name");
            } else {
                faults.messages(
                    &metric_path.child("name"),
                    name,
                    formats::path_segment(name),
                );
            }
            selector::validate(faults, &metric["selector"], &metric_path.child("selector"));
            if kind == "object" {
                reference(
                    faults,
                    &source["describedObject"],
                    &path.child("describedObject"),
                );
            }
        }
    }
    target(faults, kind, &source["target"], &path.child("target"));
}

fn target(faults: &mut Faults, kind: &str, target: &Value, path: &Path) {
    let type_name = target.text("type");
    if type_name.is_empty() {
        faults.required(&path.child("type"), "must specify a metric target type");
    }
    if !matches!(type_name, "Utilization" | "Value" | "AverageValue") {
        faults.invalid(
            &path.child("type"),
            type_name,
            "must be either Utilization, Value, or AverageValue",
        );
    }
    for field in ["value", "averageValue"] {
        if let Some(amount) = quantities::read(&target[field])
            && amount <= Amount::ZERO
        {
            faults.invalid(&path.child(field), amount.to_string(), "must be positive");
        }
    }
    let utilization = target.maybe_number("averageUtilization");
    if let Some(percentage) = utilization
        && percentage < 1
    {
        faults.invalid(
            &path.child("averageUtilization"),
            percentage,
            "must be greater than 0",
        );
    }
    let (value, average) = (target.has("value"), target.has("averageValue"));
    match kind {
        "resource" | "containerResource" => {
            if utilization.is_none() && !average {
                faults.required(
                    &path.child("averageUtilization"),
                    "must set either a target raw value or a target utilization",
                );
            }
            if utilization.is_some() && average {
                faults.forbidden(
                    &path.child("averageValue"),
                    "may not set both a target raw value and a target utilization",
                );
            }
        }
        "pods" => {
            if !average {
                faults.required(
                    &path.child("averageValue"),
                    "must specify a positive target averageValue",
                );
            }
        }
        _ => {
            if !value && !average {
                faults.required(
                    &path.child("averageValue"),
                    "must set either a target value or averageValue",
                );
            }
            if kind == "external" && value && average {
                faults.forbidden(
                    &path.child("value"),
                    "may not set both a target value for metric and a per-pod target",
                );
            }
        }
    }
}

fn behavior(faults: &mut Faults, behavior: &Value, path: &Path) {
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &behavior[direction];
        if rules.is_null() {
            continue;
        }
        let path = path.child(direction);
        if let Some(seconds) = rules.maybe_number("stabilizationWindowSeconds") {
            let path = path.child("stabilizationWindowSeconds");
            if seconds < 0 {
                faults.invalid(&path, seconds, "must be greater than or equal to zero");
            }
            if seconds > 3600 {
                faults.invalid(&path, seconds, "must be less than or equal to 3600");
            }
        }
        faults.choice(
            &path.child("selectPolicy"),
            &rules["selectPolicy"],
            &["Disabled", "Max", "Min"],
        );
        let path = path.child("policies");
        if rules.items("policies").is_empty() {
            faults.required(&path, "must specify at least one Policy");
        }
        for (index, policy) in rules.items("policies").iter().enumerate() {
            let path = path.index(index);
            if !matches!(policy.text("type"), "Pods" | "Percent") {
                faults.push(FieldError::not_supported(
                    &path.child("type"),
                    policy.text("type"),
                    &["Percent", "Pods"],
                ));
            }
            for field in ["value", "periodSeconds"] {
                if policy.number(field) <= 0 {
                    faults.invalid(
                        &path.child(field),
                        policy.number(field),
                        "must be greater than zero",
                    );
                }
            }
            if policy.number("periodSeconds") > 1800 {
                faults.invalid(
                    &path.child("periodSeconds"),
                    policy.number("periodSeconds"),
                    "must be less than or equal to 1800",
                );
            }
        }
    }
}
