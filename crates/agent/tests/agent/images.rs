//! What a node tells the cluster of images that nobody else told of.

use kube::{
    Api as Objects,
    api::{Patch, PatchParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use transom_model::{
    Os,
    images::{GROUP, KIND, PLURAL, VERSION, canonical, object_name},
};
use transom_runtime::fake::{Call, Fault, Plan};

use crate::cluster::{Cluster, NODE, create, phase, when};

fn images(cluster: &Cluster) -> Objects<DynamicObject> {
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: KIND.to_owned(),
        plural: PLURAL.to_owned(),
    };
    Objects::all_with(cluster.client.clone(), &resource)
}

fn runs(image: &str) -> Value {
    json!({"containers": [{"name": "c", "image": image}]})
}

#[tokio::test(start_paused = true)]
async fn a_node_tells_what_an_image_is_for_even_if_it_cannot_have_it() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let fault = Fault::Pull("no match for platform".to_owned());
    cluster.runtime.fail(Call::Pull, 1, fault);
    cluster.pod("p", runs("registry.example/app:1")).await;
    let name = object_name("registry.example/app:1");
    let told = when(&images(&cluster), &name, |_| true).await;
    assert_eq!(told.data["spec"]["reference"], "registry.example/app:1");
    let status = &told.data["status"];
    assert_eq!(status["node"], NODE);
    assert_eq!(status["runsOn"], "linux/amd64");
}

#[tokio::test(start_paused = true)]
async fn a_node_does_not_speak_over_a_registry() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let images = images(&cluster);
    let told = |image: &str| {
        json!({
            "apiVersion": "transom.dev/v1", "kind": "Image", "metadata": {"name": object_name(image)},
            "spec": {"reference": canonical(image)},
        })
    };
    let mut by_registry = told("app:1");
    by_registry["status"] = json!({"platforms": [{"os": "linux", "architecture": "arm64"}]});
    let registry = create(&images, by_registry).await;
    create(&images, told("app:2")).await;
    let parameters = PatchParams::default();
    let failed = Patch::Merge(json!({"status": {"message": "no route"}}));
    images
        .patch(&object_name("app:2"), &parameters, &failed)
        .await
        .unwrap();
    cluster.pod("one", runs("app:1")).await;
    when(&cluster.pods(), "one", |pod| phase(pod) == "Running").await;
    cluster.pod("two", runs("app:2")).await;
    let of_node = when(&images, &object_name("app:2"), |image| {
        image.data["status"]["node"].is_string()
    })
    .await;
    assert_eq!(of_node.data["status"]["message"], Value::Null);
    let after = images.get(&object_name("app:1")).await.unwrap();
    assert_eq!(after.data, registry.data);
}
