//! The controllers of what lives and dies by itself: nodes, addresses, budgets, volumes, certificates.

use std::sync::Arc;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;

use crate::{
    autoscaling,
    certificates::{self, Signer},
    disruption, endpoints, ephemeral,
    nodes::{self, Patience},
    pods, quota,
    shared::Shared,
    supervise::Crew,
    tokens, volumes,
};

/// Has them all work with the others.
pub(crate) fn join(
    crew: &mut Crew,
    seen: &Shared<Pod>,
    signer: Option<Arc<dyn Signer>>,
    patience: Patience,
) {
    crew.add("autoscaling", |client, stop| {
        autoscaling::run(client, stop).boxed()
    });
    crew.add("certificates", move |client, stop| {
        certificates::run(client, signer.clone(), stop).boxed()
    });
    let pods = seen.clone();
    crew.add("disruption", move |client, stop| {
        disruption::run(client, pods.clone(), stop).boxed()
    });
    let pods = seen.clone();
    crew.add("endpoints", move |client, stop| {
        endpoints::run(client, pods.clone(), stop).boxed()
    });
    let pods = seen.clone();
    crew.add("ephemeral", move |client, stop| {
        ephemeral::run(client, pods.clone(), stop).boxed()
    });
    let pods = seen.clone();
    crew.add("nodes", move |client, stop| {
        nodes::run(client, pods.clone(), patience, stop).boxed()
    });
    let pods = seen.clone();
    crew.add("pods", move |client, stop| {
        pods::run(client, pods.clone(), stop).boxed()
    });
    let pods = seen.clone();
    crew.add("quota", move |client, stop| {
        quota::run(client, pods.clone(), stop).boxed()
    });
    crew.add("tokens", |client, stop| tokens::run(client, stop).boxed());
    let pods = seen.clone();
    crew.add("volumes", move |client, stop| {
        volumes::run(client, pods.clone(), stop).boxed()
    });
}
