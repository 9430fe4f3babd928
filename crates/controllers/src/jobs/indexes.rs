//! Sets of indexes as a job's status writes them: `0,3-5,9`.

use std::fmt;

/// A set of numbers in ranges, sorted, apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    ranges: Vec<(i32, i32)>,
}

impl Indexes {
    /// Reads a set. What is not a range, or is beyond what is wanted, is left out.
    pub(super) fn parse(text: &str, end: i32) -> Self {
        let mut set = Self::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.trim().parse::<i32>(), last.trim().parse::<i32>())
            else {
                continue;
            };
            if first >= 0 && first <= last && first < end {
                set.ranges.push((first, last.min(end - 1)));
            }
        }
        set.tidy();
        set
    }

    pub(super) fn insert(&mut self, index: i32) {
        if !self.contains(index) {
            self.ranges.push((index, index));
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        self.ranges.sort_unstable();
        let mut tidy: Vec<(i32, i32)> = Vec::with_capacity(self.ranges.len());
        for (first, last) in self.ranges.drain(..) {
            match tidy.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => tidy.push((first, last)),
            }
        }
        self.ranges = tidy;
    }

    pub(super) fn contains(&self, index: i32) -> bool {
        let place = self.ranges.partition_point(|(_, last)| *last < index);
        self.ranges
            .get(place)
            .is_some_and(|(first, _)| *first <= index)
    }

    pub(super) fn len(&self) -> i32 {
        self.ranges
            .iter()
            .map(|(first, last)| last - first + 1)
            .sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many of another set are in this one.
    pub(super) fn shared_with(&self, other: &Self) -> i32 {
        let pairs = self
            .ranges
            .iter()
            .flat_map(|one| other.ranges.iter().map(move |two| (one, two)));
        pairs
            .map(|(one, two)| (one.1.min(two.1) - one.0.max(two.0) + 1).max(0))
            .sum()
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.ranges.iter().enumerate() {
            if place > 0 {
                formatter.write_str(",")?;
            }
            match last - first {
                0 => write!(formatter, "{first}")?,
                // Two neighbours are written apart, as everybody does.
                1 => write!(formatter, "{first},{last}")?,
                _ => write!(formatter, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_and_written_as_everybody_does() {
        for (text, end, wanted, length) in [
            ("", 10, "", 0),
            ("1,3-5,7", 10, "1,3-5,7", 5),
            ("1,2", 10, "1,2", 2),
            ("1-3,4,5", 10, "1-5", 5),
            ("3-9", 5, "3,4", 2),
            ("7", 5, "", 0),
            ("x,2-1,-4,3", 10, "3", 1),
        ] {
            let set = Indexes::parse(text, end);
            assert_eq!(
                (set.to_string().as_str(), set.len()),
                (wanted, length),
                "{text}"
            );
        }
    }

    #[test]
    fn indexes_are_added_once_and_compared() {
        let mut set = Indexes::parse("1,3", 10);
        for index in [2, 2, 8] {
            set.insert(index);
        }
        assert_eq!(set.to_string(), "1-3,8");
        assert!(set.contains(2) && !set.contains(4) && !set.is_empty());
        assert_eq!(set.shared_with(&Indexes::parse("2-9", 10)), 3);
    }
}
