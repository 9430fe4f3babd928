//! Services and where they lead.

use k8s_openapi::api::{
    core::v1::{Endpoints, Node, Pod, Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api as Objects, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, create, gone, merge, when, when_all};

fn addresses(endpoints: &Endpoints) -> Vec<&str> {
    let subsets = endpoints.subsets.iter().flatten();
    let ready = subsets.flat_map(|subset| subset.addresses.iter().flatten());
    ready.map(|address| address.ip.as_str()).collect()
}

async fn run_pod(cluster: &Cluster, name: &str, address: &str) -> Pod {
    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
    });
    create(&pods, pod).await;
    set_status(
        &pods,
        name,
        json!({
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }),
    )
    .await
}

async fn set_status(pods: &Objects<Pod>, name: &str, status: Value) -> Pod {
    let patch = Patch::Merge(json!({"status": status}));
    let parameters = PatchParams::default();
    pods.patch_status(name, &parameters, &patch).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_leads_to_its_pods_as_they_come_and_go() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    create(
        &cluster.all::<Node>(),
        json!({"metadata": {"name": "node"}}),
    )
    .await;
    let services: Objects<Service> = Objects::namespaced(cluster.client.clone(), "work");
    let endpoints: Objects<Endpoints> = Objects::namespaced(cluster.client.clone(), "work");
    let slices: Objects<EndpointSlice> = Objects::namespaced(cluster.client.clone(), "work");
    let value = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    let service = create(&services, value).await;
    when(&endpoints, "web", |each| addresses(each).is_empty()).await;
    run_pod(&cluster, "one", "10.9.0.1").await;
    run_pod(&cluster, "two", "10.9.0.2").await;
    when(&endpoints, "web", |each| {
        addresses(each) == ["10.9.0.1", "10.9.0.2"]
    })
    .await;
    // Slices are written before endpoints are.
    let found = slices.list(&ListParams::default()).await.unwrap().items;
    let [slice] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(slice.labels()["kubernetes.io/service-name"], "web");
    assert_eq!(slice.endpoints.as_ref().unwrap().len(), 2);

    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    let unready = json!({"conditions": [{"type": "Ready", "status": "False"}]});
    set_status(&pods, "one", unready).await;
    when(&endpoints, "web", |each| addresses(each) == ["10.9.0.2"]).await;
    merge(
        &pods,
        "two",
        json!({"metadata": {"labels": {"app": "other"}}}),
    )
    .await;
    when(&endpoints, "web", |each| addresses(each).is_empty()).await;

    services
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    gone(&services, &service).await;
    gone(&slices, slice).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_somebody_made_by_hand_are_left_alone_and_shown_in_slices() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let services: Objects<Service> = Objects::namespaced(cluster.client.clone(), "work");
    let endpoints: Objects<Endpoints> = Objects::namespaced(cluster.client.clone(), "work");
    let subsets = json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432}]}]);
    for name in ["alone", "outside"] {
        create(
            &endpoints,
            json!({"metadata": {"name": name}, "subsets": subsets}),
        )
        .await;
    }
    let value = json!({"metadata": {"name": "outside"}, "spec": {"ports": [{"port": 5432}]}});
    create(&services, value).await;
    let value = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    create(&services, value).await;
    // Services are looked at side by side: that one is done tells nothing of the other.
    when(&endpoints, "web", |_| true).await;
    let slices: Objects<EndpointSlice> = Objects::namespaced(cluster.client.clone(), "work");
    let is_mirrored = |slice: &EndpointSlice| {
        slice.labels()["endpointslice.kubernetes.io/managed-by"]
            == "endpointslicemirroring-controller.k8s.io"
    };
    let all = when_all(&slices, |all| all.values().any(is_mirrored)).await;
    for name in ["alone", "outside"] {
        let kept = endpoints.get(name).await.unwrap();
        assert_eq!(addresses(&kept), ["192.0.2.7"]);
    }
    let found: Vec<_> = all.values().filter(|slice| is_mirrored(slice)).collect();
    let [slice] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(slice.labels()["kubernetes.io/service-name"], "outside");
    endpoints
        .delete("outside", &DeleteParams::default())
        .await
        .unwrap();
    gone(&slices, slice).await;
    cluster.stop().await;
}
