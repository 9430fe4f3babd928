//! What registries say of the images of pods that wait for a node.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::{FutureExt as _, future::BoxFuture};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Pod, Secret, ServiceAccount},
};
use kube::{
    Api as Objects,
    api::PostParams,
    core::{DynamicObject, ObjectMeta},
    discovery::ApiResource,
};
use serde_json::{Value, json};
use transom_controllers::{Answer, Options, PullSecret, Question, Registry};
use transom_model::images::{GROUP, ImagePlatform, KIND, PLURAL, VERSION, canonical, object_name};

use crate::cluster::{Cluster, create, when};

const CONFIG: &[u8] = br#"{"auths": {}}"#;

/// A registry of one image, for whoever has the secret.
#[derive(Debug, Default)]
struct Script {
    asked: Mutex<Vec<String>>,
}

impl Registry for Script {
    fn look<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Answer, String>> {
        self.asked.lock().unwrap().push(question.reference.clone());
        let is_known = question.reference == canonical("app:1");
        let may = question
            .secrets
            .contains(&PullSecret::Config(CONFIG.to_vec()));
        let answer = if is_known && may {
            Ok(Answer::Image {
                digest: "sha256:1".to_owned(),
                platforms: vec![ImagePlatform {
                    os: "windows".to_owned(),
                    architecture: "amd64".to_owned(),
                    os_version: Some("10.0.20348.1".to_owned()),
                }],
            })
        } else {
            Err("unauthorized".to_owned())
        };
        async { answer }.boxed()
    }
}

struct Place {
    cluster: Cluster,
    script: Arc<Script>,
    pods: Objects<Pod>,
    images: Objects<DynamicObject>,
}

async fn equipped() -> Place {
    let script = Arc::new(Script::default());
    let registry: Arc<dyn Registry> = Arc::clone(&script) as _;
    let cluster = Cluster::with(Options {
        registry: Some(registry),
        ..Options::default()
    })
    .await;
    cluster.namespace("work").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    Place {
        script,
        pods: Objects::namespaced(cluster.client.clone(), "work"),
        images: images(&cluster),
        cluster,
    }
}

/// The objects that tell what images are for.
pub(crate) fn images(cluster: &Cluster) -> Objects<DynamicObject> {
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: KIND.to_owned(),
        plural: PLURAL.to_owned(),
    };
    Objects::all_with(cluster.client.clone(), &resource)
}

fn pod(name: &str, image: &str, more: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": image}]});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_is_asked_with_the_secrets_of_the_pod_before_it_has_a_node() {
    let place = equipped().await;
    let secrets: Objects<Secret> = Objects::namespaced(place.cluster.client.clone(), "work");
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some("login".to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some(BTreeMap::from([(
            ".dockerconfigjson".to_owned(),
            ByteString(CONFIG.to_vec()),
        )])),
        ..Secret::default()
    };
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let waiting = pod(
        "a",
        "app:1",
        &json!({"imagePullSecrets": [{"name": "login"}]}),
    );
    create(&place.pods, waiting).await;
    let image = when(&place.images, &object_name("app:1"), |image| {
        image.data["status"]["platforms"].is_array()
    })
    .await;
    assert_eq!(image.data["spec"]["reference"], canonical("app:1"));
    let status = &image.data["status"];
    assert_eq!(status["digest"], "sha256:1");
    assert_eq!(status["runsOn"], "windows(10.0.20348.1)/amd64");
    assert!(status["checkedAt"].is_string());
    assert_eq!(status["message"], Value::Null);
    // What is known and young is not asked for again.
    create(&place.pods, pod("b", "app:1", &json!({}))).await;
    create(&place.pods, pod("c", "last:1", &json!({}))).await;
    when(&place.images, &object_name("last:1"), |_| true).await;
    let asked = place.script.asked.lock().unwrap().clone();
    let app = asked.iter().filter(|image| **image == canonical("app:1"));
    assert_eq!(app.count(), 1, "{asked:?}");
    place.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_refuses_is_told_of_and_pods_that_have_a_node_are_not_asked_for() {
    let place = equipped().await;
    create(
        &place.pods,
        pod("bound", "other:1", &json!({"nodeName": "n"})),
    )
    .await;
    create(&place.pods, pod("waiting", "app:1", &json!({}))).await;
    let image = when(&place.images, &object_name("app:1"), |image| {
        image.data["status"]["message"].is_string()
    })
    .await;
    assert_eq!(image.data["status"]["message"], "unauthorized");
    assert_eq!(image.data["status"]["platforms"], Value::Null);
    let mut asked = place.script.asked.lock().unwrap().clone();
    asked.dedup();
    assert_eq!(asked, [canonical("app:1")]);
    place.cluster.stop().await;
}
