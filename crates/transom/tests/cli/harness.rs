//! One call of the binary in a folder of its own. Invariant: no variable of the machine that runs the
//! tests reaches the binary, and the folder is gone when the test ends.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No command here has a reason to take longer, even under Wine on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);

/// Variables that change what we print; they belong to the machine, not to the test.
const FOREIGN: &[&str] = &[
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TERM",
    "COLUMNS",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
    "WT_SESSION",
];

/// A machine's root folder for one test.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file below the root, with its folders.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    }

    /// The binary, rooted here, with only the variables that every process needs.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_transom"));
        for (name, _) in std::env::vars_os() {
            if name
                .to_string_lossy()
                .to_uppercase()
                .starts_with("TRANSOM_")
            {
                command.env_remove(name);
            }
        }
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
            .env("TRANSOM_ROOT", self.path())
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary with `arguments`.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Outcome {
        self.finish(self.command().args(arguments))
    }

    /// Runs `command` to its end, within the limit.
    pub(crate) fn finish(&self, command: &mut Command) -> Outcome {
        let output = output_within(command, LIMIT);
        Outcome {
            status: output.status,
            stdout: self.normal(&output.stdout),
            stderr: self.normal(&output.stderr),
        }
    }

    /// The text with our folder taken out, as both systems would write it.
    fn normal(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let root = self.path().to_str().unwrap();
        // JSON doubles the backslashes of a Windows path.
        let text = text
            .replace(&root.replace('\\', r"\\"), "[ROOT]")
            .replace(root, "[ROOT]");
        let parts: Vec<String> = text
            .split_inclusive("[ROOT]")
            .map(ToOwned::to_owned)
            .collect();
        let mut normal = String::new();
        for (index, part) in parts.iter().enumerate() {
            if index == 0 {
                normal += part;
                continue;
            }
            // Only what follows our folder up to the end of the path is a path.
            let end = part
                .find(|letter: char| letter.is_whitespace() || "`\",".contains(letter))
                .unwrap_or(part.len());
            normal += &part[..end].replace(r"\\", "/").replace('\\', "/");
            normal += &part[end..];
        }
        normal
    }
}

fn output_within(command: &mut Command, limit: Duration) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both are read at the same time, or a full pipe would hold the child for ever.
    let stdout = read_aside(child.stdout.take().unwrap());
    let stderr = read_aside(child.stderr.take().unwrap());
    let status = wait_within(&mut child, limit);
    Output {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn read_aside(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Waits for the end of `child`, and ends it when it takes too long.
pub(crate) fn wait_within(child: &mut Child, limit: Duration) -> ExitStatus {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the command did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a call left behind.
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Whether it ended by itself, and well.
    pub(crate) fn succeeded(&self) -> bool {
        self.status.success()
    }

    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap()
    }

    /// Everything in one text, for snapshots.
    pub(crate) fn transcript(&self) -> String {
        format!(
            "exit: {}\n--- stdout\n{}--- stderr\n{}",
            self.code(),
            self.stdout,
            self.stderr
        )
    }
}

/// Snapshots in files; the folder is named in full because Wine's programs start elsewhere.
pub(crate) fn with_snapshot_files(body: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(body);
}
