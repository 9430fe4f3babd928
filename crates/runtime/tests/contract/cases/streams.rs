//! Streams into containers: exec, attach, input, ports.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_runtime::{Attach, ContainerId, Exec, RuntimeError};

use crate::backend::{Ability, Backend, Role};
use crate::tool::{PATIENCE, Place, is_running, read_all};

super::cases! {
    a_program_run_beside_has_its_own_streams_and_exit_code,
    a_program_run_beside_reads_its_input_to_the_end,
    a_program_run_beside_that_is_not_there_is_an_error,
    nothing_runs_beside_what_does_not_run,
    a_terminal_is_there_or_refused_in_words,
    an_attached_program_is_heard_and_spoken_to,
    letting_go_of_an_attached_program_leaves_it_alone,
    the_input_ends_with_the_first_who_had_it_if_it_is_for_one,
    a_port_of_the_pod_is_reached_and_a_closed_one_is_not,
}

/// Says something to the program of a container.
pub(crate) async fn tell(place: &Place, id: &ContainerId, text: &str) {
    let attach = Attach {
        stdin: true,
        stdout: true,
        stderr: false,
    };
    let mut session = place.runtime.attach(id, &attach).await.unwrap();
    let input = session.input.as_mut().unwrap();
    input.write_all(text.as_bytes()).await.unwrap();
    input.flush().await.unwrap();
    let mut heard = vec![0; text.len()];
    let output = session.output.as_mut().unwrap();
    let read = output.read_exact(&mut heard);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    assert_eq!(heard, text.as_bytes());
}

fn exec(place: &Place, role: &Role, stdin: bool) -> Exec {
    Exec {
        command: place.backend.command(role),
        stdin,
        stdout: true,
        stderr: true,
        terminal: false,
    }
}

async fn a_program_run_beside_has_its_own_streams_and_exit_code(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Run).await;
    let lines = exec(&place, &Role::Lines(1), false);
    let mut session = place.runtime.exec(&id, &lines).await.unwrap();
    assert!(session.input.is_none());
    assert_eq!(read_all(&mut session.output).await.trim_end(), "line 1");
    assert_eq!(read_all(&mut session.errors).await.trim_end(), "error 1");
    assert_eq!(session.ended.await.unwrap(), 0);
    let exits = exec(&place, &Role::Exit(9), false);
    let session = place.runtime.exec(&id, &exits).await.unwrap();
    assert_eq!(session.ended.await.unwrap(), 9);
    assert!(is_running(&place.container(&id).await));
    assert_eq!(place.log(&id).await, "ready\n");
    place.clean_up().await;
}

async fn a_program_run_beside_reads_its_input_to_the_end(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Run).await;
    let echo = exec(&place, &Role::Echo, true);
    let mut session = place.runtime.exec(&id, &echo).await.unwrap();
    let lines = (0..20_000).map(|number| format!("this is line {number}\n"));
    let text: String = lines.collect();
    let mut input = session.input.take().unwrap();
    let sent = text.clone();
    let writing = tokio::spawn(async move {
        input.write_all(sent.as_bytes()).await.unwrap();
        input.shutdown().await.unwrap();
    });
    let heard = read_all(&mut session.output).await;
    writing.await.unwrap();
    assert!(
        heard.replace('\r', "") == text,
        "{} bytes came back",
        heard.len()
    );
    assert_eq!(session.ended.await.unwrap(), 5);
    place.clean_up().await;
}

async fn a_program_run_beside_that_is_not_there_is_an_error(backend: Arc<dyn Backend>) {
    if backend.image() == "registry.example/program:1" {
        // A plan has no programs that could be missing.
        return;
    }
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Run).await;
    let missing = exec(&place, &Role::Missing, false);
    match place.runtime.exec(&id, &missing).await {
        Err(error) => assert!(matches!(error, RuntimeError::CannotRun { .. }), "{error:?}"),
        // Some learn it only when the program has ended.
        Ok(session) => {
            let ended = tokio::time::timeout(PATIENCE, session.ended).await;
            let ended = ended.expect("its end is told");
            assert!(!matches!(ended, Ok(0)), "{ended:?}");
        }
    }
    assert!(is_running(&place.container(&id).await));
    place.clean_up().await;
}

