//! Nothing is lost when the runtime's object goes and another comes.

use std::sync::Arc;
use std::time::Duration;

use transom_runtime::{ContainerState, Exec};

use crate::backend::{Backend, Role};
use crate::tool::{PATIENCE, Place, read_all};

super::cases! {
    everything_is_found_again_as_it_was,
    what_ended_while_nobody_looked_has_its_exit_code,
    an_adopted_container_is_like_any_other,
    an_adopted_end_is_told_as_an_event,
    a_stopped_pod_stays_stopped,
}

async fn everything_is_found_again_as_it_was(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    place.create(&place.spec("created", &Role::Run)).await;
    place.start_ready("running", &Role::Run).await;
    let ended = place.start(&place.spec("ended", &Role::Exit(6))).await;
    place.wait_for_end(&ended).await;
    let failed = place.create(&place.spec("failed", &Role::Missing)).await;
    place.runtime.start_container(&failed).await.unwrap_err();
    let before = place.runtime.pods().await.unwrap();
    let place = place.reopen().await;
    assert_eq!(place.runtime.pods().await.unwrap(), before);
    let spec = crate::tool::pod_spec(&*place.backend, "one");
    assert_eq!(place.runtime.start_pod(&spec).await.unwrap(), place.pod);
    let again = place.create(&place.spec("running", &Role::Run)).await;
    place.runtime.start_container(&again).await.unwrap();
    assert_eq!(place.runtime.pods().await.unwrap(), before);
    place.clean_up().await;
}

async fn what_ended_while_nobody_looked_has_its_exit_code(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start(&place.spec("main", &Role::Exit(11))).await;
    let place = place.reopen().await;
    assert_eq!(place.wait_for_end(&id).await.exit_code, 11);
    let place = place.reopen().await;
    assert_eq!(place.wait_for_end(&id).await.exit_code, 11);
    place.clean_up().await;
}

async fn an_adopted_container_is_like_any_other(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let polite = place.start_ready("polite", &Role::Polite).await;
    let mut spec = place.spec("echo", &Role::Echo);
    spec.stdin = true;
    let echo = place.start(&spec).await;
    let place = place.reopen().await;
    crate::cases::streams::tell(&place, &echo, "still there\n").await;
    place.wait_for_log(&echo, "still there\n").await;
    let exec = Exec {
        command: place.backend.command(&Role::Lines(1)),
        stdout: true,
        ..Exec::default()
    };
    let mut session = place.runtime.exec(&echo, &exec).await.unwrap();
    assert_eq!(read_all(&mut session.output).await.trim_end(), "line 1");
    place
        .runtime
        .stop_container(&polite, PATIENCE)
        .await
        .unwrap();
    assert_eq!(place.wait_for_end(&polite).await.exit_code, 7);
    place
        .runtime
        .stop_container(&echo, Duration::ZERO)
        .await
        .unwrap();
    assert!(matches!(
        place.container(&echo).await.state,
        ContainerState::Exited(_)
    ));
    place.clean_up().await;
}

async fn an_adopted_end_is_told_as_an_event(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("main", &Role::Echo);
    spec.stdin = true;
    spec.stdin_once = true;
    let id = place.start(&spec).await;
    let place = place.reopen().await;
    let mut events = place.runtime.events();
    crate::cases::streams::tell(&place, &id, "end\n").await;
    let end = async {
        while !matches!(place.container(&id).await.state, ContainerState::Exited(_)) {
            events.recv().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, end)
        .await
        .expect("the end is told");
    place.clean_up().await;
}

async fn a_stopped_pod_stays_stopped(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Run).await;
    place.runtime.stop_pod(&place.pod).await.unwrap();
    let before = place.runtime.pods().await.unwrap();
    let place = place.reopen().await;
    assert_eq!(place.runtime.pods().await.unwrap(), before);
    place.runtime.remove_container(&id).await.unwrap();
    place.clean_up().await;
}
