//! What only real containers show: their own file system, users, limits and terminals.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_runtime::{
    ContainerId, Exec, PodNetwork, PodSpec, Resources, RuntimeError, Seccomp, Security, Size,
};

use super::Oci;
use crate::backend::{Backend, Role};
use crate::tool::{PATIENCE, Place, pod_spec, read_all};

super::cases! {
    a_container_sees_its_image_and_not_the_node,
    a_program_is_who_its_pod_says_and_may_do_no_more,
    a_user_of_the_image_is_found_by_name,
    a_profile_of_the_node_is_applied_and_a_bad_one_refused,
    a_privileged_container_has_all_this_machine_has,
    a_program_that_wants_too_much_memory_is_killed_for_it,
    limits_are_set_and_changed_while_it_runs,
    a_read_only_root_is_read_only,
    nobody_writes_to_the_binary_that_started_him,
    containers_of_a_pod_share_processes_if_asked_to,
    a_terminal_is_one_and_has_a_size,
    a_container_with_a_terminal_is_attached_to,
    a_program_run_beside_ends_with_its_session,
    a_parameter_of_the_node_is_not_set_for_a_pod,
}

/// A pod with a network of its own that leads nowhere.
pub(super) async fn place(change: impl FnOnce(&mut PodSpec)) -> Place {
    let backend = Arc::new(Oci::new());
    let runtime = backend.open().await;
    let mut spec = pod_spec(&*backend, "one");
    spec.network = PodNetwork::Own;
    change(&mut spec);
    let pod = runtime.start_pod(&spec).await.unwrap();
    Place {
        backend,
        runtime,
        pod,
    }
}

pub(super) async fn shell(place: &Place, id: &ContainerId, script: &str) -> (String, i32) {
    let exec = Exec {
        command: vec![
            "/bin/sh".to_owned(),
            "-c".to_owned(),
            format!("exec 2>&1; {script}"),
        ],
        stdout: true,
        ..Exec::default()
    };
    let mut session = place.runtime.exec(id, &exec).await.unwrap();
    let output = read_all(&mut session.output).await;
    (output, session.ended.await.unwrap())
}

async fn run_as(place: &Place, name: &str, security: Security) -> ContainerId {
    let mut spec = place.spec(name, &Role::Run);
    spec.security = security;
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "ready\n").await;
    id
}

async fn a_container_sees_its_image_and_not_the_node() {
    let place = place(|_| {}).await;
    let id = place.start_ready("main", &Role::Run).await;
    let names = "bin\ndev\netc\nlib\nlib64\nproc\nprogram\nsys\ntmp\nusr\n";
    assert_eq!(shell(&place, &id, "ls /").await.0, names);
    let said = shell(&place, &id, "echo $FROM_IMAGE; hostname; cat /etc/hostname").await;
    assert_eq!(said.0, "yes\npod\npod\n");
    assert_eq!(shell(&place, &id, "cat /proc/1/comm").await.0, "program\n");
    assert_eq!(shell(&place, &id, "ls /sys/class/net").await.0, "lo\n");
    let written = shell(&place, &id, "echo x > /tmp/x; cat /tmp/x; exit 3").await;
    assert_eq!(written, ("x\n".to_owned(), 3));
    assert_eq!(shell(&place, &id, "wc -c < /proc/keys").await.0, "0\n");
    place.clean_up().await;
}

async fn a_program_is_who_its_pod_says_and_may_do_no_more() {
    let place = place(|_| {}).await;
    let security = Security {
        user: Some(1000),
        group: Some(3000),
        supplemental_groups: vec![4000],
        ..Security::default()
    };
    let id = run_as(&place, "main", security).await;
    let said = shell(&place, &id, "id -u; id -g; id -G").await.0;
    assert_eq!(said, "1000\n3000\n3000 4000\n");
    let status = "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/1/status";
    let expected = "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    assert_eq!(shell(&place, &id, status).await.0, expected);
    let security = Security {
        may_gain_privileges: true,
        ..Security::default()
    };
    let id = run_as(&place, "root", security).await;
    let expected = "CapEff:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t2\n";
    for process in ["1", "self"] {
        let status = format!("grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/{process}/status");
        assert_eq!(shell(&place, &id, &status).await.0, expected);
    }
    let (refused, code) = shell(&place, &id, "unshare -m true").await;
    assert!(
        code != 0 && refused.contains("Operation not permitted"),
        "{refused}"
    );
    place.clean_up().await;
}

