//! The rows that a server makes of objects, for people. Invariant: what a column means is the server's business; here
//! it is decided which are shown.

use serde::Deserialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::kinds::Kind;
use crate::output::{Cell, Shown, age, render_table};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Column {
    name: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    priority: i64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Line {
    #[serde(default)]
    cells: Vec<Value>,
    #[serde(default)]
    object: Value,
}

/// Rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Table {
    #[serde(default)]
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Line>,
    /// What each row is about, if that is not clear from where it stands.
    #[serde(skip)]
    prefix: String,
    #[serde(skip)]
    with_namespace: bool,
    #[serde(skip)]
    with_labels: bool,
    #[serde(skip)]
    wide: bool,
}

impl Table {
    /// Reads an answer: a table, or from servers that make none objects with a name and an age.
    pub(crate) fn of(answer: Value, shown: Shown) -> anyhow::Result<Self> {
        let mut answer = if answer["kind"] == "Table" {
            answer
        } else {
            plain(answer, shown)
        };
        // A watch says the columns once.
        if let Some(fields) = answer.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        Ok(serde_json::from_value(answer)?)
    }

    /// With a column for the namespace.
    pub(crate) fn with_namespace(mut self, yes: bool) -> Self {
        self.with_namespace = yes;
        self
    }

    /// With the labels of each object.
    pub(crate) fn with_labels(mut self, yes: bool) -> Self {
        self.with_labels = yes;
        self
    }

    /// With the columns that few people need.
    pub(crate) fn wide(mut self, yes: bool) -> Self {
        self.wide = yes;
        self
    }

    /// With the kind before each name.
    pub(crate) fn prefixed(mut self, kind: &Kind) -> Self {
        self.prefix = format!("{}/", kind.name());
        self
    }

    /// Takes the rows of another answer about the same kind.
    pub(crate) fn extend(&mut self, other: Self) {
        if self.column_definitions.is_empty() {
            self.column_definitions = other.column_definitions;
        }
        self.rows.extend(other.rows);
    }

    /// Whether another table has the same columns and is about the same kind.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.column_definitions == other.column_definitions && self.prefix == other.prefix
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The whole of it.
    pub(crate) fn text(&self, shown: Shown) -> String {
        let titles = self.titles();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        // Whoever asks for more columns wants to see all of each.
        let width = shown.width.filter(|_| !self.wide && !self.with_labels);
        let cells: Vec<Vec<Cell>> = self.fields().iter().map(|row| cells(row)).collect();
        render_table(&titles, &cells, Shown { width, ..shown })
    }

    /// The names of the objects, with their kinds.
    pub(crate) fn names(&self, kind: &Kind) -> Vec<String> {
        let names = self.rows.iter().map(|row| &row.object["metadata"]["name"]);
        names
            .map(|name| kind.name_of(name.as_str().unwrap_or_default()))
            .collect()
    }

    /// The titles of the columns that are shown.
    fn titles(&self) -> Vec<String> {
        let before = self.with_namespace.then(|| "NAMESPACE".to_owned());
        let own = self.visible().map(|(_, column)| column.name.to_uppercase());
        let after = self.with_labels.then(|| "LABELS".to_owned());
        before.into_iter().chain(own).chain(after).collect()
    }

