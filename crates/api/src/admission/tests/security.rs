//! Tests of the levels of pod security.

use super::*;

fn with_labels(labels: &Value) -> World {
    let mut world = World::new();
    world.add(
        "",
        "Namespace",
        &json!({
            "metadata": {"name": "default", "labels": labels}, "status": {"phase": "Active"},
        }),
    );
    world
}

fn enforcing(level: &str) -> World {
    with_labels(&json!({"pod-security.kubernetes.io/enforce": level}))
}

fn hardened() -> Value {
    json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "i:1", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        }}],
    })
}

#[test]
fn a_plain_pod_is_not_restricted_enough() {
    assert_eq!(
        enforcing("restricted").refused(&mut pod(&json!({}))),
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
}

#[test]
fn a_hardened_pod_passes_every_level() {
    for level in ["privileged", "baseline", "restricted"] {
        assert!(
            enforcing(level).run(&mut pod(&hardened())).is_ok(),
            "{level}"
        );
    }
}

#[test]
fn a_windows_pod_need_not_have_what_only_linux_has() {
    let mut request =
        pod(&json!({"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true}}));
    assert!(enforcing("restricted").run(&mut request).is_ok());
    let mut root = pod(&json!({"os": {"name": "windows"}}));
    assert_eq!(
        enforcing("restricted").refused(&mut root),
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)"
    );
}

#[test]
fn baseline_refuses_known_ways_to_more_power() {
    let container = |context: Value| json!({"containers": [{"name": "c", "image": "i:1", "securityContext": context}]});
    let cases = [
        (
            json!({"hostNetwork": true, "hostPID": true}),
            "host namespaces (hostNetwork=true, hostPID=true)",
        ),
        (
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
            "hostPath volumes (volume \"v\")",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 1, "hostPort": 80}]}]}),
            "hostPort (container \"c\" uses hostPort 80)",
        ),
        (
            container(json!({"privileged": true})),
            "privileged (container \"c\" must not set securityContext.privileged=true)",
        ),
        (
            container(json!({"capabilities": {"add": ["SYS_ADMIN"]}})),
            "non-default capabilities (container \"c\" must not include \"SYS_ADMIN\" in securityContext.capabilities.add)",
        ),
        (
            container(json!({"procMount": "Unmasked"})),
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            container(json!({"seccompProfile": {"type": "Unconfined"}})),
            "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            container(json!({"appArmorProfile": {"type": "Unconfined"}})),
            "forbidden AppArmor profile (container \"c\" must not set AppArmor profile type to \"Unconfined\")",
        ),
        (
            json!({"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u"}}}),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"hostNetwork": true, "securityContext": {"windowsOptions": {"hostProcess": true}}}),
            "host namespaces (hostNetwork=true), hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(
            enforcing("baseline").refused(&mut pod(&spec)),
            format!(
                "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": {expected}"
            )
        );
        assert!(enforcing("privileged").run(&mut pod(&spec)).is_ok());
    }
}

#[test]
fn a_probe_that_asks_another_host_is_refused() {
    let mut request = pod(&json!({"containers": [{
        "name": "c", "image": "i:1", "livenessProbe": {"httpGet": {"port": 1, "host": "10.0.0.9"}},
    }]}));
    assert_eq!(
        enforcing("baseline").refused(&mut request),
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": probe or lifecycle host (container \"c\" uses probe or lifecycle host \"10.0.0.9\")"
    );
}

#[test]
fn a_pod_with_users_of_its_own_may_be_root_inside() {
    let mut spec = hardened();
    json_patch::merge(
        &mut spec,
        &json!({"hostUsers": false, "securityContext": {"runAsUser": 0, "runAsNonRoot": null}}),
    );
    assert!(enforcing("restricted").run(&mut pod(&spec)).is_ok());
}

