//! `transom simulate`: a cluster of hollow nodes on the real control plane, in this process, and figures of it.
//! Invariant: whatever happens, nothing of it is left but what was asked for.

mod progress;
mod run;
mod show;

use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::SignedDuration;
use transom_simulation::{Impossible, Make, Options, Plan, Share, Upgrade, Wishes};

use crate::context::Context;
use crate::failure::{Advice as _, Exit};

const EXAMPLES: &str = "\
Examples:
  transom simulate                                  A small one, over in seconds
  transom simulate --nodes 5000 --windows 30% --pods 50000
  transom simulate --nodes 1000 --pods 10000 --lose 10% --plot simulation.svg
  transom simulate --upgrade drain -o json          Nodes are emptied, figures for programs
  transom simulate --make pods --churn 0            Nothing but API and scheduler
  transom simulate --seed 7 --dry-run -o json       What chance would decide

Guide: docs/guides/simulate.md";

/// Simulate a cluster of many nodes: how fast it is, and how large its control plane gets
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Simulate {
    /// How many hollow nodes there are
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    nodes: u32,

    /// How many of them are Windows nodes; as large a part of the pods is for Windows
    #[arg(long, value_name = "SHARE", default_value = "30%")]
    windows: Share,

    /// How many pods there are
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pods: u32,

    /// How pods are made
    #[arg(long, value_enum, value_name = "HOW", default_value_t = MakeArgument::Deployments)]
    make: MakeArgument,

    /// How many pods each Deployment has
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replicas: u32,

    /// How many pods are deleted in each second of churn; 0 leaves churn out
    #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    churn: u32,

    /// How long churn lasts
    #[arg(long, value_name = "TIME", default_value = "3s")]
    churn_time: SignedDuration,

    /// How many nodes fall silent and come back later; 0 leaves that out [default: 5%, or 0 with --make pods]
    #[arg(long, value_name = "SHARE")]
    lose: Option<Share>,

    /// How long a node may be silent until it is given up. In a real cluster that is 50s [default: 4s, and more
    /// from 500 nodes on, so that there are no more than 500 heartbeats a second]
    #[arg(long, value_name = "TIME")]
    grace: Option<SignedDuration>,

    /// How long pods stay on a node that was given up. In a real cluster that is 300s
    #[arg(long, value_name = "TIME", default_value = "1s")]
    tolerate: SignedDuration,

    /// What is upgraded at the end [default: rollout, or none with --make pods]
    #[arg(long, value_enum, value_name = "WHAT")]
    upgrade: Option<UpgradeArgument>,

    /// How long a container takes to start
    #[arg(long, value_name = "TIME", default_value = "0s")]
    start_time: SignedDuration,

    /// How long a container takes to end
    #[arg(long, value_name = "TIME", default_value = "0s")]
    end_time: SignedDuration,

    /// Where the API server keeps objects while it lasts
    #[arg(long, value_enum, value_name = "STORE", default_value_t = StoreArgument::Local)]
    store: StoreArgument,

    /// The folder of the store, which must be empty and stays [default: a temporary one, which is removed]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<Utf8PathBuf>,

    /// Where to write a plot (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<Utf8PathBuf>,

    /// Decides which nodes run Windows, which fall and which pods go; the same one decides the same
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// How long one phase may take
    #[arg(long, value_name = "TIME", default_value = "10m")]
    timeout: SignedDuration,

    /// Print the plan, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MakeArgument {
    /// By Deployments, which replace those that go
    Deployments,
    /// One by one; nobody replaces them
    Pods,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UpgradeArgument {
    /// Every Deployment gets another image
    Rollout,
    /// Every node is emptied, a tenth of them at a time
    Drain,
    /// Nothing
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StoreArgument {
    /// On disk, every write durable before it is answered
    Local,
    /// In memory
    Memory,
}

impl Simulate {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let wishes = self.wishes();
        let plan = match Plan::new(&wishes) {
            Ok(plan) => plan,
            Err(impossible) => {
                let hint = hint(&impossible);
                return Err(anyhow::Error::from(impossible))
                    .hint(hint)
                    .exit(Exit::Usage);
            }
        };
        if self.dry_run {
            cx.out.document(&show::Planned(&plan))?;
            return Ok(Exit::Success);
        }
        let options = Options {
            grace: self.grace(),
            tolerate: duration(self.tolerate),
            start: duration(self.start_time),
            end: duration(self.end_time),
            limit: duration(self.timeout),
            wishes,
        };
        let place = run::Place {
            folder: self.data_dir,
            is_in_memory: self.store == StoreArgument::Memory,
            plot: self.plot,
        };
        run::run(cx, options, plan, place)
    }

    fn wishes(&self) -> Wishes {
        let replaced = self.make == MakeArgument::Deployments;
        let usual_loss = Share::Percent(if replaced { 5 } else { 0 });
        let upgrade = match (self.upgrade, replaced) {
            (Some(UpgradeArgument::Rollout), _) | (None, true) => Upgrade::Rollout,
            (Some(UpgradeArgument::Drain), _) => Upgrade::Drain,
            (Some(UpgradeArgument::None), _) | (None, false) => Upgrade::None,
        };
        let seconds = self.churn_time.as_secs();
        Wishes {
            nodes: count(self.nodes),
            windows: self.windows,
            pods: count(self.pods),
            replicas: count(self.replicas),
            make: if replaced {
                Make::Deployments
            } else {
                Make::Pods
            },
            churn_rate: self.churn,
            churn_seconds: u32::try_from(seconds).unwrap_or_default(),
            lose: self.lose.unwrap_or(usual_loss),
            upgrade,
            seed: self.seed,
        }
    }

    /// Four times as long as between two heartbeats.
    fn grace(&self) -> Duration {
        let usual = || Duration::from_secs(4).max(Duration::from_millis(8) * self.nodes);
        self.grace.map_or_else(usual, duration)
    }
}

fn hint(impossible: &Impossible) -> &'static str {
    match impossible {
        Impossible::NoRoom { .. } => "take more --nodes, fewer --pods, or lose fewer with --lose",
        Impossible::TooManyLost => "choose a smaller --lose",
        Impossible::NobodyReplaces => "leave --lose and --upgrade out, or --make pods",
    }
}

/// Times before zero are none.
fn duration(time: SignedDuration) -> Duration {
    Duration::try_from(time).unwrap_or_default()
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
