//! Several that could lead, and one that does.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api as Objects,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, when};

struct Candidate {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// Wants to lead. At most one of those who share `leading` may be at work at a time.
fn candidate(cluster: &Cluster, identity: &'static str, leading: &Arc<AtomicUsize>) -> Candidate {
    let stop = CancellationToken::new();
    let (client, told) = (cluster.client.clone(), stop.clone());
    let leading = Arc::clone(leading);
    let task = tokio::spawn(async move {
        let work = |term: CancellationToken| {
            let leading = Arc::clone(&leading);
            async move {
                assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0, "two lead");
                term.cancelled().await;
                leading.fetch_sub(1, Ordering::SeqCst);
            }
        };
        transom_controllers::lead(client, "work", identity, &told, work).await;
    });
    Candidate { stop, task }
}

#[tokio::test(start_paused = true)]
async fn one_leads_at_a_time_and_another_follows_when_it_stops_dies_or_loses_the_lease() {
    let cluster = Cluster::new().await;
    cluster.namespace("kube-system").await;
    let leases: Objects<Lease> = Objects::namespaced(cluster.client.clone(), "kube-system");
    let holds = |name: &'static str| {
        move |lease: &Lease| {
            let spec = lease.spec.as_ref();
            spec.and_then(|spec| spec.holder_identity.as_deref()) == Some(name)
        }
    };
    let leading = Arc::new(AtomicUsize::new(0));
    let first = candidate(&cluster, "first", &leading);
    when(&leases, "work", holds("first")).await;
    let second = candidate(&cluster, "second", &leading);

    first.stop.cancel();
    first.task.await.unwrap();
    when(&leases, "work", holds("second")).await;

    // One that dies neither releases nor renews.
    second.task.abort();
    assert!(second.task.await.unwrap_err().is_cancelled());
    leading.store(0, Ordering::SeqCst);
    let third = candidate(&cluster, "third", &leading);
    when(&leases, "work", holds("third")).await;

    // Somebody takes the lease away: it stops to work, and waits for its turn.
    let other = json!({"spec": {"holderIdentity": "other"}});
    leases
        .patch("work", &PatchParams::default(), &Patch::Merge(other))
        .await
        .unwrap();
    let back = when(&leases, "work", holds("third")).await;
    assert_eq!(back.spec.unwrap().lease_transitions, Some(3));
    third.stop.cancel();
    third.task.await.unwrap();
    assert_eq!(leading.load(Ordering::SeqCst), 0);
    cluster.stop().await;
}
