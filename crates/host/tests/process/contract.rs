//! What every machine promises, the make-believe one included.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::time::Duration;

use transom_host::process::{
    Bound, Delivered, Exit, Identity, Limits, MARKER, Output, Scope, Signal, SpawnError,
};

use super::backend::{
    Backend, MOMENT, PATIENCE, Role, Started, eventually, line, start, start_ready, with_input,
};

type Run = fn(&dyn Backend);

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[(&str, Run)] = &[$((stringify!($name), $name)),*];
    };
}

cases![
    exit_codes_come_back,
    both_outputs_come_back,
    outputs_go_to_files,
    much_output_on_both_pipes_does_not_block,
    arguments_arrive_as_they_were_given,
    the_environment_is_what_was_given_and_the_marker,
    the_end_of_input_stops_a_program,
    a_program_may_stop_in_good_order,
    a_program_that_does_not_listen_is_killed,
    a_signal_to_the_tree_reaches_every_member,
    an_ended_process_takes_no_signal,
    waiting_has_an_end_and_its_result_is_remembered,
    two_threads_may_wait_for_one_process,
    a_tree_dies_whole,
    processes_that_try_to_get_away_are_members_and_die,
    a_group_is_found_and_killed_by_its_name,
    a_running_process_is_adopted,
    a_reused_number_is_not_adopted,
    an_ended_process_is_not_adopted,
    every_limit_is_accounted_for,
    statistics_are_plausible,
    a_missing_executable_is_an_error_of_spawn,
    a_relative_program_is_refused,
    a_dropped_handle_leaves_the_group_running,
    many_programs_start_at_once,
];

fn read_all(mut reader: impl Read) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    text.replace("\r\n", "\n")
}

fn exit_of(process: &Started) -> Exit {
    let exit = process.wait(Some(PATIENCE)).expect("waiting works");
    exit.expect("it ends in time")
}

fn exit_codes_come_back(backend: &dyn Backend) {
    for code in [0, 1, 3, 255] {
        let process = start(backend.processes(), &backend.program(&Role::Exit(code)));
        assert_eq!(exit_of(&process), Exit::Code(code));
    }
}

fn both_outputs_come_back(backend: &dyn Backend) {
    let process = start(backend.processes(), &backend.program(&Role::Lines(3)));
    let output = read_all(process.take_stdout().unwrap());
    let errors = read_all(process.take_stderr().unwrap());
    assert_eq!(output, "line 1\nline 2\nline 3\n");
    assert_eq!(errors, "error 1\nerror 2\nerror 3\n");
    assert!(process.take_stdout().is_none(), "a pipe is taken once");
    assert_eq!(exit_of(&process), Exit::Code(0));
}

fn outputs_go_to_files(backend: &dyn Backend) {
    let folder = tempfile::tempdir().unwrap();
    let folder = camino::Utf8Path::from_path(folder.path()).unwrap();
    let log = folder.join("log ü.txt");
    let mut spec = backend.program(&Role::Lines(2));
    spec.stdout = Output::Append(log.clone());
    spec.stderr = Output::Null;
    for _ in 0..2 {
        exit_of(&start(backend.processes(), &spec));
    }
    let twice = "line 1\nline 2\nline 1\nline 2\n";
    assert_eq!(
        fs_err::read_to_string(&log).unwrap().replace('\r', ""),
        twice
    );

    spec.stdout = Output::Truncate(log.clone());
    exit_of(&start(backend.processes(), &spec));
    assert_eq!(
        fs_err::read_to_string(&log).unwrap().replace('\r', ""),
        "line 1\nline 2\n"
    );

    spec.stdout = Output::Append(folder.join("no such folder").join("log"));
    let error = backend.processes().spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::OpenOutput { .. }), "{error:?}");
}

fn much_output_on_both_pipes_does_not_block(backend: &dyn Backend) {
    const BYTES: usize = 1 << 20;
    let process = start(backend.processes(), &backend.program(&Role::Flood(BYTES)));
    let errors = process.take_stderr().unwrap();
    let errors = std::thread::spawn(move || read_all(errors).len());
    assert_eq!(read_all(process.take_stdout().unwrap()).len(), BYTES);
    assert_eq!(errors.join().unwrap(), BYTES);
    assert_eq!(exit_of(&process), Exit::Code(0));
}

