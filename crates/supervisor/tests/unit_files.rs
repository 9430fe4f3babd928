//! Unit files as people write them: what they become, what is reported, how they are found and
//! enabled. Everything here runs on both systems; files of either are read on either.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop here"
)]

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;
use transom_supervisor::unit::install::{self, InstallError, InstallOperation, InstallPlan};
use transom_supervisor::unit::parse::{UnitSource, parse};
use transom_supervisor::unit::reference::reference_markdown;
use transom_supervisor::unit::{
    LoadOutcome, SpecifierContext, Unit, UnitFileState, UnitName, UnitStore,
};

fn name(text: &str) -> UnitName {
    UnitName::new(text).unwrap()
}

fn context(os: Os) -> SpecifierContext {
    SpecifierContext {
        host_name: Some("node-1".to_owned()),
        ..SpecifierContext::places(os)
    }
}

fn read(unit: &str, file: &str, text: &str, os: Os) -> Unit {
    // A checkout on Windows may have other line ends.
    let bytes = text.replace("\r\n", "\n").into_bytes();
    let source = UnitSource {
        path: Utf8PathBuf::from(file),
        bytes,
    };
    parse(&name(unit), Some(&source), &[], &context(os))
}

fn problems(unit: &Unit) -> String {
    let line =
        |problem: &transom_supervisor::unit::Problem| format!("{:?} {problem}", problem.severity);
    unit.problems
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Snapshots are found from the crate's folder: under Wine the workspace cannot be asked for.
fn with_snapshots(check: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    settings.bind(check);
}

fn assert_problems(snapshot: &str, unit: &Unit) {
    with_snapshots(|| {
        insta::assert_snapshot!(snapshot, problems(unit));
    });
}

macro_rules! golden {
    ($test:ident, $unit:literal, $file:literal, $os:expr) => {
        #[test]
        fn $test() {
            let unit = read($unit, $file, include_str!(concat!("units/", $file)), $os);
            with_snapshots(|| insta::assert_debug_snapshot!(stringify!($test), unit));
        }
    };
}

golden!(
    a_web_server_is_read_completely,
    "web.service",
    "web.service",
    Os::Linux
);
golden!(
    a_oneshot_keeps_its_commands_in_order,
    "migrate.service",
    "migrate.service",
    Os::Linux
);
golden!(
    a_notify_daemon_keeps_its_timeouts,
    "daemon.service",
    "daemon.service",
    Os::Linux
);
golden!(
    an_instance_fills_in_its_template,
    "worker@blue-2.service",
    "worker@.service",
    Os::Linux
);
golden!(
    a_timer_names_its_unit,
    "backup.timer",
    "backup.timer",
    Os::Linux
);
golden!(
    a_target_has_no_section_of_its_own,
    "platform.target",
    "platform.target",
    Os::Linux
);
golden!(
    paths_of_windows_survive,
    "windows.service",
    "windows.service",
    Os::Windows
);

#[test]
fn a_program_with_a_forgotten_quote_is_pointed_out() {
    let unit = read(
        "a.service",
        "a.service",
        include_str!("units/forgotten-quotes.service"),
        Os::Windows,
    );
    insta::assert_snapshot!(problems(&unit), @"Warning a.service:2: ExecStart=: the program is `C:\\Program`: put a path that contains spaces in quotes");
}

#[test]
fn unsupported_directives_are_reported_with_line_and_reason() {
    let unit = read(
        "sandboxed.service",
        "sandboxed.service",
        include_str!("units/sandboxed.service"),
        Os::Linux,
    );
    assert!(unit.is_usable());
    assert_problems(
        "unsupported_directives_are_reported_with_line_and_reason",
        &unit,
    );
}

#[test]
fn every_mistake_is_reported() {
    let unit = read(
        "errors.service",
        "errors.service",
        include_str!("units/errors.service"),
        Os::Linux,
    );
    assert!(!unit.is_usable());
    assert_problems("every_mistake_is_reported", &unit);
}

#[test]
fn combinations_that_cannot_work_are_refused() {
    let unit = read(
        "c.service",
        "c.service",
        include_str!("units/contradictions.service"),
        Os::Linux,
    );
    assert_problems("combinations_that_cannot_work_are_refused", &unit);
}

#[test]
fn types_that_nobody_can_follow_are_refused_with_a_way_out() {
    for (wrong, reason) in [("forking", "first process"), ("dbus", "no D-Bus")] {
        let text = format!("[Service]\nType={wrong}\nExecStart=/bin/true\n");
        let unit = read("a.service", "a.service", &text, Os::Linux);
        assert!(!unit.is_usable());
        let found = problems(&unit);
        assert!(found.starts_with("Error a.service:2: Type=:"), "{found}");
        assert!(found.contains(reason), "{found}");
        assert!(
            found.contains("in the foreground with Type=simple"),
            "{found}"
        );
    }
}

#[test]
fn a_signal_that_reload_commands_replace_is_pointed_out() {
    let text = "[Service]\nType=notify-reload\nExecStart=/bin/a\nExecReload=/bin/b\n";
    let unit = read("a.service", "a.service", text, Os::Linux);
    insta::assert_snapshot!(problems(&unit), @"Warning a.service:4: ExecReload=: these commands reload the service, so Type=notify-reload sends no signal");
}

#[test]
fn folders_of_a_service_never_lead_out_of_their_place() {
    let linux = ["/etc", "..", "a/../b", ".", "./a", "a/.", "a:b", "/"];
    let windows = [
        r"\etc", r"C:\etc", r"C:etc", r"a\..\b", r".\a", "/etc", "..",
    ];
    for (os, bad) in [(Os::Linux, &linux[..]), (Os::Windows, &windows[..])] {
        for name in bad {
            let program = match os {
                Os::Linux => "/bin/true",
                Os::Windows => "C:/true.exe",
            };
            let text = format!("[Service]\nExecStart={program}\nRuntimeDirectory='{name}' good\n");
            let unit = read("a.service", "a.service", &text, os);
            let names = &unit.service().unwrap().runtime_directory.names;
            assert_eq!(names, &["good"], "{name}");
            assert_eq!(unit.problems.len(), 1, "{name}");
        }
    }
}

#[test]
fn runtime_folders_go_at_stop_unless_they_are_to_stay() {
    let base = Utf8Path::new("/run");
    let folders = |preserve: &str, restarting: bool| {
        let text = format!(
            "[Service]\nExecStart=/bin/true\nRuntimeDirectory=web/in/side web\n{preserve}\n"
        );
        let unit = read("a.service", "a.service", &text, Os::Linux);
        assert_eq!(problems(&unit), "");
        let service = unit.service().unwrap();
        service.runtime_folders_to_remove(base, restarting)
    };
    // The one above first: the service could have put a link on the way to the other.
    let all = [base.join("web"), base.join("web/in/side")];
    assert_eq!(folders("", false), all);
    assert_eq!(folders("", true), all);
    let restart = "RuntimeDirectoryPreserve=restart";
    assert_eq!(folders(restart, false), all);
    assert!(folders(restart, true).is_empty());
    assert!(folders("RuntimeDirectoryPreserve=yes", false).is_empty());
}

#[test]
fn a_group_that_cannot_be_one_keeps_the_unit_from_running() {
    for line in [
        "Group=a b",
        "SupplementaryGroups=good b@d",
        "SupplementaryGroups=''",
    ] {
        let text = format!("[Service]\nExecStart=/bin/true\n{line}\n");
        let unit = read("a.service", "a.service", &text, Os::Linux);
        assert!(!unit.is_usable(), "{line}");
    }
}

#[test]
fn a_timer_without_any_trigger_is_refused() {
    let unit = read(
        "broken.timer",
        "broken.timer",
        include_str!("units/broken.timer"),
        Os::Linux,
    );
    assert_problems("a_timer_without_any_trigger_is_refused", &unit);
}

#[test]
fn bytes_that_are_no_text_are_reported_with_their_line() {
    let source = UnitSource {
        path: "x.service".into(),
        bytes: b"[Service]\nExecStart=/bin/true\nDescription=\xff\xfe\nNice=\0\n".to_vec(),
    };
    let unit = parse(&name("x.service"), Some(&source), &[], &context(Os::Linux));
    insta::assert_snapshot!(problems(&unit), @r"
    Warning x.service:3: the line is not valid UTF-8 and is ignored
    Error x.service:4: the line contains a NUL character
    ");
    let large = UnitSource {
        path: "x.service".into(),
        bytes: vec![b'#'; 1024 * 1024 + 1],
    };
    let unit = parse(&name("x.service"), Some(&large), &[], &context(Os::Linux));
    assert!(problems(&unit).contains("larger than 1 MiB"));
    let nonsense = "[Service]\n".to_owned() + &"Exec=x\n".repeat(100_000);
    let unit = read("x.service", "x.service", &nonsense, Os::Linux);
    assert!(unit.problems.len() < 1100 && problems(&unit).contains("more than 1000 problems"));
}

#[test]
fn the_reference_page_is_what_the_table_says() {
    let page = include_str!("../../../docs/reference/unit-files.md").replace("\r\n", "\n");
    assert_eq!(
        page,
        reference_markdown(),
        "write the output of reference_markdown() to docs/reference/unit-files.md"
    );
}

/// Unit folders of one machine: configuration, runtime, vendor.
struct Machine {
    root: tempfile::TempDir,
    os: Os,
}

impl Machine {
    fn new(os: Os) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            os,
        }
    }

    fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.root.path()).unwrap()
    }

    fn folders(&self) -> Vec<Utf8PathBuf> {
        ["etc", "run", "lib"]
            .map(|folder| self.root().join(folder))
            .to_vec()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn store(&self) -> UnitStore {
        UnitStore::load(&self.folders(), context(self.os)).unwrap()
    }

    fn unit(&self, unit: &str) -> Unit {
        match self.store().get(&name(unit)) {
            LoadOutcome::Loaded(unit) => *unit,
            other => panic!("{unit} is not loaded: {other:?}"),
        }
    }

    fn state(&self, unit: &str) -> Option<UnitFileState> {
        self.store().unit_file_state(&name(unit))
    }

    fn execute(&self, plan: &InstallPlan) {
        install::execute(plan, &self.folders()).unwrap();
    }

    /// What the plan prints, with the machine's root left out.
    fn printed(&self, plan: &InstallPlan) -> String {
        let lines: Vec<String> = plan.operations.iter().map(ToString::to_string).collect();
        lines
            .join("\n")
            .replace(self.root().as_str(), "")
            .replace('\\', "/")
    }
}

