//! Empties namespaces that are to go, and lets them go when nothing is left.
//!
//! A namespace keeps its finalizer until a look into every resource that is served now found nothing.

mod conditions;
mod content;

use std::time::Duration;

use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt as _,
    api::PostParams,
    core::PartialObjectMeta,
    runtime::watcher::{Config, Event},
};
use tokio_util::sync::CancellationToken;

use crate::{
    fault::{Fault, ask, fetch, found},
    follow::follow,
    queue::{Next, Queue},
};

/// What a namespace has until it is empty.
const FINALIZER: &str = "kubernetes";
const AT_ONCE: usize = 4;
/// How long a namespace with something in it waits at most for the next look.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) async fn run(client: Client, stop: CancellationToken) {
    let queue = Queue::new();
    let all: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    let news = follow(all, Config::default(), |event| {
        if let Event::Apply(namespace) | Event::InitApply(namespace) = event
            && namespace.metadata.deletion_timestamp.is_some()
        {
            queue.add(namespace.name_any());
        }
    });
    let work = queue.drive("namespaces", AT_ONCE, &stop, |name| empty(&client, name));
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

/// Takes one step towards the end of a namespace.
async fn empty(client: &Client, name: String) -> Result<Next, Fault> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let Some(namespace) = found(fetch(namespaces.get(&name)).await)? else {
        return Ok(Next::Done);
    };
    if !is_ours(&namespace) {
        return Ok(Next::Done);
    }
    let sight = content::remove(client, &name).await;
    let parameters = PostParams::default();
    let mut namespace = namespace;
    let now = Timestamp::now();
    if conditions::set(namespace.status.get_or_insert_default(), &sight, now) {
        let request = namespaces.replace_status(&name, &parameters, &namespace);
        match found(ask(request).await)? {
            Some(newer) => namespace = newer,
            None => return Ok(Next::Done),
        }
    }
    for failure in sight.failures.iter().chain(&sight.discovery_failure) {
        tracing::warn!(
            namespace = name,
            failure,
            "a namespace could not be emptied"
        );
    }
    if !sight.is_empty() {
        return Ok(Next::Again(LONGEST_PAUSE));
    }
    release(&mut namespace);
    let request = namespaces.replace_subresource("finalize", &name, &parameters, &namespace);
    found(ask(request).await)?;
    Ok(Next::Done)
}

/// Whether a namespace is on its way out and waits for us.
fn is_ours(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
        && namespace
            .spec
            .iter()
            .flat_map(|spec| spec.finalizers.iter().flatten())
            .any(|finalizer| finalizer == FINALIZER)
}

/// Takes our finalizer off; those of others stay.
fn release(namespace: &mut Namespace) {
    let spec = namespace.spec.get_or_insert_default();
    if let Some(finalizers) = &mut spec.finalizers {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespace(finalizers: &[&str], is_deleted: bool) -> Namespace {
        let mut value = json!({"metadata": {"name": "n"}, "spec": {"finalizers": finalizers}});
        if is_deleted {
            value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_a_deleted_namespace_with_our_finalizer_is_ours() {
        assert!(is_ours(&namespace(&["other", FINALIZER], true)));
        assert!(!is_ours(&namespace(&[FINALIZER], false)));
        assert!(!is_ours(&namespace(&["other"], true)));
        assert!(!is_ours(&Namespace::default()));
    }

    #[test]
    fn finalizers_of_others_stay() {
        let mut namespace = namespace(&["other", FINALIZER], true);
        release(&mut namespace);
        assert_eq!(namespace.spec.unwrap().finalizers.unwrap(), ["other"]);
    }
}
