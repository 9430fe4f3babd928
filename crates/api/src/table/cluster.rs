//! Rows of namespaces, of what is kept in them, and of events.

use serde_json::Value;

use super::{
    AGE, Column, NAME, Printer,
    age::since,
    row::{Row, plain, text_of},
};

pub(super) static NAMESPACE: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Status", "The status of the namespace"),
        AGE,
    ],
    cells: |row| vec![row.name(), row.text("/status/phase").into(), row.age()],
};

pub(super) static CONFIG_MAP: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Data", "How many entries there are."),
        AGE,
    ],
    cells: |row| {
        let entries = row.length("/data") + row.length("/binaryData");
        vec![row.name(), entries.into(), row.age()]
    },
};

pub(super) static SECRET: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Type", "What the secret is for."),
        Column::text("Data", "How many entries there are."),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            row.text("/type").into(),
            row.length("/data").into(),
            row.age(),
        ]
    },
};

pub(super) static LEASE: Printer = Printer {
    columns: &[NAME, Column::text("Holder", "Who holds the lease."), AGE],
    cells: |row| {
        vec![
            row.name(),
            row.text("/spec/holderIdentity").into(),
            row.age(),
        ]
    },
};

pub(super) static PRIORITY_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::integer("Value", "Pods of a class with a higher value go first."),
        Column::boolean(
            "Global-Default",
            "Whether pods without a class are of this one.",
        ),
        AGE,
        Column::text(
            "PreemptionPolicy",
            "Whether pods of the class may push others off a node.",
        ),
    ],
    cells: |row| {
        vec![
            row.name(),
            row.number("/value").into(),
            row.flag("/globalDefault", false).into(),
            row.age(),
            row.text("/preemptionPolicy").into(),
        ]
    },
};

pub(super) static RESOURCE_QUOTA: Printer = Printer {
    columns: &[
        NAME,
        Column::text("Request", "What is used and what may be, except of limits."),
        Column::text(
            "Limit",
            "The sum of the limits of containers, and what it may be.",
        ),
        AGE,
    ],
    cells: |row| {
        let hard = row.get("/status/hard").and_then(Value::as_object);
        let mut hard: Vec<(&String, &Value)> = hard.into_iter().flatten().collect();
        hard.sort_by_key(|(resource, _)| *resource);
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (resource, hard) in hard {
            let used = row.get("/status/used").and_then(|used| used.get(resource));
            let used = used.map_or_else(|| "0".to_owned(), |used| plain(Some(used)));
            let text = format!("{resource}: {used}/{}", plain(Some(hard)));
            if resource.starts_with("limits.") {
                limits.push(text);
            } else {
                requests.push(text);
            }
        }
        vec![
            row.name(),
            requests.join(", ").into(),
            limits.join(", ").into(),
            row.age(),
        ]
    },
};

pub(super) static EVENT: Printer = Printer {
    columns: &[
        Column::text("Last Seen", "How long ago it happened last."),
        Column::text("Type", "Whether it is a warning."),
        Column::text("Reason", "What happened, in one word."),
        Column::text("Object", "What it happened to."),
        Column::text("Subobject", "Which part of the object.").wide(),
        Column::text("Source", "Who tells it.").wide(),
        Column::text("Message", "What happened, in a sentence."),
        Column::text("First Seen", "How long ago it happened first.").wide(),
        Column::text("Count", "How often it happened.").wide(),
        Column::text("Name", "The name of the object, unique in its namespace.")
            .named()
            .wide(),
    ],
    cells: |row| {
        let first = first_of(
            row,
            &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"],
        );
        let last = match first_of(row, &["/lastTimestamp", "/deprecatedLastTimestamp"]) {
            "" => first,
            last => last,
        };
        let (last, count) = match row.get("/series") {
            Some(series) => (
                text_of(series, "lastObservedTime"),
                series
                    .get("count")
                    .and_then(Value::as_i64)
                    .unwrap_or_default(),
            ),
            None => {
                let count = row.number("/count") + row.number("/deprecatedCount");
                (last, count.max(1))
            }
        };
        vec![
            since(last, row.now).into(),
            row.text("/type").into(),
            row.text("/reason").into(),
            event_object(row).into(),
            first_of(row, &["/involvedObject/fieldPath", "/regarding/fieldPath"]).into(),
            event_source(row).into(),
            first_of(row, &["/message", "/note"]).trim().into(),
            since(first, row.now).into(),
            count.into(),
            row.name(),
        ]
    },
};

/// The first of several texts that is there: events have two forms.
fn first_of<'a>(row: &Row<'a>, pointers: &[&str]) -> &'a str {
    pointers
        .iter()
        .map(|pointer| row.text(pointer))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

fn event_object(row: &Row) -> String {
    let kind = first_of(row, &["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    match first_of(row, &["/involvedObject/name", "/regarding/name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn event_source(row: &Row) -> String {
    let component = first_of(
        row,
        &[
            "/source/component",
            "/deprecatedSource/component",
            "/reportingComponent",
            "/reportingController",
        ],
    );
    match first_of(
        row,
        &[
            "/source/host",
            "/deprecatedSource/host",
            "/reportingInstance",
        ],
    ) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}
