//! `transom package build` as a process of its own: killed, interrupted, twice at once, and without the
//! rights of root. Scripts run on Linux only.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);
/// Somebody without rights.
const NOBODY: u32 = 65534;

/// A source tree with a package that never ends and one that is quick.
struct Tree {
    folder: TempDir,
    /// In the command line of what the endless script starts, and nowhere else.
    marker: String,
}

impl Tree {
    fn new(number: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let marker = format!("{}.{number}", 200_000 + std::process::id());
        let tree = Self { folder, marker };
        let endless = format!(
            "(setsid sleep {} &)\necho started\nsleep {}\n",
            tree.marker, tree.marker
        );
        for (name, script) in [
            ("endless", endless.as_str()),
            ("quick", "echo hi > $PKG_PATH/hi\n"),
        ] {
            let package = tree.folder.path().join("packages").join(name);
            fs_err::create_dir_all(&package).unwrap();
            fs_err::write(package.join("buildinfo.json"), "{}").unwrap();
            fs_err::write(package.join("build"), script).unwrap();
        }
        tree
    }

    fn command(&self, package: &str) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_transom")), package)
    }

    fn command_of(&self, program: &Path, package: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(["package", "build", package, "--packages"])
            .arg(self.folder.path().join("packages"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the endless build, and waits until its script runs.
    fn start_endless(&self) -> Child {
        let child = self.command("endless").spawn().unwrap();
        eventually("the script runs", || self.processes() == 2);
        child
    }

    /// How many programs of the endless script there are.
    fn processes(&self) -> usize {
        fs_err::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| fs_err::read(entry.ok()?.path().join("cmdline")).ok())
            .filter(|line| line.starts_with(b"sleep\0"))
            .filter(|line| String::from_utf8_lossy(line).contains(&self.marker))
            .count()
    }

    fn build_quick(&self) -> Output {
        let output = self.command("quick").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let work = self.folder.path().join("packages/cache/work");
        assert_eq!(fs_err::read_dir(work).unwrap().count(), 0);
        output
    }
}

#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

#[test]
fn a_build_that_is_ended_takes_all_with_it_and_the_next_starts_clean() {
    for (number, ending) in [Signal::SIGKILL, Signal::SIGINT, Signal::SIGTERM]
        .into_iter()
        .enumerate()
    {
        let tree = Tree::new(u32::try_from(number).unwrap());
        let mut child = tree.start_endless();
        signal(&child, ending);
        child.wait().unwrap();
        eventually("nothing of the script is left", || tree.processes() == 0);
        let mounts = fs_err::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(tree.folder.path().to_str().unwrap()));
        tree.build_quick();
    }
}

#[test]
fn a_second_build_of_a_tree_waits_for_the_first_and_names_it() {
    use std::io::{BufRead as _, BufReader};
    let tree = Tree::new(10);
    let mut first = tree.start_endless();
    let mut second = tree.command("quick").spawn().unwrap();
    let said = BufReader::new(second.stderr.take().unwrap());
    let waits = said
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("waiting for"))
        .unwrap();
    assert!(
        waits.contains(&format!("process {}", first.id())),
        "{waits}"
    );
    assert!(second.try_wait().unwrap().is_none());
    signal(&first, Signal::SIGKILL);
    first.wait().unwrap();
    // Its errors had nobody to read them any more, but it needs none.
    assert!(second.wait().unwrap().success());
}

#[test]
fn a_build_needs_no_rights() {
    let tree = Tree::new(20);
    let folder = tree.folder.path();
    for path in ["packages", "packages/quick", "packages/endless"] {
        std::os::unix::fs::chown(folder.join(path), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    // The build output may lie below a home that nobody else may enter.
    let program = folder.join("transom");
    fs_err::copy(env!("CARGO_BIN_EXE_transom"), &program).unwrap();
    let mut command = tree.command_of(&program, "quick");
    let output = command.uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("built"), "{shown}");
}
