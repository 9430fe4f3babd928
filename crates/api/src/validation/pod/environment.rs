//! Environment variables of containers, and where their values come from.

use serde_json::Value;

use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        formats, metadata,
        read::Read,
    },
};

/// Fields of a pod that a variable can have.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields of a pod that a file can have.
pub(super) const FILE_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Sizes in which memory and storage can be counted.
const SIZES: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

pub(super) fn variables(faults: &mut Faults, container: &Value, path: &Path) {
    for (index, variable) in container.items("env").iter().enumerate() {
        let path = path.index(index);
        let name = variable.text("name");
        if name.is_empty() {
            faults.required(&path.child("name"), "");
        } else {
            faults.messages(
                &path.child("name"),
                name,
                formats::environment_variable(name),
            );
        }
        value_from(faults, variable, &path.child("valueFrom"));
    }
}

fn value_from(faults: &mut Faults, variable: &Value, path: &Path) {
    if !variable.has("valueFrom") {
        return;
    }
    let source = &variable["valueFrom"];
    let mut count = 0;
    if source.has("fieldRef") {
        count += 1;
        field_reference(
            faults,
            &source["fieldRef"],
            &VARIABLE_FIELDS,
            &path.child("fieldRef"),
        );
    }
    if source.has("resourceFieldRef") {
        count += 1;
        resource_reference(
            faults,
            &source["resourceFieldRef"],
            false,
            &path.child("resourceFieldRef"),
        );
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        if source.has(field) {
            count += 1;
            key_reference(faults, &source[field], &path.child(field));
        }
    }
    if source.has("fileKeyRef") {
        count += 1;
        file_reference(faults, &source["fileKeyRef"], &path.child("fileKeyRef"));
    }
    if count == 0 {
        faults.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !variable.text("value").is_empty() {
        faults.invalid(path, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        faults.invalid(
            path,
            "",
            "may not have more than one field specified at a time",
        );
    }
}

fn file_reference(faults: &mut Faults, reference: &Value, path: &Path) {
    for field in ["key", "path", "volumeName"] {
        if reference.text(field).is_empty() {
            faults.required(&path.child(field), "");
        }
    }
    super::volumes::local_path(faults, reference.text("path"), &path.child("path"));
}

/// A field of the pod itself.
pub(super) fn field_reference(
    faults: &mut Faults,
    reference: &Value,
    allowed: &[&str],
    path: &Path,
) {
    for field in ["apiVersion", "fieldPath"] {
        if reference.text(field).is_empty() {
            faults.required(&path.child(field), "");
            return;
        }
    }
    let field = reference.text("fieldPath");
    let version = reference.text("apiVersion");
    if version != "v1" {
        faults.invalid(
            &path.child("fieldPath"),
            field,
            format!("error converting fieldPath: unsupported pod version: {version}"),
        );
        return;
    }
    if let Some((base, key)) = subscript(field) {
        match base {
            "metadata.annotations" => {
                let key = key.to_ascii_lowercase();
                faults.messages(path, key.as_str(), formats::qualified_name(&key));
            }
            "metadata.labels" => faults.messages(path, key, formats::qualified_name(key)),
            _ => faults.invalid(
                &path.child("fieldPath"),
                field,
                format!(
                    "error converting fieldPath: field label does not support subscript: {field}"
                ),
            ),
        }
        return;
    }
    let known = VARIABLE_FIELDS.contains(&field) || FILE_FIELDS.contains(&field);
    if !known {
        faults.invalid(
            &path.child("fieldPath"),
            field,
            format!("error converting fieldPath: field label not supported: {field}"),
        );
    } else if !allowed.contains(&field) {
        faults.push(FieldError::not_supported(
            &path.child("fieldPath"),
            field,
            allowed,
        ));
    }
}

/// The two parts of a path like `metadata.labels['key']`.
fn subscript(field: &str) -> Option<(&str, &str)> {
    let (base, rest) = field.split_once("['")?;
    let key = rest.strip_suffix("']")?;
    (!base.is_empty()).then_some((base, key))
}

/// A resource of a container, counted in some unit.
pub(super) fn resource_reference(
    faults: &mut Faults,
    reference: &Value,
    in_volume: bool,
    path: &Path,
) {
    let resource = reference.text("resource");
    let huge = ["limits.hugepages-", "requests.hugepages-"]
        .into_iter()
        .any(|prefix| resource.starts_with(prefix));
    if in_volume && reference.text("containerName").is_empty() {
        faults.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        faults.required(&path.child("resource"), "");
    } else if !RESOURCE_FIELDS.contains(&resource) && !huge {
        faults.push(FieldError::not_supported(
            &path.child("resource"),
            resource,
            &RESOURCE_FIELDS,
        ));
    }
    divisor(faults, reference, resource, huge, path);
}

fn divisor(faults: &mut Faults, reference: &Value, resource: &str, huge: bool, path: &Path) {
    let divisor = match &reference["divisor"] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if divisor == "0" || divisor.is_empty() {
        return;
    }
    let (allowed, detail): (&[&str], String) = match resource {
        "limits.cpu" | "requests.cpu" => (
            &["1m", "1"],
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned(),
        ),
        "limits.memory" | "requests.memory" => (&SIZES, sizes_are_supported("memory")),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&SIZES, sizes_are_supported("local ephemeral storage"))
        }
        _ if huge => (&SIZES, sizes_are_supported("hugepages")),
        _ => return,
    };
    if !allowed.contains(&divisor.as_str()) {
        faults.invalid(&path.child("divisor"), resource, detail);
    }
}

fn sizes_are_supported(what: &str) -> String {
    format!(
        "only divisor's values {} are supported with the {what} resource",
        SIZES.join(", ")
    )
}

/// A key of a config map or secret.
fn key_reference(faults: &mut Faults, reference: &Value, path: &Path) {
    let name = reference.text("name");
    faults.messages(&path.child("name"), name, formats::subdomain(name));
    let key = reference.text("key");
    if key.is_empty() {
        faults.required(&path.child("key"), "");
    } else {
        faults.messages(&path.child("key"), key, formats::config_key(key));
    }
}

/// Whole config maps and secrets as variables.
pub(super) fn sources(faults: &mut Faults, container: &Value, path: &Path) {
    for (index, source) in container.items("envFrom").iter().enumerate() {
        let item_path = path.index(index);
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            faults.messages(
                &item_path.child("prefix"),
                prefix,
                formats::environment_variable(prefix),
            );
        }
        let mut count = 0;
        for field in ["configMapRef", "secretRef"] {
            if source.has(field) {
                count += 1;
                metadata::reference_name(
                    faults,
                    source[field].text("name"),
                    &item_path.child(field).child("name"),
                );
            }
        }
        if count == 0 {
            faults.invalid(
                path,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            );
        } else if count > 1 {
            faults.invalid(
                path,
                "",
                "may not have more than one field specified at a time",
            );
        }
    }
}
