//! The same for pods: where they could be, what they print, and programs in them.

use crate::client::furnished;
use crate::guide::{ELSEWHERE, End};
use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn a_placement_is_explained_node_by_node() {
    let server = furnished();
    // The controllers take nodes without an agent for lost, so pods here tolerate that.
    let pod = |name: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  tolerations: [{{operator: Exists}}]\n  containers: [{{name: c, image: 'registry.example/{name}:1', resources: {{requests: {{cpu: 500m}}}}}}]\n{more}---\n"
        )
    };
    let pods = pod("plain", "")
        + &pod("linux-only", "  nodeSelector: {kubernetes.io/os: linux}\n")
        + &pod(
            "huge",
            "  nodeSelector: {disk: fast}\n  schedulingGates: [{name: example.org/wait}]\n",
        )
        + &pod("built", "  schedulerName: other\n")
        + &pod("bound", "  nodeName: linux-1\n");
    server.write("pods.yaml", &pods);
    let name = transom_model::images::object_name("registry.example/built:1");
    server.write(
        "images.yaml",
        &format!("apiVersion: transom.dev/v1\nkind: Image\nmetadata: {{name: {name}}}\nspec: {{reference: 'registry.example/built:1'}}\nstatus:\n  runsOn: windows(10.0.20348)/amd64\n  platforms: [{{os: windows, architecture: amd64, osVersion: 10.0.20348}}]\n"),
    );
    server.ok("transom apply -f pods.yaml -f images.yaml");
    server.ok("kubectl label nodes --all kubernetes.io/arch=amd64");
    server.ok("kubectl label node windows-1 node.kubernetes.io/windows-build=10.0.17763");
    assert_transcript!(server, "
        transom explain placement plain
        transom explain placement pod/linux-only
        transom explain placement huge
        transom explain placement built
        transom explain placement bound
        transom explain placement linux-only -o json
        transom explain placement plain -o name
        transom explain placement nobody
    ", @r#"
    $ transom explain placement plain
    pod default/plain has no node, and would be placed on windows-1 now; 2 of 2 nodes could take it

    NODE        SYSTEM                      POSSIBLE   SCORE   WHY
    windows-1   windows(10.0.17763)/amd64   yes        485     taints 300, resources 92, balance 93
    linux-1     linux/amd64                 yes        394     taints 300, resources 44, balance 50
    $ transom explain placement pod/linux-only
    pod default/linux-only has no node, and would be placed on linux-1 now; 1 of 2 nodes could take it

    NODE        SYSTEM                      POSSIBLE   SCORE   WHY
    linux-1     linux/amd64                 yes        394     taints 300, resources 44, balance 50
    windows-1   windows(10.0.17763)/amd64   no                 node(s) didn't match Pod's node affinity/selector
    $ transom explain placement huge
    pod default/huge has no node, and can be placed nowhere now
    the pod is not placed before its scheduling gates are removed: example.org/wait
    0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.

    NODE        SYSTEM                      POSSIBLE   SCORE   WHY
    linux-1     linux/amd64                 no                 node(s) didn't match Pod's node affinity/selector
    windows-1   windows(10.0.17763)/amd64   no                 node(s) didn't match Pod's node affinity/selector
    $ transom explain placement built
    pod default/built has no node, and can be placed nowhere now
    the pod is placed by the scheduler other, which may decide otherwise
    0/2 nodes are available: 2 node(s) cannot run image registry.example/built:1. No node can ever run image registry.example/built:1: it needs a host with a build from 20348 (Windows Server 2022) to 26100 (Windows Server 2025), windows/amd64; there are linux/amd64 (1), windows(10.0.17763)/amd64 (1).

    NODE        SYSTEM                      POSSIBLE   SCORE   WHY
    linux-1     linux/amd64                 no                 node(s) cannot run image registry.example/built:1, which is for windows(10.0.20348)/amd64
    windows-1   windows(10.0.17763)/amd64   no                 node(s) cannot run image registry.example/built:1, which is for windows(10.0.20348)/amd64
    $ transom explain placement bound
    pod default/bound is on linux-1, and would be placed on windows-1 now; 2 of 2 nodes could take it

    NODE        SYSTEM                      POSSIBLE   SCORE   WHY
    windows-1   windows(10.0.17763)/amd64   yes        485     taints 300, resources 92, balance 93
    linux-1     linux/amd64                 yes        422     taints 300, resources 59, balance 63
    $ transom explain placement linux-only -o json
    {
      "namespace": "default",
      "pod": "linux-only",
      "node": null,
      "wouldBePlaced": "linux-1",
      "message": null,
      "notes": [],
      "nodes": [
        {
          "node": "linux-1",
          "system": "linux/amd64",
          "possible": true,
          "score": 394,
          "parts": {
            "taints": 300,
            "affinity": 0,
            "resources": 44,
            "balance": 50,
            "images": 0,
            "spread": 0,
            "neighbours": 0
          },
          "reasons": []
        },
        {
          "node": "windows-1",
          "system": "windows(10.0.17763)/amd64",
          "possible": false,
          "score": null,
          "parts": null,
          "reasons": [
            "node(s) didn't match Pod's node affinity/selector"
          ]
        }
      ]
    }
    $ transom explain placement plain -o name
    node/windows-1
    node/linux-1
    $ transom explain placement nobody
    error: pods "nobody" not found
    [exit 4]
    "#);
}

