//! Containers: made, started, restarted, looked at.

use std::sync::Arc;
use std::time::Duration;

use transom_runtime::{ContainerId, ContainerState, RuntimeError, Variable};

use crate::backend::{Backend, Role};
use crate::tool::{PATIENCE, Place, is_running};

super::cases! {
    a_container_is_created_then_runs_and_is_made_once,
    a_container_is_listed_with_what_it_was_made_from,
    a_restart_is_a_new_container_beside_the_old_one,
    a_container_that_ran_is_not_started_again,
    a_program_that_cannot_run_says_why_and_has_ended,
    variables_and_arguments_reach_the_program,
    outputs_go_to_the_log_in_order_and_by_stream,
    a_renamed_log_goes_on_in_a_new_file,
    starts_and_ends_are_told_as_events,
    what_runs_is_measured,
    a_container_that_is_not_there_is_not_found,
}

async fn a_container_is_created_then_runs_and_is_made_once(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let spec = place.spec("main", &Role::Run);
    let id = place.create(&spec).await;
    assert_eq!(place.container(&id).await.state, ContainerState::Created);
    assert_eq!(place.create(&spec).await, id);
    assert_eq!(place.pod().await.containers.len(), 1);
    place.runtime.start_container(&id).await.unwrap();
    let first = place.container(&id).await;
    assert!(is_running(&first));
    place.runtime.start_container(&id).await.unwrap();
    assert_eq!(place.container(&id).await.state, first.state);
    assert_eq!(place.create(&spec).await, id);
    place.clean_up().await;
}

async fn a_container_is_listed_with_what_it_was_made_from(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("main", &Role::Run);
    spec.labels = [("tier".to_owned(), "web".to_owned())].into();
    spec.annotations = [("hash".to_owned(), "12ab".to_owned())].into();
    "name/as:given".clone_into(&mut spec.image_name);
    let id = place.create(&spec).await;
    let container = place.container(&id).await;
    assert_eq!(
        (container.pod, container.name),
        (place.pod.clone(), spec.name)
    );
    assert_eq!(
        (container.labels, container.annotations),
        (spec.labels, spec.annotations)
    );
    assert_eq!(
        (container.image, container.image_name),
        (spec.image, spec.image_name)
    );
    let log = place.backend.folder().join("logs/one/main/0.log");
    assert_eq!(container.log_path, log);
    place.clean_up().await;
}

async fn a_restart_is_a_new_container_beside_the_old_one(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let first = place.start(&place.spec("main", &Role::Exit(1))).await;
    place.wait_for_end(&first).await;
    let mut again = place.spec("main", &Role::Exit(2));
    again.attempt = 1;
    again.log_path = "main/1.log".into();
    let second = place.start(&again).await;
    assert_ne!(first, second);
    assert_eq!(place.wait_for_end(&second).await.exit_code, 2);
    assert_eq!(place.wait_for_end(&first).await.exit_code, 1);
    let attempts = place.pod().await.containers;
    let mut attempts: Vec<u32> = attempts.iter().map(|one| one.attempt).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [0, 1]);
    place.clean_up().await;
}

async fn a_container_that_ran_is_not_started_again(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start(&place.spec("main", &Role::Lines(1))).await;
    let ended = place.wait_for_end(&id).await;
    // Fine or an error, as long as nothing runs.
    let _ = place.runtime.start_container(&id).await;
    assert_eq!(
        place.container(&id).await.state,
        ContainerState::Exited(ended)
    );
    assert_eq!(place.log(&id).await.matches("line 1").count(), 1);
    place.clean_up().await;
}

async fn a_program_that_cannot_run_says_why_and_has_ended(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.create(&place.spec("main", &Role::Missing)).await;
    let error = place.runtime.start_container(&id).await.unwrap_err();
    assert!(matches!(error, RuntimeError::CannotRun { .. }), "{error:?}");
    let ended = place.wait_for_end(&id).await;
    assert_eq!(
        (ended.started, ended.reason.as_str()),
        (None, "ContainerCannotRun")
    );
    assert!(ended.exit_code != 0 && !ended.message.is_empty());
    place.clean_up().await;
}

