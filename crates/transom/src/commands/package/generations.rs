//! `transom package generations`, `diff`, `rollback`, `pin` and `unpin`: the node's history.

use serde::Serialize;
use transom_package::node::{Changes, GenerationInfo, Node};

use super::activate::{Change, conclude};
use super::node::{NodeOptions, SwitchOptions, advised};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown, age};

/// List the generations of this node
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom package generations\n  transom package generations -o json"
)]
pub(super) struct Generations {
    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Show what differs between two generations
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom package diff            From the previous generation to the active one\n  transom package diff 3          From generation 3 to the active one\n  transom package diff 3 5 -o wide"
)]
pub(super) struct Diff {
    /// The older one [default: the one before]
    before: Option<u64>,

    /// The newer one [default: the active one]
    after: Option<u64>,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Make an earlier generation active again
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom package rollback        The one before the active one\n  transom package rollback 3      A certain one\n  transom package rollback --dry-run"
)]
pub(super) struct Rollback {
    /// Its number [default: the last one that proved healthy]
    number: Option<u64>,

    #[command(flatten)]
    switch: SwitchOptions,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Keep a generation whatever else is collected
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom package pin 3")]
pub(super) struct Pin {
    /// Its number [default: the active one]
    number: Option<u64>,

    /// Say what would be pinned, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Let a generation be collected again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom package unpin 3")]
pub(super) struct Unpin {
    /// Its number
    number: u64,

    /// Say whether it could be, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Generations {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let rows: Vec<GenerationRow> = node.generations()?.into_iter().map(GenerationRow).collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

impl Diff {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let pointer = advised(node.pointer())?;
        let active = pointer.as_ref().and_then(|pointer| pointer.active);
        let previous = pointer.as_ref().and_then(|pointer| pointer.previous);
        let Some(after) = self.after.or(active) else {
            return advised(Err(transom_package::node::NodeError::NothingActive));
        };
        let Some(before) = self.before.or(previous) else {
            return advised(Err(transom_package::node::NodeError::NoPrevious));
        };
        let changes = advised(node.diff(before, after))?;
        cx.out.document(&Change(&changes))?;
        Ok(Exit::Success)
    }
}

impl Rollback {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        if self.switch.dry_run {
            cx.out.document(&Change(&self.changes(&node)?))?;
            return Ok(Exit::Success);
        }
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        let report = self
            .node
            .switch(cx, &self.switch, services.as_ref(), |switching| {
                session.rollback(self.number, switching)
            })?;
        conclude(cx, &self.node, &report)
    }

    fn changes(&self, node: &Node) -> anyhow::Result<Changes> {
        use transom_package::node::NodeError;
        let pointer = advised(
            node.pointer()
                .and_then(|pointer| pointer.ok_or(NodeError::NothingActive)),
        )?;
        let to = advised(
            self.number
                .or(pointer.previous)
                .ok_or(NodeError::NoPrevious),
        )?;
        let active = advised(pointer.active.ok_or(NodeError::NothingActive))?;
        advised(node.diff(active, to))
    }
}

impl Pin {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let active = node.pointer()?.and_then(|pointer| pointer.active);
        let number = advised(
            self.number
                .or(active)
                .ok_or(transom_package::node::NodeError::NothingActive),
        )?;
        if self.dry_run {
            advised(node.generation(number))?;
            cx.out.write(&format!("generation {number}\n"))?;
            return Ok(Exit::Success);
        }
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        advised(session.pin(number))?;
        self.node
            .remark(cx, &format!("generation {number} is pinned"));
        Ok(Exit::Success)
    }
}

impl Unpin {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        if self.dry_run {
            advised(node.generation(self.number))?;
            cx.out.write(&format!("generation {}\n", self.number))?;
            return Ok(Exit::Success);
        }
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        advised(session.unpin(self.number))?;
        self.node
            .remark(cx, &format!("generation {} is not pinned", self.number));
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct GenerationRow(GenerationInfo);

impl Row for GenerationRow {
    const PLURAL: &'static str = "generations";

    fn columns() -> &'static [Column] {
        const COLUMNS: &[Column] = &[
            Column::new("GENERATION"),
            Column::new("STATE"),
            Column::new("PACKAGES"),
            Column::new("AGE"),
            Column::wide("PARENT"),
            Column::wide("REASON"),
        ];
        COLUMNS
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        let info = &self.0;
        let states: Vec<&str> = [
            ("active", info.is_active),
            ("trial", info.is_on_trial),
            ("previous", info.is_previous),
            ("failed", info.failure.is_some()),
            ("pinned", info.is_pinned),
        ]
        .into_iter()
        .filter(|(_, holds)| *holds)
        .map(|(name, _)| name)
        .collect();
        let reason = info.failure.as_ref().map(|it| it.reasons.join("; "));
        vec![
            Cell::new(info.number.to_string()),
            Cell::optional((!states.is_empty()).then(|| states.join(","))),
            Cell::new(info.packages.len().to_string()),
            Cell::new(age(info.created, shown.now)),
            Cell::optional(info.parent.map(|number| number.to_string())),
            Cell::optional(reason),
        ]
    }

    fn name(&self) -> String {
        self.0.number.to_string()
    }
}