fn arguments_arrive_as_they_were_given(backend: &dyn Backend) {
    let arguments = [
        "a b",
        "grün 日本",
        "",
        r#"say "hi""#,
        r"C:\dir\",
        r"C:\a dir\",
        "%PATH%",
        "*",
    ];
    let arguments = arguments.map(str::to_owned).to_vec();
    let process = start(
        backend.processes(),
        &backend.program(&Role::Arguments(arguments.clone())),
    );
    let output = read_all(process.take_stdout().unwrap());
    let arrived: Vec<&str> = output.lines().collect();
    assert_eq!(arrived, arguments);
}

fn the_environment_is_what_was_given_and_the_marker(backend: &dyn Backend) {
    let mut spec = backend.program(&Role::Environment);
    spec.env = BTreeMap::from([
        ("EMPTY".to_owned(), String::new()),
        ("SPACED".to_owned(), " a = b ".to_owned()),
        ("UNICODE".to_owned(), "grün 日本".to_owned()),
        // Whatever is given, the marker says the truth.
        (MARKER.to_owned(), "another".to_owned()),
    ]);
    let mut expected = spec.env.clone();
    expected.insert(MARKER.to_owned(), spec.group.to_string());
    let process = start(backend.processes(), &spec);
    let output = read_all(process.take_stdout().unwrap());
    let mut arrived: BTreeMap<String, String> = output
        .lines()
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // Windows needs the first, and Wine adds the others by itself.
    let added = ["SystemRoot", "SystemDrive", "PROCESSOR_ARCHITECTURE"];
    arrived.retain(|name, _| !added.contains(&name.as_str()) && !name.starts_with("WINE"));
    assert_eq!(arrived, expected);
}

fn the_end_of_input_stops_a_program(backend: &dyn Backend) {
    let spec = with_input(backend.program(&Role::Input));
    let (process, _output) = start_ready(backend.processes(), &spec);
    let mut input = process.take_stdin().unwrap();
    input.write_all(b"some words\n").unwrap();
    assert_eq!(process.wait(Some(MOMENT)).unwrap(), None);
    drop(input);
    assert_eq!(exit_of(&process), Exit::Code(5));
}

fn a_program_may_stop_in_good_order(backend: &dyn Backend) {
    let spec = backend.program(&Role::Polite);
    let (process, _output) = start_ready(backend.processes(), &spec);
    let delivered = process.signal(Signal::Terminate, Scope::Main).unwrap();
    if backend.has_signals() {
        assert_eq!(delivered, Delivered::To(1));
        assert_eq!(exit_of(&process), Exit::Code(7));
    } else {
        assert_eq!(delivered, Delivered::NotSupported);
        assert_eq!(process.wait(Some(MOMENT)).unwrap(), None);
    }
}

fn a_program_that_does_not_listen_is_killed(backend: &dyn Backend) {
    let spec = backend.program(&Role::Stubborn);
    let (process, _output) = start_ready(backend.processes(), &spec);
    process.signal(Signal::Terminate, Scope::Main).unwrap();
    assert_eq!(process.wait(Some(MOMENT)).unwrap(), None);
    let delivered = process.signal(Signal::Kill, Scope::Main).unwrap();
    assert_eq!(delivered, Delivered::To(1));
    assert_eq!(exit_of(&process), Exit::Signal(9));
}

fn a_signal_to_the_tree_reaches_every_member(backend: &dyn Backend) {
    let spec = backend.program(&Role::Family(2));
    let (process, _output) = start_ready(backend.processes(), &spec);
    let (signal, number) = if backend.has_signals() {
        (Signal::Terminate, 15)
    } else {
        (Signal::Kill, 9)
    };
    assert_eq!(
        process.signal(signal, Scope::Tree).unwrap(),
        Delivered::To(3)
    );
    assert_eq!(exit_of(&process), Exit::Signal(number));
    eventually("all members are gone", || process.members().is_empty());
}

fn an_ended_process_takes_no_signal(backend: &dyn Backend) {
    let process = start(backend.processes(), &backend.program(&Role::Exit(0)));
    exit_of(&process);
    for scope in [Scope::Main, Scope::Tree] {
        for signal in [Signal::Terminate, Signal::Kill] {
            assert_eq!(process.signal(signal, scope).unwrap(), Delivered::Gone);
        }
    }
    assert_eq!(process.members(), []);
    process.kill_tree(PATIENCE).unwrap();
}

