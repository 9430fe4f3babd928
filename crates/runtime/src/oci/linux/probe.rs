//! What this machine lets us do, found out by trying.

use camino::Utf8Path;
use fs_err as fs;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Whether layers can be stacked in a folder. Tried in a thread with mounts of its own: nothing is left.
pub(super) fn overlay_works(folder: &Utf8Path) -> bool {
    let place = folder.join(format!("probe-{}", std::process::id()));
    let result = std::thread::scope(|threads| threads.spawn(|| try_overlay(&place)).join());
    if let Err(error) = fs::remove_dir_all(&place) {
        tracing::warn!(%place, %error, "could not remove a folder that was used to try overlayfs");
    }
    match result {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(error, "overlayfs does not work");
            false
        }
        Err(_) => false,
    }
}

fn try_overlay(place: &Utf8Path) -> Result<(), String> {
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir_all(place.join(name)).map_err(|error| error.to_string())?;
    }
    // Mounts belong to a whole file system state: without a copy of it a thread cannot leave.
    unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).map_err(|error| error.to_string())?;
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        None::<&str>,
    )
    .map_err(|error| error.to_string())?;
    let options = format!("lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work");
    let target = place.join("merged");
    mount(
        Some("overlay"),
        target.as_str(),
        Some("overlay"),
        MsFlags::empty(),
        Some(options.as_str()),
    )
    .map_err(|error| error.to_string())
}
