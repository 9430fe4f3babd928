//! `kubectl create` and `kubectl apply`: by typed bodies in protobuf, by files, by the server's own
//! merge, and without any effect.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn objects_are_created_from_flags_and_files() {
    let server = Server::start();
    assert_transcript!(server, "
        kubectl create namespace shop
        kubectl create -f nodes.yaml
        kubectl create -f pod.yaml
        kubectl create deployment app --image=registry.example/app:1.0
        kubectl create configmap flags --from-literal=a=1 --from-literal=b=2
        kubectl create secret generic login --from-literal=password=swordfish
        kubectl create serviceaccount robot
        kubectl create configmap nothing --from-literal=a=1 --dry-run=server
        kubectl get configmap nothing
        kubectl create configmap flags --from-literal=a=1
        kubectl get configmap flags -o jsonpath='{.data}'
        kubectl get secret login -o jsonpath='{.data.password}' | base64 -d
        kubectl get namespace shop
    ", @r#"
    $ kubectl create namespace shop
    namespace/shop created
    $ kubectl create -f nodes.yaml
    node/linux-1 created
    node/windows-1 created
    $ kubectl create -f pod.yaml
    pod/hello created
    $ kubectl create deployment app --image=registry.example/app:1.0
    deployment.apps/app created
    $ kubectl create configmap flags --from-literal=a=1 --from-literal=b=2
    configmap/flags created
    $ kubectl create secret generic login --from-literal=password=swordfish
    secret/login created
    $ kubectl create serviceaccount robot
    serviceaccount/robot created
    $ kubectl create configmap nothing --from-literal=a=1 --dry-run=server
    configmap/nothing created (server dry run)
    $ kubectl get configmap nothing
    Error from server (NotFound): configmaps "nothing" not found
    [exit 1]
    $ kubectl create configmap flags --from-literal=a=1
    error: failed to create configmap: configmaps "flags" already exists
    [exit 1]
    $ kubectl get configmap flags -o jsonpath='{.data}'
    {"a":"1","b":"2"}
    $ kubectl get secret login -o jsonpath='{.data.password}' | base64 -d
    swordfish
    $ kubectl get namespace shop
    NAME   STATUS   AGE
    shop   Active   [age]
    "#);
    // Header, claims, signature.
    let token = server.ok("kubectl create token robot --duration=10m");
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
}

