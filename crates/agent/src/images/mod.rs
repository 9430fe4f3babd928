//! Images for containers: present, or pulled as their policy says.

mod collect;
mod facts;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use transom_runtime::{Credentials, Image, Pull, RuntimeError, images::credentials as logins};

use crate::{
    events::about_container,
    pods::{FailedPull, Kind, Memory, Pause, go_duration},
    site::Site,
};

pub(crate) use collect::{Aim, Collector, run as collect};
pub(crate) use facts::Told;

/// Why there is no image: a reason of the status and its message.
#[derive(Debug)]
pub(crate) struct NoImage {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Finds or gets the image of a container.
pub(crate) async fn ensure_image(
    site: &Arc<Site>,
    pod: &Pod,
    kind: Kind,
    container: &Container,
    memory: &std::sync::Mutex<Memory>,
) -> Result<Image, NoImage> {
    let name = container.image.clone().unwrap_or_default();
    let about = || about_container(pod, kind, &container.name);
    let warn = |reason: &'static str, event: &'static str, message: String| {
        site.events.warning(about(), event, message.clone());
        site.events
            .warning(about(), "Failed", format!("Error: {reason}"));
        NoImage { reason, message }
    };
    let present = match site.options.runtime.image(&name).await {
        Ok(present) => present,
        Err(error) => return Err(refused(&name, &error, warn)),
    };
    let policy = container
        .image_pull_policy
        .as_deref()
        .unwrap_or("IfNotPresent");
    match (policy, present) {
        ("IfNotPresent" | "Never", Some(image)) => {
            // What was made here only this node knows.
            if image.is_of_this_node() {
                let credentials = Vec::new();
                facts::tell(
                    site,
                    &Pull {
                        reference: name.clone(),
                        credentials,
                        progress: None,
                    },
                );
            }
            let text = format!(
                "Container image \"{name}\" already present on machine and can be accessed by the pod"
            );
            site.events.normal(about(), "Pulled", text);
            return Ok(image);
        }
        ("Never", None) => {
            let text =
                format!("Container image \"{name}\" is not present with pull policy of Never");
            return Err(warn("ErrImageNeverPull", "ErrImageNeverPull", text));
        }
        _ => {}
    }
    site.events
        .normal(about(), "Pulling", format!("Pulling image \"{name}\""));
    let asked = site.options.clock.now();
    let permit = site.pulls.acquire().await;
    let begun = site.options.clock.now();
    let pull = Pull {
        reference: name.clone(),
        credentials: credentials(site, pod, &name).await,
        progress: None,
    };
    let pulled = site.options.runtime.pull(&pull).await;
    drop(permit);
    let now = site.options.clock.now();
    let mut memory = memory
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match pulled {
        Ok(image) => {
            memory.pulls.remove(&name);
            facts::tell(site, &pull);
            let text = format!(
                "Successfully pulled image \"{name}\" in {} ({} including waiting). Image size: {} bytes.",
                go_duration(now.duration_since(begun).unsigned_abs()),
                go_duration(now.duration_since(asked).unsigned_abs()),
                image.size
            );
            site.events.normal(about(), "Pulled", text);
            Ok(image)
        }
        Err(error @ RuntimeError::InvalidReference { .. }) => Err(refused(&name, &error, warn)),
        Err(error) => {
            // It may be for other machines than this one.
            facts::tell(site, &pull);
            let earlier = memory.pulls.get(&name).map(|pull| pull.pause);
            let pause = Pause::next(earlier, now, now);
            let message = error.to_string();
            memory.pulls.insert(
                name.clone(),
                FailedPull {
                    pause,
                    error: message.clone(),
                },
            );
            let text = format!("Failed to pull image \"{name}\": {message}");
            let NoImage { reason, .. } = warn("ErrImagePull", "Failed", text);
            Err(NoImage { reason, message })
        }
    }
}

fn refused(
    name: &str,
    error: &RuntimeError,
    warn: impl Fn(&'static str, &'static str, String) -> NoImage,
) -> NoImage {
    match error {
        RuntimeError::InvalidReference { .. } => {
            let text = format!(
                "Failed to apply default image tag \"{name}\": couldn't parse image name \"{name}\": invalid reference format"
            );
            warn("InvalidImageName", "InspectFailed", text)
        }
        error => {
            let text = format!("Failed to inspect image \"{name}\": {error}");
            warn("ImageInspectError", "InspectFailed", text)
        }
    }
}

/// What the pod and its account have for the registry of an image.
async fn credentials(site: &Site, pod: &Pod, image: &str) -> Vec<Credentials> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    let mut names: Vec<String> = spec
        .image_pull_secrets
        .into_iter()
        .flatten()
        .map(|one| one.name)
        .collect();
    let account = spec
        .service_account_name
        .unwrap_or_else(|| "default".to_owned());
    match site.config.account(namespace, &account).await {
        Ok(account) => {
            let secrets = account.and_then(|account| account.image_pull_secrets);
            names.extend(secrets.into_iter().flatten().map(|one| one.name));
        }
        Err(fault) => tracing::debug!(%fault, namespace, account, "an account could not be read"),
    }
    let mut found = Vec::new();
    for name in names {
        match site.config.secret(namespace, &name).await {
            Ok(Some(secret)) => found.extend(of_secret(&secret, image)),
            Ok(None) => {
                let text = format!(
                    "Unable to retrieve some image pull secrets ({name}); attempting to pull the image may not succeed."
                );
                let about = crate::events::about_pod(pod);
                site.events
                    .warning(about, "FailedToRetrieveImagePullSecret", text);
            }
            Err(fault) => {
                tracing::debug!(%fault, namespace, name, "a pull secret could not be read");
            }
        }
    }
    found
}

fn of_secret(secret: &Secret, image: &str) -> Vec<Credentials> {
    let data = secret.data.as_ref();
    let new = data.and_then(|data| data.get(".dockerconfigjson"));
    let old = data.and_then(|data| data.get(".dockercfg"));
    match (new, old) {
        (Some(new), _) => logins::from_config(&new.0, image),
        (None, Some(old)) => logins::from_old_config(&old.0, image),
        (None, None) => Vec::new(),
    }
}
