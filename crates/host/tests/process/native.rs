//! What only a real machine can show, the same on both systems: owners that are killed, folders,
//! odd paths.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::process::{Exit, GroupId, Identity, Native, Process, Processes, SpawnError};

use super::backend::{MOMENT, PATIENCE, Started, eventually, helper, start, start_ready};

pub(crate) const TESTS: &[(&str, fn())] = &[
    (
        "nothing_of_a_group_survives_its_killed_owner",
        nothing_of_a_group_survives_its_killed_owner,
    ),
    (
        "a_detached_group_survives_its_killed_owner_and_is_adopted",
        a_detached_group_survives,
    ),
    (
        "a_program_outlives_the_thread_that_started_it",
        a_program_outlives_the_thread,
    ),
    ("a_program_runs_in_its_folder", a_program_runs_in_its_folder),
    ("a_missing_folder_is_named", a_missing_folder_is_named),
    (
        "a_path_with_spaces_and_unicode_works",
        a_path_with_spaces_and_unicode_works,
    ),
    (
        "a_file_that_is_no_program_is_refused",
        a_file_that_is_no_program_is_refused,
    ),
    ("an_unknown_user_is_refused", an_unknown_user_is_refused),
    (
        "an_unknown_group_of_users_is_refused",
        an_unknown_group_of_users_is_refused,
    ),
    (
        "a_nul_in_an_argument_is_refused",
        a_nul_in_an_argument_is_refused,
    ),
];

/// A process of ours that owns a group, to be killed without a chance to clean up.
struct Owner {
    child: Child,
    main: Identity,
    group: GroupId,
}

