//! Commands on nodes, which are objects like others while no machine stands behind them.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn nodes_are_cordoned_tainted_and_drained() {
    let server = Server::start();
    server.ok("kubectl apply -f nodes.yaml -f pod.yaml");
    assert_transcript!(server, "
        kubectl cordon linux-1
        kubectl cordon linux-1
        kubectl get nodes
        kubectl uncordon linux-1
        kubectl taint node linux-1 tier=gold:NoSchedule
        kubectl get node linux-1 -o jsonpath='{.spec.taints}'
        kubectl taint node linux-1 tier=gold:NoSchedule
        kubectl taint node linux-1 tier-
        kubectl drain linux-1
        kubectl drain linux-1 --force --grace-period=0 --timeout=50s
        kubectl get pods
        kubectl label node linux-1 node-role.kubernetes.io/worker=
        kubectl get nodes
        kubectl delete node linux-1
        kubectl get nodes -o name
    ", @r#"
    $ kubectl cordon linux-1
    node/linux-1 cordoned
    $ kubectl cordon linux-1
    node/linux-1 already cordoned
    $ kubectl get nodes
    NAME        STATUS                       ROLES    AGE VERSION
    linux-1     Unknown,SchedulingDisabled   <none>   [age]
    windows-1   Unknown                      <none>   [age]
    $ kubectl uncordon linux-1
    node/linux-1 uncordoned
    $ kubectl taint node linux-1 tier=gold:NoSchedule
    node/linux-1 tainted
    $ kubectl get node linux-1 -o jsonpath='{.spec.taints}'
    [{"effect":"NoSchedule","key":"tier","value":"gold"},{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}]
    $ kubectl taint node linux-1 tier=gold:NoSchedule
    error: node linux-1 already has tier taint(s) with same effect(s) and --overwrite is false
    [exit 1]
    $ kubectl taint node linux-1 tier-
    node/linux-1 untainted
    $ kubectl drain linux-1
    node/linux-1 cordoned
    error: unable to drain node "linux-1" due to error: cannot delete cannot delete Pods that declare no controller (use --force to override): default/hello, continuing command...
    There are pending nodes to be drained:
     linux-1
    cannot delete cannot delete Pods that declare no controller (use --force to override): default/hello
    [exit 1]
    $ kubectl drain linux-1 --force --grace-period=0 --timeout=50s
    node/linux-1 already cordoned
    Warning: deleting Pods that declare no controller: default/hello
    evicting pod default/hello
    pod/hello evicted
    node/linux-1 drained
    $ kubectl get pods
    No resources found in default namespace.
    $ kubectl label node linux-1 node-role.kubernetes.io/worker=
    node/linux-1 labeled
    $ kubectl get nodes
    NAME        STATUS                       ROLES    AGE VERSION
    linux-1     Unknown,SchedulingDisabled   worker   [age]
    windows-1   Unknown                      <none>   [age]
    $ kubectl delete node linux-1
    node "linux-1" deleted
    $ kubectl get nodes -o name
    node/windows-1
    "#);
}

#[test]
fn a_disruption_budget_keeps_a_pod_on_its_node() {
    let server = Server::start();
    server.ok("kubectl apply -f nodes.yaml -f pod.yaml");
    assert_transcript!(server, "
        kubectl create poddisruptionbudget keep --selector=app=hello --min-available=1
        kubectl patch pod hello --subresource=status --type=merge -p '{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}'
        kubectl wait poddisruptionbudget/keep --for=jsonpath='{.status.currentHealthy}'=1 --timeout=50s
        kubectl drain linux-1 --force --timeout=4s
        kubectl get pods -o name
        kubectl get poddisruptionbudget
    ", @r#"
    $ kubectl create poddisruptionbudget keep --selector=app=hello --min-available=1
    poddisruptionbudget.policy/keep created
    $ kubectl patch pod hello --subresource=status --type=merge -p '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    pod/hello patched
    $ kubectl wait poddisruptionbudget/keep --for=jsonpath='{.status.currentHealthy}'=1 --timeout=50s
    poddisruptionbudget.policy/keep condition met
    $ kubectl drain linux-1 --force --timeout=4s
    node/linux-1 cordoned
    Warning: deleting Pods that declare no controller: default/hello
    evicting pod default/hello
    error when evicting pods/"hello" -n "default" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.
    evicting pod default/hello
    There are pending pods in node "linux-1" when an error occurred: error when evicting pods/"hello" -n "default": global timeout reached: [age]
    pod/hello
    error: unable to drain node "linux-1" due to error: error when evicting pods/"hello" -n "default": global timeout reached: 4s, continuing command...
    There are pending nodes to be drained:
     linux-1
    error when evicting pods/"hello" -n "default": global timeout reached: [age]
    [exit 1]
    $ kubectl get pods -o name
    pod/hello
    $ kubectl get poddisruptionbudget
    NAME   MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE
    keep   1               N/A               0                     [age]
    "#);
}

#[test]
fn signing_requests_are_approved() {
    let server = Server::start();
    server.ok("openssl req -new -newkey rsa:2048 -nodes -keyout jane.key -subj /O=readers/CN=jane -out jane.csr");
    let request = server.ok("base64 -w0 jane.csr");
    server.write("csr.yaml", &format!("apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{name: jane}}\nspec: {{username: eve, groups: [system:masters], request: {request}, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}\n"));
    assert_transcript!(server, "
        kubectl create -f csr.yaml
        kubectl get csr
        kubectl certificate approve jane
        kubectl get csr -o jsonpath='{.items[0].status.conditions[0].type}'
    ", @r"
    $ kubectl create -f csr.yaml
    certificatesigningrequest.certificates.k8s.io/jane created
    $ kubectl get csr
    NAME   AGE SIGNERNAME                            REQUESTOR       REQUESTEDDURATION   CONDITION
    jane   [age] kubernetes.io/kube-apiserver-client   transom-admin   <none>              Pending
    $ kubectl certificate approve jane
    certificatesigningrequest.certificates.k8s.io/jane approved
    $ kubectl get csr -o jsonpath='{.items[0].status.conditions[0].type}'
    Approved
    ");
}