const SERVICE: &str = "[Service]\nExecStart=/bin/true\n";
const ENABLED_SERVICE: &str =
    "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";

/// Links of Linux are symbolic, which a Windows machine cannot make: there only pointer files run.
fn systems() -> Vec<Os> {
    if cfg!(windows) {
        vec![Os::Windows]
    } else {
        vec![Os::Linux, Os::Windows]
    }
}

#[test]
fn the_most_important_folder_wins_and_drop_ins_apply_by_name() {
    let machine = Machine::new(Os::Windows);
    machine.write(
        "lib/a-b.service",
        "[Unit]\nDescription=vendor\n[Service]\nExecStart=/bin/vendor\n",
    );
    machine.write(
        "etc/a-b.service",
        "[Unit]\nDescription=local\n[Service]\nExecStart=/bin/local\n",
    );
    machine.write(
        "lib/service.d/10-all.conf",
        "[Service]\nEnvironment=ORDER=all\n",
    );
    machine.write(
        "lib/a-.service.d/20-prefix.conf",
        "[Service]\nEnvironment=ORDER=prefix\n",
    );
    machine.write(
        "lib/a-b.service.d/30-own.conf",
        "[Service]\nEnvironment=ORDER=hidden\n",
    );
    machine.write(
        "etc/a-b.service.d/30-own.conf",
        "[Service]\nEnvironment=ORDER=own\nExecStart=\nExecStart=/bin/changed\n",
    );
    machine.write("etc/a-b.service.d/readme.txt", "not read");
    let unit = machine.unit("a-b.service");
    let service = unit.service().unwrap();
    assert_eq!(unit.description, "local");
    let order: Vec<&str> = service
        .environment
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(order, ["all", "prefix", "own"]);
    assert_eq!(service.exec_start[0].program, "/bin/changed");
    assert_eq!(unit.drop_ins.len(), 3);
}

