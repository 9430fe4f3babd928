//! The heartbeat of a node: a lease that is renewed while the agent lives.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    fault::{Fault, ask},
    site::Site,
};

const NAMESPACE: &str = "kube-node-lease";
const PERIOD: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(500);
const LENGTH: i32 = 40;

pub(crate) async fn run(site: Arc<Site>, stop: CancellationToken) {
    let mut pause = RETRY;
    loop {
        let wait = match renew(&site).await {
            Ok(()) => {
                pause = RETRY;
                PERIOD
            }
            Err(fault) => {
                tracing::debug!(%fault, "the lease of the node could not be renewed");
                pause = (pause * 2).min(PERIOD);
                pause
            }
        };
        if stop
            .run_until_cancelled(tokio::time::sleep(wait))
            .await
            .is_none()
        {
            return;
        }
    }
}

async fn renew(site: &Site) -> Result<(), Fault> {
    let leases = Api::<Lease>::namespaced(site.client.clone(), NAMESPACE);
    let name = &site.options.node;
    let now = MicroTime(site.options.clock.now());
    let owners = site.node().and_then(|node| {
        Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: name.clone(),
            uid: node.uid()?,
            ..OwnerReference::default()
        }])
    });
    let spec = LeaseSpec {
        holder_identity: Some(name.clone()),
        lease_duration_seconds: Some(LENGTH),
        renew_time: Some(now),
        ..LeaseSpec::default()
    };
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owners}, "spec": spec}));
    match ask(leases.patch(name, &PatchParams::default(), &patch)).await {
        Err(fault) if fault.is_absent() => {}
        other => return other.map(drop),
    }
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            owner_references: owners,
            ..ObjectMeta::default()
        },
        spec: Some(spec),
    };
    ask(leases.create(&PostParams::default(), &lease))
        .await
        .map(drop)
}
