//! Three members of one etcd, whose leader is killed in a storm of writes: whatever was acknowledged is kept, and
//! whoever watched misses nothing.

use std::{
    collections::HashMap,
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, future::join_all};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use transom_store::{Entry, Etcd, EtcdOptions, Event, Outcome, Revision, Transaction, Watch};

use crate::{
    etcd::{ADDRESS, command, free_port, url},
    support::{Shared, events_until, in_time, list, put_write, text, writes},
};

const TASKS: u64 = 8;
/// How many writes each task has acknowledged before the leader goes, and again afterwards.
const WRITES: u64 = 25;
/// The key that is written last.
const END: &str = "counter/end";
const LOOK: Duration = Duration::from_millis(20);

/// One server of several, killed when dropped.
struct Member {
    process: Child,
    name: String,
    folder: TempDir,
    client: u16,
    peer: u16,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Member {
    fn kill(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }

    fn start_again(&mut self, cluster: &str) {
        self.process = spawn(&self.name, &self.folder, self.client, self.peer, cluster);
    }

    /// Whether it says of itself that it leads; one that does not answer does not.
    async fn leads(&self) -> bool {
        let answer = async {
            let mut stream = TcpStream::connect((*ADDRESS, self.client)).await?;
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
            let mut page = String::new();
            stream.read_to_string(&mut page).await?;
            std::io::Result::Ok(page.contains("\netcd_server_is_leader 1\n"))
        };
        answer.await.unwrap_or(false)
    }
}

fn spawn(name: &str, folder: &TempDir, client: u16, peer: u16, cluster: &str) -> Child {
    let mut command = command(name, folder, &url(client, false), peer, cluster);
    command.spawn().expect("there is no `etcd`")
}

struct Cluster {
    members: Vec<Member>,
    /// The members and their addresses, as each of them is told.
    known: String,
}

impl Cluster {
    fn start() -> Self {
        let ports: Vec<(u16, u16)> = (0..3).map(|_| (free_port(), free_port())).collect();
        let address = |(number, (_, peer)): (usize, &(u16, u16))| {
            format!("m{number}=http://{}:{peer}", *ADDRESS)
        };
        let known: Vec<String> = ports.iter().enumerate().map(address).collect();
        let known = known.join(",");
        let members = ports.iter().enumerate().map(|(number, (client, peer))| {
            let name = format!("m{number}");
            let folder = tempfile::tempdir().unwrap();
            Member {
                process: spawn(&name, &folder, *client, *peer, &known),
                name,
                folder,
                client: *client,
                peer: *peer,
            }
        });
        let members = members.collect();
        Self { members, known }
    }

