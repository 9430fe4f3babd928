//! `transom server`: the Kubernetes API of a cluster, and the care of its store.

mod backup;
mod check;
mod install;
mod keys;
mod restore;
mod run;

use camino::Utf8PathBuf;
use clap::Subcommand;

use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::settings::Setting;

/// Run the Kubernetes API server, or look after its store
#[derive(Debug, clap::Args)]
#[command(after_help = run::EXAMPLES)]
pub(super) struct Server {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    run: run::Run,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Keys(keys::Keys),
    Install(Box<install::Install>),
    Uninstall(install::Uninstall),
}

impl Server {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if let (Some(_), Some(flag)) = (&self.command, self.run.first_flag()) {
            // Options that every command takes may stand here; these would be ignored.
            let misplaced: anyhow::Result<Exit> = Err(anyhow::anyhow!(
                "{flag} is for the server itself, which was not asked to run"
            ));
            return misplaced
                .hint("put it behind the last command, if that one has it; try --help")
                .exit(Exit::Usage);
        }
        match self.command {
            None => self.run.run(cx),
            Some(Command::Check(command)) => command.run(cx),
            Some(Command::Backup(command)) => command.run(cx),
            Some(Command::Restore(command)) => command.run(cx),
            Some(Command::Keys(command)) => command.run(cx),
            Some(Command::Install(command)) => command.run(cx),
            Some(Command::Uninstall(command)) => command.run(cx),
        }
    }
}

/// Where a server keeps its things.
#[derive(Debug, clap::Args)]
pub(super) struct DataFolder {
    /// The folder of the state, the certificates and the administrator's kubeconfig [default: that of the
    /// configuration, see `transom config show`]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<Utf8PathBuf>,
}

impl DataFolder {
    pub(super) fn path(&self, cx: &Context) -> Utf8PathBuf {
        self.setting(cx).value
    }

    fn setting(&self, cx: &Context) -> Setting<Utf8PathBuf> {
        let below = cx.settings.server.data_dir.clone();
        below.overruled(self.data_dir.clone(), "--data-dir")
    }

    /// Where the local store is.
    pub(super) fn state(&self, cx: &Context) -> Utf8PathBuf {
        self.path(cx).join("state")
    }
}

/// A runtime for commands that do one thing.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
