//! Whether a store can go on. What has failed once stays failed until the store is opened anew: after a failed
//! write nobody knows what is on the disk.

use std::{future, sync::Arc, thread};

use tokio::sync::watch;

/// Where to hear that a store has failed for good.
#[derive(Clone, Debug)]
pub struct Health(watch::Receiver<Option<Arc<str>>>);

/// Says that a store has failed for good, also when its owner dies without a word.
#[derive(Debug)]
pub struct Latch(watch::Sender<Option<Arc<str>>>);

impl Health {
    /// Of a store that is well, and the means to say that it is not.
    pub fn new() -> (Latch, Self) {
        let (sender, receiver) = watch::channel(None);
        (Latch(sender), Self(receiver))
    }

    /// Of a store that has nothing which could fail for good.
    pub(crate) fn unfailing() -> Self {
        Self::new().1
    }

    /// Why the store cannot go on, if it cannot.
    pub fn fault(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Returns why the store cannot go on, once it cannot.
    pub async fn failed(mut self) -> Arc<str> {
        let fault = match self.0.wait_for(Option::is_some).await {
            Ok(fault) => fault.clone(),
            Err(_) => None,
        };
        match fault {
            Some(fault) => fault,
            // The store was closed while it was well.
            None => future::pending().await,
        }
    }
}

impl Latch {
    /// Keeps the first reason that it is given.
    pub fn fail(&self, reason: &str) {
        self.0.send_if_modified(|fault| {
            let is_first = fault.is_none();
            if is_first {
                *fault = Some(reason.into());
            }
            is_first
        });
    }

    pub(crate) fn fault(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        if thread::panicking() {
            self.fail("the writer of the store panicked");
        }
    }
}