async fn nothing_runs_beside_what_does_not_run(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.create(&place.spec("main", &Role::Exit(0))).await;
    let beside = exec(&place, &Role::Exit(0), false);
    assert!(place.runtime.exec(&id, &beside).await.is_err());
    place.runtime.start_container(&id).await.unwrap();
    place.wait_for_end(&id).await;
    assert!(place.runtime.exec(&id, &beside).await.is_err());
    let attach = Attach {
        stdout: true,
        ..Attach::default()
    };
    assert!(place.runtime.attach(&id, &attach).await.is_err());
    place.clean_up().await;
}

async fn a_terminal_is_there_or_refused_in_words(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let id = place.start_ready("main", &Role::Run).await;
    let beside = Exec {
        terminal: true,
        stderr: false,
        ..exec(&place, &Role::Exit(0), true)
    };
    let session = place.runtime.exec(&id, &beside).await;
    if place.backend.can(Ability::Terminal) {
        let session = session.unwrap();
        assert!(session.resize.is_some() && session.errors.is_none());
    } else if let Err(error) = session {
        assert!(matches!(error, RuntimeError::NotSupported(_)), "{error:?}");
    }
    place.clean_up().await;
}

async fn an_attached_program_is_heard_and_spoken_to(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("main", &Role::Echo);
    spec.stdin = true;
    spec.stdin_once = true;
    let id = place.start(&spec).await;
    let both = Attach {
        stdin: true,
        stdout: true,
        stderr: true,
    };
    let mut session = place.runtime.attach(&id, &both).await.unwrap();
    let mut input = session.input.take().unwrap();
    input.write_all(b"hello\nworld\n").await.unwrap();
    input.shutdown().await.unwrap();
    drop(input);
    let heard = read_all(&mut session.output).await;
    assert_eq!(heard.replace('\r', ""), "hello\nworld\n");
    assert_eq!(session.ended.await.unwrap(), 5);
    assert_eq!(place.wait_for_end(&id).await.exit_code, 5);
    assert_eq!(place.log(&id).await, "hello\nworld\n");
    place.clean_up().await;
}

async fn letting_go_of_an_attached_program_leaves_it_alone(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("main", &Role::Echo);
    spec.stdin = true;
    let id = place.start(&spec).await;
    tell(&place, &id, "one\n").await;
    tell(&place, &id, "two\n").await;
    assert!(is_running(&place.container(&id).await));
    // Who is attached may hear it before it is in the log.
    place.wait_for_log(&id, "two\n").await;
    assert_eq!(place.log(&id).await, "one\ntwo\n");
    place.clean_up().await;
}

async fn the_input_ends_with_the_first_who_had_it_if_it_is_for_one(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let mut spec = place.spec("main", &Role::Echo);
    spec.stdin = true;
    spec.stdin_once = true;
    let id = place.start(&spec).await;
    tell(&place, &id, "one\n").await;
    assert_eq!(place.wait_for_end(&id).await.exit_code, 5);
    place.clean_up().await;
}

async fn a_port_of_the_pod_is_reached_and_a_closed_one_is_not(backend: Arc<dyn Backend>) {
    let place = Place::new(backend).await;
    let port = free_port();
    place.start_ready("main", &Role::Serve(port)).await;
    let mut connection = place.runtime.connect(&place.pod, port).await.unwrap();
    connection.0.write_all(b"ping").await.unwrap();
    connection.0.flush().await.unwrap();
    let mut answer = [0; 4];
    let read = connection.0.read_exact(&mut answer);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    assert_eq!(&answer, b"ping");
    drop(connection);
    let closed = place.runtime.connect(&place.pod, free_port());
    let refused = tokio::time::timeout(PATIENCE, closed).await;
    assert!(refused.expect("a closed port answers").is_err());
    place.clean_up().await;
}

/// A port that nobody has and that no system gives to somebody who asks for any: it is still free when it is used.
fn free_port() -> u16 {
    let chance = RandomState::new();
    (0..u32::MAX)
        .filter_map(|attempt| u16::try_from(15_000 + chance.hash_one(attempt) % 15_000).ok())
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