#[test]
fn masks_are_links_to_nothing_empty_files_and_marked_files() {
    let machine = Machine::new(Os::Windows);
    for masked in ["empty", "marked"] {
        machine.write(&format!("lib/{masked}.service"), SERVICE);
    }
    machine.write("etc/empty.service", "");
    machine.write("etc/marked.service", "# masked by transom\r\n");
    machine.write("etc/commented.service", "# masked by somebody else\n");
    let store = machine.store();
    assert_eq!(store.get(&name("empty.service")), LoadOutcome::Masked);
    assert_eq!(store.get(&name("marked.service")), LoadOutcome::Masked);
    assert!(matches!(
        store.get(&name("commented.service")),
        LoadOutcome::Bad(_)
    ));
    assert_eq!(store.get(&name("absent.service")), LoadOutcome::NotFound);
    assert_eq!(machine.state("marked.service"), Some(UnitFileState::Masked));
}

#[test]
fn built_in_targets_order_what_they_want_unless_told_not_to() {
    let machine = Machine::new(Os::Windows);
    machine.write("etc/plain.service", SERVICE);
    machine.write(
        "etc/late.service",
        &format!("[Unit]\nAfter=multi-user.target\n{SERVICE}"),
    );
    machine.write(
        "etc/free.service",
        &format!("[Unit]\nDefaultDependencies=no\n{SERVICE}"),
    );
    for wanted in ["plain", "late", "free", "absent"] {
        machine.write(&format!("etc/multi-user.target.wants/{wanted}.service"), "");
    }
    let target = machine.unit("default.target");
    assert_eq!(target.name, name("multi-user.target"));
    assert_eq!(target.source, None);
    let after: Vec<&str> = target
        .dependencies
        .after
        .iter()
        .map(UnitName::as_str)
        .collect();
    assert_eq!(after, ["absent.service", "basic.target", "plain.service"]);
    let plain = machine.unit("plain.service");
    assert!(
        plain
            .dependencies
            .conflicts
            .contains(&name("shutdown.target"))
    );
    assert!(
        machine
            .unit("free.service")
            .dependencies
            .conflicts
            .is_empty()
    );
    let reverse = machine.store().reverse_dependencies();
    assert!(
        reverse[&name("plain.service")]
            .wanted_by
            .contains(&name("multi-user.target"))
    );
}

