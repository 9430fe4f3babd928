//! Starts a control plane of its own, has the simulation run on it, and ends it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use transom_api::Settings as ApiSettings;
use transom_api::server::{Options as ServerOptions, StoreChoice};
use transom_controllers::Patience;
use transom_host::files::{Access, Files as _, Native};
use transom_simulation::{Options, Plan, Report};

use super::progress::Shown;
use super::show;
use crate::context::Context;
use crate::control_plane::{ControlPlane, Loop};
use crate::failure::{Advice as _, Exit};
use crate::long_running::{self, Stop};
use crate::output::Output;
use crate::progress::Progress;

/// The name of the service.
const NAME: &str = "transom-simulate";
/// What is left to tasks that are under way when all is over.
const FAREWELL: Duration = Duration::from_secs(5);

/// Where things are kept.
pub(super) struct Place {
    /// A folder of somebody; else a temporary one.
    pub(super) folder: Option<Utf8PathBuf>,
    pub(super) is_in_memory: bool,
    pub(super) plot: Option<Utf8PathBuf>,
}

pub(super) fn run(
    cx: &Context,
    options: Options,
    plan: Plan,
    place: Place,
) -> anyhow::Result<Exit> {
    if let Some(folder) = &place.folder {
        refuse_used(folder)?;
    }
    let (out, progress) = (Arc::clone(&cx.out), cx.progress.clone());
    long_running::run(cx, NAME, false, move |stop| {
        let folder = Folder::of(&place)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let server = server_options(&place, folder.path()?);
        let simulated = runtime.block_on(simulate(options, plan, &server, &out, progress, stop));
        // Whatever still has a file open ends here, so that the folder can go.
        runtime.shutdown_timeout(FAREWELL);
        folder.remove()?;
        let report = simulated?;
        if let Some(file) = &place.plot {
            let plot = transom_simulation::plot(&report);
            Native.write_durable(file, plot.as_bytes(), Access::Public)?;
        }
        out.document(&show::Found(&report))?;
        Ok(())
    })
}

/// Objects that are there already would be counted.
fn refuse_used(folder: &Utf8Path) -> anyhow::Result<()> {
    let is_used = match fs_err::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    if !is_used {
        return Ok(());
    }
    Err(anyhow::anyhow!("the folder `{folder}` is not empty"))
        .hint("name one that is empty, or none")
        .exit(Exit::Usage)
}

/// The folder of the server.
enum Folder {
    Own(Utf8PathBuf),
    Temporary(TempDir),
}

impl Folder {
    fn of(place: &Place) -> anyhow::Result<Self> {
        if let Some(folder) = &place.folder {
            return Ok(Self::Own(folder.clone()));
        }
        let made = tempfile::Builder::new()
            .prefix("transom-simulate-")
            .tempdir();
        made.map(Self::Temporary)
            .context("could not make a temporary folder")
    }

    fn path(&self) -> anyhow::Result<Utf8PathBuf> {
        match self {
            Self::Own(folder) => Ok(folder.clone()),
            Self::Temporary(folder) => Ok(folder.path().to_owned().try_into()?),
        }
    }

    /// Removes one that nobody asked for.
    fn remove(self) -> anyhow::Result<()> {
        match self {
            Self::Own(_) => Ok(()),
            Self::Temporary(folder) => folder
                .close()
                .context("could not remove the temporary folder"),
        }
    }
}

fn server_options(place: &Place, data: Utf8PathBuf) -> ServerOptions {
    ServerOptions {
        data,
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        names: Vec::new(),
        store: if place.is_in_memory {
            StoreChoice::Memory
        } else {
            StoreChoice::Local
        },
        settings: ApiSettings::default(),
    }
}

async fn simulate(
    options: Options,
    plan: Plan,
    server: &ServerOptions,
    out: &Output,
    progress: Progress,
    stop: &Stop,
) -> anyhow::Result<Report> {
    let patience = Patience {
        silence: options.grace,
        first_silence: Patience::default().first_silence.max(options.grace),
        // Nodes that fall together are emptied together.
        between_nodes: Duration::ZERO,
    };
    // What hollow nodes run, no registry has.
    let control_plane = ControlPlane::start(server, &[Loop::Images]).await?;
    let control_plane = control_plane.with_patience(patience);
    out.remark(&format!(
        "look on with kubectl --kubeconfig {}",
        control_plane.kubeconfig()
    ));
    stop.ready();
    let client = control_plane.client_as("transom:simulation");
    let end = CancellationToken::new();
    let shown = Shown::new(progress);
    let simulated = async {
        let simulated = transom_simulation::run(client, options, plan, &shown, end.clone()).await;
        end.cancel();
        simulated
    };
    let both = async { tokio::join!(control_plane.run(end.clone()), simulated) };
    tokio::pin!(both);
    let (ended, simulated) = tokio::select! {
        both = both.as_mut() => both,
        () = stop.requested() => {
            end.cancel();
            both.await
        }
    };
    // Without a server there is nothing to simulate on, so that is what went wrong first.
    ended?;
    Ok(simulated?)
}
