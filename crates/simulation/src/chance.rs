//! Chance that can be repeated. Invariant: the same seed gives the same numbers on every machine.

/// A small generator (splitmix64): good enough to choose among nodes, and of no use for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        // The result is below a `usize`.
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// `count` different numbers below `end`, sorted.
    pub(crate) fn choose(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..end).collect();
        let count = count.min(end);
        for place in 0..count {
            let other = place + self.below(end - place);
            all.swap(place, other);
        }
        all.truncate(count);
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_chooses_the_same_and_another_seed_something_else() {
        let choose = |seed| Chance::new(seed).choose(10, 1000);
        assert_eq!(choose(7), choose(7));
        assert_ne!(choose(7), choose(8));
    }

    #[test]
    fn what_is_chosen_is_chosen_once() {
        let mut all = Chance::new(1).choose(50, 50);
        all.dedup();
        assert_eq!(all.len(), 50);
        assert_eq!(Chance::new(1).choose(9, 3), [0, 1, 2]);
        assert!(Chance::new(1).choose(3, 0).is_empty());
    }
}
