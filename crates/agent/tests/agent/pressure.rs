//! A node that runs out of memory or disk says so, and gives up pods one at a time.

use std::time::Duration;

use kube::ResourceExt as _;
use serde_json::{Value, json};
use transom_model::Os;
use transom_runtime::{Runtime as _, fake::Plan};

use crate::cluster::{Cluster, condition, phase, when};

const MIB: u64 = 1 << 20;

fn asking(memory: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 600,
        "containers": [{"name": "main", "image": "x:1", "resources": {"requests": {"memory": memory}}}],
    })
}

fn set_memory(cluster: &Cluster, available: u64) {
    cluster.machine().update(|facts| {
        let total = facts.memory.total;
        if let Some(memory) = &mut facts.counters.memory {
            memory.working_set = total - available;
        }
    });
}

#[tokio::test(start_paused = true)]
async fn the_pod_that_takes_most_beyond_its_request_goes_and_others_stay() {
    for (os, short, enough) in [
        (Os::Linux, 99 * MIB, 100 * MIB),
        (Os::Windows, 499 * MIB, 500 * MIB),
    ] {
        let cluster = Cluster::started(os, |_, _| Plan::default()).await;
        cluster.pod("greedy", asking("1Mi")).await;
        cluster.pod("modest", asking("32Mi")).await;
        for name in ["greedy", "modest"] {
            when(&cluster.pods(), name, |pod| phase(pod) == "Running").await;
        }
        set_memory(&cluster, enough);
        tokio::time::sleep(Duration::from_secs(25)).await;
        let node = cluster.node_when(|_| true).await;
        assert_eq!(condition(&node, "MemoryPressure").as_deref(), Some("False"));

        set_memory(&cluster, short);
        let pod = when(&cluster.pods(), "greedy", |pod| phase(pod) == "Failed").await;
        // Enough again, before the next one is looked for.
        set_memory(&cluster, 2048 * MIB);
        let status = pod.status.unwrap();
        assert_eq!(status.reason.as_deref(), Some("Evicted"));
        let message = status.message.unwrap();
        let wanted = format!(
            "The node was low on resource: memory. Threshold quantity: {}Mi, available: {}Mi. \
             Container main was using 16Mi, request is 1Mi, has larger consumption of memory. ",
            enough / MIB,
            short / MIB
        );
        assert_eq!(message, wanted);
        let events = cluster.events("greedy").await;
        assert!(events.contains(&format!("Evicted: {wanted}")), "{events:?}");
        cluster
            .node_when(|node| condition(node, "MemoryPressure").as_deref() == Some("True"))
            .await;

        // While the condition lasts nobody is taken on who asks for nothing.
        cluster
            .pod(
                "effortless",
                json!({"containers": [{"name": "main", "image": "x:1"}]}),
            )
            .await;
        let refused = when(&cluster.pods(), "effortless", |pod| phase(pod) == "Failed").await;
        let status = refused.status.unwrap();
        assert_eq!(status.reason.as_deref(), Some("Evicted"));
        assert_eq!(
            status.message.as_deref(),
            Some("Pod was rejected: The node had condition: [MemoryPressure]. ")
        );

        let begun = cluster.now();
        cluster
            .node_when(|node| condition(node, "MemoryPressure").as_deref() == Some("False"))
            .await;
        let lasted = cluster.now().duration_since(begun).as_secs();
        assert!((200..330).contains(&lasted), "{lasted}");
        let left = cluster.pods().get("modest").await.unwrap();
        assert_eq!(phase(&left), "Running");
        let events = cluster.events("node-1").await;
        let told = "EvictionThresholdMet: Attempting to reclaim memory";
        assert!(events.iter().any(|event| event == told), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn images_that_nobody_uses_go_before_pods_do() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod(
            "old",
            json!({"containers": [{"name": "main", "image": "unused:1"}]}),
        )
        .await;
    when(&cluster.pods(), "old", |pod| phase(pod) == "Running").await;
    cluster
        .pods()
        .delete("old", &kube::api::DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    cluster.emptied().await;
    cluster.pod("web", asking("1Mi")).await;
    let web = when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    // Images that were seen only a moment ago are left alone.
    tokio::time::sleep(Duration::from_mins(8)).await;
    cluster.files().fill_up_to(1 << 30);
    cluster
        .node_when(|node| condition(node, "DiskPressure").as_deref() == Some("True"))
        .await;
    let has = async |name: &str| {
        let images = cluster.runtime.images().await.unwrap();
        images
            .iter()
            .any(|image| image.tags.contains(&name.to_owned()))
    };
    let gone = async {
        while has("unused:1").await {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(crate::cluster::PATIENCE, gone)
        .await
        .unwrap();
    assert!(has("x:1").await);
    let evicted = when(&cluster.pods(), "web", |pod| phase(pod) == "Failed").await;
    assert_eq!(evicted.uid(), web.uid());
    assert_eq!(evicted.status.unwrap().reason.as_deref(), Some("Evicted"));
}