    async fn leader(&self) -> usize {
        loop {
            for (number, member) in self.members.iter().enumerate() {
                if member.leads().await {
                    return number;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A store that asks these members, the first one first.
    async fn store(&self, members: &[usize]) -> Shared {
        let endpoints = members
            .iter()
            .map(|member| url(self.members[*member].client, false));
        let options = EtcdOptions {
            endpoints: endpoints.collect(),
            prefix: "/members/".to_owned(),
            tls: None,
        };
        loop {
            match Etcd::connect(options.clone()).await {
                Ok(store) => return Arc::new(store),
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// What a writer was told: which count of which counter has which revision.
type Acknowledged = (String, u64, Revision);

/// Counts up until it is told to stop. A write whose fate nobody knows is not repeated: the next count follows.
async fn storm(
    store: Shared,
    task: u64,
    count: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> Vec<Acknowledged> {
    let key = format!("counter/{task}");
    let mut acknowledged = Vec::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        match store
            .commit(writes([put_write(&key, &number.to_string())]))
            .await
        {
            Ok(Outcome::Committed(revision)) => {
                acknowledged.push((key.clone(), number, revision));
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(refused @ Outcome::Refused { .. }) => panic!("{refused:?}"),
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
    acknowledged
}

/// Writes the last key, once: on a busy machine the members may be without a leader at any time, and then nobody
/// knows the fate of a write.
async fn end(store: &Shared) -> Revision {
    loop {
        match store.commit(Transaction::create(END, "1")).await {
            Ok(Outcome::Committed(revision)) => return revision,
            Ok(Outcome::Refused { current, .. }) => return current.unwrap().modified,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
}

/// Reads a watch up to the end, as it comes.
async fn read(mut watch: Watch) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let mut seen = Revision(0);
    while events.last().is_none_or(|event| *event.key != *END) {
        let batch = watch.next().await.expect("a watch does not end").unwrap();
        assert!(batch.revision > seen, "{seen} is followed by {batch:?}");
        seen = batch.revision;
        events.extend(batch.events);
    }
    events
}

/// Returns when every task has this many writes more than it had.
async fn progress(counts: &[Arc<AtomicU64>], more: u64) {
    let now = |count: &Arc<AtomicU64>| count.load(Ordering::Relaxed);
    let wanted: Vec<u64> = counts.iter().map(|count| now(count) + more).collect();
    while counts
        .iter()
        .zip(&wanted)
        .any(|(count, wanted)| now(count) < *wanted)
    {
        tokio::time::sleep(LOOK).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_three_is_killed_and_nothing_is_lost() {
    let mut cluster = Cluster::start();
    let leader = in_time(cluster.leader()).await;
    let (second, third) = ((leader + 1) % 3, (leader + 2) % 3);
    // One asks the leader, which dies; the other one a member that loses its leader.
    let bereft = in_time(cluster.store(&[leader, second, third])).await;
    let follower = in_time(cluster.store(&[second, third, leader])).await;
    let start = in_time(bereft.revision()).await.unwrap();
    let mut readers = Vec::new();
    for store in [&bereft, &follower] {
        let watch = store.watch("counter/", start).await.unwrap();
        readers.push(tokio::spawn(read(watch)));
    }

    let stop = Arc::new(AtomicBool::new(false));
    let counts: Vec<Arc<AtomicU64>> = (0..TASKS).map(|_| Arc::default()).collect();
    let stores = [&bereft, &follower].into_iter().cycle();
    let tasks: Vec<JoinHandle<Vec<Acknowledged>>> = (0..TASKS)
        .zip(stores)
        .zip(&counts)
        .map(|((task, store), count)| {
            let (store, count, stop) = (Arc::clone(store), Arc::clone(count), Arc::clone(&stop));
            tokio::spawn(storm(store, task, count, stop))
        })
        .collect();
    in_time(progress(&counts, WRITES)).await;
    cluster.members[leader].kill();
    in_time(progress(&counts, WRITES)).await;
    stop.store(true, Ordering::Relaxed);
    let ended = in_time(join_all(tasks)).await;
    let acknowledged: Vec<Acknowledged> = ended.into_iter().flat_map(Result::unwrap).collect();

    let last = in_time(end(&follower)).await;
    let survivors = in_time(cluster.store(&[third])).await;
    let mut whole = survivors.watch("counter/", start).await.unwrap();
    let history = in_time(events_until(&mut whole, last)).await;
    for seen in in_time(join_all(readers)).await {
        assert_eq!(seen.unwrap(), history);
    }
    examine(&history, &acknowledged);

    // Who led before comes back and has what the others wrote without it.
    let known = cluster.known.clone();
    cluster.members[leader].start_again(&known);
    let returned = in_time(cluster.store(&[leader])).await;
    let (before, after) = (
        list(&survivors, "", None).await,
        list(&returned, "", None).await,
    );
    assert_eq!(before.entries, after.entries);
}

/// Every event follows from the one before it, and every acknowledged write is among them, once.
fn examine(history: &[Event], acknowledged: &[Acknowledged]) {
    let mut state: HashMap<&str, &Entry> = HashMap::new();
    let mut written = HashMap::new();
    for event in history {
        let entry = event.current.as_ref().expect("nobody deletes");
        let before = state.insert(&event.key, entry);
        assert_eq!(event.previous.as_ref(), before, "{event:?}");
        let number: u64 = text(entry).parse().unwrap();
        let place = (event.key.to_string(), number);
        assert_eq!(written.insert(place, event.revision), None, "{event:?}");
    }
    for (key, number, revision) in acknowledged {
        let kept = written.get(&(key.clone(), *number));
        assert_eq!(kept, Some(revision), "{key} {number}");
    }
}
