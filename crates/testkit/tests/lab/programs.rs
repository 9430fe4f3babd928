//! Programs on a host: how they are started, watched and ended, and who they belong to.

use std::time::{Duration, Instant};

use transom_testkit::{Lab, eventually};

use crate::{ECHO, PORT, SOON, serve};

#[test]
fn orphans_are_collected_by_the_host() {
    let lab = Lab::new("orphans").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    alpha
        .run(["setsid", "--fork", "true"])
        .unwrap()
        .success()
        .unwrap();
    alpha
        .run(["bash", "-c", "(sleep 0.1 &) ; exit 0"])
        .unwrap()
        .success()
        .unwrap();
    eventually("the orphans to be collected", SOON, || {
        anyhow::ensure!(alpha.processes()?.is_empty(), "{}", lab.logs());
        Ok(())
    })
    .unwrap();
}

#[test]
fn processes_of_a_container_on_a_host_are_among_the_hosts_own() {
    let lab = Lab::new("nested").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.linux_host("beta").unwrap();
    alpha
        .spawn(["unshare", "--pid", "--fork", "sleep", "1000"])
        .unwrap();
    eventually("the process of the container", SOON, || {
        let processes = alpha.processes()?;
        let inner = processes.iter().find(|process| process.name == "sleep");
        anyhow::ensure!(
            inner.is_some_and(|process| process.host_id > 1),
            "{processes:?}"
        );
        Ok(())
    })
    .unwrap();
    assert_eq!(beta.processes().unwrap(), []);
    alpha.pause().unwrap();
    assert!(
        alpha
            .processes()
            .unwrap()
            .iter()
            .all(|process| process.stopped)
    );
}

#[test]
fn a_program_is_ended_gracefully_or_at_once() {
    let lab = Lab::new("ends").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();

    let server = serve(&alpha).unwrap();
    server.terminate().unwrap();
    assert!(server.wait(SOON).unwrap().success());
    assert!(server.stdout().unwrap().ends_with("stopping\n"));

    let server = serve(&alpha).unwrap();
    server.close_input();
    assert!(server.wait(SOON).unwrap().success());
    assert!(server.stdout().unwrap().ends_with("stopping\n"));

    let server = serve(&alpha).unwrap();
    let id = server.host_id().unwrap();
    assert!(
        alpha
            .processes()
            .unwrap()
            .iter()
            .any(|process| process.host_id == id)
    );
    server.kill().unwrap();
    assert!(!server.stdout().unwrap().contains("stopping"));
    assert!(alpha.processes().unwrap().is_empty());
}

#[test]
fn a_program_that_takes_too_long_is_killed_and_its_output_is_in_the_error() {
    let lab = Lab::new("long").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let began = Instant::now();
    let command = alpha.command(["sh", "-c", "echo started; exec sleep 1000"]);
    let error = command.timeout(Duration::from_secs(5)).run().unwrap_err();
    assert!(began.elapsed() < SOON);
    assert!(
        format!("{error:#}").contains("stdout: started"),
        "{error:#}"
    );
    assert!(alpha.processes().unwrap().is_empty());
}

#[test]
fn input_variables_folder_and_exit_code_are_passed_on() {
    let lab = Lab::new("pass").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let script = r#"read -r line; echo "$line $COLOUR $PWD ${CARGO_MANIFEST_DIR-none}"; exit 7"#;
    let output = alpha
        .command(["bash", "-c", script])
        .variable("COLOUR", "blue")
        .folder("/usr/share")
        .input("hello\n")
        .run()
        .unwrap();
    assert_eq!(output.stdout, "hello blue /usr/share none\n");
    assert_eq!(output.status.code(), Some(7));
    let error = alpha.run(["/no/such/program"]).unwrap_err();
    let text = format!("{error:#}");
    assert!(
        text.contains("`/no/such/program` on host `alpha`"),
        "{text}"
    );
}

#[test]
fn the_server_tells_a_supervisor_that_it_is_ready() {
    let lab = Lab::new("notify").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    // The socket lies on the host and is bound from here, through the host's files.
    let path = alpha.path("/run/notify").unwrap();
    let socket = std::os::unix::net::UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    serve(&alpha).unwrap().kill().unwrap();
    let port = PORT.to_string();
    alpha
        .command([ECHO, "serve", "--port", &port, "--name", "x"])
        .variable("NOTIFY_SOCKET", "/run/notify")
        .spawn()
        .unwrap();
    let mut message = [0; 64];
    let length = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1");
}
