//! One Windows machine (a Wine prefix) for a whole run of tests. It is held open by a sleeping program,
//! so that each test starts in milliseconds, and is shut down and removed when the run ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::run;
use crate::tools::stamp;
use crate::workspace::Workspace;

const BOOTED: &str = "transom-machine-is-up";
const PREFIX: &str = "windows-machine-";
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Machine {
    wine: PathBuf,
    folder: PathBuf,
    holder: Child,
}

impl Machine {
    /// Copies the template and starts it.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        let wine = workspace.wine();
        fs_err::create_dir_all(&workspace.target)?;
        remove_left_over(&wine, &workspace.target)?;
        let folder = workspace
            .target
            .join(format!("{PREFIX}{}", std::process::id()));
        run::quietly(
            Command::new("cp")
                .args(["--archive", "--reflink=auto", "--no-preserve=ownership"])
                .arg(wine.join("template"))
                .arg(&folder),
        )?;
        // A command interpreter that reads from a pipe which stays open.
        let holder = wine_command(&wine, &folder)
            .args(["cmd.exe", "/q"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("could not start the Windows machine")?;
        let mut machine = Self {
            wine,
            folder,
            holder,
        };
        // Two programs that boot the same machine at once get in each other's way.
        machine.wait_for_boot()?;
        run::bounded(
            wine_command(&machine.wine, &machine.folder).args(["cmd.exe", "/c", "exit"]),
            PATIENCE,
        )
        .context("the Windows machine does not run programs")?;
        Ok(machine)
    }

    /// Returns when the first program of the machine runs: it repeats a word.
    fn wait_for_boot(&mut self) -> Result<()> {
        let mut input = self.holder.stdin.as_ref().context("no pipe")?;
        input.write_all(format!("echo {BOOTED}\r\n").as_bytes())?;
        let output = self.holder.stdout.take().context("no pipe")?;
        let (sender, answer) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines();
            let booted = lines.any(|line| line.is_ok_and(|line| line.contains(BOOTED)));
            // Nobody listens any more if it took too long.
            let _ = sender.send(booted);
            // The interpreter must be able to go on writing.
            lines.for_each(drop);
        });
        match answer.recv_timeout(PATIENCE) {
            Ok(true) => Ok(()),
            Ok(false) => bail!("the Windows machine ended while it booted"),
            Err(_) => bail!(
                "the Windows machine did not boot within {}",
                console::duration(PATIENCE)
            ),
        }
    }

    pub(crate) fn prefix(&self) -> &Path {
        &self.folder
    }

    /// Ends everything that runs on a machine.
    pub(crate) fn shut_down(wine: &Path, prefix: &Path) -> Result<()> {
        // `-k` exits with 1 when nothing runs: what counts is that waiting for the end succeeds.
        let server = wine.join("usr/lib/wine/wineserver");
        let server = |argument: &str| {
            let mut command = Command::new(&server);
            command.arg(argument).env("WINEPREFIX", prefix);
            command
        };
        if run::bounded(&mut server("-k"), PATIENCE).is_err() && !prefix.exists() {
            return Ok(());
        }
        run::bounded(&mut server("-w"), PATIENCE)
            .context("the Windows machine does not shut down")?;
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let ended = Self::shut_down(&self.wine, &self.folder)
            .and_then(|()| Ok(self.holder.wait().map(drop)?))
            .and_then(|()| stamp::remove(&self.folder));
        if let Err(error) = ended {
            console::line(&format!(
                "  could not remove the Windows machine: {error:#}"
            ));
        }
    }
}

/// A Wine program on the machine at `prefix`, without a screen and without Wine's own chatter.
pub(crate) fn wine_command(wine: &Path, prefix: &Path) -> Command {
    let programs = wine.join("usr/lib/wine");
    let mut command = Command::new(programs.join("wine64"));
    command
        .env("WINEPREFIX", prefix)
        .env("WINESERVER", programs.join("wineserver"))
        .env("WINEDEBUG", "-all")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    command
}

/// Removes the machines of runs that were killed.
fn remove_left_over(wine: &Path, target: &Path) -> Result<()> {
    for entry in fs_err::read_dir(target)? {
        let path = entry?.path();
        let Some(pid) = owner(&path) else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            Machine::shut_down(wine, &path)?;
            stamp::remove(&path)?;
        }
    }
    Ok(())
}

/// The process that made the machine at `path`.
fn owner(path: &Path) -> Option<u32> {
    path.file_name()?
        .to_str()?
        .strip_prefix(PREFIX)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_machines_have_an_owner() {
        assert_eq!(owner(Path::new("/t/windows-machine-42")), Some(42));
        assert_eq!(owner(Path::new("/t/windows-machine-x")), None);
        assert_eq!(owner(Path::new("/t/debug")), None);
    }

    #[test]
    fn the_machine_of_a_running_process_is_left_alone() {
        let target = tempfile::tempdir().unwrap();
        let ours = target
            .path()
            .join(format!("{PREFIX}{}", std::process::id()));
        fs_err::create_dir(&ours).unwrap();
        remove_left_over(Path::new("/nowhere"), target.path()).unwrap();
        assert!(ours.exists());
    }
}
