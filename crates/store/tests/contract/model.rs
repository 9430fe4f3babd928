//! Random operations on a store and on a plain map that remembers every state it had.

use std::{collections::BTreeMap, sync::Arc};

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use transom_store::{Condition, Outcome, Range, Revision, StoreError, Transaction, Write};

use crate::support::{Shared, events_until};

const CASES: u32 = 24;
const KEYS: [&str; 6] = ["m/a", "m/a/", "m/a/b", "m/b", "m/é", "m/\0"];

#[derive(Clone, Debug)]
enum Operation {
    Commit {
        /// Key, and whether the condition is about what is there or about something else.
        conditions: Vec<(usize, bool)>,
        puts: Vec<(usize, u8)>,
        deletes: Vec<usize>,
    },
    /// How far back, and how long a page.
    List {
        back: u64,
        limit: usize,
        prefix: usize,
    },
    Compact {
        back: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..KEYS.len();
    prop_oneof![
        8 => (
            prop::collection::vec((key.clone(), prop::bool::weighted(0.8)), 0..3),
            prop::collection::vec((key.clone(), any::<u8>()), 0..3),
            prop::collection::vec(key, 0..3),
        )
            .prop_map(|(conditions, puts, deletes)| Operation::Commit { conditions, puts, deletes }),
        4 => (0..12_u64, 1..5_usize, 0..3_usize)
            .prop_map(|(back, limit, prefix)| Operation::List { back, limit, prefix }),
        1 => (0..6_u64).prop_map(|back| Operation::Compact { back }),
    ]
}

type State = BTreeMap<&'static str, (u8, Revision, Revision)>;

struct Model {
    store: Shared,
    start: Revision,
    revision: Revision,
    compacted: Revision,
    /// What there was at each revision, `start` first.
    states: Vec<State>,
}

pub(crate) async fn random_operations_agree_with_a_plain_map(store: Shared) {
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = prop::collection::vec(operation(), 1..40);
    for _ in 0..CASES {
        // By hand: the runner's own loop cannot wait for a store. What failed is small enough to read.
        let operations = strategy.new_tree(&mut runner).unwrap().current();
        if let Err(error) = run(Arc::clone(&store), &operations).await {
            panic!("{error}\n{operations:#?}");
        }
    }
}

async fn run(store: Shared, operations: &[Operation]) -> Result<(), TestCaseError> {
    let clear = Transaction {
        conditions: Vec::new(),
        writes: KEYS
            .iter()
            .map(|key| Write::Delete {
                key: (*key).to_owned(),
            })
            .collect(),
    };
    store.commit(clear).await.unwrap();
    let start = store.revision().await.unwrap();
    let mut model = Model {
        store,
        start,
        revision: start,
        compacted: Revision(0),
        states: vec![State::new()],
    };
    for operation in operations {
        match operation {
            Operation::Commit {
                conditions,
                puts,
                deletes,
            } => {
                model.commit(conditions, puts, deletes).await?;
            }
            Operation::List {
                back,
                limit,
                prefix,
            } => model.list(*back, *limit, *prefix).await?,
            Operation::Compact { back } => model.compact(*back).await?,
        }
    }
    model.replay().await
}

impl Model {
    fn newest(&self) -> &State {
        self.states.last().unwrap()
    }

