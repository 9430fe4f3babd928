//! What the controllers beside the server do: namespaces that empty themselves, accounts in new ones,
//! objects that go with their owners.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn a_namespace_is_deleted_with_all_that_is_in_it() {
    let server = Server::start();
    server.ok("kubectl create namespace shop");
    server.ok("kubectl wait --for=create -n shop serviceaccount/default --timeout=50s");
    server.write("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: shop, finalizers: [example.org/hold]}\n");
    assert_transcript!(server, "
        kubectl create token default -n shop | cut -c1-2
        kubectl create configmap one --from-literal=a=1 -n shop
        kubectl create -f held.yaml
        kubectl delete namespace shop --timeout=4s
        kubectl create configmap two --from-literal=a=1 -n shop
        kubectl get namespace shop -o jsonpath='{.status.phase}'
        kubectl patch configmap held -n shop --type=merge -p '{\"metadata\":{\"finalizers\":null}}'
        kubectl delete namespace default
    ", @r#"
    $ kubectl create token default -n shop | cut -c1-2
    ey
    $ kubectl create configmap one --from-literal=a=1 -n shop
    configmap/one created
    $ kubectl create -f held.yaml
    configmap/held created
    $ kubectl delete namespace shop --timeout=4s
    namespace "shop" deleted
    error: timed out waiting for the condition on namespaces/shop
    [exit 1]
    $ kubectl create configmap two --from-literal=a=1 -n shop
    error: failed to create configmap: configmaps "two" is forbidden: unable to create new content in namespace shop because it is being terminated
    [exit 1]
    $ kubectl get namespace shop -o jsonpath='{.status.phase}'
    Terminating
    $ kubectl patch configmap held -n shop --type=merge -p '{"metadata":{"finalizers":null}}'
    configmap/held patched
    $ kubectl delete namespace default
    Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted
    [exit 1]
    "#);
    server.ok("kubectl wait --for=delete namespace/shop --timeout=50s");
    assert_eq!(server.ok("kubectl get configmaps -n shop -o name"), "");
}

/// A config map that belongs to the config map `owner`, and that a deletion in the foreground waits for.
fn create_owned(server: &Server, name: &str) {
    let uid = server.ok("kubectl get configmap owner -o jsonpath={.metadata.uid}");
    server.write("owned.yaml", &format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]\n"));
    server.ok("kubectl create -f owned.yaml");
}

#[test]
fn what_somebody_owns_goes_with_its_owner() {
    let server = Server::start();
    server.ok("kubectl create configmap owner --from-literal=a=1");
    create_owned(&server, "owned");
    server.ok("kubectl delete configmap owner");
    server.ok("kubectl wait --for=delete configmap/owned --timeout=50s");
    let (text, code) = server.shell("kubectl get configmap owned");
    assert_eq!(code, 1, "{text}");
}

#[test]
fn what_is_orphaned_stays_without_an_owner() {
    let server = Server::start();
    server.ok("kubectl create configmap owner --from-literal=a=1");
    create_owned(&server, "kept");
    server.ok("kubectl delete configmap owner --cascade=orphan");
    let owners = server.ok("kubectl get configmap kept -o jsonpath='{.metadata.ownerReferences}'");
    assert_eq!(owners, "");
}

#[test]
fn the_foreground_waits_for_what_is_owned() {
    let server = Server::start();
    server.ok("kubectl create configmap owner --from-literal=a=1");
    create_owned(&server, "owned");
    server.ok("kubectl delete configmap owner --cascade=foreground --timeout=50s");
    let (text, code) = server.shell("kubectl get configmap owned");
    assert_eq!(code, 1, "{text}");
}

#[test]
fn custom_objects_go_with_their_definition() {
    let server = Server::start();
    server.ok("kubectl create -f widgets.yaml");
    server.ok("kubectl wait --for=condition=Established crd/widgets.example.org --timeout=50s");
    server.ok("kubectl create -f widget.yaml");
    server.ok("kubectl delete crd widgets.example.org --timeout=50s");
    server.ok("kubectl create -f widgets.yaml");
    server.ok("kubectl wait --for=condition=Established crd/widgets.example.org --timeout=50s");
    assert_eq!(server.ok("kubectl get widgets -o name"), "");
}
