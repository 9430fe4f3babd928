//! What is asked of the API, and what can go wrong.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use transom_model::labels::POD_ADDRESS;

use crate::{pod::PodFacts, snapshot::ClaimPlan, text::Text};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the API answered {code}: {message}")]
    Answer { code: u16, message: String },
    #[error("the API could not be asked")]
    Request(#[source] Box<kube::Error>),
    #[error("no answer within {REQUEST:?}")]
    Late,
    #[error("the request panicked")]
    Panic,
}

impl Fault {
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Answer { code: 404, .. })
    }
}

/// Does what is asked. A panic is a failure like any other: the pod that it was about must not be lost.
pub(super) async fn guarded(work: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or(Err(Fault::Panic))
}

async fn ask<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Fault> {
    match tokio::time::timeout(REQUEST, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Fault::Answer {
            code: status.code,
            message: status.message.clone(),
        }),
        Ok(Err(other)) => Err(Fault::Request(Box::new(other))),
        Err(_) => Err(Fault::Late),
    }
}

/// That somebody is gone already is as good as sending them away.
fn unless_absent(answer: Result<(), Fault>) -> Result<(), Fault> {
    match answer {
        Err(fault) if fault.is_absent() => Ok(()),
        answer => answer,
    }
}

pub(super) async fn bind(
    client: Client,
    pod: &PodFacts,
    node: &str,
    address: Option<&str>,
) -> Result<(), Fault> {
    let pods: Api<Pod> = Api::namespaced(client, &pod.namespace);
    let mut binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": &*pod.name, "namespace": &*pod.namespace, "uid": &*pod.uid},
        "target": {"kind": "Node", "name": node},
    });
    if let Some(address) = address {
        binding["metadata"]["annotations"] = json!({ POD_ADDRESS: address });
    }
    let parameters = PostParams::default();
    let request =
        pods.create_subresource::<Value, Value>("binding", &pod.name, &parameters, &binding);
    ask(request).await.map(|_| ())
}

async fn patch_status(client: Client, pod: &PodFacts, status: Value) -> Result<(), Fault> {
    let pods: Api<Pod> = Api::namespaced(client, &pod.namespace);
    // The uid makes sure that a pod of the same name that came later is left alone.
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": status});
    let (parameters, patch) = (PatchParams::default(), Patch::Strategic(patch));
    let request = pods.patch_status(&pod.name, &parameters, &patch);
    ask(request).await.map(|_| ())
}

/// What a pod is told about why it waits.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) message: String,
    /// The node that room is made on; an empty text takes it back.
    pub(super) nominated: Option<Text>,
    pub(super) now: String,
}

pub(super) async fn tell(client: Client, pod: &PodFacts, verdict: Verdict) -> Result<(), Fault> {
    let mut status = json!({"conditions": [{
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": verdict.message,
        "lastProbeTime": null,
        "lastTransitionTime": verdict.now,
    }]});
    if let Some(node) = verdict.nominated {
        status["nominatedNodeName"] = (*node).into();
    }
    unless_absent(patch_status(client, pod, status).await)
}

/// Says that no room is kept for a pod any more.
pub(super) async fn take_nomination_back(client: Client, pod: &PodFacts) -> Result<(), Fault> {
    let status = json!({"nominatedNodeName": null});
    match unless_absent(patch_status(client, pod, status).await) {
        // Another pod of that name is there by now.
        Err(Fault::Answer { code: 409, .. }) => Ok(()),
        answer => answer,
    }
}

/// Sends a pod away for another.
pub(super) async fn evict(
    client: Client,
    victim: &PodFacts,
    scheduler: &str,
    now: &str,
) -> Result<(), Fault> {
    let status = json!({"conditions": [{
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
        "lastProbeTime": null,
        "lastTransitionTime": now,
    }]});
    unless_absent(patch_status(client.clone(), victim, status).await)?;
    let pods: Api<Pod> = Api::namespaced(client, &victim.namespace);
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(victim.uid.to_string()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match ask(pods.delete(&victim.name, &parameters)).await {
        Ok(_) => Ok(()),
        // Another pod of that name is there by now.
        Err(Fault::Answer { code: 409, .. }) => Ok(()),
        Err(fault) => unless_absent(Err(fault)),
    }
}

/// Says for each claim how it gets its volume; whoever has the volumes does the rest.
pub(super) async fn prepare_claims(
    client: Client,
    namespace: &str,
    node: &str,
    plans: Vec<ClaimPlan>,
) -> Result<(), Fault> {
    let parameters = PatchParams::default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    for plan in plans {
        match plan {
            ClaimPlan::Provision { claim } => {
                let patch = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}});
                ask(claims.patch(&claim, &parameters, &Patch::Merge(patch))).await?;
            }
            ClaimPlan::Bind { claim, volume } => {
                let owner = ask(claims.get(&claim)).await?;
                let volumes: Api<PersistentVolume> = Api::all(client.clone());
                let patch = json!({
                    "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
                    "spec": {"claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "namespace": namespace,
                        "name": claim,
                        "uid": owner.metadata.uid,
                        "resourceVersion": owner.metadata.resource_version,
                    }},
                });
                ask(volumes.patch(&volume, &parameters, &Patch::Merge(patch))).await?;
            }
        }
    }
    Ok(())
}
