//! Killed in a storm of writes, a store keeps whatever it acknowledged, and its history has no gap.
//!
//! The storm is an ignored test of this binary, run as a process of its own: it is told its folder on its
//! standard input and writes a line for each acknowledged transaction.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    io::{BufRead, Write as _},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use camino::Utf8Path;
use futures::future::join_all;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};
use transom_store::{Entry, Event, Local, Revision, check};

use crate::{
    backend::{path, small},
    support::{Shared, commit, delete_write, events_until, in_time, list, put_write, text, writes},
};

const TASKS: u64 = 24;
const ROUNDS: u64 = 15;
const ACKNOWLEDGED: &str = "acknowledged ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_store_keeps_what_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        // However slow the machine is, there is enough to lose: each storm rages for more lines than the one before.
        let least = usize::try_from(round * 10).unwrap();
        let lines = storm_and_kill(path(&folder), Some((least, up_to(300)))).await;
        acknowledged += lines.len();
        in_time(examine(path(&folder), &lines, round)).await;
    }
    assert!(acknowledged > 1000, "only {acknowledged} transactions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_killed_while_it_is_made_can_be_made_again() {
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        storm_and_kill(path(&folder), None).await;
        let store = Local::open(path(&folder), small()).await.unwrap();
        drop(store);
        assert!(check(path(&folder)).await.unwrap().is_clean());
    }
}

/// Not the same moment in every run.
fn up_to(milliseconds: u64) -> Duration {
    Duration::from_millis(RandomState::new().hash_one(0) % milliseconds)
}

/// Task, number of its transaction, and revision.
type Line = (u64, u64, Revision);

/// Lets a storm rage for a while after its first line and at least so many more, or kills it before it has one.
async fn storm_and_kill(folder: &Utf8Path, rage: Option<(usize, Duration)>) -> Vec<Line> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::the_storm", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(format!("{folder}\n").as_bytes())
        .await
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = Vec::new();
    if let Some((least, rage)) = rage {
        while lines.len() <= least
            && let Some(line) = next_acknowledged(&mut output).await
        {
            lines.push(line);
        }
        let killer = tokio::spawn(async move {
            tokio::time::sleep(rage).await;
            child.kill().await.unwrap();
        });
        while let Some(line) = next_acknowledged(&mut output).await {
            lines.push(line);
        }
        killer.await.unwrap();
    } else {
        tokio::time::sleep(up_to(60)).await;
        child.kill().await.unwrap();
    }
    lines
}

async fn next_acknowledged(
    output: &mut tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
) -> Option<Line> {
    loop {
        let line = output.next_line().await.unwrap()?;
        // The last line may have been cut off in the middle; then its writer was not told either.
        let Some(fields) = line.strip_prefix(ACKNOWLEDGED) else {
            continue;
        };
        let Some(fields) = fields.strip_suffix('.') else {
            continue;
        };
        let mut numbers = fields.split(' ').map(|field| field.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        return Some((next(), next(), Revision(next())));
    }
}

async fn examine(folder: &Utf8Path, lines: &[Line], round: u64) {
    let report = check(folder).await.unwrap();
    assert_eq!(report.faults, Vec::<String>::new(), "round {round}");
    let store: Shared = Arc::new(Local::open(folder, small()).await.unwrap());
    let revision = store.revision().await.unwrap();
    assert_eq!(revision, report.revision);
    for (task, number, acknowledged) in lines {
        assert!(*acknowledged <= revision, "revision {acknowledged} is lost");
        let counter = store.get(&counter(*task)).await.unwrap();
        let kept: u64 = text(&counter.expect("a counter is lost")).parse().unwrap();
        assert!(
            kept >= *number,
            "transaction {number} of task {task} is lost"
        );
    }
    let oldest = report.compacted.max(Revision::EMPTY);
    let mut state: BTreeMap<Arc<str>, Entry> = list(&store, "", Some(oldest))
        .await
        .entries
        .into_iter()
        .map(|entry| (entry.key.clone(), entry))
        .collect();
    let mut watch = store.watch("", oldest).await.unwrap();
    let events = events_until(&mut watch, revision).await;
    let mut revisions: Vec<u64> = events.iter().map(|event| event.revision.0).collect();
    revisions.dedup();
    assert_eq!(revisions, (oldest.0 + 1..=revision.0).collect::<Vec<_>>());
    let mut counted = HashMap::new();
    for event in events {
        count(&mut counted, &event);
        let before = match event.current {
            Some(entry) => state.insert(event.key, entry),
            None => state.remove(&event.key),
        };
        assert_eq!(event.previous, before);
    }
    let newest = list(&store, "", None).await;
    assert_eq!(newest.entries, state.into_values().collect::<Vec<_>>());
    for (task, number, acknowledged) in lines {
        let told = counted.get(&(counter(*task), *number));
        let kept = *acknowledged > oldest;
        assert_eq!(told, kept.then_some(acknowledged), "{task} {number}");
    }
}

/// Where each count of each counter was written.
fn count(counted: &mut HashMap<(String, u64), Revision>, event: &Event) {
    let Some(entry) = &event.current else { return };
    if event.key.starts_with("counter/") {
        let place = (event.key.to_string(), text(entry).parse().unwrap());
        assert_eq!(counted.insert(place, event.revision), None);
    }
}

fn counter(task: u64) -> String {
    format!("counter/{task}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that the other tests kill"]
async fn the_storm() {
    let mut folder = String::new();
    std::io::stdin().lock().read_line(&mut folder).unwrap();
    let store = Local::open(Utf8Path::new(folder.trim_end()), small()).await;
    let store: Shared = Arc::new(store.unwrap());
    let tasks = (0..TASKS).map(|task| tokio::spawn(storm(Arc::clone(&store), task)));
    for ended in join_all(tasks).await {
        ended.unwrap();
    }
}

/// Counts up for as long as the process lives.
async fn storm(store: Shared, task: u64) {
    let key = counter(task);
    let before = store.get(&key).await.unwrap();
    let mut number = before.map_or(0, |entry| text(&entry).parse::<u64>().unwrap());
    loop {
        number += 1;
        let other = format!("other/{task}/{}", number % 7);
        let change = if number % 3 == 0 {
            delete_write(&other)
        } else {
            put_write(&other, &"x".repeat(usize::try_from(number % 3000).unwrap()))
        };
        let count = put_write(&key, &number.to_string());
        let revision = commit(&store, writes([count, change])).await;
        let line = format!("{ACKNOWLEDGED}{task} {number} {revision}.\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        if task == 0 && number % 50 == 0 {
            let forgotten = Revision(revision.0.saturating_sub(400));
            store.compact(forgotten).await.unwrap();
        }
    }
}
