//! Changes to objects that are there: labels, patches of every type, edits, replacements, deletions.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn patches_of_every_type_change_an_object() {
    let server = Server::start();
    server.ok("kubectl apply -f configmap.yaml -f deployment.yaml");
    assert_transcript!(server, "
        kubectl label configmap settings tier=front
        kubectl label configmap settings tier=back
        kubectl label --overwrite configmap settings tier=back
        kubectl annotate configmap settings note='a b'
        kubectl patch configmap settings --type=merge -p '{\"data\":{\"b\":\"2\",\"colour\":null}}'
        kubectl patch configmap settings --type=json -p '[{\"op\":\"test\",\"path\":\"/data/b\",\"value\":\"2\"},{\"op\":\"add\",\"path\":\"/data/c\",\"value\":\"3\"}]'
        kubectl patch configmap settings --type=json -p '[{\"op\":\"test\",\"path\":\"/data/b\",\"value\":\"9\"}]'
        kubectl patch deployment web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"side\",\"image\":\"registry.example/side:1.0\"}]}}}}'
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name} {.metadata.generation}'
        kubectl get configmap settings -o jsonpath='{.data} {.metadata.labels}'
        kubectl label configmap settings tier-
    ", @r#"
    $ kubectl label configmap settings tier=front
    configmap/settings labeled
    $ kubectl label configmap settings tier=back
    error: 'tier' already has a value (front), and --overwrite is false
    [exit 1]
    $ kubectl label --overwrite configmap settings tier=back
    configmap/settings labeled
    $ kubectl annotate configmap settings note='a b'
    configmap/settings annotated
    $ kubectl patch configmap settings --type=merge -p '{"data":{"b":"2","colour":null}}'
    configmap/settings patched
    $ kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/b","value":"2"},{"op":"add","path":"/data/c","value":"3"}]'
    configmap/settings patched
    $ kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/b","value":"9"}]'
    The request is invalid: the server rejected our request due to an error in our request
    [exit 1]
    $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"registry.example/side:1.0"}]}}}}'
    deployment.apps/web patched
    $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name} {.metadata.generation}'
    side web 2
    $ kubectl get configmap settings -o jsonpath='{.data} {.metadata.labels}'
    {"b":"2","c":"3"} {"tier":"back"}
    $ kubectl label configmap settings tier-
    configmap/settings unlabeled
    "#);
}

#[test]
fn an_editor_and_a_replacement_change_an_object() {
    let server = Server::start();
    server.ok("kubectl apply -f configmap.yaml");
    assert_transcript!(server, "
        KUBE_EDITOR=\"sed -i s/blue/green/\" kubectl edit configmap settings
        KUBE_EDITOR=true kubectl edit configmap settings
        kubectl get configmap settings -o jsonpath='{.data}'
        kubectl replace -f configmap.yaml
        kubectl get configmap settings -o jsonpath='{.data}'
        kubectl replace --force -f configmap.yaml
    ", @r#"
    $ KUBE_EDITOR="sed -i s/blue/green/" kubectl edit configmap settings
    configmap/settings edited
    $ KUBE_EDITOR=true kubectl edit configmap settings
    Edit cancelled, no changes made.
    $ kubectl get configmap settings -o jsonpath='{.data}'
    {"colour":"green"}
    $ kubectl replace -f configmap.yaml
    configmap/settings replaced
    $ kubectl get configmap settings -o jsonpath='{.data}'
    {"colour":"blue"}
    $ kubectl replace --force -f configmap.yaml
    configmap "settings" deleted
    configmap/settings replaced
    "#);
}

#[test]
fn deletions_wait_for_finalizers_and_take_what_is_selected() {
    let server = Server::start();
    server.write(
        "held.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.org/hold]}\n",
    );
    // A pod whose node is not there would be collected before a slow test is over.
    server.ok("kubectl apply -f nodes.yaml -f deployment.yaml -f pod.yaml");
    assert_transcript!(server, "
        kubectl create -f held.yaml
        kubectl delete configmap held --timeout=3s
        kubectl get configmap held -o jsonpath='{.metadata.finalizers} {.metadata.deletionGracePeriodSeconds}'
        kubectl patch configmap held --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'
        kubectl get configmap held
        kubectl create configmap one --from-literal=a=1
        kubectl create configmap two --from-literal=a=1
        kubectl label configmap one two group=x
        kubectl delete configmap -l group=x
        kubectl create configmap three --from-literal=a=1
        kubectl delete configmap three --wait=false
        kubectl delete configmap three --ignore-not-found
        kubectl delete pod hello --force --grace-period=0
        kubectl get pods
    ", @r#"
    $ kubectl create -f held.yaml
    configmap/held created
    $ kubectl delete configmap held --timeout=3s
    configmap "held" deleted
    error: timed out waiting for the condition on configmaps/held
    [exit 1]
    $ kubectl get configmap held -o jsonpath='{.metadata.finalizers} {.metadata.deletionGracePeriodSeconds}'
    ["example.org/hold"] 0
    $ kubectl patch configmap held --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'
    configmap/held patched
    $ kubectl get configmap held
    Error from server (NotFound): configmaps "held" not found
    [exit 1]
    $ kubectl create configmap one --from-literal=a=1
    configmap/one created
    $ kubectl create configmap two --from-literal=a=1
    configmap/two created
    $ kubectl label configmap one two group=x
    configmap/one labeled
    configmap/two labeled
    $ kubectl delete configmap -l group=x
    configmap "one" deleted
    configmap "two" deleted
    $ kubectl create configmap three --from-literal=a=1
    configmap/three created
    $ kubectl delete configmap three --wait=false
    configmap "three" deleted
    $ kubectl delete configmap three --ignore-not-found
    $ kubectl delete pod hello --force --grace-period=0
    Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
    pod "hello" force deleted
    $ kubectl get pods
    No resources found in default namespace.
    "#);
}
