//! What only Linux has: users, modes, sessions, cgroups, zombies.

use std::io::Read;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::process::{
    Bound, Exit, Input, LimitKind, Limits, Native, Output, Processes, Spawn, SpawnError,
    become_subreaper, reap_orphans,
};

use super::backend::{PATIENCE, Started, eventually, helper, line, start, start_ready};
use super::native::make_executable;

pub(crate) const TESTS: &[(&str, fn())] = &[
    (
        "a_missing_interpreter_is_named",
        a_missing_interpreter_is_named,
    ),
    (
        "a_file_without_permission_is_refused",
        a_file_without_permission_is_refused,
    ),
    (
        "a_program_runs_as_another_user",
        a_program_runs_as_another_user,
    ),
    (
        "a_program_runs_in_the_groups_that_were_asked_for",
        a_program_runs_in_the_groups_that_were_asked_for,
    ),
    ("an_unknown_group_is_refused", an_unknown_group_is_refused),
    (
        "the_out_of_memory_score_holds_or_is_reported",
        the_out_of_memory_score_holds_or_is_reported,
    ),
    ("input_comes_from_a_file", input_comes_from_a_file),
    (
        "a_program_starts_with_clean_signals_in_its_own_session",
        a_clean_start,
    ),
    (
        "umask_priority_and_name_are_as_asked",
        umask_priority_and_name_are_as_asked,
    ),
    (
        "no_stray_descriptor_is_inherited",
        no_stray_descriptor_is_inherited,
    ),
    ("limits_of_a_process_hold", limits_of_a_process_hold),
    (
        "a_limit_beyond_what_is_possible_is_clamped",
        a_limit_beyond_what_is_possible_is_clamped,
    ),
    (
        "a_limit_on_processes_holds_for_the_group",
        a_limit_on_processes_holds_for_the_group,
    ),
    (
        "a_limit_on_memory_holds_for_the_group",
        a_limit_on_memory_holds_for_the_group,
    ),
    ("a_cgroup_goes_with_its_group", a_cgroup_goes_with_its_group),
    (
        "orphans_of_a_subreaper_are_reaped",
        orphans_of_a_subreaper_are_reaped,
    ),
    (
        "children_of_other_code_are_not_reaped",
        children_of_other_code_are_not_reaped,
    ),
    (
        "a_tree_that_grows_back_dies_too",
        a_tree_that_grows_back_dies_too,
    ),
];

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

fn output_of(spec: &Spawn) -> String {
    let process = start(&Native, spec);
    let mut text = String::new();
    process
        .take_stdout()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Code(0)));
    text
}

/// A program that is not Rust's, whose runtime would change what we look at.
fn cat(file: &str) -> Spawn {
    let mut spec = Spawn::new("/bin/cat");
    spec.args = vec![file.to_owned()];
    spec.stdout = Output::Pipe;
    spec
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let found = status.lines().find_map(|line| line.strip_prefix(name));
    found.expect("the field is there").trim()
}

fn a_missing_interpreter_is_named() {
    let (_guard, folder) = folder();
    let script = folder.join("script");
    fs_err::write(&script, "#!/no/such/interpreter -x\n").unwrap();
    make_executable(&script);
    let error = Native.spawn(&Spawn::new(script)).unwrap_err();
    assert!(
        matches!(&error, SpawnError::MissingInterpreter { interpreter, .. }
            if interpreter == "/no/such/interpreter"),
        "{error:?}"
    );
}

fn a_file_without_permission_is_refused() {
    let (_guard, folder) = folder();
    let file = folder.join("file");
    fs_err::write(&file, "#!/bin/sh\n").unwrap();
    fs_err::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let error = Native.spawn(&Spawn::new(file)).unwrap_err();
    assert!(
        matches!(error, SpawnError::NotExecutable { .. }),
        "{error:?}"
    );
}

fn a_program_runs_as_another_user() {
    let mut spec = cat("/proc/self/status");
    spec.user = Some("12345:23456".parse().unwrap());
    if !nix::unistd::geteuid().is_root() {
        let error = Native.spawn(&spec).unwrap_err();
        assert!(matches!(error, SpawnError::SwitchUser { .. }), "{error:?}");
        return;
    }
    let status = output_of(&spec);
    assert_eq!(field(&status, "Uid:"), "12345\t12345\t12345\t12345");
    assert_eq!(field(&status, "Gid:"), "23456\t23456\t23456\t23456");
    assert_eq!(field(&status, "Groups:"), "23456");
    spec.user = Some("nobody".parse().unwrap());
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let status = output_of(&spec);
    assert!(field(&status, "Uid:").starts_with(&nobody.uid.to_string()));
}

