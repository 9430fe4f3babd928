//! A snapshot of a cluster as it is now, for those who ask once.

use std::fmt::Debug;

use k8s_openapi::serde::de::DeserializeOwned;
use kube::{
    Api, Client, Resource,
    api::ListParams,
    core::{ApiResource, GroupVersionKind, Object},
};
use transom_model::images::{self, ImageSpec, ImageStatus};

use crate::snapshot::Snapshot;

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// What is known of an image, as the API has it.
pub type Image = Object<ImageSpec, ImageStatus>;

/// All that is known of images.
pub fn images(client: &Client) -> Api<Image> {
    let kind = GroupVersionKind::gvk(images::GROUP, images::VERSION, images::KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, images::PLURAL);
    Api::all_with(client.clone(), &resource)
}

/// The API did not tell all that there is.
#[derive(Debug, thiserror::Error)]
#[error("could not list {path}")]
pub struct ReadError {
    pub path: String,
    #[source]
    pub source: Box<kube::Error>,
}

impl Snapshot {
    /// Reads all that matters for placing pods.
    pub async fn read(client: &Client) -> Result<Self, ReadError> {
        let mut snapshot = Self::default();
        each(Api::all(client.clone()), |node| {
            snapshot.put_node(&node);
        })
        .await?;
        each(Api::all(client.clone()), |pod| {
            snapshot.put_pod(&pod);
        })
        .await?;
        each(Api::all(client.clone()), |claim| snapshot.put_claim(&claim)).await?;
        each(Api::all(client.clone()), |volume| {
            snapshot.put_volume(&volume);
        })
        .await?;
        each(Api::all(client.clone()), |class| snapshot.put_class(&class)).await?;
        each(Api::all(client.clone()), |budget| {
            snapshot.put_budget(&budget);
        })
        .await?;
        each(Api::all(client.clone()), |namespace| {
            snapshot.put_namespace(&namespace);
        })
        .await?;
        each(images(client), |image| {
            let name = image.metadata.name.as_deref().unwrap_or_default();
            snapshot.put_image(name, &image.spec, image.status.as_ref());
        })
        .await?;
        snapshot.settle();
        Ok(snapshot)
    }
}

fn failed<K: Resource>(api: &Api<K>, source: kube::Error) -> ReadError {
    ReadError {
        path: api.resource_url().to_owned(),
        source: Box::new(source),
    }
}

async fn each<K>(api: Api<K>, mut take: impl FnMut(K)) -> Result<(), ReadError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api
            .list(&page)
            .await
            .map_err(|source| failed(&api, source))?;
        list.items.into_iter().for_each(&mut take);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}
