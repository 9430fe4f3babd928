//! Counts answers until there are enough of a kind in a row.

use k8s_openapi::api::core::v1::Probe;

use super::Purpose;

#[derive(Debug)]
pub(super) struct Tally {
    good_needed: u32,
    bad_needed: u32,
    last: Option<bool>,
    run: u32,
}

impl Tally {
    pub(super) fn new(probe: &Probe, purpose: Purpose) -> Self {
        let number = |value: Option<i32>, usual: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| *value > 0)
                .unwrap_or(usual)
        };
        Self {
            // Only readiness can come back and has to earn it.
            good_needed: if purpose == Purpose::Readiness {
                number(probe.success_threshold, 1)
            } else {
                1
            },
            bad_needed: number(probe.failure_threshold, 3),
            last: None,
            run: 0,
        }
    }

    /// Takes an answer; tells what holds from now on if there were enough of its kind.
    pub(super) fn add(&mut self, good: bool) -> Option<bool> {
        if self.last == Some(good) {
            self.run = self.run.saturating_add(1);
        } else {
            self.last = Some(good);
            self.run = 1;
        }
        let needed = if good {
            self.good_needed
        } else {
            self.bad_needed
        };
        (self.run >= needed).then_some(good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_after_enough_of_its_kind_in_a_row() {
        let probe = Probe {
            success_threshold: Some(2),
            failure_threshold: Some(3),
            ..Probe::default()
        };
        let mut tally = Tally::new(&probe, Purpose::Readiness);
        let told: Vec<_> = [true, true, false, false, true, false, false, false, true]
            .into_iter()
            .map(|good| tally.add(good))
            .collect();
        assert_eq!(
            told,
            [
                None,
                Some(true),
                None,
                None,
                None,
                None,
                None,
                Some(false),
                None
            ]
        );
        let mut tally = Tally::new(&Probe::default(), Purpose::Liveness);
        assert_eq!(
            [
                tally.add(true),
                tally.add(false),
                tally.add(false),
                tally.add(false)
            ],
            [Some(true), None, None, Some(false)]
        );
    }
}
