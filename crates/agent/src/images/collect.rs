//! Removes images that nobody uses when their disk fills up, those first that were not used for longest.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use transom_runtime::{Image, ImageSpace, RuntimeError};

use crate::{events::about_node, site::Site};

const PERIOD: Duration = Duration::from_mins(5);
/// Above this share of the disk images are removed, down to the lower one.
const HIGH: u64 = 85;
const LOW: u64 = 80;
/// A younger image may be one that a pod is about to use.
const YOUNGEST: Duration = Duration::from_mins(2);

/// How far images are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Down to the lower share, if the disk is fuller than the higher one.
    Usual,
    /// All that nobody uses: the node needs the room.
    AllUnused,
}

/// When images were used last, by id.
#[derive(Debug, Default)]
pub(crate) struct Collector(Mutex<BTreeMap<String, Instant>>);

/// Looks from time to time, until `stop`.
pub(crate) async fn run(site: Arc<Site>, stop: CancellationToken) {
    while stop
        .run_until_cancelled(tokio::time::sleep(PERIOD))
        .await
        .is_some()
    {
        if let Err(error) = site.images.collect(&site, Aim::Usual).await {
            tracing::warn!(%error, "images could not be looked through");
            site.events.warning(
                about_node(&site.options.node),
                "ImageGCFailed",
                error.to_string(),
            );
        }
    }
}

impl Collector {
    /// Removes images; tells how many.
    pub(crate) async fn collect(&self, site: &Site, aim: Aim) -> Result<usize, RuntimeError> {
        let runtime = &site.options.runtime;
        let images = runtime.images().await?;
        let space = runtime.image_space().await?;
        let mut in_use = BTreeSet::new();
        site.observer
            .each_container(|one| in_use.extend([one.image.clone()]));
        let ages = self.ages(&images, &in_use, Instant::now());
        let mut removed = 0;
        for id in plan_removals(&images, &in_use, &ages, space, aim) {
            tracing::info!(image = id, "an image that nobody uses is removed");
            match runtime.remove_image(&id).await {
                Ok(()) => removed += 1,
                Err(error) => tracing::warn!(image = id, %error, "an image could not be removed"),
            }
        }
        Ok(removed)
    }

    /// For how long each image was not used, as far as was seen.
    fn ages(
        &self,
        images: &[Image],
        in_use: &BTreeSet<String>,
        now: Instant,
    ) -> BTreeMap<String, Duration> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|id, _| images.iter().any(|image| image.id == *id));
        for image in images {
            let entry = used.entry(image.id.clone()).or_insert(now);
            if in_use.contains(&image.id) {
                *entry = now;
            }
        }
        let age = |(id, used): (&String, &Instant)| (id.clone(), now.duration_since(*used));
        used.iter().map(age).collect()
    }
}

/// The images to remove, in turn, until enough room is made.
fn plan_removals(
    images: &[Image],
    in_use: &BTreeSet<String>,
    ages: &BTreeMap<String, Duration>,
    space: ImageSpace,
    aim: Aim,
) -> Vec<String> {
    let used = space.capacity_bytes.saturating_sub(space.available_bytes);
    let is_high = space.capacity_bytes > 0
        && used.saturating_mul(100) >= space.capacity_bytes.saturating_mul(HIGH);
    let mut wanted = match aim {
        Aim::AllUnused => u64::MAX,
        Aim::Usual if is_high => used.saturating_sub(space.capacity_bytes / 100 * LOW),
        Aim::Usual => return Vec::new(),
    };
    let age = |image: &Image| ages.get(&image.id).copied().unwrap_or_default();
    let mut free: Vec<_> = images
        .iter()
        .filter(|image| !image.pinned && !in_use.contains(&image.id) && age(image) >= YOUNGEST)
        .collect();
    free.sort_by_key(|image| std::cmp::Reverse(age(image)));
    let mut removed = Vec::new();
    for image in free {
        if wanted == 0 {
            break;
        }
        wanted = wanted.saturating_sub(image.size);
        removed.push(image.id.clone());
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_go_first_and_only_as_many_as_needed() {
        let image = |id: &str, size: u64, pinned: bool| Image {
            id: id.to_owned(),
            size,
            pinned,
            ..Image::default()
        };
        let images = [
            image("used", 50, false),
            image("pinned", 50, true),
            image("young", 50, false),
            image("old", 4, false),
            image("older", 8, false),
            image("oldest", 8, false),
        ];
        let in_use: BTreeSet<_> = ["used".to_owned()].into();
        let minutes = Duration::from_mins;
        let ages: BTreeMap<_, _> = [
            ("used", minutes(90)),
            ("pinned", minutes(90)),
            ("young", minutes(1)),
            ("old", minutes(10)),
            ("older", minutes(20)),
            ("oldest", minutes(30)),
        ]
        .map(|(id, age)| (id.to_owned(), age))
        .into();
        let space = |available: u64| ImageSpace {
            used_bytes: 0,
            capacity_bytes: 100,
            available_bytes: available,
        };
        let plan =
            |available: u64| plan_removals(&images, &in_use, &ages, space(available), Aim::Usual);
        assert!(plan(16).is_empty());
        assert_eq!(plan(15), ["oldest"]);
        assert_eq!(plan(5), ["oldest", "older"]);
        assert_eq!(plan(0), ["oldest", "older", "old"]);
        let unknown = ImageSpace::default();
        let at_all = |aim| plan_removals(&images, &in_use, &ages, unknown, aim);
        assert!(at_all(Aim::Usual).is_empty());
        assert_eq!(at_all(Aim::AllUnused), ["oldest", "older", "old"]);
    }
}
