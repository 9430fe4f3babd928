//! Follows all objects of a resource, through errors and restarts. Invariant: a list that is not answered is asked
//! for again.

use std::{fmt::Debug, time::Duration};

use futures::StreamExt as _;
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
    let path = api.resource_url().to_owned();
    let begin = || Box::pin(watcher::watcher(api.clone(), config.clone()).default_backoff());
    let mut events = begin();
    let mut is_listing = true;
    loop {
        let event = if is_listing {
            let Ok(event) = tokio::time::timeout(LIST, events.next()).await else {
                tracing::warn!(path, limit = ?LIST, "a list was not answered and is asked for again");
                events = begin();
                continue;
            };
            event
        } else {
            events.next().await
        };
        let Some(event) = event else {
            return;
        };
        match &event {
            Ok(Event::Init) => is_listing = true,
            // After a failure comes a pause, and then another beginning.
            Ok(Event::InitDone) | Err(_) => is_listing = false,
            Ok(_) => {}
        }
        match event {
            Ok(event) => take(event),
            Err(error) if is_expected(&error) => {
                tracing::debug!(path, %error, "a watch begins anew");
            }
            Err(error) => tracing::warn!(path, %error, "a watch failed and is tried again"),
        }
    }
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
