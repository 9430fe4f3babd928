//! The runtime of a node, ready to use: images, network and pods of one folder.

use std::sync::Arc;

use camino::Utf8Path;

use super::cgroup::Cgroups;
use super::{Bridge, LinuxUnpacker, OciHandle, OciRuntime};
use crate::RuntimeError;
use crate::images::{Images, Platform, Registries};
use crate::oci::{BridgeSettings, OciSettings, Opened};

pub(in crate::oci) async fn open(
    settings: &OciSettings,
    images: &Utf8Path,
    platform: Platform,
    registries: Registries,
    bridge: &BridgeSettings,
) -> Result<Opened, RuntimeError> {
    let unpacker = Arc::new(LinuxUnpacker);
    let images = Images::open(images, platform, registries, unpacker)?;
    let network = Arc::new(network(settings, bridge)?);
    let runtime = OciRuntime::open(settings, Arc::clone(&images), network).await?;
    Ok(Opened {
        runtime: Arc::new(OciHandle(runtime)),
        images,
    })
}

/// Takes away what the node has beside its pods.
pub(in crate::oci) async fn remove_all(
    settings: &OciSettings,
    bridge: &BridgeSettings,
) -> Result<(), RuntimeError> {
    network(settings, bridge)?.remove().await?;
    let name = settings.cgroup.clone();
    super::blocking(move || {
        Cgroups::find(&name)
            .and_then(|groups| groups.clear_all())
            .map_err(|error| RuntimeError::io(format!("remove the cgroup {name}"), error))
    })
    .await
}

fn network(settings: &OciSettings, bridge: &BridgeSettings) -> Result<Bridge, RuntimeError> {
    Bridge::new(
        &bridge.name,
        &bridge.subnet,
        &settings.state.join("addresses.json"),
    )
}