fn a_program_runs_in_the_groups_that_were_asked_for() {
    let mut spec = cat("/proc/self/status");
    spec.user_group = Some("23456".parse().unwrap());
    spec.more_user_groups = vec!["34567".parse().unwrap(), "23456".parse().unwrap()];
    if !nix::unistd::geteuid().is_root() {
        let error = Native.spawn(&spec).unwrap_err();
        assert!(
            matches!(error, SpawnError::SwitchGroups { .. }),
            "{error:?}"
        );
        return;
    }
    let status = output_of(&spec);
    assert!(field(&status, "Uid:").starts_with("0\t"), "{status}");
    assert_eq!(field(&status, "Gid:"), "23456\t23456\t23456\t23456");
    assert_eq!(field(&status, "Groups:"), "23456 34567");
    spec.user = Some("nobody".parse().unwrap());
    let status = output_of(&spec);
    assert_eq!(field(&status, "Gid:"), "23456\t23456\t23456\t23456");
    assert_eq!(field(&status, "Groups:"), "23456 34567");
    // A group by its name, and one that replaces the number of the user's own.
    spec.user = Some("12345:1".parse().unwrap());
    spec.user_group = Some("daemon".parse().unwrap());
    spec.more_user_groups.clear();
    let daemon = nix::unistd::Group::from_name("daemon").unwrap().unwrap();
    let status = output_of(&spec);
    assert_eq!(field(&status, "Groups:"), daemon.gid.to_string());
}

fn an_unknown_group_is_refused() {
    let mut spec = cat("/proc/self/status");
    spec.user_group = Some("no-such-group-at-all".parse().unwrap());
    let error = Native.spawn(&spec).unwrap_err();
    assert!(
        matches!(error, SpawnError::UnknownGroup { .. }),
        "{error:?}"
    );
    let mut spec = cat("/proc/self/status");
    spec.more_user_groups = vec!["no-such-group-at-all".parse().unwrap()];
    let error = Native.spawn(&spec).unwrap_err();
    assert!(error.to_string().contains("no-such-group-at-all"));
}

fn the_out_of_memory_score_holds_or_is_reported() {
    // Raising it is everybody's right; lowering it is not, not even for root in every container.
    for (score, must_hold) in [(1000, true), (-999, false)] {
        let mut spec = cat("/proc/self/oom_score_adj");
        spec.out_of_memory_score = Some(score);
        let process = start(&Native, &spec);
        let mut text = String::new();
        process
            .take_stdout()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Code(0)));
        let holds = text.trim() == score.to_string();
        assert!(holds || !must_hold, "{text}");
        let report = process.limits();
        assert_eq!(
            report.enforced.contains(&LimitKind::OutOfMemoryScore),
            holds
        );
        let is_refused = |refused: &transom_host::process::NotEnforced| {
            refused.limit == LimitKind::OutOfMemoryScore
        };
        assert_eq!(report.not_enforced.iter().any(is_refused), !holds);
    }
}

fn input_comes_from_a_file() {
    let (_guard, folder) = folder();
    let file = folder.join("input");
    fs_err::write(&file, "what is read").unwrap();
    let mut spec = Spawn::new("/bin/cat");
    spec.stdout = Output::Pipe;
    spec.stdin = Input::File(file);
    assert_eq!(output_of(&spec), "what is read");
    spec.stdin = Input::File(folder.join("missing"));
    let error = Native.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::OpenInput { .. }), "{error:?}");
}

fn a_clean_start() {
    let status = output_of(&cat("/proc/self/status"));
    assert_eq!(field(&status, "SigIgn:"), "0000000000000000");
    assert_eq!(field(&status, "SigBlk:"), "0000000000000000");
    let stat = output_of(&cat("/proc/self/stat"));
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!(fields[0], fields[4], "leads its process group");
    assert_eq!(fields[0], fields[5], "leads its session");
}

fn umask_priority_and_name_are_as_asked() {
    let mut spec = cat("/proc/self/status");
    spec.umask = Some(0o027);
    assert_eq!(field(&output_of(&spec), "Umask:"), "0027");
    let mut spec = cat("/proc/self/stat");
    spec.nice = Some(7);
    assert_eq!(output_of(&spec).split(' ').nth(18), Some("7"));
    let mut spec = cat("/proc/self/cmdline");
    spec.arg0 = Some("another name".to_owned());
    assert!(output_of(&spec).starts_with("another name\0"));
}

fn no_stray_descriptor_is_inherited() {
    let stray = nix::unistd::dup(std::io::stderr()).unwrap();
    let mut spec = Spawn::new("/bin/ls");
    spec.args = vec!["/proc/self/fd".to_owned()];
    spec.stdout = Output::Pipe;
    let output = output_of(&spec);
    let inherited: Vec<&str> = output.lines().collect();
    // The fourth is the folder itself, open for reading.
    assert_eq!(inherited, ["0", "1", "2", "3"]);
    assert!(stray.into_raw_fd() > 2);
}

