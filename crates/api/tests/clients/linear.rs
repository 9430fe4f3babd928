//! Clients at the same time on one object. Every successful write has a version of its own, so the order
//! of writes is known, and each answer can be checked: it must fit that order and the clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};

use crate::served::{Served, config_map, refusal};

const CLIENTS: u64 = 8;
const ROUNDS: u64 = 40;

/// One request with the moments before it was sent and after its answer came.
#[derive(Clone, Debug)]
struct Call {
    began: u64,
    ended: u64,
    done: Done,
}

#[derive(Clone, Debug)]
enum Done {
    /// Saw this value at this version.
    Read { version: u64, value: String },
    /// Changed the version it knew to a new one.
    Wrote { from: u64, to: u64, value: String },
    /// Was told that the version it knew is not the last one.
    Refused { from: u64 },
}

/// Why a history could not have happened one request after the other.
fn check(first: (u64, &str), calls: &[Call]) -> Result<(), String> {
    let mut writes: BTreeMap<u64, (u64, u64, u64, &str)> = BTreeMap::new();
    writes.insert(first.0, (0, 0, 0, first.1));
    for call in calls {
        if let Done::Wrote { from, to, value } = &call.done
            && writes
                .insert(*to, (*from, call.began, call.ended, value))
                .is_some()
        {
            return Err(format!("two writes made version {to}"));
        }
    }
    let mut previous = None;
    for (version, (from, ..)) in &writes {
        if let Some(previous) = previous
            && previous != *from
        {
            return Err(format!(
                "{version} was made from {from}, but {previous} was the last"
            ));
        }
        previous = Some(*version);
    }
    for call in calls {
        // Whatever was finished before this request began has been seen by it.
        let floor = calls
            .iter()
            .filter(|other| other.ended < call.began)
            .filter_map(reached)
            .max();
        match &call.done {
            Done::Read { version, value } => {
                let Some((_, began, _, written)) = writes.get(version) else {
                    return Err(format!("{call:?} saw a version that nobody wrote"));
                };
                if written != value {
                    return Err(format!("{call:?} saw another value than {written}"));
                }
                if *began > call.ended {
                    return Err(format!("{call:?} saw a write before it began"));
                }
                if floor.is_some_and(|floor| *version < floor) {
                    return Err(format!(
                        "{call:?} is older than {floor:?}, which was seen before"
                    ));
                }
            }
            Done::Wrote { to, .. } => {
                if floor.is_some_and(|floor| *to <= floor) {
                    return Err(format!("{call:?} came after {floor:?}"));
                }
            }
            Done::Refused { from } => {
                let later = writes.range(from + 1..).next();
                if later.is_none_or(|(_, (_, began, ..))| *began > call.ended) {
                    return Err(format!("{call:?} was refused without a reason"));
                }
            }
        }
    }
    Ok(())
}

/// The version that the world had reached when this call ended, as far as it tells.
fn reached(call: &Call) -> Option<u64> {
    match call.done {
        Done::Read { version, .. } => Some(version),
        Done::Wrote { to, .. } => Some(to),
        Done::Refused { .. } => None,
    }
}

fn seen(map: &ConfigMap) -> (u64, String) {
    let value = map.data.as_ref().and_then(|data| data.get("a")).cloned();
    (
        map.resource_version().unwrap().parse().unwrap(),
        value.unwrap(),
    )
}

/// Reads and changes the object by turns, and writes down what happened.
async fn client(maps: Api<ConfigMap>, clock: Arc<AtomicU64>, number: u64) -> Vec<Call> {
    let mut calls = Vec::new();
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    for round in 0..ROUNDS {
        let began = tick();
        // A list must be as fresh as a read.
        let map = if (round + number).is_multiple_of(3) {
            let options = ListParams::default().fields("metadata.name=shared");
            maps.list(&options).await.unwrap().items.remove(0)
        } else {
            maps.get("shared").await.unwrap()
        };
        let ended = tick();
        let (version, value) = seen(&map);
        calls.push(Call {
            began,
            ended,
            done: Done::Read { version, value },
        });

        let value = format!("{number}.{round}");
        let mut changed = map;
        changed.data = Some([("a".to_owned(), value.clone())].into());
        let began = tick();
        let result = maps
            .replace("shared", &PostParams::default(), &changed)
            .await;
        let ended = tick();
        let done = match result {
            Ok(map) => Done::Wrote {
                from: version,
                to: seen(&map).0,
                value,
            },
            refused => {
                assert_eq!(refusal(refused), (409, "Conflict".to_owned()));
                Done::Refused { from: version }
            }
        };
        calls.push(Call { began, ended, done });
    }
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_at_the_same_time_are_as_if_one_came_after_the_other() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    let first = maps
        .create(&PostParams::default(), &config_map("shared", "a", "first"))
        .await;
    let first = seen(&first.unwrap());
    let clock = Arc::new(AtomicU64::new(1));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(client(maps.clone(), Arc::clone(&clock), number)))
        .collect();
    let mut calls = Vec::new();
    for client in clients {
        calls.extend(client.await.unwrap());
    }
    check((first.0, &first.1), &calls).unwrap();
    let wrote = calls
        .iter()
        .filter(|call| matches!(call.done, Done::Wrote { .. }))
        .count();
    let refused = calls
        .iter()
        .filter(|call| matches!(call.done, Done::Refused { .. }))
        .count();
    assert!(
        wrote > 0 && refused > 0,
        "{wrote} writes, {refused} refusals: no contest"
    );
}

mod checker {
    use super::*;

    fn call(began: u64, ended: u64, done: Done) -> Call {
        Call { began, ended, done }
    }

    fn read(version: u64, value: &str) -> Done {
        Done::Read {
            version,
            value: value.to_owned(),
        }
    }

    fn wrote(from: u64, to: u64, value: &str) -> Done {
        Done::Wrote {
            from,
            to,
            value: value.to_owned(),
        }
    }

    #[test]
    fn a_history_in_order_is_fine() {
        let calls = [
            call(1, 2, read(10, "first")),
            call(3, 6, wrote(10, 11, "x")),
            call(4, 5, read(10, "first")),
            call(5, 8, Done::Refused { from: 10 }),
            call(9, 10, read(11, "x")),
        ];
        assert_eq!(check((10, "first"), &calls), Ok(()));
    }

    #[test]
    fn what_could_not_have_happened_is_found() {
        for calls in [
            // Two writes from the same version.
            vec![
                call(1, 2, wrote(10, 11, "x")),
                call(3, 4, wrote(10, 12, "y")),
            ],
            // A read of the past.
            vec![
                call(1, 2, wrote(10, 11, "x")),
                call(3, 4, read(10, "first")),
            ],
            // A read of the future.
            vec![call(1, 2, read(11, "x")), call(3, 4, wrote(10, 11, "x"))],
            // A value that was never there.
            vec![call(1, 2, read(10, "other"))],
            vec![call(1, 2, read(12, "x"))],
            // A refusal with nothing newer.
            vec![call(1, 2, Done::Refused { from: 10 })],
        ] {
            assert!(check((10, "first"), &calls).is_err(), "{calls:?}");
        }
    }
}
