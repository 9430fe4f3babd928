//! Tests of the fields of containers.

use super::*;

#[test]
fn fields_of_a_container_have_upstreams_faults() {
    let at = "spec.containers[0]";
    let cases = [
        (
            json!({"name": "C"}),
            vec![format!(
                "{at}.name: Invalid value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            )],
        ),
        (
            json!({"image": ""}),
            vec![format!("{at}.image: Required value")],
        ),
        (
            json!({"image": " a:1"}),
            vec![format!(
                "{at}.image: Invalid value: \" a:1\": must not have leading or trailing whitespace"
            )],
        ),
        (
            json!({"imagePullPolicy": "Often"}),
            vec![format!(
                "{at}.imagePullPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"IfNotPresent\", \"Never\""
            )],
        ),
        (
            json!({"ports": [{"containerPort": 0}]}),
            vec![format!("{at}.ports[0].containerPort: Required value")],
        ),
        (
            json!({"ports": [{"containerPort": 70000, "name": "UPPER"}]}),
            vec![
                format!(
                    "{at}.ports[0].name: Invalid value: \"UPPER\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                ),
                format!(
                    "{at}.ports[0].name: Invalid value: \"UPPER\": must contain at least one letter (a-z)"
                ),
                format!(
                    "{at}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
                ),
            ],
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]}),
            vec![format!(
                "{at}.ports[1].hostPort: Duplicate value: \"TCP//9\""
            )],
        ),
        (
            json!({"env": [{"name": "A=B"}]}),
            vec![format!(
                "{at}.env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='"
            )],
        ),
        (
            json!({"env": [{"name": "A", "value": "v", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            vec![format!(
                "{at}.env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"
            )],
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]}),
            vec![format!(
                "{at}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"metadata.labels\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\""
            )],
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]}),
            vec![format!(
                "{at}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.nothing\": error converting fieldPath: field label not supported: spec.nothing"
            )],
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "3"}}}]}),
            vec![format!(
                "{at}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"
            )],
        ),
        (
            json!({"envFrom": [{}]}),
            vec![format!(
                "{at}.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"
            )],
        ),
        (
            json!({"volumeMounts": [{"name": "none", "mountPath": "/a"}]}),
            vec![format!("{at}.volumeMounts[0].name: Not found: \"none\"")],
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": "http", "scheme": "GOPHER"}}}),
            vec![format!(
                "{at}.livenessProbe.httpGet.scheme: Unsupported value: \"GOPHER\": supported values: \"HTTP\", \"HTTPS\""
            )],
        ),
        (
            json!({"livenessProbe": {"exec": {"command": ["a"]}, "successThreshold": 2}}),
            vec![format!(
                "{at}.livenessProbe.successThreshold: Invalid value: 2: must be 1"
            )],
        ),
        (
            json!({"readinessProbe": {"tcpSocket": {"port": 1}, "exec": {"command": ["a"]}}}),
            vec![format!(
                "{at}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"
            )],
        ),
        (
            json!({"startupProbe": {}}),
            vec![format!(
                "{at}.startupProbe: Required value: must specify a handler type"
            )],
        ),
        (
            json!({"lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}),
            vec![format!(
                "{at}.lifecycle.preStop.sleep: Invalid value: 60: must be non-negative and less than terminationGracePeriodSeconds (30)"
            )],
        ),
        (
            json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}),
            vec![format!(
                "{at}.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"
            )],
        ),
        (
            json!({"resources": {"limits": {"wood": "1"}, "requests": {}}}),
            vec![
                format!(
                    "{at}.resources.limits[wood]: Invalid value: \"wood\": must be a standard resource type or fully qualified"
                ),
                format!(
                    "{at}.resources.limits[wood]: Invalid value: \"wood\": must be a standard resource for containers"
                ),
                format!(
                    "{at}.resources.requests[wood]: Invalid value: \"wood\": must be a standard resource type or fully qualified"
                ),
                format!(
                    "{at}.resources.requests[wood]: Invalid value: \"wood\": must be a standard resource for containers"
                ),
            ],
        ),
        (
            json!({"resources": {"limits": {"example.com/gpu": "1500m"}}}),
            vec![
                format!(
                    "{at}.resources.limits[example.com/gpu]: Invalid value: \"1500m\": must be an integer"
                ),
                format!(
                    "{at}.resources.requests[example.com/gpu]: Invalid value: \"1500m\": must be an integer"
                ),
            ],
        ),
        (
            json!({"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}),
            vec![format!(
                "{at}.resources: Forbidden: HugePages require cpu or memory"
            )],
        ),
        (
            json!({"securityContext": {"allowPrivilegeEscalation": false, "privileged": true}}),
            vec![format!(
                "{at}.securityContext: Invalid value: {{\"allowPrivilegeEscalation\":false,\"privileged\":true}}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            )],
        ),
        (
            json!({"resizePolicy": [{"resourceName": "disk", "restartPolicy": "NotRequired"}]}),
            vec![format!(
                "{at}.resizePolicy: Unsupported value: \"disk\": supported values: \"cpu\", \"memory\""
            )],
        ),
    ];
    for (container, expected) in cases {
        assert_eq!(create(&with_container(&container)), expected, "{container}");
    }
}
