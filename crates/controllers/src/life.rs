//! The controllers of what lives and dies by itself: nodes, addresses, budgets, volumes, certificates.

use std::sync::Arc;

use futures::FutureExt as _;

use crate::{
    autoscaling,
    certificates::{self, Signer},
    disruption, endpoints, ephemeral,
    nodes::{self, Patience},
    pods, quota,
    supervise::Crew,
    tokens, volumes,
};

/// Has them all work with the others.
pub(crate) fn join(crew: &mut Crew, signer: Option<Arc<dyn Signer>>, patience: Patience) {
    crew.add("autoscaling", |client, stop| {
        autoscaling::run(client, stop).boxed()
    });
    crew.add("certificates", move |client, stop| {
        certificates::run(client, signer.clone(), stop).boxed()
    });
    crew.add("disruption", |client, stop| {
        disruption::run(client, stop).boxed()
    });
    crew.add("endpoints", |client, stop| {
        endpoints::run(client, stop).boxed()
    });
    crew.add("ephemeral", |client, stop| {
        ephemeral::run(client, stop).boxed()
    });
    crew.add("nodes", move |client, stop| {
        nodes::run(client, patience, stop).boxed()
    });
    crew.add("pods", |client, stop| pods::run(client, stop).boxed());
    crew.add("quota", |client, stop| quota::run(client, stop).boxed());
    crew.add("tokens", |client, stop| tokens::run(client, stop).boxed());
    crew.add("volumes", |client, stop| volumes::run(client, stop).boxed());
}
