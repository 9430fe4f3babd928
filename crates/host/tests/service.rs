//! What the registration of services promises. Under Windows the service is this very test program,
//! started by the service manager; the fake keeps the same promises everywhere.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]
#![expect(clippy::print_stderr, reason = "a clean-up that fails must be seen")]

use std::time::Duration;

use transom_host::service::fake::FakeServices;
use transom_host::service::{
    FailureActions, Native, Registration, ServiceError, ServiceManager, ServiceStatus, Start,
};

const TIMEOUT: Duration = Duration::from_mins(1);

fn registration(name: &str) -> Registration {
    Registration {
        name: name.to_owned(),
        display: format!("Test {name}"),
        description: "Made by a test; may be removed".to_owned(),
        program: camino::Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap(),
        arguments: Vec::new(),
        start: Start::Manual,
        dependencies: Vec::new(),
        failure: FailureActions {
            restart_delays: vec![Duration::from_secs(1), Duration::from_secs(30)],
            reset_after: Duration::from_hours(1),
        },
        user: None,
    }
}

/// Takes a registration away however the test ends.
struct Cleanup<'a>(&'a dyn ServiceManager, String);

impl Drop for Cleanup<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.uninstall(&self.1) {
            eprintln!("could not remove {}: {error}", self.1);
        }
    }
}

fn a_service_lives_from_install_to_uninstall(
    services: &dyn ServiceManager,
    registration: &Registration,
) {
    let name = registration.name.as_str();
    assert_eq!(services.status(name).unwrap(), ServiceStatus::NotInstalled);
    let cleanup = Cleanup(services, name.to_owned());
    services.install(registration).unwrap();
    services.install(registration).unwrap();
    assert!(services.list_ours().unwrap().contains(&name.to_owned()));
    assert!(matches!(
        services.status(name).unwrap(),
        ServiceStatus::Stopped { .. }
    ));

    services.start(name, TIMEOUT).unwrap();
    services.start(name, TIMEOUT).unwrap();
    assert!(matches!(
        services.status(name).unwrap(),
        ServiceStatus::Running { .. }
    ));
    services.install(registration).unwrap();
    assert!(matches!(
        services.status(name).unwrap(),
        ServiceStatus::Running { .. }
    ));

    services.stop(name, TIMEOUT).unwrap();
    services.stop(name, TIMEOUT).unwrap();
    assert_eq!(
        services.status(name).unwrap(),
        ServiceStatus::Stopped { exit_code: Some(0) }
    );
    services.start(name, TIMEOUT).unwrap();
    services.uninstall(name).unwrap();
    services.uninstall(name).unwrap();
    assert_eq!(services.status(name).unwrap(), ServiceStatus::NotInstalled);
    assert!(!services.list_ours().unwrap().contains(&name.to_owned()));
    drop(cleanup);
}

fn a_service_that_is_not_there_is_named(services: &dyn ServiceManager) {
    let name = "transom-test-not-there";
    for error in [
        services.start(name, TIMEOUT).unwrap_err(),
        services.stop(name, TIMEOUT).unwrap_err(),
    ] {
        assert!(
            matches!(&error, ServiceError::NotInstalled { name } if name == "transom-test-not-there")
        );
    }
}

fn a_bad_registration_changes_nothing(services: &dyn ServiceManager) {
    let bad = registration("transom test with spaces");
    assert!(matches!(
        services.install(&bad),
        Err(ServiceError::Registration { .. })
    ));
    assert!(!services.list_ours().unwrap().contains(&bad.name));
}

#[test]
fn the_fake_keeps_the_promises_of_a_service_manager() {
    let services = FakeServices::new();
    a_service_lives_from_install_to_uninstall(&services, &registration("fake"));
    a_service_that_is_not_there_is_named(&services);
    a_bad_registration_changes_nothing(&services);
}