async fn a_user_of_the_image_is_found_by_name() {
    let place = place(|_| {}).await;
    let mut spec = place.spec("main", &Role::Run);
    "example/user:1".clone_into(&mut spec.image);
    let refused = place.runtime.create_container(&place.pod, &spec).await;
    assert!(
        matches!(refused, Err(RuntimeError::ImageMissing { .. })),
        "{refused:?}"
    );
    super::WEB_IMAGE.clone_into(&mut spec.image);
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "ready\n").await;
    assert_eq!(
        shell(&place, &id, "id -u; id -g; id -G").await.0,
        "33\n34\n34 50\n"
    );
    place.clean_up().await;
}

async fn a_profile_of_the_node_is_applied_and_a_bad_one_refused() {
    let place = place(|_| {}).await;
    let profile = place.backend.folder().join("profile.json");
    let text = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}"#;
    fs_err::write(&profile, text).unwrap();
    let security = Security {
        seccomp: Seccomp::Localhost(profile.clone()),
        ..Security::default()
    };
    let id = run_as(&place, "main", security.clone()).await;
    let (refused, _) = shell(&place, &id, "mkdir /tmp/x").await;
    assert!(refused.contains("No space left"), "{refused}");
    fs_err::write(&profile, "{}").unwrap();
    let mut spec = place.spec("bad", &Role::Run);
    spec.security = security;
    let bad = place.create(&spec).await;
    let refused = place.runtime.start_container(&bad).await;
    assert!(
        matches!(refused, Err(RuntimeError::CannotRun { .. })),
        "{refused:?}"
    );
    place.clean_up().await;
}

async fn a_privileged_container_has_all_this_machine_has() {
    let place = place(|_| {}).await;
    let security = Security {
        privileged: true,
        ..Security::default()
    };
    let id = run_as(&place, "main", security).await;
    let own = fs_err::read_to_string("/proc/self/status").unwrap();
    let own = own
        .lines()
        .find(|line| line.starts_with("CapBnd"))
        .unwrap()
        .to_owned();
    let (status, _) = shell(
        &place,
        &id,
        "grep CapBnd /proc/1/status; ls /dev/fuse /dev/mem /dev/kmsg",
    )
    .await;
    assert!(
        status.contains(&own) && status.contains("/dev/kmsg"),
        "{status}"
    );
    let (mounted, code) = shell(&place, &id, "mount -t tmpfs none /tmp && echo done").await;
    assert_eq!((mounted.as_str(), code), ("done\n", 0));
    place.clean_up().await;
}

async fn a_program_that_wants_too_much_memory_is_killed_for_it() {
    let place = place(|_| {}).await;
    let mut spec = place.spec("main", &Role::Run);
    let script = "x=0123456789abcdef; while :; do x=$x$x; done";
    spec.command = vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()];
    spec.arguments = Vec::new();
    spec.resources = Resources {
        memory_limit_bytes: Some(20 << 20),
        ..Resources::default()
    };
    let id = place.start(&spec).await;
    let ended = place.wait_for_end(&id).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "OOMKilled"));
    place.clean_up().await;
}

async fn limits_are_set_and_changed_while_it_runs() {
    let place = place(|_| {}).await;
    let mut spec = place.spec("main", &Role::Run);
    spec.resources = Resources {
        cpu_limit_millis: Some(500),
        memory_limit_bytes: Some(64 << 20),
        pids_limit: Some(50),
        ..Resources::default()
    };
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "ready\n").await;
    let (forked, _) = shell(
        &place,
        &id,
        "for i in $(seq 60); do sleep 20 & done; echo none",
    )
    .await;
    assert!(!forked.ends_with("none\n"), "{forked}");
    let larger = Resources {
        memory_limit_bytes: Some(128 << 20),
        pids_limit: Some(5000),
        ..Resources::default()
    };
    place.runtime.update_container(&id, &larger).await.unwrap();
    let (forked, _) = shell(
        &place,
        &id,
        "for i in $(seq 60); do sleep 1 & done; echo all",
    )
    .await;
    assert!(forked.ends_with("all\n"), "{forked}");
    place.clean_up().await;
}

async fn a_read_only_root_is_read_only() {
    let place = place(|_| {}).await;
    let security = Security {
        read_only_root: true,
        ..Security::default()
    };
    let id = run_as(&place, "main", security).await;
    let (refused, _) = shell(&place, &id, "echo x > /tmp/x").await;
    assert!(refused.contains("Read-only file system"), "{refused}");
    place.clean_up().await;
}

async fn nobody_writes_to_the_binary_that_started_him() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let mut spec = place.spec("main", &Role::Run);
    spec.command = vec!["/proc/self/exe".to_owned()];
    spec.arguments = Role::Run.words();
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "ready\n").await;
    // While it runs nobody can write to it anyway; what counts is how he came to it.
    let own = super::machine::members(&format!("{}/podone", backend.cgroup()));
    assert_eq!(own.len(), 1);
    let path = format!("/proc/{}/exe", own[0]);
    let flags = nix::sys::statvfs::statvfs(path.as_str()).unwrap().flags();
    assert!(
        flags.contains(nix::sys::statvfs::FsFlags::ST_RDONLY),
        "{flags:?}"
    );
    place.clean_up().await;
}

