//! Pods: made, found, stopped, removed.

use std::sync::Arc;

use transom_runtime::{PodId, PodState};

use crate::backend::{Backend, Role};
use crate::tool::{Place, is_running, pod_spec};

super::cases! {
    a_pod_is_listed_with_what_it_was_made_from,
    the_same_pod_made_twice_is_one_and_the_next_attempt_is_another,
    a_stopped_pod_is_not_ready_and_keeps_its_containers,
    a_stopped_pod_takes_no_container,
    a_removed_pod_is_gone_with_all_its_containers,
    stopping_and_removing_a_pod_that_is_not_there_is_fine,
    the_runtime_says_who_it_is,
}

async fn a_pod_is_listed_with_what_it_was_made_from(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let pod = place.pod().await;
    let spec = pod_spec(&*place.backend, "one");
    assert_eq!(
        (&pod.uid, &pod.namespace, &pod.name, pod.attempt),
        (&spec.uid, &spec.namespace, &spec.name, 0)
    );
    assert_eq!(
        (pod.labels, pod.annotations),
        (spec.labels, spec.annotations)
    );
    assert_eq!((pod.state, pod.containers.len()), (PodState::Ready, 0));
    place.clean_up().await;
}

async fn the_same_pod_made_twice_is_one_and_the_next_attempt_is_another(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = pod_spec(&*place.backend, "one");
    assert_eq!(place.runtime.start_pod(&spec).await.unwrap(), place.pod);
    spec.attempt = 1;
    let next = place.runtime.start_pod(&spec).await.unwrap();
    assert_ne!(next, place.pod);
    assert_eq!(place.runtime.pods().await.unwrap().len(), 2);
    place.runtime.remove_pod(&next).await.unwrap();
    assert_eq!(place.pod().await.attempt, 0);
    place.clean_up().await;
}

async fn a_stopped_pod_is_not_ready_and_keeps_its_containers(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let runs = place.start_ready("runs", &Role::Stubborn).await;
    place.runtime.stop_pod(&place.pod).await.unwrap();
    let pod = place.pod().await;
    assert_eq!(pod.state, PodState::NotReady);
    assert!(!is_running(&place.container(&runs).await));
    assert_eq!(place.log(&runs).await, "ready\n");
    place.runtime.stop_pod(&place.pod).await.unwrap();
    place.clean_up().await;
}

async fn a_stopped_pod_takes_no_container(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    place.runtime.stop_pod(&place.pod).await.unwrap();
    let spec = place.spec("late", &Role::Run);
    let refused = place.runtime.create_container(&place.pod, &spec).await;
    assert!(refused.is_err(), "{refused:?}");
    place.clean_up().await;
}

async fn a_removed_pod_is_gone_with_all_its_containers(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let runs = place.start_ready("runs", &Role::Stubborn).await;
    place.runtime.remove_pod(&place.pod).await.unwrap();
    assert_eq!(place.runtime.pods().await.unwrap(), []);
    assert!(place.runtime.start_container(&runs).await.is_err());
    place.clean_up().await;
}

async fn stopping_and_removing_a_pod_that_is_not_there_is_fine(backend: Arc<dyn Backend>) {
    let runtime = backend.open().await;
    let nobody = PodId("nobody".to_owned());
    runtime.stop_pod(&nobody).await.unwrap();
    runtime.remove_pod(&nobody).await.unwrap();
    let spec = backend.container("c", &Role::Run);
    assert!(runtime.create_container(&nobody, &spec).await.is_err());
}

async fn the_runtime_says_who_it_is(backend: Arc<dyn Backend>) {
    let version = backend.open().await.version().await.unwrap();
    assert!(!version.name.is_empty() && !version.version.is_empty());
}
