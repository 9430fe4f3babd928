//! Rows of who may do what.

use serde_json::Value;

use super::{
    AGE, Column, NAME, Printer,
    age::human_duration,
    row::{Row, text_of},
};

pub(super) static SERVICE_ACCOUNT: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Secrets", "How many secrets belong to the account."),
        AGE,
    ],
    cells: |row| vec![row.name(), row.length("/secrets").into(), row.age()],
};

pub(super) static ROLE_BINDING: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Role", "The role that is given."),
        AGE,
        Column::text("Users", "The users that have it.").wide(),
        Column::text("Groups", "The groups that have it.").wide(),
        Column::text("ServiceAccounts", "The service accounts that have it.").wide(),
    ],
    cells: |row| {
        let role = format!(
            "{}/{}",
            row.text("/roleRef/kind"),
            row.text("/roleRef/name")
        );
        vec![
            row.name(),
            role.into(),
            row.age(),
            subjects(row, "User"),
            subjects(row, "Group"),
            subjects(row, "ServiceAccount"),
        ]
    },
};

fn subjects(row: &Row, kind: &str) -> Value {
    let names: Vec<String> = row
        .list("/subjects")
        .iter()
        .filter(|subject| text_of(subject, "kind") == kind)
        .map(|subject| match (kind, text_of(subject, "namespace")) {
            ("ServiceAccount", namespace) if !namespace.is_empty() => {
                format!("{namespace}/{}", text_of(subject, "name"))
            }
            _ => text_of(subject, "name").to_owned(),
        })
        .collect();
    names.join(", ").into()
}

pub(super) static SIGNING_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        Column::text("SignerName", "Who shall sign."),
        Column::text("Requestor", "Who asks for it."),
        Column::text("RequestedDuration", "For how long it shall be valid."),
        Column::text(
            "Condition",
            "Whether it was approved, and whether there is a certificate.",
        ),
    ],
    cells: |row| {
        let duration = row
            .get("/spec/expirationSeconds")
            .and_then(Value::as_i64)
            .map_or_else(
                || "<none>".to_owned(),
                |seconds| human_duration(jiff::SignedDuration::from_secs(seconds)),
            );
        vec![
            row.name(),
            row.age(),
            row.text_or("/spec/signerName", "<none>").into(),
            row.text("/spec/username").into(),
            duration.into(),
            condition(row).into(),
        ]
    },
};

fn condition(row: &Row) -> String {
    let has = |kind: &str| row.condition(kind).is_some();
    let mut text = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !row.text("/status/certificate").is_empty() {
        text.push_str(",Issued");
    }
    text
}
