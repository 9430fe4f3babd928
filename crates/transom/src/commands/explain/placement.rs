//! `transom explain placement`: which nodes could take a pod, how good each would be, and why the others could not.
//!
//! Nothing is asked of the scheduler itself: the same code decides here, with what the cluster looks like now.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::ListParams;
use transom_model::images::{canonical, object_name};
use transom_scheduler::{Snapshot, Verdict, explain, image_objects, place};

use super::decision::{Decision, Nodes};
use crate::client::{self, Place, each};
use crate::cluster::{Chosen, Cluster};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom explain placement web
  transom explain placement deployment/web -n shop
  transom explain placement web -o wide       With the parts of each score
  transom explain placement web -o json

For a pod that has a node it says where the pod would be placed now, as if it were new.";

/// Say for each node why a pod can or cannot be placed on it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Placement {
    /// A pod, or KIND/NAME of what has pods; of several the first
    #[arg(value_name = "POD")]
    what: String,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    cluster: Chosen,
}

impl Placement {
    pub(super) async fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let cluster = self.cluster.open(cx).await?;
        let namespace = self.place.namespace(&cluster);
        let mut pods = client::pods_of(&cluster, namespace, &self.what).await?;
        if pods.is_empty() {
            anyhow::bail!("{} has no pods", self.what);
        }
        let pod = pods.swap_remove(0);
        let (mut snapshot, nodes) = look(&cluster, &pod).await?;
        let verdicts = explain(&mut snapshot, &pod);
        let is_possible = |(_, verdict): &(_, Verdict)| matches!(verdict, Verdict::Possible(_));
        let message = if verdicts.iter().any(is_possible) {
            None
        } else {
            let wanted = snapshot.prepare(&pod);
            match place(&snapshot, &wanted) {
                transom_scheduler::Placement::Unplaceable(why) => Some(why.message()),
                transom_scheduler::Placement::Node(_) => None,
            }
        };
        cx.out
            .document(&Decision::new(&pod, verdicts, message, &nodes))?;
        Ok(Exit::Success)
    }
}

/// Reads everything that the decision depends on.
async fn look(cluster: &Cluster, wanted: &Pod) -> anyhow::Result<(Snapshot, Nodes)> {
    let client = &cluster.client;
    let mut snapshot = Snapshot::default();
    let mut nodes = Nodes::default();
    let all = ListParams::default;
    each(cluster, &Api::<Node>::all(client.clone()), all(), |node| {
        snapshot.put_node(&node);
        nodes.put_node(&node);
    })
    .await?;
    let claims = Api::<PersistentVolumeClaim>::all(client.clone());
    each(cluster, &claims, all(), |claim| snapshot.put_claim(&claim)).await?;
    let volumes = Api::<PersistentVolume>::all(client.clone());
    each(cluster, &volumes, all(), |volume| {
        snapshot.put_volume(&volume);
    })
    .await?;
    let classes = Api::<StorageClass>::all(client.clone());
    each(cluster, &classes, all(), |class| snapshot.put_class(&class)).await?;
    let namespaces = Api::<Namespace>::all(client.clone());
    each(cluster, &namespaces, all(), |namespace| {
        snapshot.put_namespace(&namespace);
    })
    .await?;
    let images = image_objects(client);
    for name in images_of(wanted) {
        let name = object_name(&name);
        if let Some(image) = cluster.answer(images.get_opt(&name).await)? {
            snapshot.put_image(&name, &image.spec, image.status.as_ref());
            nodes.put_image(image);
        }
    }
    let running = all().fields("status.phase!=Succeeded,status.phase!=Failed");
    let pods = Api::<Pod>::all(client.clone());
    each(cluster, &pods, running, |pod| {
        snapshot.put_pod(&pod);
        // Room is kept for pods that others had to make place for.
        let status = pod.status.as_ref();
        let promised = status.and_then(|status| status.nominated_node_name.clone());
        let has_node = pod
            .spec
            .as_ref()
            .is_some_and(|spec| spec.node_name.is_some());
        if let Some(node) =
            promised.filter(|_| !has_node && pod.metadata.uid != wanted.metadata.uid)
        {
            let pod = snapshot.prepare(&pod);
            snapshot.nominate(&pod, &node);
        }
    })
    .await?;
    Ok((snapshot, nodes))
}

/// The images of a pod, by their full names.
fn images_of(pod: &Pod) -> BTreeSet<String> {
    let specs = pod.spec.iter();
    specs
        .flat_map(|spec| {
            let init = spec.init_containers.iter().flatten();
            spec.containers.iter().chain(init)
        })
        .filter_map(|container| container.image.as_deref())
        .map(canonical)
        .collect()
}
