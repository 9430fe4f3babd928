//! `transom config show`: each effective value and where it came from. Invariant: prints what the
//! program uses, not what the file says.

use serde::Serialize;

use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};
use crate::settings::{DESCRIPTIONS, Source};

const EXAMPLES: &str = "\
Examples:
  transom config show                     All settings
  transom config show -o json             The same for programs
  TRANSOM_COLOR=never transom config show See what a variable changes";

/// Show each setting and where its value came from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {}

#[derive(Serialize)]
struct Effective<'a> {
    key: &'static str,
    value: String,
    source: &'a Source,
    flag: &'static str,
    variable: &'static str,
}

impl Row for Effective<'_> {
    const PLURAL: &'static str = "settings";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("SETTING"),
                Column::new("VALUE"),
                Column::wide("FLAG"),
                Column::wide("VARIABLE"),
                Column::new("SOURCE"),
            ]
        }
    }

    fn cells(&self, _shown: Shown) -> Vec<Cell> {
        vec![
            self.key.into(),
            Cell::new(&self.value),
            self.flag.into(),
            self.variable.into(),
            self.source.to_string().into(),
        ]
    }

    fn name(&self) -> String {
        self.key.to_owned()
    }
}

impl Show {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let Self {} = self;
        let rows: Vec<Effective> = DESCRIPTIONS
            .iter()
            .map(|description| {
                let (value, source) = (description.effective)(&cx.settings);
                Effective {
                    key: description.key,
                    value,
                    source,
                    flag: description.flag,
                    variable: description.variable.name,
                }
            })
            .collect();
        cx.out.list(&rows)?;
        for (mistake, meant) in cx.environment.probable_mistakes() {
            cx.out.warn(&format!(
                "the variable {mistake} means nothing; did you mean {meant}?"
            ));
        }
        Ok(Exit::Success)
    }
}
