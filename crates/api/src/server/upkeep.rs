//! What a server does by itself while it runs: forget old history, renew certificates, tell other servers that it
//! is there.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{presence::Presence, reseal};
use crate::{Api, access::pki::Pki};

/// History older than this is forgotten.
const KEPT: Duration = Duration::from_mins(5);
const CERTIFICATES: Duration = Duration::from_hours(1);

/// Goes on until `stop`.
pub(super) async fn run(
    api: Api,
    pki: Arc<Pki>,
    mut presence: Option<Presence>,
    stop: CancellationToken,
) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = forget(&api) => {}
        () = renew(&pki) => {}
        () = keep(&mut presence, &api) => {}
        () = seal(&api) => {}
    }
    if let Some(presence) = &mut presence
        && let Err(error) = presence.leave(&api).await
    {
        tracing::warn!(%error, "could not tell other servers that this one stops");
    }
}

/// Seals what is not sealed with the newest key, once.
async fn seal(api: &Api) {
    match reseal::run(api).await {
        Ok(0) => {}
        Ok(secrets) => tracing::info!(secrets, "sealed with the newest key"),
        Err(error) => tracing::error!(%error, "could not seal all secrets with the newest key"),
    }
    std::future::pending::<()>().await;
}

async fn keep(presence: &mut Option<Presence>, api: &Api) {
    match presence {
        Some(presence) => presence.keep(api).await,
        None => std::future::pending().await,
    }
}

/// Compacts the store to where it was a while ago.
async fn forget(api: &Api) {
    let mut then = api.cache().revision();
    loop {
        tokio::time::sleep(KEPT).await;
        if let Err(error) = api.compact(then).await {
            tracing::warn!(%error, revision = then, "could not forget old history; trying again later");
        }
        then = api.cache().revision();
    }
}

async fn renew(pki: &Arc<Pki>) {
    loop {
        tokio::time::sleep(CERTIFICATES).await;
        let pki = Arc::clone(pki);
        // It reads and writes files.
        match tokio::task::spawn_blocking(move || pki.renew(Timestamp::now())).await {
            Ok(Ok(renewed)) => tracing::debug!(?renewed, "looked at the certificates"),
            Ok(Err(error)) => tracing::error!(%error, "could not renew the certificates"),
            Err(error) => tracing::error!(%error, "could not look at the certificates"),
        }
    }
}
