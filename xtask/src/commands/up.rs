//! `cargo xtask up`: from a checkout to a running Transom, as far as there is one: the supervisor with
//! a demo service, on a machine of its own below the cache folder. Running it again starts afresh with
//! what was built.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// How long the supervisor may take to come up or to end, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const DEMO: &str = "clock.service";

/// Build Transom, show what this machine can do, and run the supervisor with a demo service
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Build with optimizations
    #[arg(long)]
    release: bool,
}

impl Up {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        console::heading("build");
        let mut build = workspace.cargo();
        build.args(["build", "--package", "transom"]);
        if self.release {
            build.arg("--release");
        }
        run::visibly(&mut build)?;
        let transom = if self.release {
            workspace.target.join("release/transom")
        } else {
            workspace.transom()
        };

        console::heading("what this machine can do");
        run::visibly(workspace.command(&transom).arg("doctor"))?;

        console::heading("the supervisor with a demo service");
        let demo = Demo {
            transom,
            root: workspace.target.join("up"),
        };
        demo.end()?;
        demo.install(&workspace.root.join("examples/services").join(DEMO))?;
        demo.start()?;
        demo.show(&["enable", "--now", DEMO])?;
        demo.show(&["status", DEMO])?;

        console::heading("next");
        for words in ["logs -f clock", "restart clock", "list-units", "shutdown"] {
            console::line(&format!("  {} service {words}", demo.prefix()));
        }
        console::line("  cargo xtask test");
        Ok(())
    }
}

/// A machine of its own for the demo: everything below one folder.
struct Demo {
    transom: PathBuf,
    root: PathBuf,
}

impl Demo {
    fn prefix(&self) -> String {
        format!("{} --root {}", self.transom.display(), self.root.display())
    }

    fn service(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.transom);
        command
            .arg("--root")
            .arg(&self.root)
            .arg("service")
            .args(words);
        command
    }

    fn show(&self, words: &[&str]) -> Result<()> {
        run::visibly(&mut self.service(words))
    }

    fn is_running(&self) -> Result<bool> {
        let mut status = self.service(&["status"]);
        status.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(status.status().context("could not run transom")?.success())
    }

    /// Ends the supervisor of an earlier run, if there is one.
    fn end(&self) -> Result<()> {
        if self.is_running()? {
            self.show(&["shutdown"])?;
            self.wait("end", || Ok(!self.is_running()?))?;
        }
        Ok(())
    }

    fn install(&self, unit: &Path) -> Result<()> {
        let folder = self.root.join("etc/systemd/system");
        fs_err::create_dir_all(&folder)?;
        fs_err::copy(unit, folder.join(DEMO))?;
        Ok(())
    }

    /// Starts the supervisor so that it outlives this command.
    fn start(&self) -> Result<()> {
        let log = fs_err::File::create(self.root.join("supervisor.log"))?;
        let (out, _) = log.into_parts();
        self.service(&["daemon"])
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .process_group(0)
            .spawn()
            .context("could not start the supervisor")?;
        self.wait("come up", || self.is_running())
    }

    fn wait(&self, what: &str, done: impl Fn() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !done()? {
            if begun.elapsed() > PATIENCE {
                bail!(
                    "the supervisor did not {what} within {} s: see {}",
                    PATIENCE.as_secs(),
                    self.root.join("supervisor.log").display()
                );
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}
