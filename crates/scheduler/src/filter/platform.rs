//! System, processor and build: what the pod says it is for, and what its images are for.

use transom_model::Platform;

use super::Refusal;
use crate::{
    images::can_run, node::NodeFacts, pod::PodToPlace, reason::Reason, snapshot::Snapshot,
    text::Text,
};

/// The images of a pod of which something is known.
#[derive(Clone)]
pub(super) struct PlatformSight<'a> {
    pod: &'a PodToPlace,
    known: Vec<(&'a Text, &'a [Platform])>,
}

impl<'a> PlatformSight<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, pod: &'a PodToPlace) -> Self {
        let images = pod.images.iter();
        Self {
            pod,
            known: images
                .filter_map(|image| Some((image, snapshot.images.platforms(image)?)))
                .collect(),
        }
    }

    pub(super) fn check(&self, node: &NodeFacts) -> Result<(), Refusal> {
        // A node that does not say what it is cannot be told to be wrong.
        let Some(platform) = &node.platform else {
            return Ok(());
        };
        if let Some(os) = self.pod.os
            && os != platform.os
        {
            return Err(Reason::System(os).into());
        }
        let cannot_run = |(image, platforms): &&(&Text, &[Platform])| {
            !can_run(node, image, platforms, self.pod.is_host_process)
        };
        match self.known.iter().find(cannot_run) {
            Some((image, _)) => Err(Reason::Platform {
                image: (*image).clone(),
            }
            .into()),
            None => Ok(()),
        }
    }
}
