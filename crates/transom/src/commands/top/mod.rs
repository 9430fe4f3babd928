//! `transom top`: what nodes and pods use now. Invariant: what was not measured is said to be unknown, never 0.

mod nodes;
mod pods;

use clap::Subcommand;
use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use transom_api::schema::quantity::Quantity;

use crate::client;
use crate::cluster::Cluster;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Where measurements are.
const ROOT: &str = "/apis/metrics.k8s.io/v1beta1";

/// Show what nodes and pods use
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom top nodes\n  transom top pods -A --sort-by memory\n  transom top pods web --containers"
)]
pub(super) struct Top {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_aliases = ["node", "no"])]
    Nodes(nodes::Nodes),
    #[command(visible_aliases = ["pod", "po"])]
    Pods(pods::Pods),
}

impl Top {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            match self.command {
                Command::Nodes(command) => command.run(cx).await,
                Command::Pods(command) => command.run(cx).await,
            }
        })
    }
}

/// By what rows are sorted, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SortBy {
    /// By processor
    Cpu,
    /// By memory
    Memory,
}

/// What something uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    /// In thousandths of a processor.
    milli_cpu: i64,
    /// In bytes.
    memory: i64,
}

impl Usage {
    /// Reads amounts; what is not there or no amount is left out.
    fn of(amounts: &BTreeMap<String, Value>) -> Option<Self> {
        let amount = |name: &str| Quantity::parse(amounts.get(name)?.as_str()?).ok();
        Some(Self {
            milli_cpu: amount("cpu")?.milli_value(),
            memory: amount("memory")?.value(),
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            milli_cpu: self.milli_cpu.saturating_add(other.milli_cpu),
            memory: self.memory.saturating_add(other.memory),
        }
    }

    fn key(self, by: SortBy) -> i64 {
        match by {
            SortBy::Cpu => self.milli_cpu,
            SortBy::Memory => self.memory,
        }
    }
}

/// Puts the most first; of those that were not measured, and where nothing was asked for, the order stays.
fn sort<R>(rows: &mut [R], by: Option<SortBy>, usage: impl Fn(&R) -> Option<Usage>) {
    if let Some(by) = by {
        rows.sort_by_key(|row| std::cmp::Reverse(usage(row).map(|usage| usage.key(by))));
    }
}

/// The unknown sign of kubectl, where an amount is not known.
fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "<unknown>".to_owned(), |value| value.to_string())
}

fn cpu(usage: Option<Usage>) -> String {
    shown(usage.map(|usage| format!("{}m", usage.milli_cpu)))
}

fn memory(usage: Option<Usage>) -> String {
    shown(usage.map(|usage| format!("{}Mi", usage.memory >> 20)))
}

/// One measurement.
#[derive(Debug, Clone, Default, Deserialize)]
struct Measured {
    #[serde(default)]
    metadata: Metadata,
    /// Of a node.
    #[serde(default)]
    usage: BTreeMap<String, Value>,
    /// Of a pod.
    #[serde(default)]
    containers: Vec<MeasuredContainer>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct MeasuredContainer {
    name: String,
    #[serde(default)]
    usage: BTreeMap<String, Value>,
}

/// Everything that was measured of nodes, or of the pods of a namespace.
async fn measured(
    cluster: &Cluster,
    path: &str,
    labels: Option<&str>,
) -> anyhow::Result<Vec<Measured>> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        items: Vec<Measured>,
    }
    let parameters = ListParams {
        label_selector: labels.map(str::to_owned),
        ..ListParams::default()
    };
    let request = Request::new(format!("{ROOT}/{path}")).list(&parameters);
    match cluster
        .client
        .request::<List>(request.exit(Exit::Usage)?)
        .await
    {
        Ok(list) => Ok(list.items),
        // The path, not an object: nobody serves it, or whoever should does not answer.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 503) => Err(anyhow::anyhow!(
            "this cluster does not measure what is used: {}",
            status.message
        ))
        .hint("transom's server does; others need metrics-server")
        .exit(Exit::NotRunning),
        answer => cluster.answer(answer).map(|list| list.items),
    }
}

/// Nothing of what there is was measured.
fn not_yet(what: &str) -> anyhow::Result<Exit> {
    Err(anyhow::anyhow!("there are no measurements of {what} yet"))
        .hint("agents measure from some seconds after their start on; `transom get nodes` says whether they are Ready")
        .exit(Exit::NotRunning)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(cpu: &str, memory: &str) -> Option<Usage> {
        let amounts = json!({"cpu": cpu, "memory": memory});
        Usage::of(&serde_json::from_value(amounts).unwrap())
    }

    #[test]
    fn amounts_are_shown_as_kubectl_shows_them() {
        let some = usage("1500000000n", "34567890Ki");
        assert_eq!(cpu(some), "1500m");
        assert_eq!(memory(some), "33757Mi");
        assert_eq!(cpu(usage("1u", "0")), "1m");
        assert_eq!(cpu(None), "<unknown>");
        assert_eq!(usage("much", "1"), None);
    }

    #[test]
    fn the_most_come_first_and_what_is_unknown_last() {
        let mut rows = [usage("1", "5"), None, usage("3", "1")];
        sort(&mut rows, None, |row| *row);
        assert_eq!(rows[1], None);
        sort(&mut rows, Some(SortBy::Cpu), |row| *row);
        assert_eq!(rows, [usage("3", "1"), usage("1", "5"), None]);
        sort(&mut rows, Some(SortBy::Memory), |row| *row);
        assert_eq!(rows, [usage("1", "5"), usage("3", "1"), None]);
    }
}
