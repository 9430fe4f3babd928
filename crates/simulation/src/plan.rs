//! What is going to happen, decided before anything does. Pure: the same wishes and seed give the same plan.

use serde::Serialize;
use transom_model::Os;

use crate::chance::Chance;
use crate::share::Share;

/// Pods of one node, as upstream has it.
pub const MOST_PODS: usize = 110;
/// Nodes are in so many zones, in turns.
const ZONES: usize = 3;
/// The builds of Windows that the nodes have, in turns.
const BUILDS: [&str; 2] = ["10.0.20348", "10.0.26100"];

/// How pods are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Make {
    /// By Deployments, which also replace those that go.
    Deployments,
    /// One by one, each by a request of ours.
    Pods,
}

/// How an upgrade goes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Upgrade {
    /// All Deployments get another image.
    Rollout,
    /// One batch of nodes after the other is emptied.
    Drain,
    None,
}

/// What somebody wants to see.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wishes {
    pub nodes: usize,
    pub windows: Share,
    pub pods: usize,
    /// Pods of each Deployment.
    pub replicas: usize,
    pub make: Make,
    /// Pods that are deleted in each second of churn.
    pub churn_rate: u32,
    pub churn_seconds: u32,
    pub lose: Share,
    pub upgrade: Upgrade,
    pub seed: u64,
}

/// Why wishes cannot come true.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Impossible {
    #[error("{pods} pods need {needed} {os} nodes at {MOST_PODS} each, and {nodes} are there")]
    NoRoom {
        os: Os,
        pods: usize,
        needed: usize,
        nodes: usize,
    },
    #[error(
        "a control plane does not empty the nodes of a zone of which most is down: lose at most half"
    )]
    TooManyLost,
    #[error("pods that nobody replaces cannot live through a loss of nodes or an upgrade")]
    NobodyReplaces,
}

/// Everything that is decided by chance or by counting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub nodes: Vec<PlannedNode>,
    pub workloads: Vec<Workload>,
    /// Indexes of the nodes that fall.
    pub lost: Vec<usize>,
}

/// A node that there will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNode {
    pub name: String,
    pub os: Os,
    pub zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_build: Option<String>,
}

/// Pods that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Workload {
    pub name: String,
    pub os: Os,
    pub pods: usize,
}

impl Plan {
    pub fn new(wishes: &Wishes) -> Result<Self, Impossible> {
        let is_quiet = wishes.lose.of(wishes.nodes) == 0 && wishes.upgrade == Upgrade::None;
        if wishes.make == Make::Pods && !is_quiet {
            return Err(Impossible::NobodyReplaces);
        }
        if wishes.lose.of(wishes.nodes) * 2 > wishes.nodes {
            return Err(Impossible::TooManyLost);
        }
        let mut chance = Chance::new(wishes.seed);
        let windows = chance.choose(wishes.windows.of(wishes.nodes), wishes.nodes);
        let nodes = plan_nodes(wishes.nodes, &windows);
        let lost = plan_loss(&mut chance, wishes.lose.of(wishes.nodes), wishes.nodes);
        let windows_pods = wishes.pods * windows.len() / wishes.nodes.max(1);
        let by_os = [
            (Os::Linux, wishes.pods - windows_pods),
            (Os::Windows, windows_pods),
        ];
        for (os, pods) in by_os {
            let is_there =
                |index: &usize| nodes[*index].os == os && lost.binary_search(index).is_err();
            let left = (0..nodes.len()).filter(is_there).count();
            let needed = pods.div_ceil(MOST_PODS);
            if needed > left {
                return Err(Impossible::NoRoom {
                    os,
                    pods,
                    needed,
                    nodes: left,
                });
            }
        }
        let workloads = by_os.into_iter();
        let workloads = workloads.flat_map(|(os, pods)| plan_workloads(os, pods, wishes.replicas));
        Ok(Self {
            workloads: workloads.collect(),
            nodes,
            lost,
        })
    }
}