#[test]
fn the_fake_leaves_foreign_services_alone() {
    let services = FakeServices::new();
    services.add_foreign("sshd");
    for result in [
        services.install(&registration("sshd")),
        services.start("sshd", TIMEOUT),
        services.stop("sshd", TIMEOUT),
        services.uninstall("sshd"),
    ] {
        assert!(matches!(result, Err(ServiceError::Foreign { .. })));
    }
    assert_eq!(
        services.status("sshd").unwrap(),
        ServiceStatus::Running { process: None }
    );
}

#[test]
fn a_service_that_never_gets_ready_is_reported_after_its_time() {
    let services = FakeServices::new();
    services.install(&registration("slow")).unwrap();
    services.never_ready("slow");
    let error = services.start("slow", Duration::from_secs(5)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the service `slow` did not start within 5 s"
    );
    assert_eq!(services.status("slow").unwrap(), ServiceStatus::Starting);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::PermissionsExt as _;

    use camino::{Utf8Path, Utf8PathBuf};
    use transom_host::service::{Ran, run_as_service};

    use super::*;

    #[test]
    fn without_systemd_there_is_no_service_manager() {
        let systemd_runs = Utf8Path::new("/run/systemd/system").is_dir();
        match Native::connect() {
            Ok(_) => assert!(systemd_runs),
            Err(ServiceError::NoServiceManager) => assert!(!systemd_runs),
            Err(other) => panic!("{other}"),
        }
    }

    /// A stand-in for systemctl that keeps a unit's state in a file and notes what it was asked.
    fn systemd() -> (tempfile::TempDir, Utf8PathBuf, Native) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        let units = root.join("units");
        fs_err::create_dir(&units).unwrap();
        let script = root.join("systemctl");
        fs_err::write(
            &script,
            format!(
                "#!/bin/sh\n\
                 echo \"$@\" >> '{root}/asked'\n\
                 for unit; do :; done\n\
                 case $1 in\n\
                 start) echo active > '{root}/'\"$unit\" ;;\n\
                 stop) echo inactive > '{root}/'\"$unit\" ;;\n\
                 enable|disable) [ -e '{units}/'\"$unit\" ] || {{ echo \"no $unit\" >&2; exit 1; }} ;;\n\
                 show)\n\
                   if [ -e '{units}/'\"$unit\" ]; then echo LoadState=loaded; else echo LoadState=not-found; fi\n\
                   echo ActiveState=$(cat '{root}/'\"$unit\" 2>/dev/null || echo inactive)\n\
                   echo MainPID=7; echo ExecMainStatus=0 ;;\n\
                 esac\n"
            ),
        )
        .unwrap();
        fs_err::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let systemd = Native::with_paths(units, script);
        (folder, root, systemd)
    }

    #[test]
    fn systemd_keeps_the_promises_of_a_service_manager() {
        let (_keep, root, systemd) = systemd();
        a_service_lives_from_install_to_uninstall(&systemd, &registration("transom-test"));
        a_service_that_is_not_there_is_named(&systemd);
        a_bad_registration_changes_nothing(&systemd);
        let asked = fs_err::read_to_string(root.join("asked")).unwrap();
        assert!(asked.contains("daemon-reload"), "{asked}");
    }

    #[test]
    fn a_unit_of_someone_else_is_left_alone() {
        let (_keep, root, systemd) = systemd();
        let path = root.join("units/web.service");
        fs_err::write(&path, "[Service]\nExecStart=/bin/true\n").unwrap();
        assert!(matches!(
            systemd.install(&registration("web")),
            Err(ServiceError::Foreign { .. })
        ));
        assert!(matches!(
            systemd.uninstall("web"),
            Err(ServiceError::Foreign { .. })
        ));
        assert!(systemd.list_ours().unwrap().is_empty());
        assert_eq!(
            fs_err::read_to_string(&path).unwrap(),
            "[Service]\nExecStart=/bin/true\n"
        );
    }

    #[test]
    fn what_systemctl_says_is_in_the_error() {
        let (_keep, root, _) = systemd();
        let script = root.join("broken");
        fs_err::write(&script, "#!/bin/sh\necho 'no bus' >&2\nexit 1\n").unwrap();
        fs_err::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let systemd = Native::with_paths(root.join("units"), script);
        let error = systemd.install(&registration("web")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the service manager refused to install the service `web`: no bus"
        );
    }

    #[test]
    fn a_signal_asks_the_daemon_to_stop() {
        let ran = run_as_service(
            "test",
            Box::new(|stop| {
                stop.ready();
                let this = rustix::process::getpid();
                rustix::process::kill_process(this, rustix::process::Signal::TERM).unwrap();
                u32::from(!stop.wait(TIMEOUT)) + 7
            }),
        )
        .unwrap();
        assert!(matches!(ran, Ran::Finished(7)), "{ran:?}");
    }
}

