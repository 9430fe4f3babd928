//! What people get told when something is wrong with what they sent.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn bad_objects_are_refused_with_the_place_of_the_mistake() {
    let server = Server::start();
    server.write(
        "unknown.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, lables: {}}\ndta: {a: b}\n",
    );
    server.write("pod-bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: Hello_1}\nspec: {restartPolicy: Sometimes, containers: [{name: a_b, image: x, ports: [{containerPort: 70000}]}]}\n");
    server.write(
        "empty.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: empty}\nspec: {}\n",
    );
    server.write(
        "types.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}\n",
    );
    server.write(
        "kind.yaml",
        "apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n",
    );
    assert_transcript!(server, "
        kubectl create -f unknown.yaml
        kubectl create -f unknown.yaml --validate=warn
        kubectl create -f pod-bad.yaml
        kubectl create -f empty.yaml
        kubectl create -f types.yaml
        kubectl create -f kind.yaml --validate=false
        kubectl create configmap UPPER --from-literal=a=1
        kubectl create namespace kube-system
        kubectl -n nowhere create configmap a --from-literal=a=1
    ", @r#"
    $ kubectl create -f unknown.yaml
    Error from server (BadRequest): error when creating "unknown.yaml": ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta", unknown field "metadata.lables"
    [exit 1]
    $ kubectl create -f unknown.yaml --validate=warn
    Warning: unknown field "dta"
    Warning: unknown field "metadata.lables"
    configmap/a created
    $ kubectl create -f pod-bad.yaml
    The Pod "Hello_1" is invalid:
    * metadata.name: Invalid value: "Hello_1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
    * spec.containers[0].name: Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
    * spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive
    * spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"
    [exit 1]
    $ kubectl create -f empty.yaml
    The Pod "empty" is invalid: spec.containers: Required value
    [exit 1]
    $ kubectl create -f types.yaml
    Error from server (BadRequest): error when creating "types.yaml": ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string
    [exit 1]
    $ kubectl create -f kind.yaml --validate=false
    error: resource mapping not found for name: "a" namespace: "" from "kind.yaml": no matches for kind "Nonsense" in version "v1"
    ensure CRDs are installed first
    [exit 1]
    $ kubectl create configmap UPPER --from-literal=a=1
    error: failed to create configmap: ConfigMap "UPPER" is invalid: metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
    [exit 1]
    $ kubectl create namespace kube-system
    Error from server (AlreadyExists): namespaces "kube-system" already exists
    [exit 1]
    $ kubectl -n nowhere create configmap a --from-literal=a=1
    error: failed to create configmap: namespaces "nowhere" not found
    [exit 1]
    "#);
}

#[test]
fn missing_and_conflicting_objects_are_named() {
    let server = Server::start();
    server.ok("kubectl create -f configmap.yaml");
    server.ok("kubectl get configmap settings -o yaml > old.yaml");
    server.ok("kubectl label configmap settings changed=yes");
    server.write("uid.yaml", &server.ok("sed 's/uid: .*/uid: 00000000-0000-0000-0000-000000000000/; /resourceVersion/d' old.yaml"));
    assert_transcript!(server, "
        kubectl get configmap nobody
        kubectl get nonsense
        kubectl delete configmap nobody
        kubectl label configmap nobody a=b
        kubectl replace -f old.yaml
        kubectl replace -f uid.yaml
        kubectl create -f configmap.yaml
        kubectl get --raw /api/v1/nonsense
        kubectl get --raw /nonsense
        kubectl get pods --field-selector spec.nonsense=1
        kubectl get pods -l 'a in (b'
    ", @r#"
    $ kubectl get configmap nobody
    Error from server (NotFound): configmaps "nobody" not found
    [exit 1]
    $ kubectl get nonsense
    error: the server doesn't have a resource type "nonsense"
    [exit 1]
    $ kubectl delete configmap nobody
    Error from server (NotFound): configmaps "nobody" not found
    [exit 1]
    $ kubectl label configmap nobody a=b
    Error from server (NotFound): configmaps "nobody" not found
    [exit 1]
    $ kubectl replace -f old.yaml
    Error from server (Conflict): error when replacing "old.yaml": Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again
    [exit 1]
    $ kubectl replace -f uid.yaml
    Error from server (Conflict): error when replacing "uid.yaml": Operation cannot be fulfilled on configmaps "settings": Precondition failed: UID in precondition: [uid], UID in object meta: [uid]
    [exit 1]
    $ kubectl create -f configmap.yaml
    Error from server (AlreadyExists): error when creating "configmap.yaml": configmaps "settings" already exists
    [exit 1]
    $ kubectl get --raw /api/v1/nonsense
    Error from server (NotFound): the server could not find the requested resource
    [exit 1]
    $ kubectl get --raw /nonsense
    Error from server (NotFound): the server could not find the requested resource
    [exit 1]
    $ kubectl get pods --field-selector spec.nonsense=1
    Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.nonsense=1": field label not supported: spec.nonsense
    [exit 1]
    $ kubectl get pods -l 'a in (b'
    Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "a in (b", field selector "": unable to parse requirement: found '', expected: ',' or ')'
    [exit 1]
    "#);
}