fn waiting_has_an_end_and_its_result_is_remembered(backend: &dyn Backend) {
    let (process, _output) = start_ready(backend.processes(), &backend.program(&Role::Run));
    assert_eq!(process.wait(Some(Duration::ZERO)).unwrap(), None);
    assert_eq!(process.wait(Some(MOMENT)).unwrap(), None);
    process.signal(Signal::Kill, Scope::Main).unwrap();
    assert_eq!(process.wait(None).unwrap(), Some(Exit::Signal(9)));
    for timeout in [None, Some(Duration::ZERO), Some(PATIENCE)] {
        assert_eq!(process.wait(timeout).unwrap(), Some(Exit::Signal(9)));
    }
}

fn two_threads_may_wait_for_one_process(backend: &dyn Backend) {
    let spec = with_input(backend.program(&Role::Input));
    let (process, _output) = start_ready(backend.processes(), &spec);
    std::thread::scope(|scope| {
        let process = &*process;
        let wait = || process.wait(Some(PATIENCE)).unwrap();
        let waiters = [scope.spawn(wait), scope.spawn(wait)];
        drop(process.take_stdin());
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Some(Exit::Code(5)));
        }
    });
}

fn a_tree_dies_whole(backend: &dyn Backend) {
    let spec = backend.program(&Role::Family(3));
    let (process, _output) = start_ready(backend.processes(), &spec);
    let members = process.members();
    assert_eq!(members.len(), 4, "{members:?}");
    assert_eq!(members[0].identity, *process.identity());
    let name = spec.program.file_stem().unwrap();
    assert!(members[0].command.contains(name), "{members:?}");
    process.kill_tree(PATIENCE).unwrap();
    for member in &members {
        let now = backend.processes().identify(member.identity.pid);
        assert_ne!(now.as_ref(), Some(&member.identity), "it lives");
    }
    assert_eq!(exit_of(&process), Exit::Signal(9));
}

fn processes_that_try_to_get_away_are_members_and_die(backend: &dyn Backend) {
    let process = start(backend.processes(), &backend.program(&Role::Escape));
    assert_eq!(exit_of(&process), Exit::Code(0));
    let members = process.members();
    assert_eq!(members.len(), 2, "{members:?}");
    process.kill_tree(PATIENCE).unwrap();
    assert_eq!(process.members(), []);
    for member in &members {
        let now = backend.processes().identify(member.identity.pid);
        assert_ne!(now.as_ref(), Some(&member.identity), "it got away");
    }
}

fn a_group_is_found_and_killed_by_its_name(backend: &dyn Backend) {
    let machine = backend.processes();
    let spec = backend.program(&Role::Family(1));
    let mut second = backend.program(&Role::Run);
    second.group = spec.group.clone();
    let other = backend.program(&Role::Run);
    let (first, _output) = start_ready(machine, &spec);
    let (second, _output) = start_ready(machine, &second);
    let (other, _output) = start_ready(machine, &other);
    let found = machine.leftovers(&spec.group);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.contains(first.identity()) && found.contains(second.identity()));
    machine.kill_group(&spec.group, PATIENCE).unwrap();
    assert_eq!(machine.leftovers(&spec.group), []);
    assert_eq!(exit_of(&first), Exit::Signal(9));
    assert_eq!(exit_of(&second), Exit::Signal(9));
    assert_eq!(
        other.wait(Some(MOMENT)).unwrap(),
        None,
        "a stranger was killed"
    );
}

fn a_running_process_is_adopted(backend: &dyn Backend) {
    let machine = backend.processes();
    let spec = backend.program(&Role::Family(1));
    let (process, _output) = start_ready(machine, &spec);
    assert_eq!(
        machine.identify(process.identity().pid).as_ref(),
        Some(process.identity())
    );
    let adopted = machine.adopt(process.identity(), &spec.group).unwrap();
    let adopted = Started::from(adopted.expect("it runs"));
    assert_eq!(adopted.identity(), process.identity());
    assert_eq!(adopted.group(), &spec.group);
    assert_eq!(adopted.members(), process.members());
    assert_eq!(adopted.wait(Some(Duration::ZERO)).unwrap(), None);
    assert!(adopted.take_stdout().is_none());
    adopted.kill_tree(PATIENCE).unwrap();
    assert!(adopted.wait(Some(PATIENCE)).unwrap().is_some());
    assert!(process.wait(Some(PATIENCE)).unwrap().is_some());
}

