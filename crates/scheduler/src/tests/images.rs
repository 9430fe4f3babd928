//! Images decide where a pod can be, without any selector.

use serde_json::{Value, json};
use transom_model::images::{ImagePlatform, ImageSpec, ImageStatus, canonical, object_name};

use super::{node, outcome, pod, snapshot};
use crate::Snapshot;

fn windows(name: &str, build: &str) -> k8s_openapi::api::core::v1::Node {
    node(
        name,
        "z",
        &json!({"metadata": {"labels": {"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build}}}),
    )
}

fn knows(snapshot: &mut Snapshot, image: &str, platforms: &[&str]) {
    let platforms = platforms.iter().map(|text| {
        let platform: transom_model::Platform = text.parse().unwrap();
        ImagePlatform {
            os: platform.os.to_string(),
            architecture: platform.arch.to_string(),
            os_version: platform.os_version.map(|version| version.to_string()),
        }
    });
    let status = ImageStatus::of(None, platforms.collect());
    put(snapshot, image, Some(&status));
}

fn put(snapshot: &mut Snapshot, image: &str, status: Option<&ImageStatus>) {
    let spec = ImageSpec {
        reference: canonical(image),
    };
    snapshot.put_image(&object_name(image), &spec, status);
}

fn runs(image: &str) -> k8s_openapi::api::core::v1::Pod {
    pod(
        "p",
        &json!({"spec": {"containers": [{"name": "c", "image": image}]}}),
    )
}

fn mixed() -> Snapshot {
    snapshot(
        &[
            node("linux", "z", &json!({})),
            node(
                "arm",
                "z",
                &json!({"metadata": {"labels": {"kubernetes.io/arch": "arm64"}}}),
            ),
            windows("w2022", "10.0.20348"),
            windows("w2025", "10.0.26100"),
        ],
        &[],
    )
}

#[test]
fn an_image_goes_to_a_machine_that_it_is_for() {
    for (platforms, expected) in [
        (&["linux/amd64"][..], &["linux"][..]),
        (&["linux/arm64"], &["arm"]),
        (&["linux/amd64", "linux/arm64"], &["linux", "arm"]),
        (&["windows(10.0.20348.2113)/amd64"], &["w2022", "w2025"]),
        (&["windows(10.0.26100)/amd64"], &["w2025"]),
        (
            &["linux/arm64", "windows(10.0.26100)/amd64"],
            &["arm", "w2025"],
        ),
    ] {
        let mut snapshot = mixed();
        knows(&mut snapshot, "app:1", platforms);
        let mut found: Vec<String> = Vec::new();
        // Each time the best is taken away, until none is left.
        loop {
            let one = outcome(&mut snapshot, &runs("app:1"));
            if one.contains(' ') {
                break;
            }
            snapshot.remove_node(&one);
            found.push(one);
        }
        found.sort();
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{platforms:?}");
    }
}

#[test]
fn a_pod_that_no_node_can_ever_run_is_told_what_it_needs_and_what_there_is() {
    let mut snapshot = mixed();
    knows(&mut snapshot, "old:1", &["windows(10.0.17763.5820)/amd64"]);
    assert_eq!(
        outcome(&mut snapshot, &runs("old:1")),
        "0/4 nodes are available: 4 node(s) cannot run image docker.io/library/old:1. \
         No node can ever run image docker.io/library/old:1: it needs a host with build 17763 (Windows Server 2019), \
         windows/amd64; there are linux/amd64 (1), linux/arm64 (1), windows(10.0.20348)/amd64 (1), \
         windows(10.0.26100)/amd64 (1)."
    );
}

#[test]
fn the_system_that_a_pod_names_decides_too() {
    let mut snapshot = mixed();
    snapshot.remove_node("w2025");
    let windows = pod("p", &json!({"spec": {"os": {"name": "windows"}}}));
    assert_eq!(outcome(&mut snapshot, &windows), "w2022");
    snapshot.remove_node("w2022");
    assert_eq!(
        outcome(&mut snapshot, &windows),
        "0/2 nodes are available: 2 node(s) didn't run windows, which the pod is for."
    );
}

#[test]
fn programs_of_the_host_need_no_build() {
    let mut snapshot = snapshot(&[windows("w2022", "10.0.20348")], &[]);
    knows(&mut snapshot, "tool:1", &["windows(10.0.17763)/amd64"]);
    assert!(outcome(&mut snapshot, &runs("tool:1")).starts_with("0/1"));
    let host = json!({"spec": {"containers": [{"name": "c", "image": "tool:1"}],
        "securityContext": {"windowsOptions": {"hostProcess": true}}}});
    assert_eq!(outcome(&mut snapshot, &pod("p", &host)), "w2022");
}

#[test]
fn containers_say_for_themselves_that_they_are_programs_of_the_host() {
    let mut snapshot = snapshot(&[windows("w2022", "10.0.20348")], &[]);
    knows(&mut snapshot, "tool:1", &["windows(10.0.17763)/amd64"]);
    let container = |name: &str, host_process: Value| {
        json!({"name": name, "image": "tool:1",
            "securityContext": {"windowsOptions": {"hostProcess": host_process}}})
    };
    let all = json!({"spec": {"containers": [container("a", json!(true))],
        "initContainers": [container("i", json!(true))]}});
    assert_eq!(outcome(&mut snapshot, &pod("p", &all)), "w2022");
    let one =
        json!({"spec": {"containers": [container("a", json!(true)), container("b", Value::Null)]}});
    assert!(outcome(&mut snapshot, &pod("p", &one)).starts_with("0/1"));
}

#[test]
fn what_is_not_known_or_is_known_under_another_name_decides_nothing() {
    let mut snapshot = mixed();
    put(&mut snapshot, "app:1", None);
    let failed = ImageStatus {
        message: Some("no route".to_owned()),
        ..ImageStatus::default()
    };
    put(&mut snapshot, "app:2", Some(&failed));
    let nowhere = ImageStatus::of(
        None,
        vec![ImagePlatform {
            os: "windows".to_owned(),
            architecture: "arm64".to_owned(),
            os_version: None,
        }],
    );
    let spec = ImageSpec {
        reference: canonical("app:3"),
    };
    snapshot.put_image("made-by-hand", &spec, Some(&nowhere));
    for image in ["app:1", "app:2", "app:3"] {
        let found = outcome(&mut snapshot, &runs(image));
        assert!(!found.contains(' '), "{image} {found}");
    }
    put(&mut snapshot, "app:3", Some(&nowhere));
    assert!(outcome(&mut snapshot, &runs("app:3")).starts_with("0/4"));
    snapshot.remove_image(&object_name("app:3"));
    assert!(!outcome(&mut snapshot, &runs("app:3")).contains(' '));
}

#[test]
fn what_a_node_has_it_can_run() {
    let has = json!({"metadata": {"labels": {"kubernetes.io/os": "windows"}},
        "status": {"images": [{"names": ["made.here/tool:1"], "sizeBytes": 1}]}});
    let mut snapshot = snapshot(
        &[node("linux", "z", &json!({})), node("windows", "z", &has)],
        &[],
    );
    knows(&mut snapshot, "made.here/tool:1", &["linux/arm64"]);
    assert_eq!(outcome(&mut snapshot, &runs("made.here/tool:1")), "windows");
}

#[test]
fn news_of_images_are_awaited_only_where_nodes_differ_in_what_they_can_run() {
    let mut mixed = mixed();
    let awaits = |snapshot: &mut Snapshot, pod: &k8s_openapi::api::core::v1::Pod| {
        let wanted = snapshot.prepare(pod);
        snapshot.awaits_images(&wanted)
    };
    let with = |more: Value| {
        let mut spec = json!({"containers": [{"name": "c", "image": "app:1"}]});
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        pod("p", &json!({"spec": spec}))
    };
    for (more, is_awaited) in [
        (json!({}), true),
        (json!({"os": {"name": "windows"}}), true),
        (json!({"nodeSelector": {"kubernetes.io/os": "linux"}}), true),
        (
            json!({"nodeSelector": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}}),
            false,
        ),
        (
            json!({"nodeSelector": {"beta.kubernetes.io/arch": "arm64"}}),
            false,
        ),
    ] {
        assert_eq!(
            awaits(&mut mixed, &with(more.clone())),
            is_awaited,
            "{more}"
        );
    }
    put(&mut mixed, "app:1", None);
    assert!(awaits(&mut mixed, &runs("app:1")), "somebody is looking");
    let failed = ImageStatus {
        message: Some("no route".to_owned()),
        ..ImageStatus::default()
    };
    put(&mut mixed, "app:1", Some(&failed));
    assert!(!awaits(&mut mixed, &runs("app:1")), "nobody can tell");
    let updates = |name: &str, version: &str| {
        node(
            name,
            "z",
            &json!({"metadata": {"labels": {"kubernetes.io/os": "windows"}},
            "status": {"nodeInfo": {"kernelVersion": version, "operatingSystem": "windows", "architecture": "amd64",
                "machineID": "", "systemUUID": "", "bootID": "", "osImage": "", "containerRuntimeVersion": "",
                "kubeletVersion": "", "kubeProxyVersion": ""}}}),
        )
    };
    let mut alike = snapshot(
        &[updates("a", "10.0.20348.1"), updates("b", "10.0.20348.2")],
        &[],
    );
    assert!(!awaits(&mut alike, &runs("app:1")));
    alike.put_node(&node("c", "z", &json!({})));
    assert!(awaits(&mut alike, &runs("app:1")));
    alike.remove_node("c");
    assert!(!awaits(&mut alike, &runs("app:1")));
}