/// Two containers of the machine itself: one that goes on, and one that is over at once.
const TWO: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: two}}
spec:
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: talks
    image: transom.dev/host:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo one; echo two; echo three; exec sleep 600"]
  - name: ends
    image: transom.dev/host:1
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo bye"]
"#;

#[test]
fn logs_and_programs_of_pods_are_reached() {
    let server = Server::absent();
    let _end = End(&server);
    server.ok(&format!("transom up{ELSEWHERE}"));
    server.write("two.yaml", TWO);
    let unset = |line: &str| format!("unset KUBECONFIG; {line}");
    server.ok(&unset("transom apply -f two.yaml"));
    let ends = "transom logs two -c ends -f | grep bye";
    server.ok(&unset(&format!("until {ends}; do sleep 0.2; done")));
    let said = "test $(transom logs two -c talks | wc -l) = 3";
    server.ok(&unset(&format!("until {said}; do sleep 0.2; done")));
    // What containers say is there before the agent has told that the pod runs.
    let runs = r#"transom get pod two -o json | grep '"phase": "Running"'"#;
    server.ok(&unset(&format!("until {runs}; do sleep 0.2; done")));
    let lines = [
        "transom logs two",
        "transom logs two -c talks --tail 1",
        "transom logs two --all-containers",
        "transom logs -l app=two -c ends --prefix --timestamps | cut -d ' ' -f 1,3",
        "echo typed | transom exec -i two -- cat",
        "transom exec two -c talks -- sh -c 'echo out; echo err >&2; exit 42' 2>/dev/null",
        "transom exec two -q -- sh -c 'echo out; echo err >&2' >/dev/null",
        "head -c 300000 /dev/zero | transom exec -i two -- wc -c",
        "transom exec two -- no-such-program",
        "transom explain placement two -o name | wc -l",
        "transom delete pod two hello --ignore-not-found",
    ];
    let lines: String = lines.iter().map(|line| unset(line) + "\n").collect();
    assert_transcript!(server, &lines, @r#"
    $ unset KUBECONFIG; transom logs two
    this is container talks of talks, ends; choose with -c or --all-containers
    one
    two
    three
    $ unset KUBECONFIG; transom logs two -c talks --tail 1
    three
    $ unset KUBECONFIG; transom logs two --all-containers
    [pod/two/talks] one
    [pod/two/talks] two
    [pod/two/talks] three
    [pod/two/ends] bye
    $ unset KUBECONFIG; transom logs -l app=two -c ends --prefix --timestamps | cut -d ' ' -f 1,3
    [pod/two/ends] bye
    $ unset KUBECONFIG; echo typed | transom exec -i two -- cat
    typed
    $ unset KUBECONFIG; transom exec two -c talks -- sh -c 'echo out; echo err >&2; exit 42' 2>/dev/null
    out
    [exit 42]
    $ unset KUBECONFIG; transom exec two -q -- sh -c 'echo out; echo err >&2' >/dev/null
    err
    $ unset KUBECONFIG; head -c 300000 /dev/zero | transom exec -i two -- wc -c
    300000
    $ unset KUBECONFIG; transom exec two -- no-such-program
    error: could not run a program in container talks of pod two
      caused by: "no-such-program" cannot be started: executable file not found in $PATH
    [exit 1]
    $ unset KUBECONFIG; transom explain placement two -o name | wc -l
    1
    $ unset KUBECONFIG; transom delete pod two hello --ignore-not-found
    pod/two deleted
    "#);
}
