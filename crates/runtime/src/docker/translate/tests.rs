//! What is said to Docker of pods and containers, and what is refused.

use super::*;
use crate::{Dns, PortMap, Variable};

fn pod() -> PodSpec {
    PodSpec {
        uid: "u".to_owned(),
        name: "web".to_owned(),
        hostname: "web-0".to_owned(),
        dns: Dns {
            servers: vec!["10.96.0.10".to_owned()],
            ..Dns::default()
        },
        ports: vec![
            PortMap {
                protocol: Protocol::Tcp,
                container_port: 80,
                host_port: 8080,
                host_address: None,
            },
            PortMap {
                protocol: Protocol::Udp,
                container_port: 80,
                host_port: 8081,
                host_address: "192.0.2.1".parse().ok(),
            },
        ],
        ..PodSpec::default()
    }
}

fn spec() -> ContainerSpec {
    ContainerSpec {
        name: "main".to_owned(),
        image: "sha256:1".to_owned(),
        environment: vec![Variable {
            name: "A".to_owned(),
            value: "b=c".to_owned(),
        }],
        mounts: vec![Mount {
            host_path: "/var/x y".into(),
            container_path: "/data".to_owned(),
            read_only: true,
            propagation: Propagation::HostToContainer,
        }],
        resources: Resources {
            cpu_request_millis: Some(250),
            cpu_limit_millis: Some(1500),
            memory_limit_bytes: Some(1 << 20),
            pids_limit: Some(9),
            oom_score_adjustment: Some(1000),
        },
        ..ContainerSpec::default()
    }
}

#[test]
fn a_pod_has_its_own_network_with_ports_or_that_of_the_node() {
    let own = sandbox(&pod(), "pause", Os::Linux).unwrap();
    assert_eq!(own["Hostname"], "web-0");
    assert_eq!(own["ExposedPorts"], json!({"80/tcp": {}, "80/udp": {}}));
    let host = &own["HostConfig"];
    assert_eq!(host["NetworkMode"], "default");
    assert_eq!(host["Dns"], json!(["10.96.0.10"]));
    assert_eq!(
        host["PortBindings"]["80/udp"],
        json!([{"HostIp": "192.0.2.1", "HostPort": "8081"}])
    );
    let of_node = PodSpec {
        network: PodNetwork::Host,
        host_ipc: true,
        ..pod()
    };
    let of_node = sandbox(&of_node, "pause", Os::Linux).unwrap();
    assert_eq!(of_node["Hostname"], "");
    assert_eq!(of_node["HostConfig"]["NetworkMode"], "host");
    assert_eq!(of_node["HostConfig"]["IpcMode"], "host");
}

#[test]
fn a_container_joins_its_pod_and_keeps_to_its_limits() {
    let made = container(&spec(), &pod(), "abc", Os::Linux, None).unwrap();
    let host = &made["HostConfig"];
    assert_eq!(host["NetworkMode"], "container:abc");
    assert_eq!(host["IpcMode"], "container:abc");
    assert_eq!(host["PidMode"], "");
    assert_eq!(
        (&host["CpuQuota"], &host["CpuShares"]),
        (&json!(150_000), &json!(256))
    );
    assert_eq!(
        (&host["Memory"], &host["MemorySwap"]),
        (&json!(1 << 20), &json!(1 << 20))
    );
    assert_eq!(
        (&host["PidsLimit"], &host["OomScoreAdj"]),
        (&json!(9), &json!(1000))
    );
    assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
    assert_eq!(host["Mounts"][0]["BindOptions"]["Propagation"], "rslave");
    assert_eq!(made["Env"], json!(["A=b=c"]));
    // What the image says stays unless somebody says otherwise.
    assert!(made.get("Entrypoint").is_none() && made.get("Cmd").is_none());
    let shared = PodSpec {
        share_processes: true,
        ..pod()
    };
    let made = container(&spec(), &shared, "abc", Os::Linux, None).unwrap();
    assert_eq!(made["HostConfig"]["PidMode"], "container:abc");
}

#[test]
fn who_a_program_is_and_what_it_may_do_is_told() {
    let mut spec = spec();
    spec.security = Security {
        user: Some(33),
        group: Some(34),
        supplemental_groups: vec![50],
        privileged: true,
        read_only_root: true,
        may_gain_privileges: true,
        seccomp: Seccomp::Localhost("/profile.json".into()),
        unmasked_proc: true,
        ..Security::default()
    };
    let made = container(&spec, &pod(), "abc", Os::Linux, Some("{}")).unwrap();
    let host = &made["HostConfig"];
    assert_eq!(
        (&made["User"], &host["GroupAdd"]),
        (&json!("33:34"), &json!(["50"]))
    );
    assert_eq!(host["SecurityOpt"], json!(["seccomp={}"]));
    assert_eq!(host["MaskedPaths"], json!([]));
    assert_eq!(
        (&host["Privileged"], &host["ReadonlyRootfs"]),
        (&json!(true), &json!(true))
    );
    spec.security.user = None;
    let refusal = container(&spec, &pod(), "abc", Os::Linux, None).unwrap_err();
    assert!(matches!(refusal, RuntimeError::Invalid(_)), "{refusal}");
}

#[test]
fn a_container_of_windows_has_its_own_words() {
    let mut spec = spec();
    spec.mounts[0].host_path = "C:/pods/x".into();
    spec.security.user_name = Some("ContainerUser".to_owned());
    let made = container(&spec, &pod(), "abc", Os::Windows, None).unwrap();
    let host = &made["HostConfig"];
    assert_eq!(host["Isolation"], "process");
    assert_eq!(host["Mounts"][0]["Source"], r"C:\pods\x");
    assert_eq!(host["Mounts"][0]["Target"], r"C:\data");
    assert_eq!(host["NanoCpus"], json!(1_500_000_000_u64));
    assert_eq!(made["User"], "ContainerUser");
    for absent in ["IpcMode", "CpuQuota", "OomScoreAdj", "SecurityOpt"] {
        assert!(host.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn what_windows_cannot_do_is_refused_in_words() {
    let on_node = PodSpec {
        network: PodNetwork::Host,
        ..pod()
    };
    let shared = PodSpec {
        share_processes: true,
        ..pod()
    };
    let tuned = PodSpec {
        sysctls: [("net.x".to_owned(), "1".to_owned())].into(),
        ..pod()
    };
    for (spec, expected) in [
        (on_node, "network"),
        (shared, "processes"),
        (tuned, "sysctls"),
    ] {
        let refusal = sandbox(&spec, "pause", Os::Windows).unwrap_err();
        assert!(
            matches!(refusal, RuntimeError::NotSupported(_)),
            "{refusal}"
        );
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
    for (privileged, host_process) in [(true, false), (false, true)] {
        let mut spec = spec();
        spec.security.privileged = privileged;
        spec.security.host_process = host_process;
        let refusal = container(&spec, &pod(), "abc", Os::Windows, None).unwrap_err();
        assert!(
            matches!(refusal, RuntimeError::NotSupported(_)),
            "{refusal}"
        );
    }
}

#[test]
fn credentials_go_into_a_header_of_their_own() {
    let token = authority(&Credentials::Token("t?>".to_owned()));
    let decoded = base64::engine::general_purpose::URL_SAFE
        .decode(token)
        .unwrap();
    assert_eq!(decoded, br#"{"registrytoken":"t?>"}"#);
}
