//! How containers end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use transom_runtime::ContainerState;

use crate::backend::{Ability, Backend, Role};
use crate::tool::{PATIENCE, Place};

super::cases! {
    an_exit_code_is_kept_with_its_times,
    a_polite_program_ends_in_its_own_way,
    a_stubborn_program_is_killed_after_its_grace,
    a_program_without_grace_is_killed_at_once,
    a_program_that_does_not_care_ends_by_the_signal,
    stopping_twice_and_stopping_what_never_ran_is_fine,
    a_removed_container_is_killed_and_its_log_stays,
}

async fn an_exit_code_is_kept_with_its_times(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    for (code, reason) in [
        (0, "Completed"),
        (1, "Error"),
        (42, "Error"),
        (255, "Error"),
    ] {
        let spec = place.spec(&format!("exits-{code}"), &Role::Exit(code));
        let id = place.start(&spec).await;
        let ended = place.wait_for_end(&id).await;
        assert_eq!((ended.exit_code, ended.reason.as_str()), (code, reason));
        let created = place.container(&id).await.created;
        let started = ended.started.unwrap();
        assert!(created <= started && started <= ended.finished, "{ended:?}");
    }
    place.clean_up().await;
}

async fn a_polite_program_ends_in_its_own_way(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Polite).await;
    let began = Instant::now();
    place.runtime.stop_container(&id, PATIENCE).await.unwrap();
    assert!(began.elapsed() < PATIENCE / 2, "it was waited for in vain");
    assert_eq!(place.wait_for_end(&id).await.exit_code, 7);
    place.clean_up().await;
}

async fn a_stubborn_program_is_killed_after_its_grace(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Stubborn).await;
    let (began, grace) = (Instant::now(), Duration::from_millis(700));
    place.runtime.stop_container(&id, grace).await.unwrap();
    assert!(began.elapsed() >= grace, "it had no grace");
    let ContainerState::Exited(ended) = place.container(&id).await.state else {
        panic!("stop returned before the end");
    };
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "Error"));
    place.clean_up().await;
}

async fn a_program_without_grace_is_killed_at_once(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Stubborn).await;
    place
        .runtime
        .stop_container(&id, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(place.wait_for_end(&id).await.exit_code, 137);
    place.clean_up().await;
}

async fn a_program_that_does_not_care_ends_by_the_signal(backend: Arc<dyn Backend>) {
    if !backend.can(Ability::Signals) {
        return;
    }
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Run).await;
    place.runtime.stop_container(&id, PATIENCE).await.unwrap();
    assert_eq!(place.wait_for_end(&id).await.exit_code, 143);
    place.clean_up().await;
}

async fn stopping_twice_and_stopping_what_never_ran_is_fine(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let never = place.create(&place.spec("never", &Role::Run)).await;
    place
        .runtime
        .stop_container(&never, PATIENCE)
        .await
        .unwrap();
    let id = place.start(&place.spec("main", &Role::Exit(3))).await;
    let ended = place.wait_for_end(&id).await;
    place.runtime.stop_container(&id, PATIENCE).await.unwrap();
    place.runtime.stop_container(&id, PATIENCE).await.unwrap();
    assert_eq!(place.wait_for_end(&id).await, ended);
    place.clean_up().await;
}

async fn a_removed_container_is_killed_and_its_log_stays(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Stubborn).await;
    let log = place.container(&id).await.log_path;
    place.runtime.remove_container(&id).await.unwrap();
    assert_eq!(place.pod().await.containers, []);
    assert!(fs_err::read_to_string(log).unwrap().contains("ready"));
    place.runtime.remove_container(&id).await.unwrap();
    // The name is free again.
    let again = place.start(&place.spec("main", &Role::Exit(4))).await;
    assert_eq!(place.wait_for_end(&again).await.exit_code, 4);
    place.clean_up().await;
}