#[test]
fn apply_changes_only_what_the_file_says() {
    let server = Server::start();
    server.write("red.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: red, size: big}\n");
    assert_transcript!(server, "
        kubectl apply -f configmap.yaml
        kubectl apply -f configmap.yaml
        kubectl diff -f configmap.yaml
        kubectl diff -f red.yaml
        kubectl apply --dry-run=server -f red.yaml
        kubectl get configmap settings -o jsonpath='{.data}'
        kubectl patch configmap settings --type=merge -p '{\"data\":{\"mine\":\"yes\"}}'
        kubectl apply -f red.yaml
        kubectl apply -f configmap.yaml
        kubectl get configmap settings -o jsonpath='{.data}'
        kubectl apply -f deployment.yaml
        kubectl apply -f deployment.yaml
        kubectl apply view-last-applied configmap settings
        kubectl delete -f configmap.yaml
    ", @r#"
    $ kubectl apply -f configmap.yaml
    configmap/settings created
    $ kubectl apply -f configmap.yaml
    configmap/settings unchanged
    $ kubectl diff -f configmap.yaml
    $ kubectl diff -f red.yaml
    diff -u -N /tmp/LIVE/v1.ConfigMap.default.settings /tmp/MERGED/v1.ConfigMap.default.settings
    --- /tmp/LIVE/v1.ConfigMap.default.settings	[time]
    +++ /tmp/MERGED/v1.ConfigMap.default.settings	[time]
    @@ -1,6 +1,7 @@
     apiVersion: v1
     data:
    -  colour: blue
    +  colour: red
    +  size: big
     kind: ConfigMap
     metadata:
       annotations:
    [exit 1]
    $ kubectl apply --dry-run=server -f red.yaml
    configmap/settings configured (server dry run)
    $ kubectl get configmap settings -o jsonpath='{.data}'
    {"colour":"blue"}
    $ kubectl patch configmap settings --type=merge -p '{"data":{"mine":"yes"}}'
    configmap/settings patched
    $ kubectl apply -f red.yaml
    configmap/settings configured
    $ kubectl apply -f configmap.yaml
    configmap/settings configured
    $ kubectl get configmap settings -o jsonpath='{.data}'
    {"colour":"blue","mine":"yes"}
    $ kubectl apply -f deployment.yaml
    deployment.apps/web created
    $ kubectl apply -f deployment.yaml
    deployment.apps/web unchanged
    $ kubectl apply view-last-applied configmap settings
    apiVersion: v1
    data:
      colour: blue
    kind: ConfigMap
    metadata:
      annotations: {}
      name: settings
      namespace: default
    $ kubectl delete -f configmap.yaml
    configmap "settings" deleted
    "#);
}

#[test]
fn the_server_applies_and_knows_who_owns_a_field() {
    let server = Server::start();
    server.write(
        "red.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: red}\n",
    );
    assert_transcript!(server, "
        kubectl apply --server-side -f configmap.yaml
        kubectl apply --server-side -f configmap.yaml
        kubectl diff --server-side -f configmap.yaml
        kubectl diff --server-side -f red.yaml
        kubectl apply --server-side --field-manager=painter -f red.yaml
        kubectl apply --server-side --field-manager=painter --force-conflicts -f red.yaml
        kubectl get configmap settings -o jsonpath='{.data} {.metadata.managedFields[*].manager}' --show-managed-fields
    ", @r#"
    $ kubectl apply --server-side -f configmap.yaml
    configmap/settings serverside-applied
    $ kubectl apply --server-side -f configmap.yaml
    configmap/settings serverside-applied
    $ kubectl diff --server-side -f configmap.yaml
    $ kubectl diff --server-side -f red.yaml
    diff -u -N /tmp/LIVE/v1.ConfigMap.default.settings /tmp/MERGED/v1.ConfigMap.default.settings
    --- /tmp/LIVE/v1.ConfigMap.default.settings	[time]
    +++ /tmp/MERGED/v1.ConfigMap.default.settings	[time]
    @@ -1,6 +1,6 @@
     apiVersion: v1
     data:
    -  colour: blue
    +  colour: red
     kind: ConfigMap
     metadata:
       creationTimestamp: "[time]"
    [exit 1]
    $ kubectl apply --server-side --field-manager=painter -f red.yaml
    error: Apply failed with 1 conflict: conflict with "kubectl": .data.colour
    Please review the fields above--they currently have other managers. Here
    are the ways you can resolve this warning:
    * If you intend to manage all of these fields, please re-run the apply
      command with the `--force-conflicts` flag.
    * If you do not intend to manage all of the fields, please edit your
      manifest to remove references to the fields that should keep their
      current managers.
    * You may co-own fields by updating your manifest to match the existing
      value; in this case, you'll become the manager if the other manager(s)
      stop managing the field (remove it from their configuration).
    See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    [exit 1]
    $ kubectl apply --server-side --field-manager=painter --force-conflicts -f red.yaml
    configmap/settings serverside-applied
    $ kubectl get configmap settings -o jsonpath='{.data} {.metadata.managedFields[*].manager}' --show-managed-fields
    {"colour":"red"} painter
    "#);
}

#[test]
fn custom_resources_follow_their_definition() {
    let server = Server::start();
    server.write("huge.yaml", "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: huge}\nspec: {size: huge, count: -1}\n");
    server.write("odd.yaml", "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: odd}\nspec: {size: large, colour: red}\nstatus: {phase: Done}\n");
    assert_transcript!(server, "
        kubectl create -f widgets.yaml
        kubectl wait --for=condition=Established crd/widgets.example.org --timeout=50s
        kubectl get crd
        kubectl create -f widget.yaml
        kubectl get wd
        kubectl create -f huge.yaml
        kubectl create -f odd.yaml
        kubectl create -f odd.yaml --validate=ignore
        kubectl get widget odd -o jsonpath='{.spec} {.status}'
        kubectl patch widget first --subresource=status --type=merge -p '{\"status\":{\"phase\":\"Ready\"}}'
        kubectl scale widget first --replicas=3
        kubectl get widgets
        kubectl explain widget.spec
        kubectl apply -f widget.yaml
        kubectl delete widget first odd
    ", @r#"
    $ kubectl create -f widgets.yaml
    customresourcedefinition.apiextensions.k8s.io/widgets.example.org created
    $ kubectl wait --for=condition=Established crd/widgets.example.org --timeout=50s
    customresourcedefinition.apiextensions.k8s.io/widgets.example.org condition met
    $ kubectl get crd
    NAME                  CREATED AT
    widgets.example.org   [time]
    $ kubectl create -f widget.yaml
    widget.example.org/first created
    $ kubectl get wd
    NAME    SIZE    COUNT   PHASE
    first   small   1
    $ kubectl create -f huge.yaml
    The Widget "huge" is invalid:
    * spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0
    * spec.size: Unsupported value: "huge": supported values: "small", "large"
    [exit 1]
    $ kubectl create -f odd.yaml
    Error from server (BadRequest): error when creating "odd.yaml": Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.colour"
    [exit 1]
    $ kubectl create -f odd.yaml --validate=ignore
    widget.example.org/odd created
    $ kubectl get widget odd -o jsonpath='{.spec} {.status}'
    {"count":1,"size":"large"}
    $ kubectl patch widget first --subresource=status --type=merge -p '{"status":{"phase":"Ready"}}'
    widget.example.org/first patched
    $ kubectl scale widget first --replicas=3
    widget.example.org/first scaled
    $ kubectl get widgets
    NAME    SIZE    COUNT   PHASE
    first   small   3       Ready
    odd     large   1
    $ kubectl explain widget.spec
    GROUP:      example.org
    KIND:       Widget
    VERSION:    v1

    FIELD: spec <Object>


    DESCRIPTION:
        <empty>
    FIELDS:
      count	<integer>
        <no description>

      size	<string> -required-
      enum: small, large
        <no description>


    $ kubectl apply -f widget.yaml
    Warning: resource widgets/first is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
    widget.example.org/first configured
    $ kubectl delete widget first odd
    widget.example.org "first" deleted
    widget.example.org "odd" deleted
    "#);
}
