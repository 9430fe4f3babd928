//! Ends containers: first what they asked to be done before, then they are told, then they are killed.

use std::time::Duration;

use futures::future::join_all;
use transom_runtime::RuntimeError;

use super::{Bench, gone};
use crate::{
    events::about_container,
    hooks,
    pods::{
        decide::Kill,
        view::{Kind, find},
    },
};

/// What is left at least after a hook took its time.
const LEAST: Duration = Duration::from_secs(2);

/// All at the same time; the first error is told after all were tried.
pub(super) async fn kill_all(bench: Bench<'_>, kills: &[Kill]) -> Result<(), RuntimeError> {
    let ended = join_all(kills.iter().map(|one| kill(bench, one))).await;
    ended.into_iter().collect()
}

async fn kill(bench: Bench<'_>, kill: &Kill) -> Result<(), RuntimeError> {
    let site = bench.site;
    let found = find(bench.pod, &kill.name);
    let kind = found.as_ref().map_or(Kind::Main, |(kind, _)| *kind);
    let about = about_container(bench.pod, kind, &kill.name);
    site.events
        .normal(about.clone(), "Killing", kill.message.clone());
    let begun = site.options.clock.now();
    let hook = found.as_ref().and_then(|(_, container)| {
        let hook = container.lifecycle.as_ref()?.pre_stop.as_ref()?;
        Some((container, hook))
    });
    if let Some((container, hook)) = hook
        && !kill.grace.is_zero()
    {
        let addresses = bench.addresses();
        let hook = hooks::run(site, container, &kill.id, hook, &addresses);
        if let Ok(Err(error)) = tokio::time::timeout(kill.grace, hook).await {
            tracing::debug!(container = kill.name, %error, "a hook before a stop failed");
            site.events
                .warning(about, "FailedPreStopHook", "PreStopHook failed".to_owned());
        }
    }
    let passed = site
        .options
        .clock
        .now()
        .duration_since(begun)
        .unsigned_abs();
    let grace = match kill.grace {
        Duration::ZERO => Duration::ZERO,
        whole => whole.saturating_sub(passed).max(LEAST),
    };
    gone(site.options.runtime.stop_container(&kill.id, grace).await)
}