async fn containers_of_a_pod_share_processes_if_asked_to() {
    let place = place(|spec| spec.share_processes = true).await;
    let one = place.start_ready("one", &Role::Run).await;
    let two = place.start_ready("two", &Role::Run).await;
    let count = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o '[r]ole run' | wc -l";
    assert_eq!(shell(&place, &two, count).await.0, "2\n");
    place
        .runtime
        .stop_container(&one, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(place.wait_for_end(&one).await.exit_code, 137);
    assert_eq!(shell(&place, &two, count).await.0, "1\n");
    place.clean_up().await;
}

async fn a_terminal_is_one_and_has_a_size() {
    let place = place(|_| {}).await;
    let id = place.start_ready("main", &Role::Run).await;
    let exec = Exec {
        command: vec!["/bin/sh".to_owned()],
        stdin: true,
        stdout: true,
        terminal: true,
        ..Exec::default()
    };
    let mut session = place.runtime.exec(&id, &exec).await.unwrap();
    let size = Size {
        columns: 123,
        rows: 45,
    };
    session.resize.as_ref().unwrap().send(size).await.unwrap();
    let mut input = session.input.take().unwrap();
    let script =
        "until [ \"$(stty size)\" = '45 123' ]; do sleep 0.01; done; tty; echo $TERM; exit 4\n";
    input.write_all(script.as_bytes()).await.unwrap();
    let heard = read_all(&mut session.output).await;
    assert!(
        heard.contains("/dev/pts/0") && heard.contains("xterm"),
        "{heard}"
    );
    assert_eq!(session.ended.await.unwrap(), 4);
    place.clean_up().await;
}

async fn a_container_with_a_terminal_is_attached_to() {
    let place = place(|_| {}).await;
    let mut spec = place.spec("main", &Role::Run);
    (spec.command, spec.arguments) = (vec!["/bin/sh".to_owned()], Vec::new());
    (spec.stdin, spec.terminal) = (true, true);
    let id = place.start(&spec).await;
    let both = transom_runtime::Attach {
        stdin: true,
        stdout: true,
        stderr: true,
    };
    let mut session = place.runtime.attach(&id, &both).await.unwrap();
    assert!(session.errors.is_none());
    let mut input = session.input.take().unwrap();
    input.write_all(b"echo $((40+2)); exit 6\n").await.unwrap();
    let mut output = session.output.take().unwrap();
    let mut heard = String::new();
    tokio::time::timeout(PATIENCE, output.read_to_string(&mut heard))
        .await
        .unwrap()
        .unwrap();
    assert!(heard.contains("42\r\n"), "{heard:?}");
    assert_eq!(session.ended.await.unwrap(), 6);
    place.wait_for_end(&id).await;
    assert!(place.log(&id).await.contains("42"));
    place.clean_up().await;
}

async fn a_program_run_beside_ends_with_its_session() {
    let place = place(|_| {}).await;
    let id = place.start_ready("main", &Role::Run).await;
    let exec = Exec {
        command: vec!["/bin/sleep".to_owned(), "1234".to_owned()],
        stdout: true,
        ..Exec::default()
    };
    let session = place.runtime.exec(&id, &exec).await.unwrap();
    let count = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 1234'";
    assert_eq!(shell(&place, &id, count).await.0, "1\n");
    drop(session);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while shell(&place, &id, count).await.0 != "0\n" {
        assert!(tokio::time::Instant::now() < deadline, "it runs on");
    }
    place.clean_up().await;
}

async fn a_parameter_of_the_node_is_not_set_for_a_pod() {
    let backend = Arc::new(Oci::new());
    let runtime = backend.open().await;
    let mut spec = pod_spec(&*backend, "one");
    spec.network = PodNetwork::Own;
    spec.sysctls = [("vm.swappiness".to_owned(), "1".to_owned())].into();
    let refused = runtime.start_pod(&spec).await.unwrap_err();
    assert!(refused.to_string().contains("vm.swappiness"), "{refused}");
    assert_eq!(runtime.pods().await.unwrap(), []);
    spec.sysctls = [(
        "net.ipv4.ip_unprivileged_port_start".to_owned(),
        "1234".to_owned(),
    )]
    .into();
    let pod = runtime.start_pod(&spec).await.unwrap();
    let place = Place {
        backend,
        runtime,
        pod,
    };
    let id = place.start_ready("main", &Role::Run).await;
    let value = shell(
        &place,
        &id,
        "cat /proc/sys/net/ipv4/ip_unprivileged_port_start",
    )
    .await
    .0;
    assert_eq!(value, "1234\n");
    place.clean_up().await;
}
