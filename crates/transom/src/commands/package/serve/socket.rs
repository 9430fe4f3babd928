//! Where the server listens: the machine's own way for processes to talk, or the loopback address. The
//! first is the default, because the system then knows who may connect.

use std::io;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use camino::Utf8Path;
use transom_host::ipc::{Access, Endpoint, Listener, Stream};

use super::Listen;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// The name of the socket below the folder of sockets.
const NAME: &str = "package";

/// What the name of a socket ends with.
const SUFFIX: &str = ".sock";

/// After a client that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Where to listen when nobody said so.
pub(super) fn usual(cx: &Context) -> Listen {
    Listen::Socket(cx.layout.run.join(format!("{NAME}{SUFFIX}")))
}

/// Serves until the process is asked to end.
pub(super) async fn serve(cx: &Context, listen: &Listen, router: Router) -> anyhow::Result<()> {
    match listen {
        Listen::Socket(path) => {
            let endpoint = endpoint(path)?;
            let listener = Listener::bind(&endpoint, Access::OwnerOnly)
                .with_context(|| format!("could not listen on {endpoint}"))?;
            cx.out.remark(&format!("listening on {endpoint}"));
            axum::serve(Local(listener), router)
                .with_graceful_shutdown(asked_to_end())
                .await?;
        }
        Listen::Address(address) => {
            let listener = tokio::net::TcpListener::bind(address)
                .await
                .with_context(|| format!("could not listen on {address}"))?;
            let address = listener.local_addr()?;
            cx.out.remark(&format!("listening on {address}"));
            axum::serve(listener, router)
                .with_graceful_shutdown(asked_to_end())
                .await?;
        }
    }
    Ok(())
}

fn endpoint(path: &Utf8Path) -> anyhow::Result<Endpoint> {
    let path = crate::commands::package::node::absolute(path)?;
    let name = path.file_name().and_then(|name| name.strip_suffix(SUFFIX));
    match (path.parent(), name) {
        (Some(folder), Some(name)) if !name.is_empty() => {
            transom_host::files::Files::create_dir_all(&transom_host::files::Native, folder)
                .with_context(|| format!("could not make the folder {folder}"))?;
            Ok(Endpoint::in_directory(folder, name))
        }
        _ => Err(anyhow::anyhow!("`{path}` is not the path of a socket"))
            .exit(Exit::Usage)
            .hint(format!("its name ends with {SUFFIX}")),
    }
}

/// Ends when somebody presses Ctrl-C, or the system asks.
async fn asked_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Nobody can ask: then only the end of the process ends it.
        std::future::pending::<()>().await;
    }
}

/// The machine's own way to talk, for the HTTP server.
struct Local(Listener);

impl axum::serve::Listener for Local {
    type Io = Stream;
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.0.accept().await {
                Ok(stream) => return (stream, ()),
                Err(error) => {
                    tracing::warn!(%error, "a client could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(())
    }
}