impl Owner {
    fn start(lifetime: &str) -> Self {
        let group = GroupId::unique();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["role", "owner", lifetime, group.as_str()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let main = serde_json::from_str(&line).expect("the owner names its child");
        Self { child, main, group }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn main_lives(&self) -> bool {
        Native.identify(self.main.pid).as_ref() == Some(&self.main)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Both fail when the test did its work.
        let _ = self.child.kill();
        let _ = Native.kill_group(&self.group, PATIENCE);
    }
}

fn nothing_of_a_group_survives_its_killed_owner() {
    let mut owner = Owner::start("with-owner");
    assert!(owner.main_lives());
    assert_eq!(Native.leftovers(&owner.group).len(), 3);
    owner.kill();
    eventually("the main process dies with its owner", || {
        !owner.main_lives()
    });
    Native.kill_group(&owner.group, PATIENCE).unwrap();
    eventually("nothing is left", || {
        Native.leftovers(&owner.group).is_empty()
    });
}

fn a_detached_group_survives() {
    let mut owner = Owner::start("detached");
    owner.kill();
    let adopted = Native.adopt(&owner.main, &owner.group).unwrap();
    let adopted = Started::from(adopted.expect("it lives"));
    assert_eq!(adopted.wait(Some(MOMENT)).unwrap(), None);
    assert_eq!(adopted.members().len(), 3, "{:?}", adopted.members());
    assert_eq!(Native.leftovers(&owner.group).len(), 3);
    adopted.kill_tree(PATIENCE).unwrap();
    assert!(adopted.wait(Some(PATIENCE)).unwrap().is_some());
    assert_eq!(Native.leftovers(&owner.group), []);
}

fn a_program_outlives_the_thread() {
    let starter = std::thread::spawn(|| Native.spawn(&helper(&["run"])).unwrap());
    let process = Started::from(starter.join().unwrap());
    assert_eq!(process.wait(Some(MOMENT)).unwrap(), None);
}

fn output_of(process: &dyn Process) -> String {
    let mut text = String::new();
    let mut output = process.take_stdout().unwrap();
    output.read_to_string(&mut text).unwrap();
    text.trim_end().to_owned()
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let path = Utf8PathBuf::from_path_buf(path).unwrap();
    let plain = path.as_str().strip_prefix(r"\\?\").map(Utf8PathBuf::from);
    (folder, plain.unwrap_or(path))
}

fn a_program_runs_in_its_folder() {
    let (_guard, folder) = folder();
    let mut spec = helper(&["directory"]);
    spec.directory = Some(folder.clone());
    let process = start(&Native, &spec);
    assert_eq!(
        output_of(&*process).to_lowercase(),
        folder.as_str().to_lowercase()
    );
}

fn a_missing_folder_is_named() {
    let (_guard, folder) = folder();
    for bad in ["missing", "file"] {
        fs_err::write(folder.join("file"), "").unwrap();
        let mut spec = helper(&["run"]);
        spec.directory = Some(folder.join(bad));
        let error = Native.spawn(&spec).unwrap_err();
        assert!(matches!(error, SpawnError::Directory { .. }), "{error:?}");
        assert!(error.to_string().contains(bad), "{error}");
        assert_eq!(Native.leftovers(&spec.group), []);
    }
}

/// A copy, because Wine shows a link under the name of what it links to.
fn copy_of_this_binary(to: &Utf8Path) {
    fs_err::copy(std::env::current_exe().unwrap(), to).unwrap();
}

fn a_path_with_spaces_and_unicode_works() {
    let (_guard, folder) = folder();
    let deep = folder.join("with space").join("grün 日本");
    fs_err::create_dir_all(&deep).unwrap();
    let mut spec = helper(&["run"]);
    spec.program = deep.join("a program.exe");
    copy_of_this_binary(&spec.program);
    let (process, _output) = start_ready(&Native, &spec);
    let members = process.members();
    assert!(members[0].command.contains("grün 日本"), "{members:?}");
    process.kill_tree(PATIENCE).unwrap();
    assert_eq!(process.wait(Some(PATIENCE)).unwrap(), Some(Exit::Signal(9)));
}

fn a_file_that_is_no_program_is_refused() {
    let (_guard, folder) = folder();
    let file = folder.join("notes.exe");
    fs_err::write(&file, "not a program\n").unwrap();
    make_executable(&file);
    let mut spec = helper(&["run"]);
    spec.program = file;
    let error = Native.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::WrongFormat { .. }), "{error:?}");
    spec.program = folder;
    let error = Native.spawn(&spec).unwrap_err();
    assert!(
        matches!(error, SpawnError::NotExecutable { .. }),
        "{error:?}"
    );
}

#[cfg(target_os = "linux")]
pub(crate) fn make_executable(path: &Utf8Path) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Windows goes by the name.
#[cfg(windows)]
pub(crate) fn make_executable(_path: &Utf8Path) {}

fn an_unknown_user_is_refused() {
    let mut spec = helper(&["run"]);
    spec.user = Some("no-such-user-at-all".parse().unwrap());
    let error = Native.spawn(&spec).unwrap_err();
    let expected = if cfg!(windows) {
        matches!(error, SpawnError::UserNotSupported { .. })
    } else {
        matches!(error, SpawnError::UnknownUser { .. })
    };
    assert!(expected, "{error:?}");
    assert!(error.to_string().contains("no-such-user-at-all"));
}

fn an_unknown_group_of_users_is_refused() {
    let mut spec = helper(&["run"]);
    spec.user_group = Some("no-such-group-at-all".parse().unwrap());
    let error = Native.spawn(&spec).unwrap_err();
    let expected = if cfg!(windows) {
        matches!(error, SpawnError::GroupNotSupported { .. })
    } else {
        matches!(error, SpawnError::UnknownGroup { .. })
    };
    assert!(expected, "{error:?}");
    assert!(error.to_string().contains("no-such-group-at-all"));
}

fn a_nul_in_an_argument_is_refused() {
    let mut spec = helper(&["arguments", "a\0b"]);
    let error = Native.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::BadText { .. }), "{error:?}");
    spec = helper(&["run"]);
    spec.env.insert("A=B".to_owned(), "x".to_owned());
    let error = Native.spawn(&spec).unwrap_err();
    assert!(matches!(error, SpawnError::BadText { .. }), "{error:?}");
}
