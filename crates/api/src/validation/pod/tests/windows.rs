//! Tests of what depends on the operating system of a pod.

use super::*;

#[test]
fn an_unknown_system_is_refused() {
    assert_eq!(
        create(&with_spec(&json!({"os": {"name": "plan9"}}))),
        [r#"spec.os: Unsupported value: "plan9": supported values: "linux", "windows""#]
    );
    assert_eq!(
        create(&with_spec(&json!({"os": {}}))),
        ["spec.os.name: Required value: cannot be empty"]
    );
}

#[test]
fn a_windows_pod_has_nothing_of_linux() {
    let cases = [
        ("hostPID", json!({"hostPID": true})),
        ("hostIPC", json!({"hostIPC": true})),
        ("hostUsers", json!({"hostUsers": true})),
        (
            "shareProcessNamespace",
            json!({"shareProcessNamespace": false}),
        ),
        (
            "securityContext.seLinuxOptions",
            json!({"securityContext": {"seLinuxOptions": {}}}),
        ),
        (
            "securityContext.appArmorProfile",
            json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
        ),
        (
            "securityContext.seccompProfile",
            json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
        ),
        (
            "securityContext.fsGroup",
            json!({"securityContext": {"fsGroup": 1}}),
        ),
        (
            "securityContext.fsGroupChangePolicy",
            json!({"securityContext": {"fsGroupChangePolicy": "Always"}}),
        ),
        (
            "securityContext.sysctls",
            json!({"securityContext": {"sysctls": [{"name": "a", "value": "b"}]}}),
        ),
        (
            "securityContext.runAsUser",
            json!({"securityContext": {"runAsUser": 1}}),
        ),
        (
            "securityContext.runAsGroup",
            json!({"securityContext": {"runAsGroup": 1}}),
        ),
        (
            "securityContext.supplementalGroups",
            json!({"securityContext": {"supplementalGroups": [1]}}),
        ),
        (
            "securityContext.supplementalGroupsPolicy",
            json!({"securityContext": {"supplementalGroupsPolicy": "Merge"}}),
        ),
        (
            "securityContext.seLinuxChangePolicy",
            json!({"securityContext": {"seLinuxChangePolicy": "Recursive"}}),
        ),
    ];
    for (field, mut spec) in cases {
        assert_eq!(create(&with_spec(&spec)), Vec::<String>::new(), "{field}");
        spec["os"] = json!({"name": "windows"});
        assert_eq!(
            create(&with_spec(&spec)),
            [format!(
                "spec.{field}: Forbidden: cannot be set for a windows pod"
            )]
        );
    }
}

#[test]
fn a_windows_container_has_nothing_of_linux() {
    let contexts = [
        ("capabilities", json!({"add": ["A"]})),
        ("readOnlyRootFilesystem", json!(false)),
        ("privileged", json!(false)),
        ("allowPrivilegeEscalation", json!(true)),
        ("procMount", json!("Default")),
        ("runAsUser", json!(1)),
        ("runAsGroup", json!(1)),
        ("seLinuxOptions", json!({})),
        ("seccompProfile", json!({"type": "Unconfined"})),
        ("appArmorProfile", json!({"type": "Unconfined"})),
    ];
    for (field, value) in contexts {
        let mut pod = with_container(&json!({"securityContext": {field: value}}));
        assert_eq!(create(&pod), Vec::<String>::new(), "{field}");
        pod["spec"]["os"] = json!({"name": "windows"});
        assert_eq!(
            create(&pod),
            [format!(
                "spec.containers[0].securityContext.{field}: Forbidden: cannot be set for a windows pod"
            )]
        );
    }
}

#[test]
fn a_linux_pod_has_no_windows_options() {
    let spec = json!({"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}});
    assert_eq!(
        create(&with_spec(&spec)),
        [
            "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"
        ]
    );
}

#[test]
fn processes_of_the_host_are_all_or_none_and_on_its_network() {
    let spec = json!({
        "securityContext": {"windowsOptions": {"hostProcess": true}},
        "containers": [
            {"name": "a", "image": "a:1"},
            {"name": "b", "image": "a:1", "securityContext": {"windowsOptions": {"hostProcess": false}}},
        ],
    });
    assert_eq!(
        create(&with_spec(&spec)),
        [
            "spec.containers[1].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true",
            r#"spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers"#,
            "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers",
        ]
    );
    let right = json!({
        "hostNetwork": true,
        "os": {"name": "windows"},
        "securityContext": {"windowsOptions": {"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
    });
    assert_eq!(create(&with_spec(&right)), Vec::<String>::new());
}

#[test]
fn user_names_have_the_form_of_windows() {
    let long = format!("{}\\a", "d".repeat(300));
    let cases = [
        ("Administrator", None),
        ("DOMAIN\\user", None),
        ("a.example\\user", None),
        ("", Some("runAsUserName cannot be an empty string")),
        (
            "a\tb",
            Some("runAsUserName cannot contain control characters"),
        ),
        (
            "a\\b\\c",
            Some("runAsUserName cannot contain more than one backslash"),
        ),
        ("a\\", Some("runAsUserName's User cannot be empty")),
        (
            "..",
            Some("runAsUserName's User cannot contain only periods or spaces"),
        ),
        (
            "a:b",
            Some(
                "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
            ),
        ),
        (
            "a<b\\c",
            Some("runAsUserName's Domain doesn't match the NetBios nor the DNS format"),
        ),
        (
            long.as_str(),
            Some("runAsUserName's Domain length must be under 256 characters"),
        ),
    ];
    for (name, expected) in cases {
        let spec = json!({"securityContext": {"windowsOptions": {"runAsUserName": name}}});
        let faults = create(&with_spec(&spec));
        match expected {
            None => assert_eq!(faults, Vec::<String>::new(), "{name}"),
            Some(detail) => assert!(
                faults.first().is_some_and(|fault| fault.ends_with(detail)),
                "{name}: {faults:?}"
            ),
        }
    }
}

#[test]
fn a_credential_spec_has_a_limit() {
    let spec =
        json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpec": "x".repeat(65537)}}});
    let faults = create(&with_spec(&spec));
    assert_eq!(faults.len(), 1);
    assert!(faults[0].ends_with("gmsaCredentialSpec size must be under 64 KiB"));
}

#[test]
fn windows_pods_cannot_be_resized() {
    let pod = with_spec(&json!({"os": {"name": "windows"}}));
    let faults = validation::subresource("Pod", "resize", &pod, &pod);
    assert_eq!(
        texts(&faults),
        ["<nil>: Forbidden: windows pods cannot be resized"]
    );
}

#[test]
fn the_status_of_a_windows_container_has_no_linux_user() {
    let mut pod = with_spec(&json!({"os": {"name": "windows"}}));
    pod["status"] =
        json!({"containerStatuses": [{"name": "c", "user": {"linux": {"uid": 1, "gid": 1}}}]});
    assert_eq!(
        texts(&validation::status("", "Pod", &pod, &pod)),
        ["status.containerStatuses[0].linux: Forbidden: cannot be set for a windows pod"]
    );
}
