//! Follows all objects of a resource, through errors and restarts. Invariant: a list that is not answered is asked
//! for again.

use std::{fmt::Debug, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Config, Event},
    },
};

/// How long the next object of a list may take. A watch that stands still ends by itself.
const LIST: Duration = Duration::from_secs(20);

/// Hands each event to `take`. It ends only if the stream does, which means that something is wrong.
pub(crate) async fn follow<K>(api: Api<K>, config: Config, mut take: impl FnMut(Event<K>))
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut following = Following::new(api, config);
    while let Some(event) = following.next().await {
        take(event);
    }
}

/// A watch that goes on.
pub(crate) struct Following<K> {
    api: Api<K>,
    config: Config,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    is_listing: bool,
}

impl<K> Following<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(crate) fn new(api: Api<K>, config: Config) -> Self {
        Self {
            events: begin(&api, &config),
            api,
            config,
            is_listing: true,
        }
    }

    /// The next event; `None` means that something is wrong. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Option<Event<K>> {
        let path = self.api.resource_url().to_owned();
        loop {
            let event = if self.is_listing {
                let Ok(event) = tokio::time::timeout(LIST, self.events.next()).await else {
                    tracing::warn!(path, limit = ?LIST, "a list was not answered and is asked for again");
                    self.events = begin(&self.api, &self.config);
                    continue;
                };
                event
            } else {
                self.events.next().await
            };
            match event? {
                Ok(event) => {
                    match &event {
                        Event::Init => self.is_listing = true,
                        Event::InitDone => self.is_listing = false,
                        _ => {}
                    }
                    return Some(event);
                }
                Err(error) => {
                    // After a failure comes a pause, and then another beginning.
                    self.is_listing = false;
                    if is_expected(&error) {
                        tracing::debug!(path, %error, "a watch begins anew");
                    } else {
                        tracing::warn!(path, %error, "a watch failed and is tried again");
                    }
                }
            }
        }
    }
}

fn begin<K>(api: &Api<K>, config: &Config) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher::watcher(api.clone(), config.clone())
        .default_backoff()
        .boxed()
}

/// A history that was forgotten, or a kind that is not served any more: both pass by themselves.
fn is_expected(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::WatchError(status) => status.code,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        _ => return false,
    };
    matches!(code, 404 | 410)
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use http_body_util::Full;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Client;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_never_answered_is_asked_for_again() {
        static REQUESTS: AtomicUsize = AtomicUsize::new(0);
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            // The first list hangs, the second is answered, and the watch after it says nothing.
            if REQUESTS.fetch_add(1, Ordering::Relaxed) != 1 {
                return pending().await;
            }
            let list = r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[]}"#;
            Ok::<_, std::convert::Infallible>(http::Response::new(Full::from(list)))
        });
        let maps: Api<ConfigMap> = Api::all(Client::new(service, "default"));
        let (sender, mut listed) = tokio::sync::mpsc::unbounded_channel();
        let following = follow(maps, Config::default(), |event| {
            if matches!(event, Event::InitDone) {
                let _ = sender.send(());
            }
        });
        tokio::select! {
            () = following => panic!("a watch does not end"),
            done = listed.recv() => assert!(done.is_some()),
        }
    }
}
