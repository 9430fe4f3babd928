//! What only Windows has: batch files, handles, job limits.
#![expect(
    unsafe_code,
    reason = "marking a handle as inheritable is a Win32 call"
)]

use std::io::{BufReader, Read};
use std::os::windows::io::AsRawHandle;

use camino::Utf8PathBuf;
use transom_host::process::{Exit, LimitKind, Native, Output, Processes, Spawn, SpawnError};
use windows::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};

use super::backend::{PATIENCE, helper, line, start, start_ready};
use super::harness::Case;

/// Name, why it is ignored, what it does.
type Test = (&'static str, Option<&'static str>, fn());

pub(crate) fn cases() -> Vec<Case> {
    let tests: [Test; 7] = [
        (
            "a_batch_file_gets_its_arguments",
            None,
            a_batch_file_gets_its_arguments,
        ),
        (
            "a_dangerous_argument_of_a_batch_file_is_refused",
            None,
            a_dangerous_argument_is_refused,
        ),
        (
            "no_stray_handle_is_inherited",
            None,
            no_stray_handle_is_inherited,
        ),
        (
            "two_spellings_of_a_variable_are_refused",
            None,
            two_spellings_are_refused,
        ),
        (
            "limits_that_the_system_lacks_are_reported",
            None,
            limits_that_the_system_lacks,
        ),
        (
            "a_limit_on_processes_holds_for_the_group",
            Some("needs real Windows: Wine accepts job limits without effect"),
            a_limit_on_processes_holds,
        ),
        (
            "a_limit_on_memory_holds_for_the_group",
            Some("needs real Windows: Wine accepts job limits without effect"),
            a_limit_on_memory_holds,
        ),
    ];
    tests
        .into_iter()
        .map(|(name, ignored, run)| Case {
            name: format!("windows::{name}"),
            ignored,
            run: Box::new(run),
        })
        .collect()
}

fn batch_file(folder: &tempfile::TempDir) -> Spawn {
    let file = folder.path().join("a script.cmd");
    fs_err::write(
        &file,
        "@echo off\r\necho one %1\r\necho two %2\r\nexit /b 4\r\n",
    )
    .unwrap();
    let mut spec = Spawn::new(Utf8PathBuf::from_path_buf(file).unwrap());
    spec.stdout = Output::Pipe;
    spec
}

fn a_batch_file_gets_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = batch_file(&folder);
    spec.args = vec!["a & b".to_owned(), "c|d".to_owned()];
    let process = start(&Native, &spec);
    let mut text = String::new();
    process
        .take_stdout()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(lines, ["one \"a & b\"", "two \"c|d\""]);
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Code(4)));
}

fn a_dangerous_argument_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = batch_file(&folder);
    spec.args = vec!["%PATH%".to_owned()];
    let error = Native.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::BadText { .. }), "{error:?}");
}

fn no_stray_handle_is_inherited() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: the handle is open.
    unsafe {
        let handle = HANDLE(writer.as_raw_handle());
        SetHandleInformation(handle, HANDLE_FLAG_INHERIT.0, HANDLE_FLAG_INHERIT).unwrap();
    }
    let (process, _output) = start_ready(&Native, &helper(&["run"]));
    drop(writer);
    // Ends only if the running program does not hold the other end.
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    process.kill_tree(PATIENCE).unwrap();
}

fn two_spellings_are_refused() {
    let mut spec = helper(&["run"]);
    spec.env.insert("Path".to_owned(), "a".to_owned());
    spec.env.insert("PATH".to_owned(), "b".to_owned());
    let error = Native.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::BadText { .. }), "{error:?}");
}

fn limits_that_the_system_lacks() {
    let mut spec = helper(&["exit", "0"]);
    spec.limits.open_files = Some(transom_host::process::Bound::same(100));
    let process = start(&Native, &spec);
    let refused = &process.limits().not_enforced;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].limit, LimitKind::OpenFiles);
    assert!(refused[0].reason.contains("Windows"), "{refused:?}");
}

fn a_limit_on_processes_holds() {
    let mut spec = helper(&["breed", "20"]);
    spec.limits.processes = Some(6);
    let process = start(&Native, &spec);
    let mut output = BufReader::new(process.take_stdout().unwrap());
    let born: usize = line(&mut output).parse().unwrap();
    assert!((1..6).contains(&born), "{born} were born");
}

fn a_limit_on_memory_holds() {
    let mut spec = helper(&["hoard", "300"]);
    spec.limits.memory_bytes = Some(64 << 20);
    let process = start(&Native, &spec);
    let exit = process.wait(Some(PATIENCE)).unwrap().unwrap();
    assert_ne!(exit, Exit::Code(0));
}
