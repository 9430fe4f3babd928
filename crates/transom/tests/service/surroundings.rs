//! What a service finds when it starts: variables, folders, files, names. Invariant: it is what the
//! unit file and its drop-ins say, and nothing of the supervisor's own.

use crate::harness::Machine;

#[test]
fn variables_of_the_unit_its_files_and_its_drop_ins_reach_the_process() {
    let mut machine = Machine::off();
    let text = "# a comment\nFROM_FILE=\"file value\"\nBOTH=file\n";
    fs_err::write(machine.root().join("vars"), text).unwrap();
    machine.unit(
        "env.service",
        "[Service]\nType=oneshot\nEnvironment=PLAIN=one \"SPACED=two words\" BOTH=unit\nEnvironment=DROPPED=old\nEnvironmentFile={root}{/}vars\nEnvironmentFile=-{root}{/}missing\nUnsetEnvironment=GONE\nEnvironment=GONE=x\nExecStart={echo} act env:PLAIN env:SPACED env:FROM_FILE env:BOTH env:DROPPED env:GONE env:TRANSOM_ROOT say:${PLAIN}-$$ say:%n\n",
    );
    machine.unit(
        "env.service.d/50-drop.conf",
        "[Service]\nEnvironment=DROPPED=new\n",
    );
    machine.boot();
    machine.ok(["start", "env"]);
    let log = machine.log("env");
    for line in [
        "PLAIN=one",
        "SPACED=two words",
        "FROM_FILE=file value",
        "BOTH=file",
        "DROPPED=new",
        "GONE=(not set)",
        "TRANSOM_ROOT=(not set)",
        "one-$",
        "env.service",
    ] {
        assert!(
            log.contains(&format!(" {line}\n")),
            "no `{line}` in:\n{log}"
        );
    }
}

#[test]
fn a_missing_environment_file_fails_the_start_and_is_named() {
    let machine = Machine::with(&[(
        "env.service",
        "[Service]\nEnvironmentFile={root}{/}absent-file\nExecStart={echo} act serve\n",
    )]);
    machine
        .service(["start", "env"])
        .exits(1)
        .says("absent-file");
    machine
        .service(["status", "env"])
        .exits(3)
        .says("absent-file");
}

#[test]
fn specifiers_and_instances_are_filled_in() {
    let machine = Machine::with(&[(
        "foo@.service",
        "[Unit]\nDescription=Foo for %i\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={echo} act say:[%p|%i|%n|%%]\n",
    )]);
    machine.ok(["start", "foo@bar", "foo@b-a_z"]);
    machine.wait_for_log("foo@bar", "[foo|bar|foo@bar.service|%]");
    machine.wait_for_log("foo@b-a_z", "[foo|b-a_z|foo@b-a_z.service|%]");
    assert_eq!(machine.property("foo@bar", "Description"), "Foo for bar");
    let outcome = machine.service(["start", "foo@"]).says("foo@.service");
    assert_ne!(outcome.code, 0, "a template without an instance is no unit");
}

#[test]
fn a_service_starts_in_its_working_directory() {
    let machine = Machine::with(&[
        (
            "here.service",
            "[Service]\nType=oneshot\nWorkingDirectory={root}{/}bin\nExecStart={echo} act folder\n",
        ),
        (
            "nowhere.service",
            "[Service]\nType=oneshot\nWorkingDirectory={root}{/}no-folder\nExecStart={echo} act say:ran\n",
        ),
        (
            "maybe.service",
            "[Service]\nType=oneshot\nWorkingDirectory=-{root}{/}no-folder\nExecStart={echo} act say:ran\n",
        ),
    ]);
    machine.ok(["start", "here"]);
    let folder = machine.wait_for_log("here", " in ");
    assert_eq!(folder, machine.root().join("bin").display().to_string());
    machine
        .service(["start", "nowhere"])
        .exits(1)
        .says("no-folder");
    assert!(!machine.log("nowhere").contains(" ran\n"));
    machine.ok(["start", "maybe"]);
    machine.wait_for_log("maybe", " ran");
}

