//! `winrun program.exe …`: cargo's runner for Windows programs, and what tests start them with.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;

use crate::tools::{State, Tool};
use crate::workspace::Workspace;

const SCRIPT: &str = include_str!("winrun.sh");

pub(crate) struct Winrun<'w> {
    workspace: &'w Workspace,
}

impl<'w> Winrun<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn text(&self) -> String {
        script_for(&self.workspace.wine())
    }
}

fn script_for(wine: &Path) -> String {
    SCRIPT.replace("@WINE@", &wine.display().to_string())
}

impl Tool for Winrun<'_> {
    fn name(&self) -> String {
        "winrun".to_owned()
    }

    fn state(&self) -> Result<State> {
        let there = fs_err::read_to_string(self.workspace.winrun());
        Ok(match there {
            Ok(text) if text == self.text() => State::Present,
            Ok(_) => State::Missing("another version".into()),
            Err(_) => State::Missing("not installed".into()),
        })
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        fs_err::create_dir_all(self.workspace.bin())?;
        let fresh = self.workspace.bin().join("winrun.new");
        fs_err::write(&fresh, self.text())?;
        fs_err::set_permissions(&fresh, PermissionsExt::from_mode(0o755))?;
        Ok(fs_err::rename(&fresh, self.workspace.winrun())?)
    }

    fn by_hand(&self) -> String {
        "cargo xtask tools install wine".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use tempfile::TempDir;

    use super::*;

    /// A folder that looks like Wine's: programs that write down what they were asked, and a template.
    struct Pretended {
        folder: TempDir,
    }

    impl Pretended {
        fn new(wine64: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let this = Self { folder };
            fs_err::create_dir_all(this.path("wine/template")).unwrap();
            fs_err::create_dir_all(this.path("wine/usr/lib/wine")).unwrap();
            fs_err::create_dir_all(this.path("tmp")).unwrap();
            fs_err::write(this.path("wine/template/system.reg"), "from the template").unwrap();
            let log = this.path("log");
            let log = log.display();
            this.program("wine/usr/lib/wine/wine64", wine64);
            this.program(
                "wine/usr/lib/wine/wineserver",
                &format!(
                    "echo \"$1 $(basename \"$WINEPREFIX\")\" >> '{log}'\n\
                     if [ -f \"$WINEPREFIX/pid\" ]; then kill \"$(cat \"$WINEPREFIX/pid\")\"; fi"
                ),
            );
            let text = script_for(&this.path("wine"));
            this.program("winrun", text.strip_prefix("#!/bin/sh\n").unwrap());
            this
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn program(&self, name: &str, body: &str) {
            let path = self.path(name);
            fs_err::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }

        fn start(&self, prefix: Option<&str>) -> Child {
            let mut command = Command::new(self.path("winrun"));
            command
                .args(["a.exe", "one two"])
                .env("TMPDIR", self.path("tmp"))
                .env_remove("WINEPREFIX")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            if let Some(prefix) = prefix {
                command.env("WINEPREFIX", self.path(prefix));
            }
            command.spawn().unwrap()
        }

        fn left_over(&self) -> usize {
            fs_err::read_dir(self.path("tmp")).unwrap().count()
        }

        fn server_log(&self) -> String {
            fs_err::read_to_string(self.path("log")).unwrap_or_default()
        }
    }

    const REPORT: &str = "echo \"$# $2 $(cat \"$WINEPREFIX/system.reg\") $(cat)\"; exit 7";

    #[test]
    fn a_program_gets_a_machine_of_its_own_which_is_gone_afterwards() {
        let wine = Pretended::new(REPORT);
        let mut child = wine.start(None);
        child.stdin.take().unwrap().write_all(b"typed").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(output.stdout, b"2 one two from the template typed\n");
        assert_eq!(wine.server_log(), "-k machine\n-w machine\n");
        assert_eq!(wine.left_over(), 0);
    }

    #[test]
    fn a_named_machine_is_made_once_and_stays() {
        let wine = Pretended::new(REPORT);
        let run = || wine.start(Some("host")).wait_with_output().unwrap();
        assert_eq!(run().stdout, b"2 one two from the template \n");
        fs_err::write(wine.path("host/system.reg"), "changed").unwrap();
        let second = run();
        assert_eq!(second.stdout, b"2 one two changed \n");
        assert_eq!(second.status.code(), Some(7));
        assert_eq!(wine.server_log(), "");
    }

    #[test]
    fn a_signal_ends_the_machine_too() {
        let wine = Pretended::new(
            "echo $$ > \"$WINEPREFIX/pid\"; touch \"$WINEPREFIX/../../started\"; exec sleep 60",
        );
        let mut child = wine.start(None);
        let end = Instant::now() + Duration::from_secs(30);
        while !wine.path("tmp/started").exists() {
            assert!(Instant::now() < end, "the program was not started");
            std::thread::sleep(Duration::from_millis(5));
        }
        fs_err::remove_file(wine.path("tmp/started")).unwrap();
        let pid = child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert_eq!(wine.server_log(), "-k machine\n-w machine\n");
        assert_eq!(wine.left_over(), 0);
    }
}
