//! Keeps the logs of running containers from filling the disk.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use transom_runtime::{
    ContainerState,
    logs::{Rotation, rotate},
};

use crate::site::Site;

const PERIOD: Duration = Duration::from_secs(10);

/// Looks at all logs from time to time, until `stop`.
pub(crate) async fn run(site: Arc<Site>, stop: CancellationToken) {
    while stop
        .run_until_cancelled(tokio::time::sleep(PERIOD))
        .await
        .is_some()
    {
        for uid in site.observer.uids() {
            let sandboxes = site.observer.sandboxes(&uid);
            let containers = sandboxes.iter().flat_map(|sandbox| &sandbox.containers);
            let running =
                containers.filter(|one| matches!(one.state, ContainerState::Running { .. }));
            for container in running {
                let reopen = async || site.options.runtime.reopen_log(&container.id).await;
                let now = site.options.clock.now();
                if let Err(error) =
                    rotate(&container.log_path, Rotation::default(), now, reopen).await
                {
                    tracing::warn!(container = container.name, %error, "a log could not be rotated");
                }
            }
        }
    }
}
