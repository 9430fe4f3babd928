//! Deployments and replica sets against a real API, with pods that exist on paper.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Pod, ReplicationController, ServiceAccount},
};
use kube::{
    Api as Objects, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, create, gone, merge, when, when_all},
    node::{Fate, Node},
};

/// A cluster with a namespace in which pods are admitted.
pub(crate) async fn cluster() -> Cluster {
    let cluster = Cluster::new().await;
    cluster.namespace("n").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "n");
    when(&accounts, "default", |_| true).await;
    cluster
}

pub(crate) fn of<K>(cluster: &Cluster) -> Objects<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Objects::namespaced(cluster.client.clone(), "n")
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    })
}

fn deployment(replicas: i32, image: &str) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
        },
    })
}

fn image(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().containers[0]
        .image
        .as_deref()
        .unwrap()
}

pub(crate) async fn images(pods: &Objects<Pod>) -> Vec<String> {
    let list = pods.list(&ListParams::default()).await.unwrap();
    live_images(list.iter())
}

fn live_images<'a>(pods: impl Iterator<Item = &'a Pod>) -> Vec<String> {
    let live = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    live.map(|pod| image(pod).to_owned()).collect()
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Waits until a deployment has rolled out what it wants.
async fn rolled_out(deployments: &Objects<Deployment>, replicas: i32) -> Deployment {
    when(deployments, "web", |deployment| {
        is_rolled_out(deployment, replicas)
    })
    .await
}

fn is_rolled_out(deployment: &Deployment, replicas: i32) -> bool {
    let Some(status) = &deployment.status else {
        return false;
    };
    let wanted = Some(replicas).filter(|replicas| *replicas != 0);
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas == wanted
        && status.replicas == wanted
        && status.available_replicas == wanted
}

fn condition(deployment: &Deployment, kind: &str) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|one| one.type_ == kind)?
        .reason
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_rolls_out_rolls_on_goes_back_and_goes() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let deployments = of::<Deployment>(&cluster);
    let (sets, pods) = (of::<ReplicaSet>(&cluster), of::<Pod>(&cluster));
    create(&deployments, deployment(3, "one")).await;
    rolled_out(&deployments, 3).await;
    assert_eq!(images(&pods).await, ["one"; 3]);

    let patch = json!({"spec": {"template": template("two")}});
    merge(&deployments, "web", patch).await;
    let second = rolled_out(&deployments, 3).await;
    assert_eq!(
        second.annotations()["deployment.kubernetes.io/revision"],
        "2"
    );
    when(&deployments, "web", |deployment| {
        condition(deployment, "Progressing").as_deref() == Some("NewReplicaSetAvailable")
    })
    .await;
    assert_eq!(images(&pods).await, ["two"; 3]);

    let patch = json!({"spec": {"template": template("one")}});
    merge(&deployments, "web", patch).await;
    let third = rolled_out(&deployments, 3).await;
    assert_eq!(
        third.annotations()["deployment.kubernetes.io/revision"],
        "3"
    );
    assert_eq!(images(&pods).await, ["one"; 3]);
    assert_eq!(
        sets.list(&ListParams::default()).await.unwrap().items.len(),
        2
    );

    merge(&deployments, "web", json!({"spec": {"replicas": 5}})).await;
    rolled_out(&deployments, 5).await;
    deployments
        .delete("web", &DeleteParams::foreground())
        .await
        .unwrap();
    gone(&deployments, &third).await;
    // A replica set may hear of the end of a pod before it hears of its own, and make one more, which goes later.
    when_all(&pods, BTreeMap::is_empty).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_image_leaves_the_old_pods_at_work_and_can_be_undone() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |pod| {
        if image(pod) == "bad" {
            Fate::Unready
        } else {
            Fate::Ready
        }
    });
    let (deployments, pods) = (of::<Deployment>(&cluster), of::<Pod>(&cluster));
    create(&deployments, deployment(4, "good")).await;
    rolled_out(&deployments, 4).await;
    merge(
        &deployments,
        "web",
        json!({"spec": {"template": template("bad")}}),
    )
    .await;
    let stuck = when(&deployments, "web", |deployment| {
        let status = deployment.status.as_ref().unwrap();
        status.observed_generation == deployment.metadata.generation
            && status.updated_replicas == Some(2)
            && status.replicas == Some(5)
    })
    .await;
    assert_eq!(stuck.status.unwrap().available_replicas, Some(3));
    merge(
        &deployments,
        "web",
        json!({"spec": {"template": template("good")}}),
    )
    .await;
    rolled_out(&deployments, 4).await;
    assert_eq!(images(&pods).await, ["good"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn to_recreate_leaves_no_moment_with_both() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let (deployments, pods) = (of::<Deployment>(&cluster), of::<Pod>(&cluster));
    let mut value = deployment(2, "one");
    value["spec"]["strategy"] = json!({"type": "Recreate"});
    create(&deployments, value).await;
    rolled_out(&deployments, 2).await;
    merge(
        &deployments,
        "web",
        json!({"spec": {"template": template("two")}}),
    )
    .await;
    rolled_out(&deployments, 2).await;
    assert_eq!(images(&pods).await, ["two"; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_start_in_the_middle_go_on_where_others_stopped() {
    let mut cluster = cluster().await;
    let mut node = Node::new(&cluster.client, |_| Fate::Pending);
    let (deployments, pods) = (of::<Deployment>(&cluster), of::<Pod>(&cluster));
    create(&deployments, deployment(6, "one")).await;
    when(&deployments, "web", |deployment| {
        deployment
            .status
            .as_ref()
            .is_some_and(|status| status.replicas == Some(6))
    })
    .await;
    cluster.restart_controllers().await;
    node.script(|_| Fate::Ready);
    rolled_out(&deployments, 6).await;
    merge(
        &deployments,
        "web",
        json!({"spec": {"template": template("two")}}),
    )
    .await;
    cluster.restart_controllers().await;
    rolled_out(&deployments, 6).await;
    assert_eq!(images(&pods).await, ["two"; 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_adopts_strays_and_lets_go_what_it_does_not_select() {
    let mut cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let (sets, pods) = (of::<ReplicaSet>(&cluster), of::<Pod>(&cluster));
    let mut stray = template("one");
    stray["metadata"]["name"] = "stray".into();
    create(&pods, stray).await;
    // News of pods and of sets come apart: only who begins now knows the stray before the set.
    cluster.restart_controllers().await;
    let set = json!({
        "metadata": {"name": "set"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("one")},
    });
    let set = create(&sets, set).await;
    let is_adopted = |pod: &Pod| {
        pod.owner_references()
            .iter()
            .any(|owner| owner.uid == set.uid().unwrap())
    };
    when(&pods, "stray", is_adopted).await;
    let wanted = |set: &ReplicaSet| {
        set.status
            .as_ref()
            .is_some_and(|status| status.ready_replicas == Some(2))
    };
    when(&sets, "set", wanted).await;
    assert_eq!(images(&pods).await.len(), 2);
    merge(
        &pods,
        "stray",
        json!({"metadata": {"labels": {"app": "other"}}}),
    )
    .await;
    when(&pods, "stray", |pod| pod.owner_references().is_empty()).await;
    // Only the pods tell that another one came: what the set says of itself is the same before and after.
    when_all(&pods, |all| {
        let own = all.values().filter(|pod| is_adopted(pod) && is_ready(pod));
        own.count() == 2
    })
    .await;
    when(&sets, "set", |set| {
        wanted(set) && set.status.as_ref().unwrap().replicas == 2
    })
    .await;
    assert_eq!(images(&pods).await.len(), 3);
    sets.delete("set", &DeleteParams::orphan()).await.unwrap();
    gone(&sets, &set).await;
    assert_eq!(images(&pods).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replication_controller_keeps_its_pods() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let (controllers, pods) = (of::<ReplicationController>(&cluster), of::<Pod>(&cluster));
    let value = json!({
        "metadata": {"name": "old"},
        "spec": {"replicas": 3, "selector": {"app": "web"}, "template": template("one")},
    });
    create(&controllers, value).await;
    let ready = |number: i32| {
        move |one: &ReplicationController| {
            one.status.as_ref().is_some_and(|status| {
                status.ready_replicas == Some(number) && status.replicas == number
            })
        }
    };
    when(&controllers, "old", ready(3)).await;
    merge(&controllers, "old", json!({"spec": {"replicas": 1}})).await;
    when(&controllers, "old", ready(1)).await;
    assert_eq!(images(&pods).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_makes_no_pod_too_many_and_deletes_none_too_many() {
    let cluster = cluster().await;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let all = Arc::clone(&seen);
    let _node = Node::new(&cluster.client, move |pod| {
        all.lock().unwrap().insert(pod.uid());
        Fate::Ready
    });
    let (sets, pods) = (of::<ReplicaSet>(&cluster), of::<Pod>(&cluster));
    let set = json!({
        "metadata": {"name": "set"},
        "spec": {"replicas": 40, "selector": {"matchLabels": {"app": "web"}}, "template": template("one")},
    });
    create(&sets, set).await;
    let has = |number: i32| {
        move |set: &ReplicaSet| {
            set.status.as_ref().is_some_and(|status| {
                status.replicas == number
                    && status.ready_replicas == Some(number)
                    && status.terminating_replicas == Some(0)
            })
        }
    };
    when(&sets, "set", has(40)).await;
    merge(&sets, "set", json!({"spec": {"replicas": 15}})).await;
    when(&sets, "set", has(15)).await;
    assert_eq!(images(&pods).await.len(), 15);
    assert_eq!(seen.lock().unwrap().len(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_come_at_once_end_with_the_last_of_them() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    let (deployments, pods) = (of::<Deployment>(&cluster), of::<Pod>(&cluster));
    create(&deployments, deployment(2, "zero")).await;
    for (number, image) in ["one", "two", "three", "four"].into_iter().enumerate() {
        let replicas = 3 + number;
        let patch = json!({"spec": {"replicas": replicas, "template": template(image)}});
        merge(&deployments, "web", patch).await;
    }
    rolled_out(&deployments, 6).await;
    // A set that had to shrink before it told of its first pods counts as empty while they go.
    when_all(&pods, |all| live_images(all.values()) == ["four"; 6]).await;
}