fn plan_nodes(count: usize, windows: &[usize]) -> Vec<PlannedNode> {
    let one = |index: usize| {
        let place = windows.binary_search(&index).ok();
        PlannedNode {
            name: format!("node-{index:05}"),
            os: if place.is_some() {
                Os::Windows
            } else {
                Os::Linux
            },
            zone: format!("zone-{}", index % ZONES + 1),
            windows_build: place.map(|place| BUILDS[place % BUILDS.len()].to_owned()),
        }
    };
    (0..count).map(one).collect()
}

/// Nodes that fall, as many of each zone, so that no zone is down as a whole.
fn plan_loss(chance: &mut Chance, count: usize, nodes: usize) -> Vec<usize> {
    let mut lost: Vec<usize> = (0..ZONES.min(nodes))
        .flat_map(|zone| {
            let size = (nodes - zone).div_ceil(ZONES);
            let share = count.saturating_sub(zone).div_ceil(ZONES);
            let places = chance.choose(share, size);
            places.into_iter().map(move |place| place * ZONES + zone)
        })
        .collect();
    lost.sort_unstable();
    lost
}

/// Workloads of `replicas` pods each, the last one of what is left.
fn plan_workloads(os: Os, pods: usize, replicas: usize) -> Vec<Workload> {
    let replicas = replicas.max(1);
    let one = |number: usize| Workload {
        name: format!("{os}-{number:04}"),
        os,
        pods: replicas.min(pods - number * replicas),
    };
    (0..pods.div_ceil(replicas)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes() -> Wishes {
        Wishes {
            nodes: 20,
            windows: Share::Percent(30),
            pods: 205,
            replicas: 50,
            make: Make::Deployments,
            churn_rate: 1,
            churn_seconds: 1,
            lose: Share::Percent(10),
            upgrade: Upgrade::Rollout,
            seed: 1,
        }
    }

    #[test]
    fn nodes_and_pods_are_shared_out_as_wished() {
        let plan = Plan::new(&wishes()).unwrap();
        let windows = plan.nodes.iter().filter(|node| node.os == Os::Windows);
        assert_eq!(windows.clone().count(), 6);
        assert!(windows.clone().all(|node| node.windows_build.is_some()));
        assert_eq!(plan.lost.len(), 2);
        let pods = |os| {
            let of_os = plan.workloads.iter().filter(|one| one.os == os);
            of_os.map(|one| one.pods).collect::<Vec<_>>()
        };
        assert_eq!(pods(Os::Linux), [50, 50, 44]);
        assert_eq!(pods(Os::Windows), [50, 11]);
    }

    #[test]
    fn no_zone_loses_more_than_another() {
        for (count, nodes) in [(0, 5), (1, 1), (2, 20), (7, 20), (10, 20), (250, 5000)] {
            let lost = plan_loss(&mut Chance::new(9), count, nodes);
            assert_eq!(lost.len(), count, "{count} of {nodes}");
            assert!(lost.iter().all(|index| *index < nodes));
            let of_zone = |zone| lost.iter().filter(|index| *index % ZONES == zone).count();
            assert!(of_zone(0) <= of_zone(2) + 1, "{lost:?}");
        }
    }

    #[test]
    fn chance_is_repeated_by_its_seed() {
        let plan = |seed| Plan::new(&Wishes { seed, ..wishes() }).unwrap();
        assert_eq!(plan(3), plan(3));
        assert_ne!(plan(3), plan(4));
    }

    #[test]
    fn more_than_fits_is_said_before_anything_begins() {
        let crowded = Wishes {
            pods: 2_001,
            windows: Share::Count(0),
            ..wishes()
        };
        let refused = Plan::new(&crowded).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "2001 pods need 19 linux nodes at 110 each, and 18 are there"
        );
        let gone = Wishes {
            lose: Share::Percent(60),
            ..wishes()
        };
        assert_eq!(Plan::new(&gone), Err(Impossible::TooManyLost));
        let alone = Wishes {
            make: Make::Pods,
            ..wishes()
        };
        assert_eq!(Plan::new(&alone), Err(Impossible::NobodyReplaces));
    }
}