fn limits_of_a_process_hold() {
    let mut spec = cat("/proc/self/limits");
    spec.limits = Limits {
        open_files: Some(Bound {
            soft: 100,
            hard: 200,
        }),
        core_bytes: Some(Bound::same(0)),
        cpu_seconds: Some(Bound::same(50)),
        ..Limits::default()
    };
    let limits = output_of(&spec);
    let words = |name| {
        field(&limits, name)
            .split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
    };
    assert_eq!(words("Max open files"), ["100", "200"]);
    assert_eq!(words("Max core file size"), ["0", "0"]);
    assert_eq!(words("Max cpu time"), ["50", "50"]);
}

fn a_limit_beyond_what_is_possible_is_clamped() {
    let mut spec = helper(&["exit", "0"]);
    spec.limits.open_files = Some(Bound::same(Bound::UNLIMITED));
    let process = start(&Native, &spec);
    let report = process.limits();
    assert_eq!(report.clamped.len(), 1, "{report:?}");
    assert_eq!(report.clamped[0].limit, LimitKind::OpenFiles);
    assert!(report.clamped[0].given.hard < Bound::UNLIMITED);
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Code(0)));
}

/// Whether `kind` is enforced here; if not, the report must say why, and there is no more to see.
fn is_enforced(process: &Started, kind: LimitKind) -> bool {
    let report = process.limits();
    let refused = report
        .not_enforced
        .iter()
        .find(|refused| refused.limit == kind);
    assert_ne!(
        report.enforced.contains(&kind),
        refused.is_some(),
        "{report:?}"
    );
    refused.is_none_or(|refused| {
        println!("not tested further: {refused}");
        false
    })
}

fn a_limit_on_processes_holds_for_the_group() {
    let mut spec = helper(&["breed", "20"]);
    spec.limits.processes = Some(6);
    let process = start(&Native, &spec);
    if !is_enforced(&process, LimitKind::Processes) {
        return;
    }
    let mut output = std::io::BufReader::new(process.take_stdout().unwrap());
    let born: usize = line(&mut output).parse().unwrap();
    assert!((1..6).contains(&born), "{born} were born");
    process.kill_tree(PATIENCE).unwrap();
    assert_eq!(process.members(), []);
}

fn a_limit_on_memory_holds_for_the_group() {
    let mut spec = helper(&["hoard", "300"]);
    spec.limits.memory_bytes = Some(64 << 20);
    let process = start(&Native, &spec);
    if !is_enforced(&process, LimitKind::Memory) {
        return;
    }
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Signal(9)));
    let mut modest = helper(&["hoard", "16"]);
    modest.limits.memory_bytes = Some(128 << 20);
    let process = start(&Native, &modest);
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Code(0)));
}

fn a_cgroup_goes_with_its_group() {
    let mut spec = helper(&["run"]);
    spec.limits.processes = Some(50);
    let (process, _output) = start_ready(&Native, &spec);
    if !is_enforced(&process, LimitKind::Processes) {
        return;
    }
    let cgroups = || {
        let own = fs_err::read_to_string(format!("/proc/{}/cgroup", process.identity().pid));
        own.unwrap_or_default().contains(spec.group.as_str())
    };
    Native.sweep();
    assert!(cgroups(), "a cgroup in use is not swept");
    process.kill_tree(PATIENCE).unwrap();
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Signal(9)));
    assert_eq!(Native.leftovers(&spec.group), []);
    let left = any_folder_named("/sys/fs/cgroup".into(), spec.group.as_str(), 6);
    assert!(!left, "a cgroup of the group is left");
}

fn any_folder_named(folder: &Utf8Path, name: &str, depth: usize) -> bool {
    let Ok(items) = folder.read_dir_utf8() else {
        return false;
    };
    items.flatten().any(|item| {
        let is_folder = item.file_type().is_ok_and(|kind| kind.is_dir());
        is_folder
            && (item.file_name() == name
                || depth > 0 && any_folder_named(item.path(), name, depth - 1))
    })
}

/// Zombies among our children.
fn zombies() -> usize {
    let me = format!("PPid:\t{}", std::process::id());
    fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|item| fs_err::read_to_string(item.path().join("status")).ok())
        .filter(|status| status.contains("State:\tZ") && status.lines().any(|line| line == me))
        .count()
}

fn orphans_of_a_subreaper_are_reaped() {
    become_subreaper().unwrap();
    let process = start(&Native, &helper(&["escape"]));
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Code(0)));
    assert_eq!(process.members().len(), 2);
    process.kill_tree(PATIENCE).unwrap();
    eventually("no zombie is left", || {
        reap_orphans();
        zombies() == 0
    });
}

fn children_of_other_code_are_not_reaped() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["role", "exit", "3"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the child is a zombie", || zombies() == 1);
    assert_eq!(reap_orphans(), 0);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

fn a_tree_that_grows_back_dies_too() {
    let (process, _output) = start_ready(&Native, &helper(&["hydra"]));
    process.kill_tree(PATIENCE).unwrap();
    assert_eq!(process.members(), []);
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Signal(9)));
}
