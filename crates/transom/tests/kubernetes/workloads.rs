//! Commands around deployments and pods. No machine runs them here, so what needs one says so.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn deployments_are_scaled_changed_and_restarted() {
    let server = Server::start();
    server.ok("kubectl apply -f deployment.yaml");
    assert_transcript!(server, "
        kubectl scale deployment web --replicas=4
        kubectl scale deployment web --current-replicas=1 --replicas=5
        kubectl patch deployment web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":3}}'
        kubectl get deployment web -o jsonpath='{.spec.replicas}'
        kubectl set image deployment/web web=registry.example/web:2.0
        kubectl set env deployment/web MODE=fast
        kubectl set resources deployment/web --limits=cpu=200m
        kubectl rollout pause deployment/web
        kubectl rollout pause deployment/web
        kubectl rollout resume deployment/web
        kubectl rollout restart deployment/web
        kubectl rollout status deployment/web --timeout=10s
        kubectl rollout history deployment/web
        kubectl rollout undo deployment/web
        kubectl autoscale deployment web --min=1 --max=5 --cpu-percent=80
        kubectl wait hpa/web --for=jsonpath='{.status.currentReplicas}'=3 --timeout=50s && kubectl get hpa
        kubectl expose deployment web --port=80
        kubectl get service web -o jsonpath='{.spec.selector} {.spec.ports}'
        kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env} {.spec.template.spec.containers[0].resources}'
    ", @r#"
    $ kubectl scale deployment web --replicas=4
    deployment.apps/web scaled
    $ kubectl scale deployment web --current-replicas=1 --replicas=5
    error: Expected replicas to be 1, was 4
    [exit 1]
    $ kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":3}}'
    scale.autoscaling/web patched
    $ kubectl get deployment web -o jsonpath='{.spec.replicas}'
    3
    $ kubectl set image deployment/web web=registry.example/web:2.0
    deployment.apps/web image updated
    $ kubectl set env deployment/web MODE=fast
    deployment.apps/web env updated
    $ kubectl set resources deployment/web --limits=cpu=200m
    deployment.apps/web resource requirements updated
    $ kubectl rollout pause deployment/web
    deployment.apps/web paused
    $ kubectl rollout pause deployment/web
    error: deployments.apps "web" is already paused
    [exit 1]
    $ kubectl rollout resume deployment/web
    deployment.apps/web resumed
    $ kubectl rollout restart deployment/web
    deployment.apps/web restarted
    $ kubectl rollout status deployment/web --timeout=10s
    Waiting for deployment spec update to be observed...
    error: timed out waiting for the condition
    [exit 1]
    $ kubectl rollout history deployment/web
    deployment.apps/web
    No rollout history found.
    $ kubectl rollout undo deployment/web
    error: no rollout history found for deployment "web"
    [exit 1]
    $ kubectl autoscale deployment web --min=1 --max=5 --cpu-percent=80
    horizontalpodautoscaler.autoscaling/web autoscaled
    $ kubectl wait hpa/web --for=jsonpath='{.status.currentReplicas}'=3 --timeout=50s && kubectl get hpa
    horizontalpodautoscaler.autoscaling/web condition met
    NAME   REFERENCE        TARGETS              MINPODS   MAXPODS   REPLICAS   AGE
    web    Deployment/web   cpu: <unknown>/80%   1         5         3          [age]
    $ kubectl expose deployment web --port=80
    service/web exposed
    $ kubectl get service web -o jsonpath='{.spec.selector} {.spec.ports}'
    {"app":"web"} [{"port":80,"protocol":"TCP","targetPort":80}]
    $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env} {.spec.template.spec.containers[0].resources}'
    registry.example/web:2.0 [{"name":"MODE","value":"fast"}] {"limits":{"cpu":"200m"}}
    "#);
}

#[test]
fn commands_that_need_a_machine_say_so() {
    let server = Server::start();
    server.ok("kubectl apply -f pod.yaml");
    assert_transcript!(server, "
        kubectl logs hello
        kubectl logs --follow --tail=5 --timestamps hello
        kubectl exec hello -- echo hi
        kubectl attach hello
        kubectl cp configmap.yaml hello:/tmp/configmap.yaml
        kubectl port-forward pod/hello 8080:80
        kubectl debug hello --image=registry.example/tools:1.0 --profile=general --container=tools
        kubectl get pod hello -o jsonpath='{.spec.ephemeralContainers[*].name}'
        kubectl run once --image=registry.example/once:1.0 --restart=Never
        kubectl get pod once -o jsonpath='{.spec.restartPolicy} {.status.phase}'
    ", @r#"
    $ kubectl logs hello
    Error from server (NotFound): nodes "linux-1" not found
    [exit 1]
    $ kubectl logs --follow --tail=5 --timestamps hello
    Error from server (NotFound): nodes "linux-1" not found
    [exit 1]
    $ kubectl exec hello -- echo hi
    Error from server (NotFound): nodes "linux-1" not found
    [exit 1]
    $ kubectl attach hello
    If you don't see a command prompt, try pressing enter.
    Error from server (NotFound): nodes "linux-1" not found
    [exit 1]
    $ kubectl cp configmap.yaml hello:/tmp/configmap.yaml
    Error from server (NotFound): nodes "linux-1" not found
    [exit 1]
    $ kubectl port-forward pod/hello 8080:80
    error: unable to forward port because pod is not running. Current status=Pending
    [exit 1]
    $ kubectl debug hello --image=registry.example/tools:1.0 --profile=general --container=tools
    $ kubectl get pod hello -o jsonpath='{.spec.ephemeralContainers[*].name}'
    tools
    $ kubectl run once --image=registry.example/once:1.0 --restart=Never
    pod/once created
    $ kubectl get pod once -o jsonpath='{.spec.restartPolicy} {.status.phase}'
    Never Pending
    "#);
}