    async fn commit(
        &mut self,
        conditions: &[(usize, bool)],
        puts: &[(usize, u8)],
        deletes: &[usize],
    ) -> Result<(), TestCaseError> {
        let state = self.newest().clone();
        let mut transaction = Transaction::default();
        let mut refused = None;
        for (number, (key, holds)) in conditions.iter().enumerate() {
            let key = KEYS[*key];
            let modified = match (state.get(key), holds) {
                (Some((_, _, modified)), true) => Some(*modified),
                (Some(_), false) | (None, true) => None,
                (None, false) => Some(self.revision),
            };
            let key = key.to_owned();
            transaction.conditions.push(match modified {
                Some(modified) => Condition::Unchanged { key, modified },
                None => Condition::Absent { key },
            });
            if !holds {
                refused = refused.or(Some(number));
            }
        }
        let next = Revision(self.revision.0 + 1);
        let mut after = state.clone();
        let mut changed = false;
        let mut written = Vec::new();
        for (key, value) in puts {
            if !written.contains(key) {
                written.push(*key);
                let key = KEYS[*key];
                let created = after.get(key).map_or(next, |(_, created, _)| *created);
                after.insert(key, (*value, created, next));
                changed = true;
                transaction.writes.push(Write::Put {
                    key: key.to_owned(),
                    value: vec![*value].into(),
                    lease: None,
                });
            }
        }
        for key in deletes {
            if !written.contains(key) {
                written.push(*key);
                changed |= after.remove(KEYS[*key]).is_some();
                let key = KEYS[*key].to_owned();
                transaction.writes.push(Write::Delete { key });
            }
        }
        match (self.store.commit(transaction).await.unwrap(), refused) {
            (Outcome::Refused { condition, current }, Some(expected)) => {
                prop_assert_eq!(condition, expected);
                let key = KEYS[conditions[condition].0];
                let current = current.map(|entry| (entry.value[0], entry.created, entry.modified));
                prop_assert_eq!(current, state.get(key).copied());
            }
            (Outcome::Committed(revision), None) => {
                if changed {
                    self.revision = next;
                    self.states.push(after);
                }
                prop_assert_eq!(revision, self.revision);
            }
            (outcome, expected) => prop_assert!(false, "{outcome:?} but {expected:?}"),
        }
        Ok(())
    }

    /// A revision in the past, but not from before this run.
    fn back(&self, back: u64) -> Revision {
        Revision(self.revision.0.saturating_sub(back)).max(self.start)
    }

    async fn list(&self, back: u64, limit: usize, prefix: usize) -> Result<(), TestCaseError> {
        let prefix = ["m/", "m/a", "m/a/"][prefix];
        let at = self.back(back);
        let mut range = Range {
            prefix: prefix.to_owned(),
            after: None,
            limit: Some(limit),
            at: Some(at),
        };
        let mut found = Vec::new();
        loop {
            let page = match self.store.list(range.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    let expected = matches!(error, StoreError::Compacted { .. });
                    prop_assert!(expected && at < self.compacted, "{error:?}");
                    return Ok(());
                }
            };
            prop_assert!(at >= self.compacted);
            prop_assert_eq!(page.revision, at);
            let entries = page.entries.iter();
            found.extend(entries.map(|entry| {
                let fields = (entry.value[0], entry.created, entry.modified);
                (entry.key.to_string(), fields)
            }));
            range.after = found.last().map(|(key, _)| key.clone());
            if !page.more {
                break;
            }
        }
        let state = &self.states[usize::try_from(at.0 - self.start.0).unwrap()];
        let expected: Vec<_> = state
            .iter()
            .filter(|(key, _)| key.starts_with(prefix))
            .map(|(key, fields)| ((*key).to_owned(), *fields))
            .collect();
        prop_assert_eq!(found, expected);
        Ok(())
    }

    async fn compact(&mut self, back: u64) -> Result<(), TestCaseError> {
        let revision = self.back(back);
        self.store.compact(revision).await.unwrap();
        self.compacted = self.compacted.max(revision);
        Ok(())
    }

    /// A watch from the oldest kept state leads through every state to the newest one.
    async fn replay(&self) -> Result<(), TestCaseError> {
        let after = self.compacted.max(self.start);
        let number = usize::try_from(after.0 - self.start.0).unwrap();
        let mut state = self.states[number].clone();
        if after == self.revision {
            return Ok(());
        }
        let mut watch = self.store.watch("m/", after).await.unwrap();
        let events = events_until(&mut watch, self.revision).await;
        let mut events = events.into_iter().peekable();
        for (revision, expected) in (after.0 + 1..).zip(&self.states[number + 1..]) {
            while let Some(event) = events.next_if(|event| event.revision.0 == revision) {
                let key = KEYS.into_iter().find(|key| **key == *event.key).unwrap();
                let fields =
                    |entry: transom_store::Entry| (entry.value[0], entry.created, entry.modified);
                let before = match event.current.map(fields) {
                    Some(current) => state.insert(key, current),
                    None => state.remove(key),
                };
                prop_assert_eq!(event.previous.map(fields), before);
            }
            prop_assert_eq!(&state, expected, "after revision {}", revision);
        }
        prop_assert!(events.next().is_none());
        Ok(())
    }
}