    /// The fields of each row that are shown.
    fn fields(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| self.row(row)).collect()
    }

    fn row(&self, row: &Line) -> Vec<String> {
        let metadata = &row.object["metadata"];
        let namespace = self.with_namespace.then(|| {
            metadata["namespace"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        let own = self.visible().map(|(index, column)| {
            let text = text(row.cells.get(index).unwrap_or(&Value::Null));
            if column.format == "name" {
                format!("{}{text}", self.prefix)
            } else {
                text
            }
        });
        let labels = self.with_labels.then(|| labels(metadata));
        namespace.into_iter().chain(own).chain(labels).collect()
    }

    fn visible(&self) -> impl Iterator<Item = (usize, &Column)> {
        let columns = self.column_definitions.iter().enumerate();
        columns.filter(|(_, column)| self.wide || column.priority == 0)
    }
}

/// A table that grows downwards. Columns only get wider, so that most rows stand below each other.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// The widest field of each column so far.
    widest: Vec<String>,
    /// The columns as they were said the last time.
    columns: Vec<Column>,
    with_events: bool,
}

impl Growing {
    /// With a column for what happened.
    pub(crate) fn with_events(yes: bool) -> Self {
        Self {
            with_events: yes,
            ..Self::default()
        }
    }

    /// The lines of some more rows; the titles come before the first.
    pub(crate) fn lines(&mut self, event: &str, mut table: Table, shown: Shown) -> String {
        if table.column_definitions.is_empty() {
            table.column_definitions.clone_from(&self.columns);
        } else {
            self.columns.clone_from(&table.column_definitions);
        }
        let with_event = |row: Vec<String>, event: &str| {
            let event = self.with_events.then(|| event.to_owned());
            event.into_iter().chain(row).collect::<Vec<_>>()
        };
        let titles = with_event(table.titles(), "EVENT");
        let rows: Vec<Vec<String>> = table
            .fields()
            .into_iter()
            .map(|row| with_event(row, event))
            .collect();
        let is_first = self.widest.is_empty();
        if rows.is_empty() {
            return String::new();
        }
        if is_first {
            self.widest.clone_from(&titles);
        }
        for row in &rows {
            for (widest, field) in self.widest.iter_mut().zip(row) {
                if field.width() > widest.width() {
                    widest.clone_from(field);
                }
            }
        }
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let widest = std::iter::once(cells(&self.widest));
        let all: Vec<Vec<Cell>> = widest.chain(rows.iter().map(|row| cells(row))).collect();
        let text = render_table(
            &titles,
            &all,
            Shown {
                width: None,
                ..shown
            },
        );
        let lines = text.lines().enumerate();
        lines
            // The row that holds the columns apart is not one of those that people want.
            .filter(|(index, _)| *index > 1 || (*index == 0 && is_first))
            .flat_map(|(_, line)| [line, "\n"])
            .collect()
    }
}

fn cells(fields: &[String]) -> Vec<Cell> {
    fields.iter().map(Cell::new).collect()
}

fn text(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn labels(metadata: &Value) -> String {
    let labels = metadata["labels"].as_object();
    let pairs = labels.into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        "<none>".to_owned()
    } else {
        pairs.join(",")
    }
}

/// A table of objects that the server sent as they are.
fn plain(mut answer: Value, shown: Shown) -> Value {
    let objects = match answer["items"].take() {
        Value::Array(items) => items,
        _ => vec![answer],
    };
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let metadata = &object["metadata"];
            let since = metadata["creationTimestamp"].as_str();
            let since = since.and_then(|time| time.parse().ok());
            let old = since.map_or_else(|| "<unknown>".to_owned(), |time| age(time, shown.now));
            json!({"cells": [metadata["name"], old], "object": {"metadata": metadata}})
        })
        .collect();
    json!({
        "columnDefinitions": [{"name": "Name", "format": "name"}, {"name": "Age"}],
        "rows": rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Shown {
        Shown::plain(jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60))
    }

    /// Without styles.
    fn bare(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn pods() -> Table {
        let answer = json!({
            "kind": "Table",
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "priority": 0},
                {"name": "Restarts", "type": "integer"},
                {"name": "Node", "type": "string", "priority": 1},
            ],
            "rows": [
                {"cells": ["web", 3, null], "object": {"metadata": {
                    "name": "web", "namespace": "shop", "labels": {"app": "web", "tier": "front"},
                }}},
                {"cells": ["two\nlines"], "object": {}},
            ],
        });
        Table::of(answer, shown()).unwrap()
    }

    #[test]
    fn columns_are_shown_as_asked_for() {
        insta::assert_snapshot!(bare(&pods().text(shown())), @r"
        NAME         RESTARTS
        web          3
        two\nlines
        ");
        let all = pods().wide(true).with_namespace(true).with_labels(true);
        insta::assert_snapshot!(bare(&all.text(shown())), @r"
        NAMESPACE   NAME         RESTARTS   NODE   LABELS
        shop        web          3                 app=web,tier=front
                    two\nlines                     <none>
        ");
        let prefixed = pods().prefixed(&Kind::new("", "v1", "Pod"));
        assert!(prefixed.text(shown()).contains("pod/web "));
    }

    #[test]
    fn a_server_that_makes_no_tables_gets_names_and_ages() {
        let object = |name: &str| json!({"metadata": {"name": name, "creationTimestamp": "1970-01-01T00:00:00Z"}});
        let list = json!({"kind": "ThingList", "items": [object("a"), object("b")]});
        insta::assert_snapshot!(bare(&Table::of(list, shown()).unwrap().text(shown())), @r"
        NAME   AGE
        a      60s
        b      60s
        ");
        let one = Table::of(object("c"), shown()).unwrap();
        assert!(one.text(shown()).contains("c      60s"));
    }

    #[test]
    fn a_table_may_say_nothing_about_columns() {
        let answer =
            json!({"kind": "Table", "columnDefinitions": null, "rows": [{"cells": ["a"]}]});
        let table = Table::of(answer, shown()).unwrap();
        assert!(!table.is_empty());
        assert_eq!(table.titles(), Vec::<String>::new());
    }

    #[test]
    fn pages_become_one_table() {
        let mut all = Table::default();
        assert!(all.is_empty());
        all.extend(pods());
        all.extend(pods());
        assert_eq!(all.fields().len(), 4);
        assert_eq!(all.titles(), ["NAME", "RESTARTS"]);
        assert_eq!(
            all.names(&Kind::new("", "v1", "Pod"))[..2],
            ["pod/web", "pod/"]
        );
    }

    #[test]
    fn a_growing_table_has_its_titles_once_and_keeps_its_columns() {
        let mut growing = Growing::with_events(true);
        assert_eq!(growing.lines("ADDED", Table::default(), shown()), "");
        // Later events do not say the columns again.
        let later = || {
            let mut table = pods();
            table.column_definitions.clear();
            table
        };
        let text = growing.lines("ADDED", pods(), shown())
            + &growing.lines("MODIFIED", later(), shown())
            + &growing.lines("DELETED", later(), shown());
        insta::assert_snapshot!(bare(&text), @r"
        EVENT   NAME         RESTARTS
        ADDED   web          3
        ADDED   two\nlines
        MODIFIED   web          3
        MODIFIED   two\nlines
        DELETED    web          3
        DELETED    two\nlines
        ");
    }
}
