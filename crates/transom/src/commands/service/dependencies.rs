//! `list-dependencies`: what a unit needs, as a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use transom_supervisor::control::protocol::UnitStatus;

use super::{list, resolve, systemd};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::{Document, Shown};

/// Show what units need, as a tree
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service list-dependencies web\n  transom service list-dependencies --reverse db\n  transom service list-dependencies --after web"
)]
pub(super) struct ListDependencies {
    /// The unit; the default target if none is named
    #[arg(value_name = "UNIT", default_value = "multi-user.target")]
    unit: String,

    /// What needs the unit, instead
    #[arg(long)]
    reverse: bool,

    /// What comes up before the unit, instead
    #[arg(long, conflicts_with = "reverse")]
    after: bool,

    /// What comes up after the unit, instead
    #[arg(long, conflicts_with_all = ["reverse", "after"])]
    before: bool,
}

impl ListDependencies {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let chosen = [
                (self.reverse, "--reverse"),
                (self.after, "--after"),
                (self.before, "--before"),
            ];
            let flags: Vec<&str> = chosen
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, f)| *f)
                .collect();
            return systemd::systemctl("list-dependencies", &flags, &[self.unit]);
        }
        let followed: &[&str] = match (self.reverse, self.after, self.before) {
            (true, ..) => &[
                "RequiredBy",
                "RequisiteOf",
                "WantedBy",
                "BoundBy",
                "UpheldBy",
            ],
            (_, true, _) => &["After"],
            (_, _, true) => &["Before"],
            _ => &["Requires", "Requisite", "Wants", "BindsTo", "Upholds"],
        };
        let units: BTreeMap<String, UnitStatus> = list(cx, &[])?
            .into_iter()
            .map(|unit| (unit.name.clone(), unit))
            .collect();
        let root = resolve(cx, &[self.unit])?.remove(0);
        if !units.contains_key(&root) {
            return Err(anyhow::anyhow!("unit {root} not found")).exit(super::NO_SUCH_UNIT);
        }
        let tree = grow(&root, &units, followed, &mut BTreeSet::new());
        cx.out.document(&tree)?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct Tree {
    unit: String,
    active: &'static str,
    needs: Vec<Tree>,
}

/// Each unit is shown with its own needs once; where it comes again, without them.
fn grow(
    name: &str,
    units: &BTreeMap<String, UnitStatus>,
    followed: &[&str],
    shown: &mut BTreeSet<String>,
) -> Tree {
    let unit = units.get(name);
    let mut needs = Vec::new();
    if shown.insert(name.to_owned())
        && let Some(unit) = unit
    {
        let others: BTreeSet<&String> = followed
            .iter()
            .filter_map(|kind| unit.dependencies.get(*kind))
            .flatten()
            .collect();
        needs = others
            .into_iter()
            .map(|other| grow(other, units, followed, shown))
            .collect();
    }
    let active = unit.map_or("not-found", |unit| unit.active_state.name());
    Tree {
        unit: name.to_owned(),
        active,
        needs,
    }
}

impl Tree {
    fn render(&self, prefix: &str, shown: Shown, text: &mut String) {
        for (index, child) in self.needs.iter().enumerate() {
            let last = index + 1 == self.needs.len();
            let (branch, below) = match (shown.unicode, last) {
                (true, true) => ("└─", "  "),
                (true, false) => ("├─", "│ "),
                (false, true) => ("`-", "  "),
                (false, false) => ("|-", "| "),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{prefix}{branch}{} ({})", child.unit, child.active);
            child.render(&format!("{prefix}{below}"), shown, text);
        }
    }
}

impl Document for Tree {
    fn text(&self, _wide: bool, shown: Shown) -> String {
        let mut text = format!("{} ({})\n", self.unit, self.active);
        self.render("", shown, &mut text);
        text
    }

    fn names(&self) -> Vec<String> {
        let below = self.needs.iter().flat_map(Document::names);
        std::iter::once(self.unit.clone()).chain(below).collect()
    }
}
