//! How much each part of a score counts; one scheduler may have several such opinions, by name.

use crate::pod::DEFAULT_SCHEDULER;

/// Which nodes resources prefer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Those with most left: load is spread.
    Spread,
    /// Those with least left: nodes are filled.
    Fill,
}

/// How much each part of a score counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    pub taints: i64,
    pub affinity: i64,
    pub resources: i64,
    pub balance: i64,
    pub images: i64,
    pub spread: i64,
    pub neighbours: i64,
}

/// A scheduler that pods can name in `spec.schedulerName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    pub weights: Weights,
    pub packing: Packing,
    /// Per cent of the nodes that are enough to choose from; none means fewer the more there are.
    pub enough_nodes: Option<u8>,
}

impl Profile {
    /// The weights that Kubernetes has, under another name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            weights: Weights {
                taints: 3,
                affinity: 2,
                resources: 1,
                balance: 1,
                images: 1,
                spread: 2,
                neighbours: 2,
            },
            packing: Packing::Spread,
            enough_nodes: None,
        }
    }

    /// How many good nodes are enough to choose the best from.
    pub(crate) fn enough(&self, nodes: usize) -> usize {
        const FEWEST: usize = 100;
        if nodes < FEWEST {
            return nodes;
        }
        let percent = match self.enough_nodes {
            Some(percent) => usize::from(percent.min(100)),
            None => 50_usize.saturating_sub(nodes / 125).max(5),
        };
        (nodes * percent / 100).max(FEWEST)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::named(DEFAULT_SCHEDULER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_nodes_in_proportion_are_enough_the_more_there_are() {
        let adaptive = Profile::default();
        for (nodes, enough) in [
            (0, 0),
            (50, 50),
            (100, 100),
            (1_000, 420),
            (5_000, 500),
            (15_000, 750),
        ] {
            assert_eq!(adaptive.enough(nodes), enough, "{nodes}");
        }
        let all = Profile {
            enough_nodes: Some(100),
            ..Profile::default()
        };
        assert_eq!(all.enough(5_000), 5_000);
    }
}
