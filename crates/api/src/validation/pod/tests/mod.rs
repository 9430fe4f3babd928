//! Tests of the rules for pods: each row changes a right pod and names the faults that follow.

mod containers;
mod updates;
mod windows;

use serde_json::{Value, json};

use crate::{defaults, validation};

fn base() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}], "serviceAccountName": "default"},
    })
}

fn changed(mut pod: Value, patch: &Value) -> Value {
    json_patch::merge(&mut pod, patch);
    defaults::apply("", "v1", "Pod", &mut pod);
    pod
}

fn with_spec(spec: &Value) -> Value {
    changed(base(), &json!({"spec": spec}))
}

/// A pod whose one container has these fields too.
fn with_container(container: &Value) -> Value {
    let mut full = json!({"name": "c", "image": "nginx:1"});
    json_patch::merge(&mut full, container);
    with_spec(&json!({"containers": [full]}))
}

fn texts(faults: &[crate::field::FieldError]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn create(pod: &Value) -> Vec<String> {
    texts(&validation::create("", "Pod", pod))
}

fn update(new: &Value, old: &Value) -> Vec<String> {
    texts(&validation::update("", "Pod", new, old))
}

#[test]
fn a_small_pod_is_right() {
    assert_eq!(create(&with_spec(&json!({}))), Vec::<String>::new());
}

#[test]
fn nothing_at_all_is_refused_without_panic() {
    assert!(!create(&json!({})).is_empty());
    assert!(!create(&Value::Null).is_empty());
    assert!(!update(&json!({"spec": "text"}), &json!([])).is_empty());
    for subresource in ["resize", "ephemeralcontainers", "binding"] {
        let faults = validation::subresource("Pod", subresource, &json!({}), &json!(3));
        assert!(!faults.is_empty(), "{subresource}");
    }
    assert!(!validation::status("", "Pod", &json!([]), &json!({})).is_empty());
}

#[test]
fn fields_of_the_spec_have_upstreams_faults() {
    let cases = [
        (
            json!({"containers": []}),
            vec!["spec.containers: Required value"],
        ),
        (
            json!({"restartPolicy": "Sometimes"}),
            vec![
                r#"spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never""#,
            ],
        ),
        (
            json!({"dnsPolicy": "None"}),
            vec![
                "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
            ],
        ),
        (
            json!({"dnsConfig": {"nameservers": ["1.2.3.4.5"]}}),
            vec![
                r#"spec.dnsConfig.nameservers[0]: Invalid value: "1.2.3.4.5": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            ],
        ),
        (
            json!({"activeDeadlineSeconds": 0}),
            vec![
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ],
        ),
        (
            json!({"hostname": "a.b"}),
            vec![r#"spec.hostname: Invalid value: "a.b": must not contain dots"#],
        ),
        (
            json!({"nodeName": "Not_A_Node"}),
            vec![
                r#"spec.nodeName: Invalid value: "Not_A_Node": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
            ],
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
            vec![
                r#"spec.tolerations[0].operator: Invalid value: "b": value must be empty when `operator` is 'Exists'"#,
            ],
        ),
        (
            json!({"tolerations": [{"operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]}),
            vec![
                r#"spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when `tolerationSeconds` is set"#,
            ],
        ),
        (
            json!({"hostUsers": false, "hostPID": true}),
            vec!["spec.HostPID: Forbidden: when `pod.Spec.HostUsers` is false"],
        ),
        (
            json!({"schedulingGates": [{"name": "a"}, {"name": "a"}]}),
            vec![r#"spec.schedulingGates[1]: Duplicate value: "a""#],
        ),
        (
            json!({"schedulingGates": [{"name": "a"}], "nodeName": "n"}),
            vec![
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            ],
        ),
        (
            json!({"topologySpreadConstraints": [{"maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}]}),
            vec![
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            ],
        ),
        (
            json!({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["_a"]}]}),
            vec![
                r#"spec.hostAliases[0].hostnames[0]: Invalid value: "_a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
            ],
        ),
        (
            json!({"preemptionPolicy": "Maybe"}),
            vec![
                r#"spec.preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never""#,
            ],
        ),
        (
            json!({"securityContext": {"runAsUser": -1}}),
            vec![
                "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 4294967295, inclusive",
            ],
        ),
        (
            json!({"securityContext": {"sysctls": [{"name": "net.a", "value": "1"}]}, "hostNetwork": true}),
            vec![
                r#"spec.securityContext.sysctls[0].name: Invalid value: "net.a": may not be specified when 'hostNetwork' is true"#,
            ],
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Localhost"}}}),
            vec![
                "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
            ],
        ),
        (
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}),
            vec![
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
            ],
        ),
        (
            json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}
            ]}}}),
            vec![
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
            ],
        ),
        (
            json!({"ephemeralContainers": [{"name": "d", "image": "a:1", "resources": {}}]}),
            vec!["spec.ephemeralContainers: Forbidden: cannot be set on create"],
        ),
        (
            json!({"overhead": {"cpu": "-1"}}),
            vec![
                r#"spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0"#,
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(create(&with_spec(&spec)), expected, "{spec}");
    }
}

#[test]
fn volumes_have_upstreams_faults() {
    let at = "spec.volumes[0]";
    let cases = [
        (
            json!({"name": "v", "secret": {}}),
            vec![format!("{at}.secret.secretName: Required value")],
        ),
        (
            json!({"name": "v", "configMap": {"name": "a", "defaultMode": 0o1000}}),
            vec![format!(
                "{at}.configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"
            )],
        ),
        (
            json!({"name": "v", "configMap": {"name": "a", "items": [{"key": "k", "path": "../x"}]}}),
            vec![format!(
                "{at}.configMap.items[0].path: Invalid value: \"../x\": must not contain '..'"
            )],
        ),
        (
            json!({"name": "v", "hostPath": {"path": "/a/../b"}}),
            vec![format!(
                "{at}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"
            )],
        ),
        (
            json!({"name": "v", "hostPath": {"path": "C:\\a\\..\\b"}}),
            vec![format!(
                "{at}.hostPath.path: Invalid value: \"C:\\\\a\\\\..\\\\b\": must not contain '..'"
            )],
        ),
        (
            json!({"name": "v", "emptyDir": {"sizeLimit": "-1"}}),
            vec![format!(
                "{at}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"
            )],
        ),
        (
            json!({"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}),
            vec![format!(
                "{at}.hostPath: Forbidden: may not specify more than 1 volume type"
            )],
        ),
        (
            json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1}}]}}),
            vec![format!(
                "{at}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes"
            )],
        ),
        (
            json!({"name": "v", "nfs": {"server": "s", "path": "a"}}),
            vec![format!(
                "{at}.nfs.path: Invalid value: \"a\": must be an absolute path"
            )],
        ),
        (
            json!({"name": "v", "iscsi": {"targetPortal": "a", "iqn": "iqn.2001-4.x:y", "lun": 256}}),
            vec![
                format!("{at}.iscsi.iqn: Invalid value: \"iqn.2001-4.x:y\": must be valid format"),
                format!("{at}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"),
            ],
        ),
        (
            json!({"name": "v", "csi": {"driver": "-"}}),
            vec![format!(
                "{at}.csi.driver: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            )],
        ),
        (
            json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}),
            vec![format!(
                "{at}.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"
            )],
        ),
        (
            json!({"emptyDir": {}}),
            vec![format!("{at}.name: Required value")],
        ),
    ];
    for (volume, expected) in cases {
        assert_eq!(
            create(&with_spec(&json!({"volumes": [volume]}))),
            expected,
            "{volume}"
        );
    }
}

#[test]
fn init_containers_have_no_probes_unless_they_stay() {
    let container =
        json!({"name": "i", "image": "a:1", "livenessProbe": {"exec": {"command": ["a"]}}});
    assert_eq!(
        create(&with_spec(&json!({"initContainers": [container]}))),
        [
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"
        ]
    );
    let mut sidecar = container;
    sidecar["restartPolicy"] = json!("Always");
    assert_eq!(
        create(&with_spec(&json!({"initContainers": [sidecar]}))),
        Vec::<String>::new()
    );
}

#[test]
fn a_token_needs_an_account() {
    let mut pod = with_spec(&json!({"volumes": [
        {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    ]}));
    pod["spec"]["serviceAccountName"] = json!("");
    assert_eq!(
        create(&pod),
        [
            "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"
        ]
    );
}
