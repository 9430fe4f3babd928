//! How fast nodes may be emptied, by zone: the more of a zone fails, the likelier the fault is not the nodes'.
//!
//! Counts are kept as nodes change; no decision looks at all nodes.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use super::health::Eviction;

/// So much slower goes a large zone of which most is down.
const SLOWER: u32 = 10;
const LARGE: usize = 50;
/// When it is asked again in a small zone of which most is down.
const LATER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Zones {
    /// Between one node and the next of a zone.
    pace: Duration,
    nodes: HashMap<String, (String, bool)>,
    by_name: BTreeMap<String, Zone>,
}

#[derive(Debug, Default)]
struct Zone {
    well: usize,
    ill: usize,
    next: Option<Instant>,
}

impl Zone {
    fn is_down(&self) -> bool {
        self.well == 0
    }

    fn is_mostly_down(&self) -> bool {
        self.ill > 2 && self.ill * 100 >= (self.well + self.ill) * 55
    }
}

impl Zones {
    pub(super) fn new(pace: Duration) -> Self {
        Self {
            pace,
            nodes: HashMap::new(),
            by_name: BTreeMap::new(),
        }
    }

    /// Takes note of a node. Tells whether it changed if all zones are down.
    pub(super) fn set(&mut self, node: &str, zone: &str, is_well: bool) -> bool {
        let before = self.are_all_down();
        self.leave(node);
        let counts = self.by_name.entry(zone.to_owned()).or_default();
        *counts.of(is_well) += 1;
        self.nodes
            .insert(node.to_owned(), (zone.to_owned(), is_well));
        before != self.are_all_down()
    }

    pub(super) fn remove(&mut self, node: &str) -> bool {
        let before = self.are_all_down();
        self.leave(node);
        before != self.are_all_down()
    }

    fn leave(&mut self, node: &str) {
        let Some((zone, is_well)) = self.nodes.remove(node) else {
            return;
        };
        if let Some(counts) = self.by_name.get_mut(&zone) {
            *counts.of(is_well) -= 1;
        }
    }

    pub(super) fn are_all_down(&self) -> bool {
        let mut used = self
            .by_name
            .values()
            .filter(|zone| zone.well + zone.ill > 0);
        !self.nodes.is_empty() && used.all(Zone::is_down)
    }

    /// Whether a node of a zone may be emptied now; if so, it has used the turn. Else when to ask again.
    pub(super) fn turn(&mut self, zone: &str, now: Instant) -> (Eviction, Option<Duration>) {
        if self.are_all_down() {
            return (Eviction::Lifted, None);
        }
        let zone = self.by_name.entry(zone.to_owned()).or_default();
        let pace = if zone.is_down() || !zone.is_mostly_down() {
            self.pace
        } else if zone.well + zone.ill > LARGE {
            self.pace * SLOWER
        } else {
            return (Eviction::Held, Some(LATER));
        };
        match zone.next {
            Some(next) if next > now => (Eviction::Held, Some(next - now)),
            _ => {
                zone.next = Some(now + pace);
                (Eviction::Allowed, None)
            }
        }
    }
}

impl Zone {
    fn of(&mut self, is_well: bool) -> &mut usize {
        if is_well {
            &mut self.well
        } else {
            &mut self.ill
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Duration = Duration::from_secs(10);

    fn zones(zone: &str, well: usize, ill: usize, zones: &mut Zones) {
        for number in 0..well + ill {
            zones.set(&format!("{zone}-{number}"), zone, number < well);
        }
    }

    #[test]
    fn one_node_after_the_other() {
        let mut all = Zones::new(PACE);
        zones("a", 9, 2, &mut all);
        let now = Instant::now();
        assert_eq!(all.turn("a", now), (Eviction::Allowed, None));
        assert_eq!(all.turn("a", now), (Eviction::Held, Some(PACE)));
        assert_eq!(all.turn("a", now + PACE), (Eviction::Allowed, None));
    }

    #[test]
    fn most_of_a_zone_down_slows_a_large_one_and_stops_a_small_one() {
        let now = Instant::now();
        let mut all = Zones::new(PACE);
        zones("large", 20, 40, &mut all);
        zones("small", 2, 4, &mut all);
        assert_eq!(all.turn("large", now), (Eviction::Allowed, None));
        assert_eq!(
            all.turn("large", now),
            (Eviction::Held, Some(PACE * SLOWER))
        );
        assert_eq!(all.turn("small", now), (Eviction::Held, Some(LATER)));
    }

    #[test]
    fn a_zone_that_is_down_is_emptied_unless_all_are() {
        let now = Instant::now();
        let mut all = Zones::new(PACE);
        zones("a", 0, 5, &mut all);
        assert_eq!(all.turn("a", now), (Eviction::Lifted, None));
        assert!(all.set("b-0", "b", true), "a well node changes everything");
        assert_eq!(all.turn("a", now), (Eviction::Allowed, None));
        assert!(!all.set("b-1", "b", false));
        assert!(all.set("b-0", "b", false));
        assert!(all.are_all_down());
        assert!(!all.remove("b-1"));
    }
}