async fn variables_and_arguments_reach_the_program(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("variable", &Role::Variable("GREETING".to_owned()));
    spec.environment = vec![Variable {
        name: "GREETING".to_owned(),
        value: "good morning = \"x\"".to_owned(),
    }];
    let variable = place.start(&spec).await;
    let words = ["", "a b", "\"q\"", "\\", "ü"].map(str::to_owned).to_vec();
    let arguments = place
        .start(&place.spec("arguments", &Role::Arguments(words)))
        .await;
    place.wait_for_end(&variable).await;
    place.wait_for_end(&arguments).await;
    assert_eq!(place.log(&variable).await, "good morning = \"x\"\n");
    assert_eq!(place.log(&arguments).await, "\na b\n\"q\"\n\\\nü\n");
    place.clean_up().await;
}

async fn outputs_go_to_the_log_in_order_and_by_stream(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start(&place.spec("main", &Role::Lines(200))).await;
    place.wait_for_end(&id).await;
    let path = place.container(&id).await.log_path;
    let text = fs_err::read_to_string(path).unwrap();
    let of = |stream: &str| {
        let marker = format!(" {stream} F ");
        let lines = text.lines().filter_map(|line| line.split_once(&marker));
        lines.map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
    };
    let expected = |word: &str| {
        (1..=200)
            .map(|number| format!("{word} {number}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("stdout"), expected("line"));
    assert_eq!(of("stderr"), expected("error"));
    place.clean_up().await;
}

async fn a_renamed_log_goes_on_in_a_new_file(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("main", &Role::Echo);
    spec.stdin = true;
    let id = place.start(&spec).await;
    crate::cases::streams::tell(&place, &id, "before\n").await;
    place.wait_for_log(&id, "before\n").await;
    let path = place.container(&id).await.log_path;
    let old = format!("{path}.old");
    fs_err::rename(&path, &old).unwrap();
    place.runtime.reopen_log(&id).await.unwrap();
    crate::cases::streams::tell(&place, &id, "after\n").await;
    place.wait_for_log(&id, "after\n").await;
    assert_eq!(place.log(&id).await, "after\n");
    assert!(fs_err::read_to_string(&old).unwrap().contains("before"));
    place.clean_up().await;
}

async fn starts_and_ends_are_told_as_events(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut events = place.runtime.events();
    let id = place.start(&place.spec("main", &Role::Exit(0))).await;
    let end = async {
        loop {
            let event = events.recv().await.unwrap();
            assert_eq!(event.pod, place.pod);
            let ended = matches!(place.container(&id).await.state, ContainerState::Exited(_));
            if event.container.as_ref() == Some(&id) && ended {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, end)
        .await
        .expect("the end is told");
    place.clean_up().await;
}

async fn what_runs_is_measured(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    place.start_ready("main", &Role::Run).await;
    let ended = place.start(&place.spec("ended", &Role::Exit(0))).await;
    place.wait_for_end(&ended).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let stats = place.runtime.stats().await.unwrap();
        let pod = stats.iter().find(|one| one.pod == place.pod).unwrap();
        let names: Vec<&str> = pod.containers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["main"]);
        let container = &pod.containers[0];
        if container.cpu.is_some()
            && container
                .memory
                .is_some_and(|one| one.working_set_bytes > 0)
        {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{stats:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    place.clean_up().await;
}

async fn a_container_that_is_not_there_is_not_found(backend: Arc<dyn Backend>) {
    let runtime = backend.open().await;
    let nobody = ContainerId("nobody".to_owned());
    let error = runtime.start_container(&nobody).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NotFound { .. }), "{error:?}");
    runtime
        .stop_container(&nobody, Duration::ZERO)
        .await
        .unwrap();
    runtime.remove_container(&nobody).await.unwrap();
}
