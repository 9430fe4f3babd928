//! Stateful sets against a real API, with pods that exist on paper.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::{
    cluster::{create, going, gone, merge, when},
    deployments::{cluster, images, of},
    node::{Fate, Node},
};

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    })
}

fn set(replicas: i32, policy: &str) -> Value {
    json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": template("one"),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": policy},
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    })
}

fn is_rolled_out(set: &StatefulSet, number: i32) -> bool {
    let Some(status) = &set.status else {
        return false;
    };
    status.observed_generation == set.metadata.generation
        && status.replicas == number
        && status.ready_replicas == Some(number)
        && status.updated_replicas == Some(number)
        && status.current_revision == status.update_revision
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_comes_in_order_is_updated_through_a_restart_shrinks_and_keeps_its_claims() {
    let mut cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let (sets, pods) = (of::<StatefulSet>(&cluster), of::<Pod>(&cluster));
    let claims = of::<PersistentVolumeClaim>(&cluster);
    let made = create(&sets, set(3, "Retain")).await;
    when(&sets, "db", |set| is_rolled_out(set, 3)).await;
    let mut born = Vec::new();
    for number in 0..3 {
        let pod = pods.get(&format!("db-{number}")).await.unwrap();
        born.push(
            pod.resource_version()
                .map(|_| pod.metadata.creation_timestamp.clone()),
        );
        assert_eq!(
            pod.labels()["apps.kubernetes.io/pod-index"],
            number.to_string()
        );
        claims.get(&format!("data-db-{number}")).await.unwrap();
    }
    assert!(born.is_sorted());

    merge(&sets, "db", json!({"spec": {"template": template("two")}})).await;
    cluster.restart_controllers().await;
    when(&sets, "db", |set| is_rolled_out(set, 3)).await;
    assert_eq!(images(&pods).await, ["two"; 3]);
    merge(&sets, "db", json!({"spec": {"replicas": 1}})).await;
    when(&sets, "db", |set| is_rolled_out(set, 1)).await;
    assert_eq!(
        claims
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        3
    );
    sets.delete("db", &DeleteParams::foreground())
        .await
        .unwrap();
    gone(&sets, &made).await;
    assert_eq!(
        claims
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        3
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_go_with_their_pods_and_with_the_set_if_it_says_so() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let sets = of::<StatefulSet>(&cluster);
    let claims = of::<PersistentVolumeClaim>(&cluster);
    let made = create(&sets, set(2, "Delete")).await;
    when(&sets, "db", |set| is_rolled_out(set, 2)).await;
    let (first, second) = (
        claims.get("data-db-0").await.unwrap(),
        claims.get("data-db-1").await.unwrap(),
    );
    assert_eq!(first.owner_references()[0].uid, made.uid().unwrap());
    merge(&sets, "db", json!({"spec": {"replicas": 1}})).await;
    going(&claims, &second).await;
    assert_eq!(claims.get("data-db-0").await.unwrap().uid(), first.uid());
    sets.delete("db", &DeleteParams::background())
        .await
        .unwrap();
    going(&claims, &first).await;
}
