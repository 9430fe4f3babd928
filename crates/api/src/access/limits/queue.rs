//! One lane of the gate: so many inside, the others in a queue for each user.
//!
//! While anybody waits, every free place goes to the next user in turn; nobody who comes later passes them.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

#[derive(Debug)]
struct Waiter {
    number: u64,
    turn: oneshot::Sender<()>,
}

#[derive(Debug)]
pub(super) struct Lane {
    limit: usize,
    running: usize,
    waiting: usize,
    queues: HashMap<String, VecDeque<Waiter>>,
    /// The users who wait, each once, in the order of their turns.
    turns: VecDeque<String>,
    next_number: u64,
}

impl Lane {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            running: 0,
            waiting: 0,
            queues: HashMap::new(),
            turns: VecDeque::new(),
            next_number: 0,
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn waiting_of(&self, user: &str) -> usize {
        self.queues.get(user).map_or(0, VecDeque::len)
    }

    pub(super) fn try_enter(&mut self) -> bool {
        let is_free = self.running < self.limit && self.waiting == 0;
        if is_free {
            self.running += 1;
        }
        is_free
    }

    /// Joins the queue. The number names the place.
    pub(super) fn wait(&mut self, user: &str) -> (u64, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        let number = self.next_number;
        self.next_number += 1;
        self.waiting += 1;
        let queue = self.queues.entry(user.to_owned()).or_default();
        if queue.is_empty() {
            self.turns.push_back(user.to_owned());
        }
        queue.push_back(Waiter {
            number,
            turn: sender,
        });
        (number, receiver)
    }

    /// Leaves the queue before the turn came.
    pub(super) fn give_up(&mut self, user: &str, number: u64) {
        let Some(queue) = self.queues.get_mut(user) else {
            return;
        };
        let before = queue.len();
        queue.retain(|waiter| waiter.number != number);
        self.waiting -= before - queue.len();
        if queue.is_empty() {
            self.queues.remove(user);
            self.turns.retain(|waiting| waiting != user);
        }
    }

    /// Gives a place back, and lets in whoever is next.
    pub(super) fn leave(&mut self) {
        self.running -= 1;
        while self.running < self.limit {
            let Some(waiter) = self.next() else {
                return;
            };
            // Whoever does not listen any more has given up a moment ago.
            if waiter.turn.send(()).is_ok() {
                self.running += 1;
            }
        }
    }

    fn next(&mut self) -> Option<Waiter> {
        let user = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&user)?;
        let waiter = queue.pop_front()?;
        self.waiting -= 1;
        if queue.is_empty() {
            self.queues.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        Some(waiter)
    }
}
