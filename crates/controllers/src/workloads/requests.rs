//! The requests that controllers of pods have in common. What they change is known at once.

use std::{fmt::Debug, sync::Arc};

use futures::future::join_all;
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::Pod,
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, PostParams, Preconditions},
};

use super::index::{Index, Key};
use super::{World, events::News};
use crate::fault::{Fault, ask, found};

/// How many requests are under way at most for one object.
pub(crate) const BURST: usize = 500;

pub(crate) fn objects<K>(client: &Client, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), namespace)
}

/// Creates an object in its namespace.
pub(crate) async fn create<K>(
    client: &Client,
    index: &Index<K>,
    object: &K,
) -> Result<Arc<K>, Fault>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let namespace = object.namespace().unwrap_or_default();
    let objects = objects::<K>(client, &namespace);
    let made = ask(objects.create(&PostParams::default(), object)).await?;
    Ok(index.note(made))
}

/// Deletes the very object that was decided on. That it is gone already is as good.
pub(crate) async fn delete<K>(
    world: &World,
    index: &Index<K>,
    object: &K,
    parameters: DeleteParams,
) -> Result<(), Fault>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let key = Key::of(object);
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: object.uid(),
            resource_version: None,
        }),
        ..parameters
    };
    let objects = objects::<K>(&world.client, &key.namespace);
    match found(ask(objects.delete(&key.name, &parameters)).await) {
        // Another object has the name now.
        Err(fault) if fault.is_conflict() => {}
        answer => {
            answer?;
        }
    }
    index.note_deletion(&key, object.uid().as_deref(), world.now());
    Ok(())
}

/// Writes the status of an object on the version that was seen.
pub(crate) async fn replace_status<K>(
    client: &Client,
    index: &Index<K>,
    object: &K,
) -> Result<Arc<K>, Fault>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let objects = objects::<K>(client, &object.namespace().unwrap_or_default());
    let (name, parameters) = (object.name_any(), PostParams::default());
    let answer = ask(objects.replace_status(&name, &parameters, object)).await?;
    Ok(index.note(answer))
}

/// Creates a pod for an owner, and tells so.
pub(crate) async fn create_pod<O>(
    world: &World,
    controller: &'static str,
    owner: &O,
    pod: &Pod,
) -> Result<Arc<Pod>, Fault>
where
    O: Resource<DynamicType = ()>,
{
    match create(&world.client, &world.pods, pod).await {
        Ok(made) => {
            let text = format!("Created pod: {}", made.name_any());
            world
                .events
                .tell(controller, owner, News::normal("SuccessfulCreate", text));
            Ok(made)
        }
        Err(fault) => {
            if !is_ending(&fault) {
                let text = format!("Error creating: {}", fault.text());
                world
                    .events
                    .tell(controller, owner, News::warning("FailedCreate", text));
            }
            Err(fault)
        }
    }
}

/// Deletes a pod of an owner, and tells so.
pub(crate) async fn delete_pod<O>(
    world: &World,
    controller: &'static str,
    owner: &O,
    pod: &Pod,
) -> Result<(), Fault>
where
    O: Resource<DynamicType = ()>,
{
    match delete(world, &world.pods, pod, DeleteParams::default()).await {
        Ok(()) => {
            let text = format!("Deleted pod: {}", pod.name_any());
            world
                .events
                .tell(controller, owner, News::normal("SuccessfulDelete", text));
            Ok(())
        }
        Err(fault) => {
            let text = format!("Error deleting: {}", fault.text());
            world
                .events
                .tell(controller, owner, News::warning("FailedDelete", text));
            Err(fault)
        }
    }
}

/// Whether a namespace is on its way out, which is no failure of ours.
pub(crate) fn is_ending(fault: &Fault) -> bool {
    fault.is_forbidden() && fault.text().contains("because it is being terminated")
}

/// Does something `count` times, in batches that grow while all goes well. Stops after a batch that
/// had a failure, so that a quota or a bad template costs few requests.
pub(crate) async fn slow_start<F>(
    count: usize,
    mut act: impl FnMut(usize) -> F,
) -> (usize, Option<Fault>)
where
    F: Future<Output = Result<(), Fault>>,
{
    let mut done = 0;
    let mut begun = 0;
    let mut size = 1;
    while begun < count {
        let batch = size.min(count - begun);
        let outcomes = join_all((begun..begun + batch).map(&mut act)).await;
        begun += batch;
        size = size.saturating_mul(2).min(BURST);
        let mut failure = None;
        for outcome in outcomes {
            match outcome {
                Ok(()) => done += 1,
                Err(fault) => failure = failure.or(Some(fault)),
            }
        }
        if failure.is_some() {
            return (done, failure);
        }
    }
    (done, None)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn batches_grow_and_stop_at_a_failure() {
        let begun = Cell::new(0);
        let (done, fault) = slow_start(100, |number| {
            begun.set(begun.get() + 1);
            async move {
                if number == 5 {
                    Err(Fault::Incomplete)
                } else {
                    Ok(())
                }
            }
        })
        .await;
        // Batches of 1, 2 and 4; the fifth is in the third of them.
        assert_eq!((begun.get(), done, fault.is_some()), (7, 6, true));
        let (done, fault) = slow_start(10, |_| async { Ok(()) }).await;
        assert_eq!((done, fault.is_none()), (10, true));
    }
}