#[cfg(windows)]
mod windows {
    use transom_host::service::{Ran, run_as_service};

    use super::*;

    /// Marks the process that the service manager starts.
    const AS_SERVICE: &str = "transom_test_as_service";

    /// Becomes the service when the manager started us, by way of the test of that name.
    #[test]
    fn serve() {
        if !std::env::args().any(|argument| argument == AS_SERVICE) {
            return;
        }
        let name = std::env::args().next_back().unwrap();
        let ran = run_as_service(
            &name,
            Box::new(|stop| {
                stop.ready();
                u32::from(!stop.wait(TIMEOUT))
            }),
        );
        assert!(matches!(ran, Ok(Ran::Finished(0))), "{ran:?}");
    }

    fn test_service(name: &str) -> Registration {
        let name = format!("{name}-{}", std::process::id());
        Registration {
            // Test arguments: one exact test; the two last are filters that match nothing.
            arguments: ["windows::serve", AS_SERVICE, &name]
                .map(ToOwned::to_owned)
                .to_vec(),
            ..registration(&name)
        }
    }

    #[test]
    fn the_service_control_manager_keeps_its_promises() {
        let services = Native::connect().unwrap();
        a_service_lives_from_install_to_uninstall(&services, &test_service("transom-test-life"));
        a_service_that_is_not_there_is_named(&services);
        a_bad_registration_changes_nothing(&services);
    }

    #[test]
    fn a_service_of_windows_is_left_alone() {
        let services = Native::connect().unwrap();
        let foreign = "EventLog";
        assert_ne!(
            services.status(foreign).unwrap(),
            ServiceStatus::NotInstalled
        );
        assert!(matches!(
            services.uninstall(foreign),
            Err(ServiceError::Foreign { .. })
        ));
        assert!(matches!(
            services.install(&registration(foreign)),
            Err(ServiceError::Foreign { .. })
        ));
    }

    #[test]
    fn a_process_that_a_person_started_gets_its_work_back() {
        let ran = run_as_service("transom-test-console", Box::new(|_| 5)).unwrap();
        let Ran::NotStartedByManager(main) = ran else {
            panic!("{ran:?}");
        };
        assert_eq!(main(transom_host::service::StopToken::new()), 5);
    }

    #[test]
    #[ignore = "needs real Windows: Wine does not carry out failure actions"]
    fn a_service_that_dies_comes_back() {
        let services = Native::connect().unwrap();
        let registration = test_service("transom-test-dies");
        let name = registration.name.clone();
        let _cleanup = Cleanup(&services, name.clone());
        services.install(&registration).unwrap();
        services.start(&name, TIMEOUT).unwrap();
        let process = |status| match status {
            ServiceStatus::Running { process } => process,
            _ => None,
        };
        let first = process(services.status(&name).unwrap()).unwrap();
        let killed = std::process::Command::new("taskkill.exe")
            .args(["/F", "/PID", &first.to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        let end = std::time::Instant::now() + TIMEOUT;
        while process(services.status(&name).unwrap()).is_none_or(|now| now == first) {
            assert!(std::time::Instant::now() < end, "it did not come back");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
