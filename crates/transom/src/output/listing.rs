//! One description per kind of thing, five forms of output. Invariant: table, wide, JSON, YAML and
//! names of a kind come from one `Row`, so they cannot contradict each other.

use jiff::Timestamp;
use serde::Serialize;

use super::table::{Cell, render_table};

/// How things are shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The time that ages are counted from.
    pub now: Timestamp,
    /// Columns of the terminal; none when stdout is not a terminal.
    pub width: Option<usize>,
    /// Whether signs beyond ASCII can be shown.
    pub unicode: bool,
}

impl Shown {
    /// Without a terminal.
    pub fn plain(now: Timestamp) -> Self {
        Self {
            now,
            width: None,
            unicode: false,
        }
    }
}

/// One thing in a list.
pub trait Row: Serialize {
    /// What the things are called when there are none: `no services found`.
    const PLURAL: &'static str;

    /// The columns, in order.
    fn columns() -> &'static [Column];

    /// A field for each column, wide ones included.
    fn cells(&self, shown: Shown) -> Vec<Cell>;

    /// The name, by which other commands find the thing again.
    fn name(&self) -> String;
}

/// The title of a field, and when it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    title: &'static str,
    wide: bool,
}

impl Column {
    /// Always shown.
    pub const fn new(title: &'static str) -> Self {
        Self { title, wide: false }
    }

    /// Shown with `--output wide`.
    pub const fn wide(title: &'static str) -> Self {
        Self { title, wide: true }
    }
}

/// One thing that is more than a row.
pub trait Document: Serialize {
    /// For people.
    fn text(&self, wide: bool, shown: Shown) -> String;

    /// The names in it, for `--output name`.
    fn names(&self) -> Vec<String>;
}

pub(super) fn render_rows<R: Row>(rows: &[R], wide: bool, shown: Shown) -> String {
    let columns = R::columns();
    let titles: Vec<&str> = visible(columns, wide, columns.iter())
        .map(|column| column.title)
        .collect();
    let cells: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| visible(columns, wide, row.cells(shown)).collect())
        .collect();
    // Whoever asks for more columns wants to see all of each.
    let width = shown.width.filter(|_| !wide);
    render_table(&titles, &cells, Shown { width, ..shown })
}

/// Those of `fields` whose column is shown.
fn visible<Field>(
    columns: &[Column],
    wide: bool,
    fields: impl IntoIterator<Item = Field>,
) -> impl Iterator<Item = Field> {
    columns
        .iter()
        .zip(fields)
        .filter(move |(column, _)| wide || !column.wide)
        .map(|(_, field)| field)
}

pub(super) fn lines(names: impl IntoIterator<Item = String>) -> String {
    names.into_iter().map(|name| name + "\n").collect()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::super::{Format, Output, OutputError, age};
    use super::*;
    use crate::invocation::{Memory, Sink};

    #[derive(Serialize)]
    struct Boat {
        name: &'static str,
        launched: Timestamp,
        harbour: Option<&'static str>,
    }

    impl Row for Boat {
        const PLURAL: &'static str = "boats";

        fn columns() -> &'static [Column] {
            const {
                &[
                    Column::new("NAME"),
                    Column::wide("HARBOUR"),
                    Column::new("AGE"),
                ]
            }
        }

        fn cells(&self, shown: Shown) -> Vec<Cell> {
            vec![
                Cell::new(self.name),
                Cell::optional(self.harbour),
                Cell::new(age(self.launched, shown.now)),
            ]
        }

        fn name(&self) -> String {
            format!("boat/{}", self.name)
        }
    }

    fn boats() -> [Boat; 2] {
        [
            Boat {
                name: "Ida",
                launched: Timestamp::UNIX_EPOCH,
                harbour: Some("Kiel"),
            },
            Boat {
                name: "Meteor",
                launched: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(300),
                harbour: None,
            },
        ]
    }

    fn printed(format: Format, rows: &[Boat]) -> (String, String) {
        let (stdout, stderr) = (Memory::default(), Memory::default());
        let shown = Shown {
            now: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(400),
            width: None,
            unicode: true,
        };
        let output = Output::new(
            format,
            shown,
            false,
            Sink::Memory(stdout.clone()).open(false),
            Sink::Memory(stderr.clone()).open(false),
        );
        output.list(rows).unwrap();
        (stdout.text(), stderr.text())
    }

    #[test]
    fn a_row_has_five_forms() {
        insta::assert_snapshot!(printed(Format::Table, &boats()).0, @r"
        NAME     AGE
        Ida      6m40s
        Meteor   100s
        ");
        insta::assert_snapshot!(printed(Format::Wide, &boats()).0, @r"
        NAME     HARBOUR   AGE
        Ida      Kiel      6m40s
        Meteor   <none>    100s
        ");
        insta::assert_snapshot!(printed(Format::Name, &boats()).0, @r"
        boat/Ida
        boat/Meteor
        ");
        insta::assert_snapshot!(printed(Format::Json, &boats()[1..]).0, @r#"
        [
          {
            "name": "Meteor",
            "launched": "1970-01-01T00:05:00Z",
            "harbour": null
          }
        ]
        "#);
        insta::assert_snapshot!(printed(Format::Yaml, &boats()[..1]).0, @r#"
        - name: Ida
          launched: "1970-01-01T00:00:00Z"
          harbour: Kiel
        "#);
    }

    #[test]
    fn an_empty_list_is_a_remark_for_people_and_a_list_for_programs() {
        assert_eq!(
            printed(Format::Table, &[]),
            (String::new(), "no boats found\n".to_owned())
        );
        assert_eq!(printed(Format::Json, &[]).0, "[]\n");
        assert_eq!(printed(Format::Yaml, &[]).0, "[]\n");
        assert_eq!(printed(Format::Name, &[]).0, "");
    }

    struct Closed;

    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_told_apart_from_a_full_disk() {
        let shown = Shown {
            now: Timestamp::UNIX_EPOCH,
            width: None,
            unicode: true,
        };
        let nowhere = || Box::new(std::io::sink());
        let output = Output::new(Format::Json, shown, false, Box::new(Closed), nowhere());
        let error = output.list(&boats()).unwrap_err();
        assert!(matches!(error, OutputError::ReaderGone));
        let error = anyhow::Error::new(error).context("could not print");
        assert!(OutputError::is_reader_gone(&error));
        // A pipe to somebody else is somebody else's failure.
        let other = anyhow::Error::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(!OutputError::is_reader_gone(&other));
    }
}
