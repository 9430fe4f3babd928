//! Tells people what the controllers do, without waiting for the telling.
//!
//! What nobody can take any more is dropped: an event is news, never state.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::{sync::mpsc, time::Instant};

use crate::fault::ask;

const WAITING: usize = 4_096;
/// How many events about one object are told at once, and how often one more.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_mins(5);
const REMEMBERED: usize = 4_096;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) is_warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) text: String,
}

impl News {
    pub(crate) fn normal(reason: &'static str, text: String) -> Self {
        Self {
            is_warning: false,
            reason,
            text,
        }
    }

    pub(crate) fn warning(reason: &'static str, text: String) -> Self {
        Self {
            is_warning: true,
            reason,
            text,
        }
    }
}

#[derive(Debug)]
struct Told {
    controller: &'static str,
    about: ObjectReference,
    news: News,
}

/// What is left to say about an object, and when that was counted.
type Budget = (f64, Instant);

/// Takes news of the controllers.
#[derive(Debug)]
pub(crate) struct Events {
    sender: mpsc::Sender<Told>,
    budgets: Mutex<HashMap<(&'static str, String), Budget>>,
}

/// Publishes what the controllers tell.
#[derive(Debug)]
pub(crate) struct Publisher {
    receiver: mpsc::Receiver<Told>,
}

pub(crate) fn events() -> (Events, Publisher) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let events = Events {
        sender,
        budgets: Mutex::new(HashMap::new()),
    };
    (events, Publisher { receiver })
}

impl Events {
    pub(crate) fn tell<K>(&self, controller: &'static str, about: &K, news: News)
    where
        K: Resource<DynamicType = ()>,
    {
        let about = about.object_ref(&());
        if !self.may_tell(controller, &about) {
            return;
        }
        let told = Told {
            controller,
            about,
            news,
        };
        if let Err(error) = self.sender.try_send(told) {
            tracing::debug!(controller, %error, "an event is not told");
        }
    }

    /// Whether an object has not had too much said about it of late.
    fn may_tell(&self, controller: &'static str, about: &ObjectReference) -> bool {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if budgets.len() >= REMEMBERED {
            budgets.retain(|_, (left, since)| refilled(*left, *since, now) < BURST);
            if budgets.len() >= REMEMBERED {
                budgets.clear();
            }
        }
        let key = (controller, about.uid.clone().unwrap_or_default());
        let budget = budgets.entry(key).or_insert((BURST, now));
        let left = refilled(budget.0, budget.1, now);
        let may = left >= 1.0;
        *budget = (if may { left - 1.0 } else { left }, now);
        may
    }
}

fn refilled(left: f64, since: Instant, now: Instant) -> f64 {
    let more = now.duration_since(since).as_secs_f64() / REFILL.as_secs_f64();
    (left + more).min(BURST)
}

impl Publisher {
    /// Publishes until nobody can tell anything any more.
    pub(crate) async fn run(mut self, client: Client) {
        let mut recorders: HashMap<&'static str, Recorder> = HashMap::new();
        while let Some(told) = self.receiver.recv().await {
            let recorder = recorders.entry(told.controller).or_insert_with(|| {
                let reporter = Reporter {
                    controller: told.controller.to_owned(),
                    instance: None,
                };
                Recorder::new(client.clone(), reporter)
            });
            let type_ = if told.news.is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            };
            let event = Event {
                type_,
                reason: told.news.reason.to_owned(),
                note: Some(told.news.text),
                action: told.news.reason.to_owned(),
                secondary: None,
            };
            if let Err(fault) = ask(recorder.publish(&event, &told.about)).await {
                tracing::debug!(controller = told.controller, %fault, "an event could not be published");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_that_has_much_said_about_it_is_heard_less_of() {
        let (events, mut publisher) = events();
        let mut pod = Pod::default();
        pod.metadata.uid = Some("u".to_owned());
        let tell = || events.tell("c", &pod, News::normal("R", "text".to_owned()));
        for _ in 0..30 {
            tell();
        }
        tokio::time::advance(REFILL).await;
        tell();
        tell();
        let mut heard = 0;
        while publisher.receiver.try_recv().is_ok() {
            heard += 1;
        }
        assert_eq!(heard, 26);
    }
}
