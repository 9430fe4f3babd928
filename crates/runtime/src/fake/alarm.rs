//! One alarm clock for all containers of all nodes: the next to end is at the top of a heap, and while nothing will
//! end by itself nothing waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::clock::Clock;
use super::node::Node;
use crate::ContainerId;

#[derive(Debug, Clone)]
pub(super) struct Alarm(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    queue: Mutex<Queue>,
    sooner: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    heap: BinaryHeap<Reverse<Due>>,
    next_number: u64,
    is_watched: bool,
}

#[derive(Debug)]
struct Due {
    at: Timestamp,
    /// Nodes have no order; numbers do.
    number: u64,
    node: Weak<Node>,
    container: ContainerId,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Alarm {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            clock,
            queue: Mutex::default(),
            sooner: Notify::new(),
        }))
    }

    /// Looks at a container at a later moment.
    pub(super) fn at(&self, at: Timestamp, node: &Arc<Node>, container: ContainerId) {
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.next_number += 1;
        let number = queue.next_number;
        queue.heap.push(Reverse(Due {
            at,
            number,
            node: Arc::downgrade(node),
            container,
        }));
        if queue.is_watched {
            self.0.sooner.notify_one();
        } else {
            queue.is_watched = true;
            tokio::spawn(watch(Arc::clone(&self.0)));
        }
    }
}

impl Inner {
    /// Rings for everything that is due; then says how long it is to the next, or gives up the watch.
    fn ring(&self) -> Option<Duration> {
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.clock.now();
            match queue.heap.peek() {
                None => {
                    queue.is_watched = false;
                    return None;
                }
                Some(Reverse(next)) if next.at > now => {
                    // Rounded up: a timer that rings early would ring again at once.
                    let wait = Duration::try_from(next.at.duration_since(now)).unwrap_or_default();
                    return Some(wait + Duration::from_millis(1));
                }
                Some(_) => {}
            }
            let due = queue.heap.pop();
            drop(queue);
            if let Some(Reverse(due)) = due
                && let Some(node) = due.node.upgrade()
            {
                node.ring(&due.container, now);
            }
        }
    }
}

async fn watch(inner: Arc<Inner>) {
    while let Some(wait) = inner.ring() {
        tokio::select! {
            () = inner.clock.sleep(wait) => {}
            () = inner.sooner.notified() => {}
        }
    }
}