fn a_reused_number_is_not_adopted(backend: &dyn Backend) {
    let machine = backend.processes();
    let spec = backend.program(&Role::Run);
    let (process, _output) = start_ready(machine, &spec);
    let stranger = Identity {
        pid: process.identity().pid,
        started: process.identity().started - 1,
    };
    assert!(machine.adopt(&stranger, &spec.group).unwrap().is_none());
    assert_eq!(process.wait(Some(Duration::ZERO)).unwrap(), None);
}

fn an_ended_process_is_not_adopted(backend: &dyn Backend) {
    let machine = backend.processes();
    let spec = backend.program(&Role::Exit(0));
    let process = start(machine, &spec);
    exit_of(&process);
    let adopted = machine.adopt(process.identity(), &spec.group).unwrap();
    assert!(adopted.is_none());
    assert_ne!(
        machine.identify(process.identity().pid).as_ref(),
        Some(process.identity())
    );
    assert_ne!(machine.current(), *process.identity());
}

fn a_dropped_handle_leaves_the_group_running(backend: &dyn Backend) {
    let machine = backend.processes();
    let spec = backend.program(&Role::Family(1));
    let process = machine.spawn(&spec).unwrap();
    let mut output = BufReader::new(process.take_stdout().unwrap());
    assert_eq!(line(&mut output), "ready");
    let identity = process.identity().clone();
    drop(process);
    let adopted = machine.adopt(&identity, &spec.group).unwrap();
    let adopted = Started::from(adopted.expect("it runs"));
    assert_eq!(adopted.wait(Some(MOMENT)).unwrap(), None);
    assert_eq!(adopted.members().len(), 2);
}

fn every_limit_is_accounted_for(backend: &dyn Backend) {
    let mut spec = backend.program(&Role::Exit(0));
    spec.limits = Limits {
        memory_bytes: Some(1 << 30),
        cpu_percent: Some(150),
        processes: Some(100),
        open_files: Some(Bound::same(256)),
        core_bytes: Some(Bound::same(0)),
        ..Limits::default()
    };
    let process = start(backend.processes(), &spec);
    let report = process.limits();
    let accounted = report.enforced.len() + report.clamped.len() + report.not_enforced.len();
    assert_eq!(accounted, 5, "{report:?}");
    for refused in &report.not_enforced {
        assert!(!refused.reason.is_empty(), "{refused:?}");
    }
    assert_eq!(exit_of(&process), Exit::Code(0));
}

fn statistics_are_plausible(backend: &dyn Backend) {
    let (process, _output) = start_ready(backend.processes(), &backend.program(&Role::Burn));
    let stats = process.stats();
    assert_eq!(stats.processes, Some(1));
    assert!(stats.memory_bytes.unwrap() >= 1 << 20, "{stats:?}");
    assert!(stats.cpu.unwrap() > Duration::ZERO, "{stats:?}");
    assert!(stats.cpu.unwrap() < PATIENCE, "{stats:?}");
    process.kill_tree(PATIENCE).unwrap();
    eventually("nothing is used by nobody", || {
        process.stats().processes == Some(0) && process.stats().memory_bytes == Some(0)
    });
}

fn a_missing_executable_is_an_error_of_spawn(backend: &dyn Backend) {
    let mut spec = backend.program(&Role::Run);
    spec.program = spec.program.with_file_name("no such program.exe");
    let error = backend.processes().spawn(&spec).unwrap_err();
    assert!(
        matches!(&error, SpawnError::MissingExecutable { program } if *program == spec.program),
        "{error:?}"
    );
    assert!(error.to_string().contains("no such program"));
    assert_eq!(backend.processes().leftovers(&spec.group), []);
}

fn a_relative_program_is_refused(backend: &dyn Backend) {
    let mut spec = backend.program(&Role::Run);
    spec.program = "program".into();
    let error = backend.processes().spawn(&spec).unwrap_err();
    assert!(
        matches!(error, SpawnError::RelativeProgram { .. }),
        "{error:?}"
    );
}

fn many_programs_start_at_once(backend: &dyn Backend) {
    let specs: Vec<_> = (0..12)
        .map(|code| backend.program(&Role::Exit(code)))
        .collect();
    let machine = backend.processes();
    std::thread::scope(|scope| {
        let runs: Vec<_> = specs
            .iter()
            .map(|spec| scope.spawn(move || machine.spawn(spec).unwrap().wait(Some(PATIENCE))))
            .collect();
        for (code, run) in (0..).zip(runs) {
            assert_eq!(run.join().unwrap().unwrap(), Some(Exit::Code(code)));
        }
    });
}
