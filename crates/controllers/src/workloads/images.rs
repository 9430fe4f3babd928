//! What images are for, as far as somebody found out. What is not known decides nothing.

use std::{sync::Arc, time::Duration};

use kube::{Api, Client, runtime::watcher::Config};
use tokio::time::Instant;
use transom_model::{
    Platform,
    images::{ImageStatus, object_name},
};

use crate::{
    images::{Image, resource},
    known::{Known, keep},
};

/// How long after the start what is known is waited for: a cluster that does not tell it has daemons, too.
const PATIENCE: Duration = Duration::from_secs(5);

/// What images are for, by the names of their objects.
pub(crate) struct Images {
    known: Known<Vec<Platform>>,
    patience: Instant,
}

impl Images {
    pub(super) fn new() -> Self {
        Self {
            known: Known::new(),
            patience: Instant::now() + PATIENCE,
        }
    }

    /// Returns when everything is known, or was waited for long enough.
    pub(crate) async fn settled(&self) {
        // What comes later is told when it comes.
        let _ = tokio::time::timeout_at(self.patience, self.known.complete()).await;
    }

    pub(crate) fn platforms(&self, image: &str) -> Option<Arc<Vec<Platform>>> {
        self.known.get("", &object_name(image))
    }

    /// Keeps it up to date, and tells which object says something else than before.
    pub(super) async fn follow(&self, client: Client, mut changed: impl FnMut(&str)) {
        let objects = Api::<Image>::all_with(client, &resource());
        keep(
            objects,
            Config::default(),
            &self.known,
            read,
            |key, _, _| {
                changed(&key.name);
            },
        )
        .await;
    }
}

/// What an object tells. One that is not called like the image it is about tells nothing.
fn read(image: Image) -> Option<Vec<Platform>> {
    let name = image.metadata.name.unwrap_or_default();
    let platforms = image.status.as_ref().map(ImageStatus::known_platforms)?;
    (object_name(&image.spec.reference) == name && !platforms.is_empty()).then_some(platforms)
}

#[cfg(test)]
mod tests {
    use transom_model::images::{ImagePlatform, ImageSpec, canonical};

    use super::*;

    fn told(name: &str, os: &str) -> Option<Vec<String>> {
        let spec = ImageSpec {
            reference: canonical("app:1"),
        };
        let mut image = Image::new(name, &resource(), spec);
        let platform = ImagePlatform {
            os: os.to_owned(),
            architecture: "amd64".to_owned(),
            os_version: None,
        };
        image.status = Some(ImageStatus::of(None, vec![platform]));
        let platforms = read(image)?;
        Some(platforms.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_object_tells_of_its_own_image_and_of_systems_that_nodes_can_have() {
        let name = object_name("app:1");
        assert_eq!(told(&name, "linux").unwrap(), ["linux/amd64"]);
        assert_eq!(told(&name, "plan9"), None);
        assert_eq!(told("made-by-hand", "linux"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_never_told_is_waited_for_once() {
        let images = Images::new();
        let begun = Instant::now();
        images.settled().await;
        assert!(begun.elapsed() >= PATIENCE);
        let begun = Instant::now();
        images.settled().await;
        assert!(begun.elapsed().is_zero());
    }
}
