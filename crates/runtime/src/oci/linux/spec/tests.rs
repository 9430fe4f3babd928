//! Plans of containers, piece by piece.

use super::*;
use crate::{Capabilities, Mount, Variable};

fn available(missing: &[&str]) -> CapsHashSet {
    caps::all()
        .into_iter()
        .filter(|capability| !missing.contains(&capability.to_string().as_str()))
        .collect()
}

fn plan_of(
    spec: &ContainerSpec,
    image: &ImageSettings,
    pod: &PodSpec,
    missing: &[&str],
) -> Result<Planned, RuntimeError> {
    let available = available(missing);
    let files = [("/etc/hosts", "/pod/hosts".to_owned())];
    let around = Surroundings {
        pod,
        shim: 77,
        first_process: None,
        available: &available,
        least_oom_score: 0,
        unified: true,
        files: &files,
        devices: &[],
        hostname: "host",
    };
    let user = User {
        id: 0,
        group: 0,
        additional: Vec::new(),
    };
    plan(spec, image, &user, "/ours/pod1/c", &around)
}

fn planned(change: impl FnOnce(&mut ContainerSpec)) -> Planned {
    let mut spec = ContainerSpec {
        command: vec!["/run".to_owned()],
        ..ContainerSpec::default()
    };
    change(&mut spec);
    plan_of(
        &spec,
        &ImageSettings::default(),
        &PodSpec::default(),
        &["CAP_SYS_RESOURCE"],
    )
    .expect("a plan")
}

#[test]
fn what_runs_comes_from_the_pod_before_the_image() {
    let image = ImageSettings {
        entrypoint: vec!["entry".to_owned()],
        arguments: vec!["default".to_owned()],
        ..ImageSettings::default()
    };
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (command, arguments, expected) in [
        ("", "", "entry default"),
        ("", "a b", "entry a b"),
        ("c", "", "c"),
        ("c", "a", "c a"),
    ] {
        let spec = ContainerSpec {
            command: words(command),
            arguments: words(arguments),
            ..ContainerSpec::default()
        };
        let planned = plan_of(&spec, &image, &PodSpec::default(), &[]).expect("a plan");
        assert_eq!(
            planned.configuration["process"]["args"],
            json!(words(expected))
        );
    }
    let nothing = plan_of(
        &ContainerSpec::default(),
        &ImageSettings::default(),
        &PodSpec::default(),
        &[],
    );
    assert!(matches!(nothing, Err(RuntimeError::CannotRun { .. })));
}

#[test]
fn variables_of_the_pod_take_the_place_of_the_image_s() {
    let image = ImageSettings {
        environment: vec!["A=image".to_owned(), "B=image".to_owned()],
        ..ImageSettings::default()
    };
    let spec = ContainerSpec {
        environment: vec![Variable {
            name: "B".to_owned(),
            value: "pod=1".to_owned(),
        }],
        ..ContainerSpec::default()
    };
    let environment = environment(&spec, &image, "host");
    assert_eq!(environment[1..], ["HOSTNAME=host", "A=image", "B=pod=1"]);
}

#[test]
fn capabilities_are_added_dropped_and_clamped_with_a_note() {
    let list = |add: &[&str], drop: &[&str]| {
        planned(|spec| {
            spec.security.capabilities = Capabilities {
                add: add.iter().map(ToString::to_string).collect(),
                drop: drop.iter().map(ToString::to_string).collect(),
            };
        })
    };
    assert_eq!(list(&[], &[]).capabilities.len(), 14);
    assert_eq!(list(&["NET_ADMIN"], &["ALL"]).capabilities, ["NET_ADMIN"]);
    assert!(
        !list(&[], &["chown"])
            .capabilities
            .contains(&"CHOWN".to_owned())
    );
    let clamped = list(&["SYS_RESOURCE"], &["ALL"]);
    assert!(
        clamped.capabilities.is_empty() && clamped.notes[0].contains("CAP_SYS_RESOURCE"),
        "{clamped:?}"
    );
    assert_eq!(
        list(&["ALL"], &[]).capabilities.len(),
        caps::all().len() - 1
    );
    let unknown = ContainerSpec {
        command: vec!["x".to_owned()],
        security: Security {
            capabilities: Capabilities {
                add: vec!["FLY".to_owned()],
                drop: Vec::new(),
            },
            ..Security::default()
        },
        ..ContainerSpec::default()
    };
    let refused = plan_of(
        &unknown,
        &ImageSettings::default(),
        &PodSpec::default(),
        &[],
    );
    assert!(matches!(refused, Err(RuntimeError::Invalid(_))));
}

