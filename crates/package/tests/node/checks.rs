//! The checks of packages, run as processes.

use std::collections::BTreeMap;
use std::time::Duration;

use transom_host::files::Access;
use transom_host::process::fake::{Behaviour, FakeProcesses};
use transom_model::os::Os;
use transom_package::node::{CheckRunner, Checks as _, Verdict, list_checks};

use crate::machine::{Machine, id};

fn runner<'a>(machine: &'a Machine, processes: &'a FakeProcesses) -> CheckRunner<'a> {
    CheckRunner {
        files: machine.files.as_ref(),
        processes,
        environment: BTreeMap::from([("PATH".to_owned(), "/somewhere".to_owned())]),
        limit: Duration::from_millis(300),
        system_root: r"C:\Windows".into(),
    }
}

fn program(machine: &Machine, below: &str) {
    machine.write_as(below, "a program", Access::Executable);
}

#[test]
fn every_program_is_run_in_order_and_what_is_none_is_skipped() {
    let machine = Machine::linux();
    machine.package("a--1", &[("check/readme", "not a program")]);
    machine.package("b--1", &[]);
    let processes = FakeProcesses::new();
    let behaviours = [
        ("bad", Behaviour::exits(3).prints("out").prints_error("err")),
        ("good", Behaviour::exits(0)),
        ("slow", Behaviour::runs()),
    ];
    for (name, behaviour) in behaviours {
        let below = format!("root/packages/a--1/check/{name}");
        program(&machine, &below);
        processes.install(machine.path(&below), behaviour);
    }
    let packages =
        ["a--1", "b--1"].map(|each| (id(each), machine.node.places().package(&id(each))));
    let results = runner(&machine, &processes).run(&packages, Duration::from_secs(5));
    let verdicts: Vec<(&str, &Verdict)> = results
        .iter()
        .map(|result| (result.name.as_str(), &result.verdict))
        .collect();
    let failed = Verdict::Failed {
        how: "it ended with code 3".to_owned(),
    };
    assert_eq!(
        verdicts,
        [
            ("bad", &failed),
            ("good", &Verdict::Passed),
            ("readme", &Verdict::Skipped),
            ("slow", &Verdict::TimedOut),
        ]
    );
    assert!(results[0].output.contains("out") && results[0].output.contains("err"));
    assert_eq!(processes.spawned()[0].env["PATH"], "/somewhere");
}

#[test]
fn windows_has_its_own_kinds_of_programs() {
    let machine = Machine::windows();
    for name in ["a.exe", "b.PS1", "c.cmd", "d.bat", "e.py", "f"] {
        machine.write(&format!("root/packages/a--1/check/{name}"), "");
    }
    let package = (id("a--1"), machine.node.places().package(&id("a--1")));
    let checks = list_checks(machine.files.as_ref(), std::slice::from_ref(&package));
    let names: Vec<String> = checks
        .expect("listed")
        .into_iter()
        .filter(|check| check.is_executable)
        .map(|check| check.name)
        .collect();
    assert_eq!(names, ["a.exe", "b.PS1", "c.cmd", "d.bat"]);
    let processes = FakeProcesses::new();
    let folder = r"C:\Test\root\packages\a--1\check";
    processes.install(format!(r"{folder}\a.exe"), Behaviour::exits(0));
    for shell in ["cmd.exe", r"WindowsPowerShell\v1.0\powershell.exe"] {
        let path = format!(r"C:\Windows\System32\{shell}");
        processes.install(path, Behaviour::exits(0));
    }
    let results = runner(&machine, &processes).run(&[package], Duration::from_secs(5));
    assert!(
        results.iter().all(|result| !result.is_failure()),
        "{results:#?}"
    );
    let spawned = processes.spawned();
    assert_eq!(spawned.len(), 4);
    assert_eq!(spawned[1].args.last(), Some(&format!(r"{folder}\b.PS1")));
    assert_eq!(spawned[2].args, ["/d", "/c", &format!(r"{folder}\c.cmd")]);
}

#[test]
fn a_real_program_passes_or_fails_by_its_exit_code() {
    let machine = Machine::native();
    let processes = transom_host::process::Native;
    let (suffix, good, bad) = match machine.os() {
        Os::Linux => (
            "",
            "#!/bin/sh\nexit 0\n",
            "#!/bin/sh\necho broken\nexit 4\n",
        ),
        Os::Windows => (".cmd", "@exit /b 0\r\n", "@echo broken\r\n@exit /b 4\r\n"),
    };
    let folder = "root/packages/a--1/check";
    machine.write_as(&format!("{folder}/good{suffix}"), good, Access::Executable);
    machine.write_as(&format!("{folder}/bad{suffix}"), bad, Access::Executable);
    let package = (id("a--1"), machine.node.places().package(&id("a--1")));
    let runner = CheckRunner {
        files: machine.files.as_ref(),
        processes: &processes,
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        limit: Duration::from_secs(30),
        system_root: r"C:\Windows".into(),
    };
    let results = runner.run(&[package], Duration::from_mins(1));
    assert_eq!(results.len(), 2);
    assert!(results[0].is_failure(), "{results:#?}");
    assert!(results[0].output.contains("broken"), "{results:#?}");
    assert_eq!(results[1].verdict, Verdict::Passed, "{results:#?}");
}
