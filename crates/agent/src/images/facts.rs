//! Tells the cluster which systems an image is for, where only this node can know: images that were made here,
//! and those of registries that the servers do not reach.
//!
//! A node never speaks over a registry, and it asks none itself if what it would learn is known already.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::{
    Api,
    api::PostParams,
    core::{ApiResource, GroupVersionKind, Object},
};
use tokio::time::Instant;
use transom_model::images::{self, ImageSpec, ImageStatus, canonical, object_name};
use transom_runtime::{Pull, images::Description};

use crate::{
    fault::{Fault, ask},
    site::Site,
};

/// How long what was told of an image is not told again.
const PAUSE: Duration = Duration::from_mins(10);
/// How many images are remembered; with more, all are forgotten and told once more.
const MOST: usize = 1_000;

type Fact = Object<ImageSpec, ImageStatus>;

/// When this agent last told of an image, by its canonical name.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<BTreeMap<String, Instant>>);

impl Told {
    /// Whether it is time to tell of an image. Who asks is expected to do it.
    fn is_due(&self, name: &str, now: Instant) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(name).is_some_and(|then| now < *then + PAUSE) {
            return false;
        }
        if told.len() >= MOST {
            told.clear();
        }
        told.insert(name.to_owned(), now);
        true
    }
}

/// Tells of an image in the background: nobody waits for it.
pub(super) fn tell(site: &Arc<Site>, pull: &Pull) {
    let name = canonical(&pull.reference);
    if is_made_by_every_node(&name) || !site.told.is_due(&name, Instant::now()) {
        return;
    }
    let (site, pull) = (Arc::clone(site), pull.clone());
    tokio::spawn(async move {
        if let Err(fault) = tell_now(&site, &name, &pull).await {
            tracing::debug!(%fault, name, "an image could not be told of");
        }
    });
}

/// Each node makes these for itself, so that what they are for on one node says nothing about another.
fn is_made_by_every_node(name: &str) -> bool {
    name.split('/').next() == Some(images::GROUP)
}

async fn tell_now(site: &Site, name: &str, pull: &Pull) -> Result<(), Fault> {
    let kind = GroupVersionKind::gvk(images::GROUP, images::VERSION, images::KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, images::PLURAL);
    let objects: Api<Fact> = Api::all_with(site.client.clone(), &resource);
    let known = ask(objects.get_opt(&object_name(name))).await?;
    let before = known.as_ref().and_then(|known| known.status.as_ref());
    let is_of_another = known
        .as_ref()
        .is_some_and(|known| known.spec.reference != name);
    if is_of_another || before.is_some_and(is_told_by_registry) {
        return Ok(());
    }
    let description = match site.options.runtime.describe(pull).await {
        Ok(Some(description)) => description,
        Ok(None) => return Ok(()),
        Err(error) => {
            tracing::debug!(%error, name, "this node cannot tell what an image is for");
            return Ok(());
        }
    };
    let now = site.options.clock.now().to_string();
    let Some(status) = after(before, description, &site.options.node, now) else {
        return Ok(());
    };
    let spec = ImageSpec {
        reference: name.to_owned(),
    };
    let mut object = known.unwrap_or_else(|| Fact::new(&object_name(name), &resource, spec));
    let is_new = object.metadata.resource_version.is_none();
    object.status = Some(status);
    let parameters = PostParams::default();
    if is_new {
        ask(objects.create(&parameters, &object)).await?;
    } else {
        ask(objects.replace(&object_name(name), &parameters, &object)).await?;
    }
    Ok(())
}

fn is_told_by_registry(status: &ImageStatus) -> bool {
    status.node.is_none() && !status.platforms.is_empty()
}

/// What is known once this node told; `None` if that is nothing new. Nodes of other systems may have made an
/// image of their own under the same name, so what they told stays.
fn after(
    before: Option<&ImageStatus>,
    description: Description,
    node: &str,
    now: String,
) -> Option<ImageStatus> {
    let mut platforms = description.platforms;
    let others = before.map_or(&[][..], |before| &before.platforms);
    platforms.extend(others.iter().cloned());
    let status = ImageStatus::of(Some(description.digest), platforms);
    let is_new = before.is_none_or(|before| before.platforms != status.platforms);
    is_new.then(|| ImageStatus {
        checked_at: Some(now),
        node: Some(node.to_owned()),
        ..status
    })
}

#[cfg(test)]
mod tests {
    use transom_model::images::ImagePlatform;

    use super::*;

    fn description(os: &str) -> Description {
        Description {
            digest: format!("sha256:{os}"),
            platforms: vec![ImagePlatform {
                os: os.to_owned(),
                architecture: "amd64".to_owned(),
                os_version: None,
            }],
        }
    }

    #[test]
    fn what_each_node_makes_for_itself_is_not_told_of() {
        for (image, is_own) in [
            ("transom.dev/host:1", true),
            ("transom.dev/transom:1", true),
            ("transom.dev.example/host:1", false),
            ("host:1", false),
        ] {
            assert_eq!(is_made_by_every_node(&canonical(image)), is_own, "{image}");
        }
    }

    #[test]
    fn nodes_of_two_systems_tell_of_both_and_nothing_is_told_twice() {
        let now = || "2026-01-01T00:00:00Z".to_owned();
        let first = after(None, description("linux"), "a", now()).unwrap();
        assert_eq!(first.runs_on.as_deref(), Some("linux/amd64"));
        assert_eq!(first.node.as_deref(), Some("a"));
        assert_eq!(after(Some(&first), description("linux"), "b", now()), None);
        let both = after(Some(&first), description("windows"), "w", now()).unwrap();
        assert_eq!(both.runs_on.as_deref(), Some("linux/amd64, windows/amd64"));
        assert_eq!(both.node.as_deref(), Some("w"));
    }

    #[test]
    fn a_failure_of_the_servers_is_replaced_and_an_answer_is_not() {
        let failed = ImageStatus {
            message: Some("no route".to_owned()),
            ..ImageStatus::default()
        };
        assert!(!is_told_by_registry(&failed));
        let told = after(Some(&failed), description("linux"), "a", String::new()).unwrap();
        assert_eq!(told.message, None);
        assert!(!is_told_by_registry(&told));
        let answer = ImageStatus::of(None, description("linux").platforms);
        assert!(is_told_by_registry(&answer));
    }

    #[tokio::test(start_paused = true)]
    async fn an_image_is_told_of_once_in_a_while() {
        let told = Told::default();
        let now = Instant::now();
        assert!(told.is_due("a", now));
        assert!(!told.is_due("a", now));
        assert!(told.is_due("b", now));
        assert!(told.is_due("a", now + PAUSE));
    }
}
