//! `transom down`: ends the cluster of `transom up`, and removes all that was its own.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use transom_host::ipc::{self, ConnectError};

use super::place::{Place, PlaceArguments};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::node;

/// How long the process may take to let its requests finish.
const FAREWELL: Duration = Duration::from_secs(30);
const ROUND: Duration = Duration::from_millis(50);

const EXAMPLES: &str = "\
Examples:
  transom down                End the cluster, remove its pods and its folder
  transom down --keep-data    Keep what is stored: `transom up` goes on with it";

/// Stop the cluster of `transom up` and remove everything of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::commands) struct Down {
    #[command(flatten)]
    place: PlaceArguments,

    /// Keep the objects, certificates and images
    #[arg(long)]
    keep_data: bool,
}

impl Down {
    pub(in crate::commands) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let place = self.place.resolve(cx)?;
        if !place.is_ours() {
            cx.out.remark(&format!(
                "no cluster of `transom up` is in `{}`",
                place.folder
            ));
            return Ok(Exit::Success);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let task = cx.progress.start("stopping the cluster");
            end(&place).await?;
            task.step("removing pods");
            node::clear(&place.agent()).await?;
            if !self.keep_data {
                task.step("removing files");
                place
                    .remove()
                    .with_context(|| format!("could not remove `{}`", place.folder))?;
            }
            drop(task);
            cx.out.remark(if self.keep_data {
                "the cluster is stopped; `transom up` goes on with it"
            } else {
                "the cluster is gone"
            });
            Ok(Exit::Success)
        })
    }
}

/// Asks the process to end until it has let go of its folder: one that is just starting may not listen yet, and one
/// that is not there holds nothing.
async fn end(place: &Place) -> anyhow::Result<()> {
    let until = Instant::now() + FAREWELL;
    while place.is_held() {
        if Instant::now() > until {
            return Err(anyhow::anyhow!(
                "the cluster did not end within {FAREWELL:?}"
            ))
            .hint(format!(
                "look at `{}`, end the process by hand and try again",
                place.log()
            ));
        }
        match ipc::connect(&place.control(), FAREWELL).await {
            Ok(_) | Err(ConnectError::NobodyListens { .. }) => {}
            Err(fault) => return Err(fault).context("the cluster cannot be asked to end"),
        }
        tokio::time::sleep(ROUND).await;
    }
    Ok(())
}
