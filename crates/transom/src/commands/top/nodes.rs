//! `transom top nodes`: what each machine uses of what it has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;

use super::{SortBy, Usage, cpu, measured, memory, not_yet, shown, sort};
use crate::client;
use crate::cluster::Chosen;
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

/// Show what nodes use
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom top nodes\n  transom top nodes -l kubernetes.io/os=windows --sort-by cpu"
)]
pub(super) struct Nodes {
    /// One node; without it all
    #[arg(value_name = "NAME", conflicts_with = "selector")]
    name: Option<String>,

    /// The nodes with these labels, such as `kubernetes.io/os=windows`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,

    /// The most first
    #[arg(long, value_name = "WHAT")]
    sort_by: Option<SortBy>,

    #[command(flatten)]
    cluster: Chosen,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeRow {
    name: String,
    milli_cpu: Option<i64>,
    cpu_percent: Option<i64>,
    memory: Option<i64>,
    memory_percent: Option<i64>,
    #[serde(skip)]
    usage: Option<Usage>,
}

impl Nodes {
    pub(super) async fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let cluster = self.cluster.open(cx).await?;
        let api: Api<Node> = Api::all(cluster.client.clone());
        let mut nodes = Vec::new();
        if let Some(name) = &self.name {
            nodes.push(cluster.answer(api.get(name).await)?);
        } else {
            let labels = self.selector.as_deref().unwrap_or_default();
            let parameters = ListParams::default().labels(labels);
            client::each(&cluster, &api, parameters, |node| nodes.push(node)).await?;
        }
        let measured = measured(&cluster, "nodes", self.selector.as_deref()).await?;
        let measured: BTreeMap<String, Option<Usage>> = measured
            .into_iter()
            .map(|one| (one.metadata.name, Usage::of(&one.usage)))
            .collect();
        let mut rows: Vec<NodeRow> = nodes
            .iter()
            .map(|node| {
                let usage = measured.get(&node.name_any()).copied().flatten();
                NodeRow::of(node, usage)
            })
            .collect();
        if !rows.is_empty() && rows.iter().all(|row| row.usage.is_none()) {
            return not_yet("nodes");
        }
        sort(&mut rows, self.sort_by, |row| row.usage);
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

impl NodeRow {
    fn of(node: &Node, usage: Option<Usage>) -> Self {
        let room = node
            .status
            .as_ref()
            .and_then(|status| status.allocatable.as_ref());
        let room = room.and_then(|room| {
            let amounts = room.iter();
            let amounts =
                amounts.map(|(name, amount)| (name.clone(), Value::from(amount.0.clone())));
            Usage::of(&amounts.collect())
        });
        let percent = |used: fn(Usage) -> i64| {
            let (usage, room) = (used(usage?), used(room?));
            usage.checked_mul(100)?.checked_div(room)
        };
        Self {
            name: node.name_any(),
            milli_cpu: usage.map(|usage| usage.milli_cpu),
            cpu_percent: percent(|usage| usage.milli_cpu),
            memory: usage.map(|usage| usage.memory),
            memory_percent: percent(|usage| usage.memory),
            usage,
        }
    }
}

impl Row for NodeRow {
    const PLURAL: &'static str = "nodes";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("NAME"),
                Column::new("CPU(cores)"),
                Column::new("CPU(%)"),
                Column::new("MEMORY(bytes)"),
                Column::new("MEMORY(%)"),
            ]
        }
    }

    fn cells(&self, _: Shown) -> Vec<Cell> {
        let percent = |value: Option<i64>| shown(value.map(|value| format!("{value}%")));
        vec![
            Cell::new(&self.name),
            Cell::new(cpu(self.usage)),
            Cell::new(percent(self.cpu_percent)),
            Cell::new(memory(self.usage)),
            Cell::new(percent(self.memory_percent)),
        ]
    }

    fn name(&self) -> String {
        format!("node/{}", self.name)
    }
}