#[test]
fn enabling_and_disabling_twice_is_the_same_as_once() {
    for os in systems() {
        let machine = Machine::new(os);
        machine.write(
            "lib/web.service",
            &format!("{ENABLED_SERVICE}Alias=http.service\nAlso=helper.service\n"),
        );
        machine.write(
            "lib/helper.service",
            &ENABLED_SERVICE.replace("WantedBy", "RequiredBy"),
        );
        assert_eq!(machine.state("web.service"), Some(UnitFileState::Disabled));

        let names = [name("web.service")];
        let plan = install::plan_enable(&machine.store(), &names, false).unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(machine.printed(&plan), @r"
        Created symlink /etc/multi-user.target.wants/web.service → /lib/web.service.
        Created symlink /etc/http.service → /lib/web.service.
        Created symlink /etc/multi-user.target.requires/helper.service → /lib/helper.service.
        "); }
        machine.execute(&plan);
        machine.execute(&plan);
        assert_eq!(machine.state("web.service"), Some(UnitFileState::Enabled));
        assert_eq!(machine.state("http.service"), Some(UnitFileState::Alias));
        assert_eq!(machine.unit("http.service").name, name("web.service"));
        assert!(
            machine
                .unit("multi-user.target")
                .dependencies
                .requires
                .contains(&name("helper.service"))
        );
        let again = install::plan_enable(&machine.store(), &names, false).unwrap();
        assert_eq!(again.operations, []);
        let reenable = install::plan_reenable(&machine.store(), &names, false).unwrap();
        assert_eq!(reenable.operations.len(), 6);
        machine.execute(&reenable);
        assert_eq!(machine.state("web.service"), Some(UnitFileState::Enabled));

        let plan = install::plan_disable(&machine.store(), &names, false).unwrap();
        machine.execute(&plan);
        machine.execute(&plan);
        assert_eq!(machine.state("web.service"), Some(UnitFileState::Disabled));
        assert!(!machine.root().join("etc/multi-user.target.wants").exists());
        assert_eq!(
            fs_err::read_dir(machine.root().join("etc"))
                .unwrap()
                .count(),
            0
        );
    }
}

#[test]
fn instances_and_default_instances_are_enabled_from_their_template() {
    for os in systems() {
        let machine = Machine::new(os);
        machine.write("lib/worker@.service", ENABLED_SERVICE);
        machine.write(
            "lib/main@.service",
            &format!("{ENABLED_SERVICE}DefaultInstance=one\n"),
        );
        let store = machine.store();
        let plan = install::plan_enable(
            &store,
            &[name("worker@7.service"), name("main@.service")],
            true,
        )
        .unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(machine.printed(&plan), @r"
        Created symlink /run/multi-user.target.wants/worker@7.service → /lib/worker@.service.
        Created symlink /run/multi-user.target.wants/main@one.service → /lib/main@.service.
        "); }
        machine.execute(&plan);
        assert_eq!(
            machine.state("worker@7.service"),
            Some(UnitFileState::EnabledRuntime)
        );
        assert_eq!(
            machine.state("worker@8.service"),
            Some(UnitFileState::Disabled)
        );
        assert_eq!(machine.unit("worker@7.service").name.instance(), Some("7"));
        let error = install::plan_enable(&store, &[name("worker@.service")], false).unwrap_err();
        assert!(matches!(error, InstallError::NoInstance { .. }));
    }
}

#[test]
fn masking_hides_a_unit_until_it_is_taken_back() {
    for os in systems() {
        let machine = Machine::new(os);
        machine.write("lib/web.service", ENABLED_SERVICE);
        machine.write("etc/own.service", SERVICE);
        let names = [name("web.service")];
        let plan = install::plan_mask(&machine.store(), &names, false).unwrap();
        assert_eq!(
            machine.printed(&plan),
            "Created symlink /etc/web.service → /dev/null."
        );
        machine.execute(&plan);
        machine.execute(&plan);
        assert_eq!(machine.store().get(&names[0]), LoadOutcome::Masked);
        let error = install::plan_enable(&machine.store(), &names, false).unwrap_err();
        assert_eq!(error.to_string(), "Unit web.service is masked");
        assert_eq!(
            install::plan_mask(&machine.store(), &names, false)
                .unwrap()
                .operations,
            []
        );
        let error =
            install::plan_mask(&machine.store(), &[name("own.service")], false).unwrap_err();
        assert!(matches!(error, InstallError::Exists { .. }));
        let plan = install::plan_unmask(&machine.store(), &names, false).unwrap();
        machine.execute(&plan);
        machine.execute(&plan);
        assert_eq!(machine.state("web.service"), Some(UnitFileState::Disabled));
        let absent =
            install::plan_mask(&machine.store(), &[name("absent.service")], false).unwrap();
        assert_eq!(
            absent.notices,
            ["Unit absent.service does not exist, proceeding anyway."]
        );
    }
}

#[test]
fn nothing_outside_of_the_unit_folders_is_ever_changed() {
    let machine = Machine::new(Os::Windows);
    let outside = machine.root().join("precious");
    fs_err::write(&outside, "precious").unwrap();
    for link in [outside.clone(), machine.root().join("etc/../precious")] {
        let plan = InstallPlan {
            operations: vec![InstallOperation::Unlink { link }],
            notices: Vec::new(),
        };
        install::execute(&plan, &machine.folders()).unwrap_err();
    }
    assert!(outside.exists());
    let sneaky = UnitName::from_command_line(r"..\..\precious").unwrap();
    assert!(!sneaky.file_name(Os::Windows).contains(['\\', '/', ':']));
    let error = install::plan_enable(&machine.store(), &[sneaky], false).unwrap_err();
    assert!(matches!(error, InstallError::NotFound { .. }));
}

#[test]
fn a_unit_without_install_section_is_static_and_says_so() {
    let machine = Machine::new(Os::Windows);
    machine.write("lib/plain.service", SERVICE);
    machine.write("lib/bad.service", "[Service]\n");
    machine.write(
        "lib/also.service",
        &format!("{SERVICE}[Install]\nAlso=plain.service\n"),
    );
    let plan = install::plan_enable(&machine.store(), &[name("plain.service")], false).unwrap();
    assert_eq!(plan.operations, []);
    assert!(plan.notices[0].contains("no installation config"));
    let states: Vec<(String, UnitFileState)> = machine
        .store()
        .unit_files()
        .into_iter()
        .map(|file| (file.name.to_string(), file.state))
        .collect();
    let expected = [
        ("also.service".to_owned(), UnitFileState::Indirect),
        ("bad.service".to_owned(), UnitFileState::Bad),
        ("plain.service".to_owned(), UnitFileState::Static),
    ];
    assert_eq!(states, expected);
}

#[test]
fn aliases_that_lead_in_a_circle_are_named_not_followed() {
    let machine = Machine::new(Os::Windows);
    machine.write("etc/a.service", "b.service");
    machine.write("etc/b.service", "a.service");
    assert!(matches!(
        machine.store().get(&name("a.service")),
        LoadOutcome::Bad(_)
    ));
}

#[test]
fn other_logs_become_the_units_log_and_say_so() {
    let unit = read(
        "a.service",
        "a.service",
        "[Service]\nExecStart=/bin/a\nStandardOutput=syslog\n",
        Os::Linux,
    );
    assert_eq!(
        problems(&unit),
        "Warning a.service:3: StandardOutput=: `syslog` is taken as journal: there is one log"
    );
}

#[cfg(unix)]
#[test]
fn links_to_nothing_pipes_and_dangling_links_neither_hang_nor_stop_the_others() {
    use fs_err::os::unix::fs::symlink;

    let machine = Machine::new(Os::Linux);
    machine.write("lib/web.service", SERVICE);
    machine.write("lib/web.service.d/10-a.conf", "[Service]\nNice=5\n");
    machine.write("etc/web.service.d/keep.conf", "[Service]\nUMask=077\n");
    let etc = machine.root().join("etc");
    symlink("/dev/null", etc.join("web.service.d/10-a.conf")).unwrap();
    symlink("/absent/gone.service", etc.join("gone.service")).unwrap();
    symlink("/dev/zero", etc.join("endless.service")).unwrap();
    let service = machine.unit("web.service");
    assert_eq!(service.service().unwrap().nice, 0);
    assert_eq!(service.service().unwrap().umask, 0o077);
    assert_eq!(
        machine.store().get(&name("gone.service")),
        LoadOutcome::NotFound
    );
    assert!(matches!(
        machine.store().get(&name("endless.service")),
        LoadOutcome::Bad(_)
    ));
}
