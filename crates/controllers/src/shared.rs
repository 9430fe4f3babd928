//! One watch for all controllers that want to know of the same objects: each change is read once, however many they
//! are. Invariant: whoever joins hears of a whole list first, and then of each change in order.

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::serde::de::DeserializeOwned;
use kube::{
    Api, Resource,
    runtime::watcher::{Config, Event},
};
use tokio::sync::{Mutex, mpsc};

use crate::follow::Following;

/// How many events may wait for one who joined. The watch waits for the slowest.
const WAITING: usize = 1024;
/// How many may wait to join.
const JOINING: usize = 16;
/// Those who join within this time of each other share a list.
const GATHER: Duration = Duration::from_millis(10);

/// An event whose object is read by many.
type Seen<K> = Event<Arc<K>>;

/// A place among those who follow the objects of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Shared<K> {
    joins: mpsc::Sender<mpsc::Sender<Seen<K>>>,
    joining: Arc<Mutex<mpsc::Receiver<mpsc::Sender<Seen<K>>>>>,
}

impl<K> Shared<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        let (joins, joining) = mpsc::channel(JOINING);
        Self {
            joins,
            joining: Arc::new(Mutex::new(joining)),
        }
    }

    /// Hands each event to `take`, from a list on. It ends only if the watch does, which means that something is wrong.
    pub(crate) async fn follow(&self, mut take: impl FnMut(Seen<K>)) {
        let (seat, mut events) = mpsc::channel(WAITING);
        if self.joins.send(seat).await.is_err() {
            return;
        }
        while let Some(event) = events.recv().await {
            take(event);
        }
    }

    /// Watches for all who joined. Whoever joins later has everybody hear of a list again.
    pub(crate) async fn watch(&self, api: Api<K>) {
        let mut joining = self.joining.lock().await;
        let mut seats = Vec::new();
        loop {
            gather(&mut joining, &mut seats).await;
            let mut events = Following::new(api.clone(), Config::default());
            while !seats.is_empty() {
                tokio::select! {
                    Some(seat) = joining.recv() => {
                        seats.push(seat);
                        break;
                    }
                    event = events.next() => match event {
                        Some(event) => tell(&mut seats, map(event, trimmed)).await,
                        None => return,
                    },
                }
            }
        }
    }
}

/// Returns when there is somebody, and nobody else for a moment.
async fn gather<T>(joining: &mut mpsc::Receiver<T>, seats: &mut Vec<T>) {
    loop {
        let next = if seats.is_empty() {
            joining.recv().await
        } else {
            let Ok(next) = tokio::time::timeout(GATHER, joining.recv()).await else {
                return;
            };
            next
        };
        seats.extend(next);
    }
}

/// Nobody here asks who set which field, and that is half of an object.
fn trimmed<K: Resource>(mut object: K) -> Arc<K> {
    object.meta_mut().managed_fields = None;
    Arc::new(object)
}

/// The same event about something else.
pub(crate) fn map<T, U>(event: Event<T>, about: impl FnOnce(T) -> U) -> Event<U> {
    match event {
        Event::Apply(object) => Event::Apply(about(object)),
        Event::Delete(object) => Event::Delete(about(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(about(object)),
        Event::InitDone => Event::InitDone,
    }
}

/// Tells everybody, and takes off those who are gone.
async fn tell<K>(seats: &mut Vec<mpsc::Sender<Seen<K>>>, event: Seen<K>) {
    let mut gone = Vec::new();
    for (index, seat) in seats.iter().enumerate() {
        if seat.send(event.clone()).await.is_err() {
            gone.push(index);
        }
    }
    for index in gone.into_iter().rev() {
        seats.swap_remove(index);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::future::{Either, select};
    use http_body_util::Full;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, ResourceExt as _};

    use super::*;

    /// An API whose lists are counted, each with one map that is named after its number, and whose watches say nothing.
    fn counted(lists: &Arc<AtomicUsize>) -> Api<ConfigMap> {
        let lists = Arc::clone(lists);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let lists = Arc::clone(&lists);
            async move {
                if request.uri().query().unwrap_or_default().contains("watch=") {
                    return pending().await;
                }
                let number = lists.fetch_add(1, Ordering::Relaxed) + 1;
                let list = format!(
                    r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{"resourceVersion":"1"}},"items":[
                    {{"metadata":{{"name":"list-{number}","managedFields":[{{"manager":"m"}}]}}}}]}}"#
                );
                Ok::<_, Infallible>(http::Response::new(Full::from(list)))
            }
        });
        Api::all(Client::new(service, "default"))
    }

    /// Follows until the end of a list, and tells what was in it.
    async fn listed(events: &mut mpsc::UnboundedReceiver<Seen<ConfigMap>>) -> Vec<Arc<ConfigMap>> {
        let mut maps = Vec::new();
        loop {
            match events.recv().await.unwrap() {
                Event::InitApply(map) => maps.push(map),
                Event::InitDone => return maps,
                _ => {}
            }
        }
    }

    fn join(shared: &Shared<ConfigMap>) -> mpsc::UnboundedReceiver<Seen<ConfigMap>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let shared = shared.clone();
        tokio::spawn(async move {
            shared.follow(|event| drop(sender.send(event))).await;
        });
        receiver
    }

    async fn while_watching<T>(
        shared: &Shared<ConfigMap>,
        api: Api<ConfigMap>,
        work: impl Future<Output = T>,
    ) -> T {
        match select(Box::pin(shared.watch(api)), Box::pin(work)).await {
            Either::Left(_) => panic!("the watch ended"),
            Either::Right((done, _)) => done,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_join_together_share_a_list_and_each_object_of_it() {
        let lists = Arc::new(AtomicUsize::new(0));
        let shared = Shared::new();
        let (mut one, mut two) = (join(&shared), join(&shared));
        while_watching(&shared, counted(&lists), async {
            let (first, second) = (listed(&mut one).await, listed(&mut two).await);
            assert_eq!(first[0].name_any(), "list-1");
            assert_eq!(first[0].metadata.managed_fields, None);
            assert!(Arc::ptr_eq(&first[0], &second[0]));
        })
        .await;
        assert_eq!(lists.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_joins_later_hears_of_a_whole_list_and_so_do_all() {
        let lists = Arc::new(AtomicUsize::new(0));
        let shared = Shared::new();
        let mut one = join(&shared);
        while_watching(&shared, counted(&lists), async {
            listed(&mut one).await;
            let mut two = join(&shared);
            assert_eq!(listed(&mut two).await[0].name_any(), "list-2");
            assert_eq!(listed(&mut one).await[0].name_any(), "list-2");
        })
        .await;
    }

    #[tokio::test]
    async fn one_who_left_is_not_waited_for() {
        let (stays, mut events) = mpsc::channel(2);
        let (leaves, gone) = mpsc::channel(2);
        drop(gone);
        let mut seats = vec![leaves, stays];
        tell::<ConfigMap>(&mut seats, Event::InitDone).await;
        assert_eq!(seats.len(), 1);
        assert!(matches!(events.recv().await, Some(Event::InitDone)));
    }
}
