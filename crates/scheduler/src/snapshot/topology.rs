//! Which nodes are in the same place, for each label that somebody calls a place.
//!
//! Places are numbers, so that counting by place is counting into an array. Keys that are not remembered are
//! worked out when asked for: what is remembered changes how fast an answer is, never what it is.

use std::{borrow::Cow, collections::HashMap};

use crate::text::Text;

/// How many labels are remembered. Few are in use in any cluster, but anybody may name one.
const MOST_KEYS: usize = 64;
const NOWHERE: u32 = u32::MAX;

/// The places that one label makes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    domain_of: Vec<u32>,
    ids: HashMap<Text, u32>,
    /// How many nodes are in each place; a place without nodes may be given away.
    sizes: Vec<u32>,
    free: Vec<u32>,
}

impl Topology {
    pub(crate) fn domain(&self, node: usize) -> Option<usize> {
        let domain = self.domain_of.get(node).copied()?;
        (domain != NOWHERE).then_some(domain as usize)
    }

    /// The place that has this name, if any node is there.
    pub(crate) fn named(&self, value: &Text) -> Option<usize> {
        self.ids.get(value).map(|id| *id as usize)
    }

    /// How long an array with one entry for each place must be.
    pub(crate) fn width(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn put(&mut self, node: usize, value: Option<&Text>) {
        if self.domain_of.len() <= node {
            self.domain_of.resize(node + 1, NOWHERE);
        }
        let old = self.domain_of[node];
        let new = value.map_or(NOWHERE, |value| self.id(value));
        if new != NOWHERE {
            self.sizes[new as usize] += 1;
        }
        self.domain_of[node] = new;
        if old != NOWHERE {
            self.leave(old);
        }
    }

    fn id(&mut self, value: &Text) -> u32 {
        if let Some(id) = self.ids.get(value) {
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.sizes.push(0);
            u32::try_from(self.sizes.len() - 1).unwrap_or(NOWHERE - 1)
        });
        self.ids.insert(value.clone(), id);
        id
    }

    fn leave(&mut self, domain: u32) {
        let size = &mut self.sizes[domain as usize];
        *size -= 1;
        if *size == 0 {
            self.ids.retain(|_, id| *id != domain);
            self.free.push(domain);
        }
    }
}

/// All labels that are places.
#[derive(Debug, Default)]
pub(crate) struct Topologies {
    known: HashMap<Text, Topology>,
}

impl Topologies {
    /// Remembers a label, unless there are too many already.
    pub(crate) fn remember<'a>(
        &mut self,
        key: &Text,
        nodes: impl Iterator<Item = (usize, Option<&'a Text>)>,
    ) {
        if self.known.contains_key(key) || self.known.len() >= MOST_KEYS {
            return;
        }
        self.known.insert(key.clone(), built(nodes));
    }

    pub(crate) fn knows(&self, key: &Text) -> bool {
        self.known.contains_key(key) || self.known.len() >= MOST_KEYS
    }

    pub(crate) fn remembered(&self, key: &Text) -> Option<&Topology> {
        self.known.get(key)
    }

    pub(crate) fn get<'a, 'b>(
        &'a self,
        key: &Text,
        nodes: impl Iterator<Item = (usize, Option<&'b Text>)>,
    ) -> Cow<'a, Topology> {
        match self.known.get(key) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(built(nodes)),
        }
    }

    /// Moves a node to where its labels say.
    pub(crate) fn put<'a>(&mut self, node: usize, value: impl Fn(&Text) -> Option<&'a Text>) {
        for (key, topology) in &mut self.known {
            topology.put(node, value(key));
        }
    }
}

fn built<'a>(nodes: impl Iterator<Item = (usize, Option<&'a Text>)>) -> Topology {
    let mut topology = Topology::default();
    for (node, value) in nodes {
        topology.put(node, value);
    }
    topology
}