#[test]
fn a_score_below_ours_is_raised_with_a_note() {
    let planned = planned(|spec| spec.resources.oom_score_adjustment = Some(-997));
    assert_eq!(planned.configuration["process"]["oomScoreAdj"], 0);
    assert!(planned.notes[0].contains("-997"));
}

#[test]
fn namespaces_are_those_of_the_pod_unless_it_asks_for_the_node_s() {
    let kinds = |pod: &PodSpec| {
        let spec = ContainerSpec {
            command: vec!["x".to_owned()],
            ..ContainerSpec::default()
        };
        let planned = plan_of(&spec, &ImageSettings::default(), pod, &[]).expect("a plan");
        let namespaces = planned.configuration["linux"]["namespaces"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        namespaces
            .iter()
            .map(|namespace| {
                format!(
                    "{}{}",
                    namespace["type"].as_str().unwrap_or_default(),
                    namespace["path"].as_str().unwrap_or_default()
                )
            })
            .collect::<Vec<_>>()
    };
    let own = [
        "mount",
        "pid",
        "network/proc/77/ns/net",
        "uts/proc/77/ns/uts",
        "ipc/proc/77/ns/ipc",
        "cgroup",
    ];
    assert_eq!(kinds(&PodSpec::default()), own);
    let of_the_node = PodSpec {
        network: PodNetwork::Host,
        host_pid: true,
        host_ipc: true,
        ..PodSpec::default()
    };
    assert_eq!(kinds(&of_the_node), ["mount", "cgroup"]);
}

#[test]
fn mounts_of_the_pod_stand_in_for_the_runtime_s_own_files() {
    let mount = |to: &str, propagation| Mount {
        host_path: "/from".into(),
        container_path: to.to_owned(),
        read_only: true,
        propagation,
    };
    let planned = planned(|spec| spec.mounts = vec![mount("/etc/hosts", Propagation::Private)]);
    let mounts = planned.configuration["mounts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let hosts: Vec<&Value> = mounts
        .iter()
        .filter(|mount| mount["destination"] == "/etc/hosts")
        .collect();
    assert_eq!(
        hosts,
        [
            &json!({"destination": "/etc/hosts", "type": "bind", "source": "/from", "options": ["rbind", "rprivate", "ro"]})
        ]
    );
    for bad in [
        mount("relative", Propagation::Private),
        mount("/x", Propagation::Bidirectional),
    ] {
        let spec = ContainerSpec {
            command: vec!["x".to_owned()],
            mounts: vec![bad],
            ..ContainerSpec::default()
        };
        assert!(plan_of(&spec, &ImageSettings::default(), &PodSpec::default(), &[]).is_err());
    }
}

#[test]
fn privileged_means_no_limits_on_what_it_sees() {
    let ordinary = planned(|_| {});
    let privileged = planned(|spec| spec.security.privileged = true);
    let paths = |planned: &Planned| {
        planned.configuration["linux"]["maskedPaths"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert_eq!((paths(&ordinary), paths(&privileged)), (MASKED.len(), 0));
    assert_eq!(ordinary.configuration["process"]["noNewPrivileges"], true);
    assert_eq!(
        privileged.configuration["process"]["noNewPrivileges"],
        false
    );
    assert_eq!(
        privileged.configuration["linux"]["resources"]["devices"][0]["allow"],
        true
    );
}
