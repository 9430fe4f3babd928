//! The test binary as another process: it starts itself again with a role to play.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use camino::Utf8Path;
use transom_host::files::{Access, Files, How, Native, fault};

const ROLE: &str = "TRANSOM_TEST_ROLE";
const PATH: &str = "TRANSOM_TEST_PATH";
const READY: &str = "ready to be tested";

/// A process of this binary that plays `role` on `path`.
pub(crate) fn command(role: &str, path: &Utf8Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command
        .args([
            "--exact",
            "child::plays_the_role_it_was_given",
            "--nocapture",
        ])
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// A child that has begun its role and ends with this value.
pub(crate) struct Player {
    pub(crate) child: Child,
    _stdin: Option<ChildStdin>,
}

impl Player {
    pub(crate) fn start(role: &str, path: &Utf8Path) -> Self {
        let mut child = command(role, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut player = Self {
            _stdin: child.stdin.take(),
            child,
        };
        let is_ready = stdout
            .lines()
            .any(|line| line.is_ok_and(|line| line.contains(READY)));
        assert!(is_ready, "the child ended early: {:?}", player.child.wait());
        player
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // Also when the test fails: nothing is left running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how a child of this binary learns its role"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Not a test of its own: without a role there is nothing to play.
#[test]
fn plays_the_role_it_was_given() {
    let (Some(role), Some(path)) = (variable(ROLE), variable(PATH)) else {
        return;
    };
    let path = Utf8Path::new(&path);
    fault::arm_from_environment().expect("a plan");
    match role.as_str() {
        "write" => Native
            .write_durable(path, b"new content", Access::Public)
            .expect("written"),
        "copy" => Native
            .copy_tree(path, &path.with_file_name("copy"), How::Copy)
            .expect("copied"),
        "lock" => {
            let lock = Native.lock(path, Duration::ZERO).expect("locked");
            stay();
            lock.release();
        }
        "hold" => {
            let file = open_unshared(path);
            stay();
            drop(file);
        }
        other => panic!("no role `{other}`"),
    }
}

/// Says that the role has begun and waits until the parent lets go or dies.
fn stay() {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{READY}").expect("said");
    drop(output);
    let mut nothing = Vec::new();
    std::io::stdin()
        .read_to_end(&mut nothing)
        .expect("the end of the input");
}

#[cfg(target_os = "linux")]
fn open_unshared(path: &Utf8Path) -> std::fs::File {
    std::fs::OpenOptions::new()
        .read(true)
        .open(path)
        .expect("opened")
}

#[cfg(windows)]
fn open_unshared(path: &Utf8Path) -> std::fs::File {
    use std::os::windows::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).share_mode(0).open(path).expect("opened")
}
