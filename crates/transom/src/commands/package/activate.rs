//! `transom package activate` and `swap`: another set of packages becomes active, in one instant.

use transom_model::package::PackageId;
use transom_package::fault::sentence;
use transom_package::node::{
    ActivationPlan, Changes, Difference, Node, NodeError, Outcome, SwitchReport,
};

use super::node::{NodeOptions, SwitchOptions, advised};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

const ACTIVATE_EXAMPLES: &str = "\
Examples:
  transom package activate etcd--1f0c… web--77ab…   These become the whole active set
  transom package activate --dry-run etcd--1f0c…    What would change

The new generation is made beside the active one and becomes active in one instant. Then services are
restarted and checks run; if they fail, the generation before it returns by itself.";

const SWAP_EXAMPLES: &str = "\
Examples:
  transom package swap etcd--9c2e…              Replace the active etcd, keep the rest
  transom package swap --dry-run etcd--9c2e…    What would change";

/// Make a set of packages the active set of this node
#[derive(Debug, clap::Args)]
#[command(after_help = ACTIVATE_EXAMPLES)]
pub(super) struct Activate {
    /// All packages that are to be active, by id
    #[arg(value_name = "ID", required = true)]
    ids: Vec<PackageId>,

    #[command(flatten)]
    switch: SwitchOptions,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Replace one active package by another of the same name
#[derive(Debug, clap::Args)]
#[command(after_help = SWAP_EXAMPLES)]
pub(super) struct Swap {
    /// The package that is to be active instead, by id
    #[arg(value_name = "ID")]
    id: PackageId,

    #[command(flatten)]
    switch: SwitchOptions,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Activate {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        run(cx, &self.node, &self.switch, |node| {
            node.plan_activation(&self.ids)
        })
    }
}

impl Swap {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        run(cx, &self.node, &self.switch, |node| {
            node.plan_swap(&self.id)
        })
    }
}

/// Makes active what `plan` plans.
pub(super) fn run(
    cx: &Context,
    options: &NodeOptions,
    switch: &SwitchOptions,
    plan: impl Fn(&Node) -> Result<ActivationPlan, NodeError>,
) -> anyhow::Result<Exit> {
    let node = options.open(cx)?;
    let planned = refused(plan(&node))?;
    if switch.dry_run {
        cx.out.document(&Change(&planned.changes))?;
        return Ok(Exit::Success);
    }
    let services = options.services(cx);
    let session = options.begin(cx, &node, services.as_ref())?;
    // Again, now that nobody else changes the node.
    let planned = refused(plan(&node))?;
    let report = options.switch(cx, switch, services.as_ref(), |switching| {
        session.execute(&planned, switching)
    })?;
    conclude(cx, options, &report)
}

/// Says how a switch ended.
pub(super) fn conclude(
    cx: &Context,
    options: &NodeOptions,
    report: &SwitchReport,
) -> anyhow::Result<Exit> {
    use crate::output::Format;
    if matches!(cx.out.format(), Format::Json | Format::Yaml) {
        cx.out.document(&Ended(report))?;
    }
    for remark in &report.remarks {
        options.remark(cx, remark);
    }
    match &report.outcome {
        Outcome::Activated { generation, before } => {
            let before = match before {
                Some(before) => format!(" (before: {before})"),
                None => String::new(),
            };
            options.remark(cx, &format!("generation {generation} is active{before}"));
            Ok(Exit::Success)
        }
        Outcome::Unchanged { generation } => {
            options.remark(cx, &format!("generation {generation} is active already"));
            Ok(Exit::Success)
        }
        Outcome::RolledBack { failed, reasons } => {
            let back = match report.active {
                Some(active) => format!("generation {active} is active again"),
                None => "nothing is active, as before".to_owned(),
            };
            anyhow::bail!(
                "generation {failed} did not prove healthy, and {back}: {}",
                reasons.join("; ")
            )
        }
    }
}

/// Tells every reason why packages cannot become active.
pub(super) fn refused<T>(outcome: Result<T, NodeError>) -> anyhow::Result<T> {
    match outcome {
        Err(NodeError::Faults(faults)) => {
            let reasons: Vec<String> = faults.iter().map(|fault| sentence(fault)).collect();
            anyhow::bail!(
                "the packages cannot become active:\n- {}",
                reasons.join("\n- ")
            )
        }
        outcome => advised(outcome),
    }
}

#[derive(serde::Serialize)]
#[serde(transparent)]
struct Ended<'a>(&'a SwitchReport);

impl Document for Ended<'_> {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        String::new()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What changes between two generations.
#[derive(serde::Serialize)]
#[serde(transparent)]
pub(super) struct Change<'a>(pub(super) &'a Changes);

impl Document for Change<'_> {
    fn text(&self, wide: bool, _shown: Shown) -> String {
        let changes = self.0;
        let mut lines = Vec::new();
        for package in &changes.packages {
            lines.push(match (&package.before, &package.after) {
                (None, Some(after)) => format!("+ package {after}"),
                (Some(before), None) => format!("- package {before}"),
                (before, after) => format!(
                    "~ package {} {} -> {}",
                    package.name,
                    before.as_ref().map_or("", PackageId::version_str),
                    after.as_ref().map_or("", PackageId::version_str)
                ),
            });
        }
        for (what, difference) in [
            ("service", &changes.units),
            ("variable", &changes.environment),
            ("user", &changes.users),
            ("state directory", &changes.state_directories),
            ("role", &changes.roles),
        ] {
            lines.extend(listed(what, difference));
        }
        if wide {
            lines.extend(listed("file", &changes.files));
        } else {
            let files = &changes.files;
            let counts = [
                ("added", files.added.len()),
                ("removed", files.removed.len()),
                ("changed", files.changed.len()),
            ];
            for (how, count) in counts {
                if count > 0 {
                    lines.push(format!("  files {how}: {count}"));
                }
            }
        }
        if lines.is_empty() {
            return "nothing changes\n".to_owned();
        }
        lines.join("\n") + "\n"
    }

    fn names(&self) -> Vec<String> {
        self.0
            .packages
            .iter()
            .map(|package| package.name.clone())
            .collect()
    }
}

fn listed(what: &str, difference: &Difference) -> Vec<String> {
    let signs = [
        ('+', &difference.added),
        ('-', &difference.removed),
        ('~', &difference.changed),
    ];
    signs
        .into_iter()
        .flat_map(|(sign, names)| {
            names
                .iter()
                .map(move |name| format!("{sign} {what} {name}"))
        })
        .collect()
}
