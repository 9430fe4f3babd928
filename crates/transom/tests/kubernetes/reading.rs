//! `kubectl get`, `describe`, `wait`, `events`, `explain` and what a client asks of a server first.

use crate::server::{Beside, Server};
use crate::transcript::assert_transcript;

/// A server with nodes, a pod, a deployment and a config map.
fn furnished() -> Server {
    let server = Server::start();
    server.ok("kubectl apply -f nodes.yaml -f pod.yaml -f deployment.yaml -f configmap.yaml");
    server
}

#[test]
fn tables_show_what_people_look_for() {
    let server = furnished();
    assert_transcript!(server, "
        kubectl get pods
        kubectl get pods -o wide
        kubectl get pods -A
        kubectl get pods -l app=hello
        kubectl get pods -l app=other
        kubectl get pods --field-selector spec.nodeName=linux-1,status.phase!=Running
        kubectl get pods --show-labels
        kubectl get pods -o name
        kubectl get nodes -o wide
        kubectl get all
        kubectl get service,configmap
        kubectl get deployment web --subresource=status
        kubectl get namespaces --sort-by=.metadata.name
        kubectl get pods,nodes -o custom-columns=KIND:.kind,NAME:.metadata.name
    ", @r"
    $ kubectl get pods
    NAME    READY   STATUS    RESTARTS   AGE
    hello   0/1     Pending   0          [age]
    $ kubectl get pods -o wide
    NAME    READY   STATUS    RESTARTS   AGE IP       NODE      NOMINATED NODE   READINESS GATES
    hello   0/1     Pending   0          [age] <none>   linux-1   <none>           <none>
    $ kubectl get pods -A
    NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE
    default     hello   0/1     Pending   0          [age]
    $ kubectl get pods -l app=hello
    NAME    READY   STATUS    RESTARTS   AGE
    hello   0/1     Pending   0          [age]
    $ kubectl get pods -l app=other
    No resources found in default namespace.
    $ kubectl get pods --field-selector spec.nodeName=linux-1,status.phase!=Running
    NAME    READY   STATUS    RESTARTS   AGE
    hello   0/1     Pending   0          [age]
    $ kubectl get pods --show-labels
    NAME    READY   STATUS    RESTARTS   AGE LABELS
    hello   0/1     Pending   0          [age] app=hello
    $ kubectl get pods -o name
    pod/hello
    $ kubectl get nodes -o wide
    NAME        STATUS    ROLES    AGE VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE    KERNEL-VERSION   CONTAINER-RUNTIME
    linux-1     Unknown   <none>   [age] <none>        <none>        <unknown>   <unknown>        <unknown>
    windows-1   Unknown   <none>   [age] <none>        <none>        <unknown>   <unknown>        <unknown>
    $ kubectl get all
    NAME        READY   STATUS    RESTARTS   AGE
    pod/hello   0/1     Pending   0          [age]

    NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    service/kubernetes   ClusterIP   10.43.0.1    <none>        443/TCP   [age]

    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    deployment.apps/web   0/2     0            0           [age]
    $ kubectl get service,configmap
    NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    service/kubernetes   ClusterIP   10.43.0.1    <none>        443/TCP   [age]

    NAME                         DATA   AGE
    configmap/kube-root-ca.crt   1      [age]
    configmap/settings           1      [age]
    $ kubectl get deployment web --subresource=status
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    0/2     0            0           [age]
    $ kubectl get namespaces --sort-by=.metadata.name
    NAME              STATUS   AGE
    default           Active   [age]
    kube-node-lease   Active   [age]
    kube-public       Active   [age]
    kube-system       Active   [age]
    $ kubectl get pods,nodes -o custom-columns=KIND:.kind,NAME:.metadata.name
    KIND   NAME
    Pod    hello
    Node   linux-1
    Node   windows-1
    ");
}

#[test]
fn objects_are_shown_whole() {
    let server = furnished();
    assert_transcript!(server, "
        kubectl get pod hello -o yaml
        kubectl get pods -o json | grep -c creationTimestamp
    ", @r#"
    $ kubectl get pod hello -o yaml
    apiVersion: v1
    kind: Pod
    metadata:
      annotations:
        kubectl.kubernetes.io/last-applied-configuration: |
          {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{},"labels":{"app":"hello"},"name":"hello","namespace":"default"},"spec":{"automountServiceAccountToken":false,"containers":[{"image":"registry.example/hello:1.0","name":"hello","resources":{"requests":{"cpu":"1","memory":"64Mi"}}}],"nodeName":"linux-1","serviceAccountName":"default","tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]}}
      creationTimestamp: "[time]"
      generation: 1
      labels:
        app: hello
      name: hello
      namespace: default
      resourceVersion: "[version]"
      uid: [uid]
    spec:
      automountServiceAccountToken: false
      containers:
      - image: registry.example/hello:1.0
        imagePullPolicy: IfNotPresent
        name: hello
        resources:
          requests:
            cpu: "1"
            memory: 64Mi
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
      dnsPolicy: ClusterFirst
      enableServiceLinks: true
      nodeName: linux-1
      preemptionPolicy: PreemptLowerPriority
      priority: 0
      restartPolicy: Always
      schedulerName: default-scheduler
      securityContext: {}
      serviceAccount: default
      serviceAccountName: default
      terminationGracePeriodSeconds: 30
      tolerations:
      - effect: NoExecute
        key: node.kubernetes.io/not-ready
        operator: Exists
        tolerationSeconds: 300
      - effect: NoExecute
        key: node.kubernetes.io/unreachable
        operator: Exists
        tolerationSeconds: 300
    status:
      phase: Pending
      qosClass: Burstable
    $ kubectl get pods -o json | grep -c creationTimestamp
    1
    "#);
}

#[test]
fn descriptions_are_made_from_several_requests() {
    let server = furnished();
    assert_transcript!(server, "
        kubectl describe pod hello
        kubectl describe node linux-1
        kubectl describe deployment web
        kubectl describe configmap settings
        kubectl describe namespace default
    ", @r#"
    $ kubectl describe pod hello
    Name:             hello
    Namespace:        default
    Priority:         0
    Service Account:  default
    Node:             linux-1/
    Labels:           app=hello
    Annotations:      <none>
    Status:           Pending
    IP:
    IPs:              <none>
    Containers:
      hello:
        Image:      registry.example/hello:1.0
        Port:       <none>
        Host Port:  <none>
        Requests:
          cpu:        1
          memory:     64Mi
        Environment:  <none>
        Mounts:       <none>
    Volumes:          <none>
    QoS Class:        Burstable
    Node-Selectors:   <none>
    Tolerations:      node.kubernetes.io/not-ready:NoExecute op=Exists for [age]
                      node.kubernetes.io/unreachable:NoExecute op=Exists for [age]
    Events:           <none>
    $ kubectl describe node linux-1
    Name:               linux-1
    Roles:              <none>
    Labels:             kubernetes.io/os=linux
    Annotations:        <none>
    CreationTimestamp:  [time]
    Taints:             node.kubernetes.io/not-ready:NoSchedule
    Unschedulable:      false
    Lease:              Failed to get lease: leases.coordination.k8s.io "linux-1" not found
    Addresses:
    Capacity:
      cpu:     2
      memory:  4Gi
      pods:    110
    Allocatable:
      cpu:     2
      memory:  4Gi
      pods:    110
    System Info:
      Machine ID:
      System UUID:
      Boot ID:
      Kernel Version:
      OS Image:
      Operating System:
      Architecture:
      Container Runtime Version:
      Kubelet Version:
      Kube-Proxy Version:
    Non-terminated Pods:          (1 in total)
      Namespace                   Name     CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
      ---------                   ----     ------------  ----------  ---------------  -------------  ---
      default                     hello    1 (50%)       0 (0%)      64Mi (1%)        0 (0%)         [age]
    Allocated resources:
      (Total limits may be over 100 percent, i.e., overcommitted.)
      Resource           Requests   Limits
      --------           --------   ------
      cpu                1 (50%)    0 (0%)
      memory             64Mi (1%)  0 (0%)
      ephemeral-storage  0 (0%)     0 (0%)
    Events:              <none>
    $ kubectl describe deployment web
    Name:                   web
    Namespace:              default
    CreationTimestamp:      [time]
    Labels:                 <none>
    Annotations:            <none>
    Selector:               app=web
    Replicas:               2 desired | 0 updated | 0 total | 0 available | 0 unavailable
    StrategyType:           RollingUpdate
    MinReadySeconds:        0
    RollingUpdateStrategy:  25% max unavailable, 25% max surge
    Pod Template:
      Labels:  app=web
      Containers:
       web:
        Image:         registry.example/web:1.0
        Port:          80/TCP
        Host Port:     0/TCP
        Environment:   <none>
        Mounts:        <none>
      Volumes:         <none>
      Node-Selectors:  <none>
      Tolerations:     <none>
    Events:            <none>
    $ kubectl describe configmap settings
    Name:         settings
    Namespace:    default
    Labels:       <none>
    Annotations:  <none>

    Data
    ====
    colour:
    ----
    blue


    BinaryData
    ====

    Events:  <none>
    $ kubectl describe namespace default
    Name:         default
    Labels:       kubernetes.io/metadata.name=default
    Annotations:  <none>
    Status:       Active

    No resource quota.

    No LimitRange resource.
    "#);
}

#[test]
fn events_are_found_by_what_they_are_about() {
    let server = furnished();
    server.write("event.yaml", "apiVersion: v1\nkind: Event\nmetadata: {name: hello.1}\nreason: Pulled\nmessage: it came\ntype: Normal\ninvolvedObject: {apiVersion: v1, kind: Pod, name: hello, namespace: default}\n");
    assert_transcript!(server, "
        kubectl events
        kubectl create -f event.yaml
        kubectl events --for pod/hello
        kubectl get events --field-selector involvedObject.name=hello -o custom-columns=REASON:.reason,MESSAGE:.message
        kubectl get events --field-selector involvedObject.name=other
    ", @r"
    $ kubectl events
    No events found in default namespace.
    $ kubectl create -f event.yaml
    event/hello.1 created
    $ kubectl events --for pod/hello
    LAST SEEN   TYPE     REASON   OBJECT      MESSAGE
    <unknown>   Normal   Pulled   Pod/hello   it came
    $ kubectl get events --field-selector involvedObject.name=hello -o custom-columns=REASON:.reason,MESSAGE:.message
    REASON   MESSAGE
    Pulled   it came
    $ kubectl get events --field-selector involvedObject.name=other
    No resources found in default namespace.
    ");
}

#[test]
fn waiting_ends_with_the_condition_or_the_time() {
    let server = furnished();
    assert_transcript!(server, "
        kubectl wait --for=jsonpath='{.status.phase}'=Pending pod/hello --timeout=50s
        kubectl wait --for=condition=Ready pod/hello --timeout=3s
        kubectl wait --for=delete pod/nobody --timeout=50s
    ", @r"
    $ kubectl wait --for=jsonpath='{.status.phase}'=Pending pod/hello --timeout=50s
    pod/hello condition met
    $ kubectl wait --for=condition=Ready pod/hello --timeout=3s
    error: timed out waiting for the condition on pods/hello
    [exit 1]
    $ kubectl wait --for=delete pod/nobody --timeout=50s
    ");
    let waiting = Beside::start(server.program("kubectl").args([
        "wait",
        "--for=jsonpath={.metadata.labels.ripe}=yes",
        "configmap/settings",
        "--timeout=60s",
    ]));
    server.ok("kubectl label configmap settings ripe=yes");
    waiting.until("configmap/settings condition met");
}

#[test]
fn a_watch_shows_changes_as_they_come() {
    let server = furnished();
    let watch = Beside::start(server.program("kubectl").args([
        "get",
        "configmaps",
        "--watch",
        "--output-watch-events",
    ]));
    watch.until("settings");
    server.ok("kubectl create configmap second --from-literal=a=1");
    assert!(watch.until("second").starts_with("ADDED"));
    server.ok("kubectl label configmap second seen=yes");
    assert!(watch.until("second").starts_with("MODIFIED"));
    server.ok("kubectl delete configmap second");
    assert!(watch.until("second").starts_with("DELETED"));
}

#[test]
fn documents_explain_the_kinds() {
    let server = Server::start();
    assert_transcript!(server, "
        kubectl explain pod.spec.os
        kubectl explain deployment.spec.strategy --recursive
        kubectl explain pod.spec.nonsense
        kubectl api-versions
        kubectl api-resources --api-group=apps
        kubectl cluster-info
        kubectl get --raw /version | grep -E 'major|minor'
        kubectl get --raw '/readyz?verbose'
        kubectl top node
        kubectl top pod
    ", @r#"
    $ kubectl explain pod.spec.os
    KIND:       Pod
    VERSION:    v1

    FIELD: os <PodOS>


    DESCRIPTION:
        Specifies the OS of the containers in the pod. Some pod and container fields
        are restricted if this is set.

        If the OS field is set to linux, the following fields must be unset:
        -securityContext.windowsOptions

        If the OS field is set to windows, following fields must be unset: -
        spec.hostPID - spec.hostIPC - spec.hostUsers - spec.resources -
        spec.securityContext.appArmorProfile - spec.securityContext.seLinuxOptions -
        spec.securityContext.seccompProfile - spec.securityContext.fsGroup -
        spec.securityContext.fsGroupChangePolicy - spec.securityContext.sysctls -
        spec.shareProcessNamespace - spec.securityContext.runAsUser -
        spec.securityContext.runAsGroup - spec.securityContext.supplementalGroups -
        spec.securityContext.supplementalGroupsPolicy -
        spec.containers[*].securityContext.appArmorProfile -
        spec.containers[*].securityContext.seLinuxOptions -
        spec.containers[*].securityContext.seccompProfile -
        spec.containers[*].securityContext.capabilities -
        spec.containers[*].securityContext.readOnlyRootFilesystem -
        spec.containers[*].securityContext.privileged -
        spec.containers[*].securityContext.allowPrivilegeEscalation -
        spec.containers[*].securityContext.procMount -
        spec.containers[*].securityContext.runAsUser -
        spec.containers[*].securityContext.runAsGroup
        PodOS defines the OS parameters of a pod.

    FIELDS:
      name	<string> -required-
        Name is the name of the operating system. The currently supported values are
        linux and windows. Additional value may be defined in future and can be one
        of:
        https://github.com/opencontainers/runtime-spec/blob/master/config.md#platform-specific-configuration
        Clients should expect to handle additional values and treat unrecognized
        values in this field as os: null


    $ kubectl explain deployment.spec.strategy --recursive
    GROUP:      apps
    KIND:       Deployment
    VERSION:    v1

    FIELD: strategy <DeploymentStrategy>


    DESCRIPTION:
        The deployment strategy to use to replace existing pods with new ones.
        DeploymentStrategy describes how to replace existing pods with new ones.

    FIELDS:
      rollingUpdate	<RollingUpdateDeployment>
        maxSurge	<IntOrString>
        maxUnavailable	<IntOrString>
      type	<string>

    $ kubectl explain pod.spec.nonsense
    KIND:       Pod
    VERSION:    v1

    error: field "nonsense" does not exist
    [exit 1]
    $ kubectl api-versions
    apiextensions.k8s.io/v1
    apps/v1
    authentication.k8s.io/v1
    authorization.k8s.io/v1
    autoscaling/v1
    autoscaling/v2
    batch/v1
    certificates.k8s.io/v1
    coordination.k8s.io/v1
    discovery.k8s.io/v1
    events.k8s.io/v1
    metrics.k8s.io/v1beta1
    networking.k8s.io/v1
    node.k8s.io/v1
    policy/v1
    rbac.authorization.k8s.io/v1
    scheduling.k8s.io/v1
    storage.k8s.io/v1
    transom.dev/v1
    v1
    $ kubectl api-resources --api-group=apps
    NAME                  SHORTNAMES   APIVERSION   NAMESPACED   KIND
    controllerrevisions                apps/v1      true         ControllerRevision
    daemonsets            ds           apps/v1      true         DaemonSet
    deployments           deploy       apps/v1      true         Deployment
    replicasets           rs           apps/v1      true         ReplicaSet
    statefulsets          sts          apps/v1      true         StatefulSet
    $ kubectl cluster-info
    Kubernetes control plane is running at https://[address]

    To further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.
    $ kubectl get --raw /version | grep -E 'major|minor'
    {"buildDate":"","compiler":"rustc","gitCommit":"","gitTreeState":"","gitVersion":"v1.36.0+transom.0.1.0","goVersion":"","major":"1","minor":"36","platform":"linux/amd64"}
    $ kubectl get --raw '/readyz?verbose'
    [+]ping ok
    [+]store ok
    [+]shutdown ok
    readyz check passed
    $ kubectl top node
    error: metrics not available yet
    [exit 1]
    $ kubectl top pod
    No resources found in default namespace.
    "#);
}

#[test]
fn long_lists_come_in_pages() {
    let server = Server::start();
    let names: Vec<String> = (0..25).map(|number| format!("item-{number:02}")).collect();
    for name in &names {
        server.write(
            "item.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{paged: a}}}}\n---\n"),
        );
        server.ok("cat item.yaml >> items.yaml");
    }
    server.ok("kubectl create -f items.yaml");
    let paged = server.ok("kubectl get configmaps -l paged=a --chunk-size=7 -o name");
    let expected: Vec<String> = names
        .iter()
        .map(|name| format!("configmap/{name}"))
        .collect();
    assert_eq!(paged.lines().collect::<Vec<_>>(), expected);
}
