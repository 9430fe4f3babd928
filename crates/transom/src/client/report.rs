//! What was done to each object, and what could not be done. Invariant: people see each line when it happens; programs
//! get one list at the end, also when something failed.

use std::fmt::Write as _;

use serde::Serialize;

use super::kinds::Kind;
use crate::context::Context;
use crate::failure::{Advice as _, Exit, Failure};
use crate::output::{Cell, Column, Format, OutputError, Row, Shown};

/// What was done to one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Deed {
    #[serde(rename = "object")]
    name: String,
    namespace: Option<String>,
    outcome: &'static str,
    dry_run: bool,
}

impl Row for Deed {
    const PLURAL: &'static str = "objects";

    fn columns() -> &'static [Column] {
        const { &[Column::new("OBJECT"), Column::new("OUTCOME")] }
    }

    fn cells(&self, _: Shown) -> Vec<Cell> {
        vec![Cell::new(&self.name), Cell::new(self.outcome)]
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Tells what is done.
pub(crate) struct Report<'a> {
    cx: &'a Context,
    dry_run: bool,
    deeds: Vec<Deed>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(cx: &'a Context, dry_run: bool) -> Self {
        Self {
            cx,
            dry_run,
            deeds: Vec::new(),
        }
    }

    /// Tells what became of an object.
    pub(crate) fn tell(
        &mut self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        outcome: &'static str,
    ) -> Result<(), OutputError> {
        let deed = Deed {
            name: kind.name_of(name),
            namespace: namespace.map(str::to_owned),
            outcome,
            dry_run: self.dry_run,
        };
        match self.cx.out.format() {
            Format::Table | Format::Wide => {
                let note = if self.dry_run { " (dry run)" } else { "" };
                let line = format!("{} {outcome}{note}\n", deed.name);
                self.cx.out.write(&line)
            }
            Format::Name => self.cx.out.write(&format!("{}\n", deed.name)),
            Format::Json | Format::Yaml => {
                self.deeds.push(deed);
                Ok(())
            }
        }
    }

    /// Ends the list.
    pub(crate) fn finish(self) -> Result<(), OutputError> {
        match self.cx.out.format() {
            Format::Json | Format::Yaml => self.cx.out.list(&self.deeds),
            Format::Table | Format::Wide | Format::Name => Ok(()),
        }
    }
}

/// One failure for several: `what` says what was not done. Each keeps its causes and its way forward.
pub(crate) fn together(
    cx: &Context,
    what: &str,
    mut failed: Vec<anyhow::Error>,
) -> anyhow::Result<Exit> {
    if failed.len() <= 1 {
        return failed.pop().map_or(Ok(Exit::Success), Err);
    }
    let failures: Vec<Failure> = failed
        .iter()
        .map(|error| Failure::from_error(error, cx.host))
        .collect();
    let mut exit = failures[0].exit;
    let mut text = format!("{} {what}:", failures.len());
    for failure in &failures {
        if failure.exit != exit {
            exit = Exit::Failure;
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}", failure.message);
        for cause in &failure.causes {
            let _ = write!(text, "\n  caused by: {cause}");
        }
        if let Some(hint) = &failure.hint {
            let _ = write!(text, "\n  hint: {hint}");
        }
    }
    Err(anyhow::anyhow!(text)).exit(exit)
}