#[test]
fn output_can_be_appended_to_a_file_or_thrown_away() {
    let machine = Machine::with(&[
        (
            "out.service",
            "[Service]\nType=oneshot\nStandardOutput=append:{root}{/}out.txt\nExecStart={echo} act say:line\n",
        ),
        (
            "quiet.service",
            "[Service]\nType=oneshot\nStandardOutput=null\nExecStart={echo} act say:nothing\n",
        ),
    ]);
    machine.ok(["start", "out"]);
    machine.ok(["start", "out"]);
    let text = fs_err::read_to_string(machine.root().join("out.txt")).unwrap();
    assert_eq!(text.replace('\r', ""), "line\nline\n");
    assert!(!machine.log("out").contains(" line\n"));
    machine.ok(["start", "quiet"]);
    assert!(!machine.log("quiet").contains(" nothing\n"));
}

#[test]
fn a_drop_in_replaces_what_it_names_after_daemon_reload() {
    let machine = Machine::with(&[(
        "web.service",
        "[Unit]\nDescription=Old\n[Service]\nExecStart={echo} act say:old serve\n",
    )]);
    machine.ok(["start", "web"]);
    machine.wait_for_log("web", " old");
    let pid = machine.pid("web");
    machine.unit(
        "web.service.d/override.conf",
        "[Unit]\nDescription=New\n[Service]\nExecStart=\nExecStart={echo} act say:new serve\n",
    );
    machine.ok(["daemon-reload"]);
    assert_eq!(
        machine.pid("web"),
        pid,
        "a reload of the files touches no process"
    );
    assert_eq!(machine.property("web", "Description"), "New");
    assert!(
        machine
            .property("web", "DropInPaths")
            .contains("override.conf")
    );
    machine.ok(["restart", "web"]);
    machine.wait_for_log("web", " new");
}

#[test]
fn folders_of_a_service_are_made_below_the_root_and_state_stays() {
    let machine = Machine::with(&[(
        "dirs.service",
        "[Service]\nStateDirectory=dirs-state\nRuntimeDirectory=dirs-run\nExecStart={echo} act env:STATE_DIRECTORY env:RUNTIME_DIRECTORY serve\n",
    )]);
    machine.ok(["start", "dirs"]);
    let state = machine.wait_for_log("dirs", "STATE_DIRECTORY=");
    let runtime = machine.wait_for_log("dirs", "RUNTIME_DIRECTORY=");
    for folder in [&state, &runtime] {
        let path = std::path::Path::new(folder.as_str());
        assert!(
            path.is_dir() && path.starts_with(machine.root()),
            "{folder}"
        );
    }
    machine.ok(["stop", "dirs"]);
    assert!(std::path::Path::new(&state).is_dir());
}

#[test]
fn a_root_with_spaces_and_other_alphabets_works_as_any() {
    let mut machine = Machine::off_in("mein Rechner für 日本 & 'co'");
    machine.unit(
        "wörk er.service",
        "[Service]\nExecStart={echo} act say:grüße folder serve\nWorkingDirectory={root}\n",
    );
    machine.unit("ok.service", "[Service]\nType=notify\nWorkingDirectory={root}\nExecStart={echo} act \"say:grüße euch\" ready folder serve\n");
    machine.boot();
    machine.ok(["start", "ok"]);
    machine.wait_for_log("ok", "grüße euch");
    let folder = machine.wait_for_log("ok", " in ");
    assert_eq!(folder, machine.root().display().to_string());
    let pid = machine.pid("ok");
    machine.kill_daemon();
    machine.boot();
    assert_eq!(machine.pid("ok"), pid);
    machine.ok(["stop", "ok"]);
    machine.wait_until_empty();
    // systemd does not take such names for units either.
    assert_ne!(machine.service(["start", "wörk er"]).code, 0);
}