#[test]
fn restricted_refuses_more() {
    let changed = |patch: &Value| {
        let mut spec = hardened();
        json_patch::merge(&mut spec, patch);
        spec
    };
    let cases = [
        (
            json!({"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]}),
            "restricted volume types (volume \"v\" uses restricted volume type \"nfs\")",
        ),
        (
            json!({"securityContext": {"runAsUser": 0}}),
            "runAsUser=0 (pod must not set runAsUser=0)",
        ),
        (
            json!({"securityContext": {"runAsNonRoot": false}}),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
    ];
    for (patch, expected) in cases {
        assert_eq!(
            enforcing("restricted").refused(&mut pod(&changed(&patch))),
            format!(
                "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": {expected}"
            )
        );
    }
}

#[test]
fn warnings_and_audits_do_not_refuse() {
    let world = with_labels(&json!({
        "pod-security.kubernetes.io/warn": "baseline",
        "pod-security.kubernetes.io/warn-version": "v1.30",
        "pod-security.kubernetes.io/audit": "baseline",
    }));
    let outcome = world
        .run(&mut pod(&json!({"hostPID": true})))
        .expect("accepted");
    assert_eq!(
        outcome.warnings,
        ["would violate PodSecurity \"baseline:v1.30\": host namespaces (hostPID=true)"]
    );
    assert_eq!(
        outcome.audit,
        [(
            "pod-security.kubernetes.io/audit-violations".to_owned(),
            "would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"
                .to_owned()
        )]
    );
}

#[test]
fn a_workload_is_warned_about_and_not_refused() {
    let world = with_labels(&json!({
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "baseline",
    }));
    let mut request = create(
        "apps",
        "Deployment",
        "deployments",
        json!({
            "metadata": {"name": "d", "namespace": "default"},
            "spec": {"template": {"spec": {"hostIPC": true}}},
        }),
    );
    let outcome = world.run(&mut request).expect("accepted");
    assert_eq!(
        outcome.warnings,
        ["would violate PodSecurity \"baseline:latest\": host namespaces (hostIPC=true)"]
    );
}

#[test]
fn an_update_that_changes_nothing_here_is_not_judged_again() {
    let world = enforcing("restricted");
    let mut request = pod(&json!({}));
    request.operation = Operation::Update;
    request.old = Some(Arc::new(request.object.clone()));
    request.object["metadata"]["labels"] = json!({"a": "b"});
    // Tolerations that were added at creation are there in both.
    let tolerations = json!([{"operator": "Exists"}]);
    request.object["spec"]["tolerations"] = tolerations.clone();
    let mut old = request.object.clone();
    old["metadata"]["labels"] = json!({});
    request.old = Some(Arc::new(old));
    assert!(world.run(&mut request).is_ok());
}

#[test]
fn a_level_that_does_not_exist_is_refused_on_the_namespace() {
    let mut request = create(
        "",
        "Namespace",
        "namespaces",
        json!({"metadata": {
            "name": "n", "labels": {"pod-security.kubernetes.io/enforce": "strict"},
        }}),
    );
    assert_eq!(
        World::new().refused(&mut request),
        "Namespace \"n\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted"
    );
}

#[test]
fn a_level_of_a_version_has_the_rules_of_that_version() {
    let pinned = |level: &str, version: &str| {
        with_labels(&json!({
            "pod-security.kubernetes.io/enforce": level,
            "pod-security.kubernetes.io/enforce-version": version,
        }))
    };
    let sysctl =
        |name: &str| json!({"securityContext": {"sysctls": [{"name": name, "value": "1"}]}});
    let mut old = hardened();
    json_patch::merge(
        &mut old,
        &json!({"containers": [{"name": "c", "image": "i:1", "securityContext": {"allowPrivilegeEscalation": false}}]}),
    );
    let host = json!({"containers": [{
        "name": "c", "image": "i:1", "livenessProbe": {"httpGet": {"port": 1, "host": "10.0.0.9"}},
    }]});
    for (level, spec, before, since, fits_before) in [
        (
            "baseline",
            sysctl("net.ipv4.tcp_rmem"),
            "v1.31",
            "v1.32",
            false,
        ),
        (
            "baseline",
            sysctl("net.ipv4.ip_local_reserved_ports"),
            "v1.26",
            "v1.27",
            false,
        ),
        ("baseline", host, "v1.33", "v1.34", true),
        ("restricted", old, "v1.21", "v1.22", true),
    ] {
        let is_accepted = |version| pinned(level, version).run(&mut pod(&spec)).is_ok();
        assert_eq!(is_accepted(before), fits_before, "{spec} {before}");
        assert_eq!(is_accepted(since), !fits_before, "{spec} {since}");
        assert_eq!(is_accepted("latest"), !fits_before, "{spec}");
    }
}

#[test]
fn who_raises_a_level_is_told_of_pods_that_would_not_come_back() {
    let mut world = World::new();
    for (name, spec) in [
        ("a", json!({"hostPID": true})),
        ("b", json!({"hostPID": true})),
        (
            "c",
            json!({"containers": [{"name": "c", "securityContext": {"privileged": true}}]}),
        ),
        ("fine", json!({})),
    ] {
        let pod = json!({"metadata": {"name": name, "namespace": "n"}, "spec": spec});
        world.add("", "Pod", &pod);
    }
    let namespace = |level: &str| json!({"metadata": {"name": "n", "labels": {"pod-security.kubernetes.io/enforce": level}}});
    let warnings = |from: &str, to: &str| {
        let mut request = create("", "Namespace", "namespaces", namespace(to));
        request.operation = Operation::Update;
        request.old = Some(Arc::new(namespace(from)));
        world.run(&mut request).expect("accepted").warnings
    };
    assert_eq!(
        warnings("privileged", "baseline"),
        [
            "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 1 other pod): host namespaces",
            "c: privileged",
        ]
    );
    assert_eq!(warnings("restricted", "baseline"), Vec::<String>::new());
    assert_eq!(warnings("baseline", "baseline"), Vec::<String>::new());
    assert_eq!(warnings("baseline", "privileged"), Vec::<String>::new());
}
