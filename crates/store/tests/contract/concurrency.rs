//! Many at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::join_all;
use transom_store::{Event, Outcome, Range, Revision, Transaction};

use crate::support::{
    Shared, commit, delete_write, events_until, keys, list, put, put_write, text, writes,
};

const WRITERS: usize = 16;

/// Every writer changes its own keys and some that all share.
async fn write_storm(store: Shared, writer: usize, rounds: usize) {
    for round in 0..rounds {
        let mine = format!("w/{writer:02}/{}", round % 3);
        let shared = format!("w/shared/{}", round % 2);
        let value = format!("{writer}-{round}");
        let transaction = match round % 4 {
            3 => writes([delete_write(&mine), put_write(&shared, &value)]),
            _ => writes([put_write(&mine, &value), put_write(&shared, &value)]),
        };
        commit(&store, transaction).await;
    }
}

fn spawn_storm(store: &Shared, rounds: usize) -> Vec<tokio::task::JoinHandle<()>> {
    (0..WRITERS)
        .map(|writer| tokio::spawn(write_storm(Arc::clone(store), writer, rounds)))
        .collect()
}

/// In one order, so that two readings can be compared.
fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by(|one, other| (one.revision, &one.key).cmp(&(other.revision, &other.key)));
    events
}

pub(crate) async fn watches_from_every_revision_agree_while_writers_write(store: Shared) {
    const ROUNDS: usize = 12;
    let start = store.revision().await.unwrap();
    let last = Revision(start.0 + (WRITERS * ROUNDS) as u64);
    let writers = spawn_storm(&store, ROUNDS);
    let watches = (start.0..=last.0).map(|after| {
        let store = Arc::clone(&store);
        async move {
            let mut watch = store.watch("w/", Revision(after)).await.unwrap();
            if after == last.0 {
                return Vec::new();
            }
            sorted(events_until(&mut watch, last).await)
        }
    });
    let seen = join_all(watches).await;
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(store.revision().await.unwrap(), last);
    let all = &seen[0];
    for (after, events) in (start.0..).zip(&seen) {
        let expected: Vec<_> = all
            .iter()
            .filter(|event| event.revision.0 > after)
            .collect();
        assert_eq!(events.iter().collect::<Vec<_>>(), expected, "after {after}");
    }
    let mut revisions: Vec<u64> = all.iter().map(|event| event.revision.0).collect();
    revisions.dedup();
    assert_eq!(revisions, (start.0 + 1..=last.0).collect::<Vec<_>>());
    // What was before each change is what the last one left.
    let mut state = std::collections::BTreeMap::new();
    for event in all {
        let before = match &event.current {
            Some(entry) => state.insert(event.key.clone(), entry.clone()),
            None => state.remove(&event.key),
        };
        assert_eq!(event.previous, before, "{event:?}");
    }
    let page = list(&store, "w/", None).await;
    assert_eq!(page.entries, state.into_values().collect::<Vec<_>>());
}

pub(crate) async fn pages_are_of_one_revision_while_writers_write(store: Shared) {
    // Two keys that always change together, far apart in the list.
    commit(
        &store,
        writes([put_write("p/a", "0"), put_write("p/z", "0")]),
    )
    .await;
    for number in 0..20 {
        put(&store, &format!("p/m{number:02}"), "1").await;
    }
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        tokio::spawn(async move {
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                let value = round.to_string();
                commit(
                    &store,
                    writes([put_write("p/a", &value), put_write("p/z", &value)]),
                )
                .await;
                let middle = format!("p/m{:02}", round % 20);
                let change = if round % 40 < 20 {
                    delete_write(&middle)
                } else {
                    put_write(&middle, "2")
                };
                commit(&store, writes([change])).await;
            }
        })
    };
    for _ in 0..30 {
        let mut at = None;
        let mut after = None;
        let mut entries = Vec::new();
        loop {
            let range = Range {
                prefix: "p/".to_owned(),
                after: after.take(),
                limit: Some(4),
                at,
            };
            let page = store.list(range).await.unwrap();
            at = Some(page.revision);
            after = page.entries.last().map(|entry| entry.key.to_string());
            entries.extend(page.entries);
            if !page.more {
                break;
            }
        }
        let first = entries.first().unwrap();
        let last = entries.last().unwrap();
        assert_eq!((&*first.key, &*last.key), ("p/a", "p/z"));
        assert_eq!(first.value, last.value);
        assert_eq!(first.modified, last.modified);
        let whole = list(&store, "p/", at).await;
        assert_eq!(keys(&whole.entries), keys(&entries));
    }
    done.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

pub(crate) async fn no_increment_is_lost(store: Shared) {
    increments_add_up([store]).await;
}

/// Many tasks count together, each through one of the stores.
pub(crate) async fn increments_add_up<const STORES: usize>(stores: [Shared; STORES]) {
    const EACH: u64 = 25;
    put(&stores[0], "counter", "0").await;
    let tasks = (0..WRITERS).map(|writer| {
        let store = Arc::clone(&stores[writer % STORES]);
        tokio::spawn(async move {
            for _ in 0..EACH {
                increment(&store).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let entry = stores[0].get("counter").await.unwrap().unwrap();
    assert_eq!(text(&entry), (EACH * WRITERS as u64).to_string());
    assert_eq!(entry.modified.0, entry.created.0 + EACH * WRITERS as u64);
}

async fn increment(store: &Shared) {
    let mut current = store.get("counter").await.unwrap();
    loop {
        let entry = current.expect("the counter is there");
        let next = text(&entry).parse::<u64>().unwrap() + 1;
        let transaction = Transaction::replace("counter", entry.modified, next.to_string());
        match store.commit(transaction).await.unwrap() {
            Outcome::Committed(_) => return,
            Outcome::Refused { current: now, .. } => current = now,
        }
    }
}
