//! Typed kinds: config maps, pods and deployments as Rust structures.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
    ValidationDirective,
};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::served::{Served, config_map, refusal};

#[tokio::test]
async fn a_config_map_is_created_read_changed_and_deleted() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    let options = PostParams::default();
    let made = maps
        .create(&options, &config_map("one", "a", "1"))
        .await
        .unwrap();
    let again = maps.create(&options, &config_map("one", "a", "1")).await;
    assert_eq!(refusal(again), (409, "AlreadyExists".to_owned()));

    let mut changed = made.clone();
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    let changed = maps.replace("one", &options, &changed).await.unwrap();
    assert_eq!(changed.uid(), made.uid());
    assert_ne!(changed.resource_version(), made.resource_version());
    let stale = maps.replace("one", &options, &made).await;
    assert_eq!(refusal(stale), (409, "Conflict".to_owned()));

    let preconditions = kube::api::Preconditions {
        uid: Some("another".to_owned()),
        resource_version: None,
    };
    let other = maps
        .delete("one", &DeleteParams::default().preconditions(preconditions))
        .await;
    assert_eq!(refusal(other), (409, "Conflict".to_owned()));
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(maps.get("one").await), (404, "NotFound".to_owned()));
    assert!(maps.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn a_dry_run_has_no_effect_and_names_are_generated() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let made = maps
        .create(&dry, &config_map("dry", "a", "1"))
        .await
        .unwrap();
    assert!(made.uid().is_some());
    assert!(maps.get_opt("dry").await.unwrap().is_none());

    let mut nameless = config_map("", "a", "1");
    nameless.metadata.name = None;
    nameless.metadata.generate_name = Some("made-".to_owned());
    let first = maps
        .create(&PostParams::default(), &nameless)
        .await
        .unwrap();
    let second = maps
        .create(&PostParams::default(), &nameless)
        .await
        .unwrap();
    assert!(first.name_any().starts_with("made-"));
    assert_ne!(first.name_any(), second.name_any());
}

#[tokio::test]
async fn lists_come_in_pages_of_one_moment() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    for number in 0..7 {
        let map = config_map(&format!("item-{number}"), "a", "1");
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(4));
    maps.create(&PostParams::default(), &config_map("item-5a", "a", "1"))
        .await
        .unwrap();
    maps.delete("item-4", &DeleteParams::default())
        .await
        .unwrap();
    let mut names: Vec<String> = first.iter().map(ResourceExt::name_any).collect();
    let mut token = first.metadata.continue_.clone();
    while let Some(next) = token.filter(|token| !token.is_empty()) {
        let options = ListParams::default().limit(3).continue_token(&next);
        let page = maps.list(&options).await.unwrap();
        assert_eq!(
            page.metadata.resource_version,
            first.metadata.resource_version
        );
        names.extend(page.iter().map(ResourceExt::name_any));
        token = page.metadata.continue_;
    }
    let expected: Vec<String> = (0..7).map(|number| format!("item-{number}")).collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn pods_get_defaults_and_go_after_their_grace() {
    let served = Served::new().await;
    let pods: Api<Pod> = Api::default_namespaced(served.client());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "one", "labels": {"app": "one"}},
        "spec": {"nodeName": "linux-1", "containers": [{"name": "main", "image": "registry.example/main"}]},
    }))
    .unwrap();
    let made = pods.create(&PostParams::default(), &pod).await.unwrap();
    let spec = made.spec.unwrap();
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
    assert_eq!(spec.termination_grace_period_seconds, Some(30));
    assert_eq!(
        spec.containers[0].image_pull_policy.as_deref(),
        Some("Always")
    );
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));

    let found = pods
        .list(&ListParams::default().fields("spec.nodeName=linux-1"))
        .await
        .unwrap();
    assert_eq!(found.items.len(), 1);
    let status = json!({"status": {"phase": "Running"}, "spec": {"nodeName": "other"}});
    let running = pods
        .patch_status("one", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    assert_eq!(running.spec.unwrap().node_name.as_deref(), Some("linux-1"));

    let leaving = pods
        .delete("one", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(leaving.metadata.deletion_grace_period_seconds, Some(30));
    let now = DeleteParams::default().grace_period(0);
    pods.delete("one", &now).await.unwrap();
    assert!(pods.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn a_deployment_has_a_generation_and_a_scale() {
    let served = Served::new().await;
    let deployments: Api<Deployment> = Api::default_namespaced(served.client());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]},
            },
        },
    }))
    .unwrap();
    let made = deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let scale = Patch::Merge(json!({"spec": {"replicas": 4}}));
    let scale = deployments
        .patch_scale("web", &PatchParams::default(), &scale)
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(4));
    let second = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.example/side:1"}]}}}});
    let strategic = Patch::Strategic(&second);
    let patched = deployments
        .patch("web", &PatchParams::default(), &strategic)
        .await
        .unwrap();
    assert_eq!(patched.metadata.generation, Some(3));
    let containers = patched.spec.unwrap().template.spec.unwrap().containers;
    assert_eq!(containers.len(), 2);
    let status = Patch::Merge(json!({"status": {"replicas": 1, "observedGeneration": 3}}));
    let status = deployments
        .patch_status("web", &PatchParams::default(), &status)
        .await
        .unwrap();
    assert_eq!(status.metadata.generation, Some(3));
    let options = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    let leaving = deployments
        .delete("web", &options)
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(leaving.finalizers(), ["foregroundDeletion"]);
}

#[tokio::test]
async fn applies_of_two_managers_conflict_until_one_takes_over() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    let wanted = |value: &str, extra: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"shared": value, extra: "mine"}});
    let first = PatchParams::apply("first");
    let second = PatchParams::apply("second");
    maps.patch("one", &first, &Patch::Apply(wanted("1", "a")))
        .await
        .unwrap();
    let refused = maps
        .patch("one", &second, &Patch::Apply(wanted("2", "b")))
        .await;
    assert_eq!(refusal(refused), (409, "Conflict".to_owned()));
    let forced = second.clone().force();
    maps.patch("one", &forced, &Patch::Apply(wanted("2", "b")))
        .await
        .unwrap();

    // What the first does not say any more goes, unless somebody else says it.
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let left = maps
        .patch("one", &first, &Patch::Apply(nothing))
        .await
        .unwrap();
    let data = left.data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["b", "shared"]);

    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..first
    };
    let unknown = json!({"apiVersion": "v1", "kind": "ConfigMap", "dta": {}});
    let refused = maps.patch("one", &strict, &Patch::Apply(unknown)).await;
    let (code, _) = refusal(refused);
    assert!((400..500).contains(&code), "{code}");
}

#[tokio::test]
async fn a_collection_is_deleted_by_its_labels() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    for (name, group) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut map = config_map(name, "a", "1");
        map.metadata.labels = Some([("group".to_owned(), group.to_owned())].into());
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let labelled = ListParams::default().labels("group in (x)");
    maps.delete_collection(&DeleteParams::default(), &labelled)
        .await
        .unwrap();
    let left = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        ["c"]
    );
}
