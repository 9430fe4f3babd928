//! The commands for people who have no kubectl, against the same server.

use crate::server::{Beside, Server};
use crate::transcript::assert_transcript;

/// A server with some objects on it, applied by us.
pub(crate) fn furnished() -> Server {
    let server = Server::start_with("memory");
    server.ok("transom apply -f nodes.yaml -f configmap.yaml -f pod.yaml -f deployment.yaml");
    server
}

#[test]
fn objects_are_shown_in_every_form() {
    let server = furnished();
    assert_transcript!(server, "
        transom get nodes
        transom get po -o wide
        transom get pods,deploy,cm -l app!=nothing --field-selector metadata.name!=kube-root-ca.crt
        transom get Pod/hello deployments.apps/web
        transom get pod hello -o name
        transom get configmap settings -o yaml
        transom get configmap settings -o json | grep -v Version
        transom get configmap settings --show-labels
        transom get pods -A -o name
        transom get ns default -A
        transom get pods -l app=other
        transom get pods -l app=other -o json
        transom get services --field-selector metadata.name=nothing -A
    ", @r#"
    $ transom get nodes
    NAME        STATUS    ROLES    AGE VERSION
    linux-1     Unknown   <none>   [age]
    windows-1   Unknown   <none>   [age]
    $ transom get po -o wide
    NAME    READY   STATUS    RESTARTS   AGE IP       NODE      NOMINATED NODE   READINESS GATES
    hello   0/1     Pending   0          [age] <none>   linux-1   <none>           <none>
    $ transom get pods,deploy,cm -l app!=nothing --field-selector metadata.name!=kube-root-ca.crt
    NAME        READY   STATUS    RESTARTS   AGE
    pod/hello   0/1     Pending   0          [age]

    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    deployment.apps/web   0/2     0            0           [age]

    NAME                 DATA   AGE
    configmap/settings   1      [age]
    $ transom get Pod/hello deployments.apps/web
    NAME        READY   STATUS    RESTARTS   AGE
    pod/hello   0/1     Pending   0          [age]

    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    deployment.apps/web   0/2     0            0           [age]
    $ transom get pod hello -o name
    pod/hello
    $ transom get configmap settings -o yaml
    apiVersion: v1
    data:
      colour: blue
    kind: ConfigMap
    metadata:
      creationTimestamp: "[time]"
      name: settings
      namespace: default
      resourceVersion: "[version]"
      uid: [uid]
    $ transom get configmap settings -o json | grep -v Version
    {
      "data": {
        "colour": "blue"
      },
      "kind": "ConfigMap",
      "metadata": {
        "creationTimestamp": "[time]",
        "name": "settings",
        "namespace": "default",
        "uid": "[uid]"
      }
    }
    $ transom get configmap settings --show-labels
    NAME       DATA   AGE LABELS
    settings   1      [age] <none>
    $ transom get pods -A -o name
    pod/hello
    $ transom get ns default -A
    NAME      STATUS   AGE
    default   Active   [age]
    $ transom get pods -l app=other
    no pods found in namespace default
    $ transom get pods -l app=other -o json
    {
      "apiVersion": "v1",
      "items": [],
      "kind": "List",
      "metadata": {
        "resourceVersion": ""
      }
    }
    $ transom get services --field-selector metadata.name=nothing -A
    no services found
    "#);
}

#[test]
fn what_cannot_be_shown_is_said_with_a_way_forward() {
    let server = furnished();
    assert_transcript!(server, "
        transom get podz
        transom get pod nobody
        transom get pod hello nobody
        transom get pod hello nobody --ignore-not-found -o name
        transom get pod nobody -o json
        transom get pod/hello hello
        transom get pod hello -l app=hello
        transom get pod hello -A
        transom get pods,nodes --watch
        transom get pods -l 'a b'
        transom get pods --kubeconfig nowhere.yaml
    ", @r#"
    $ transom get podz
    error: the server has no kind `podz`
      hint: did you mean `pods`?
    [exit 4]
    $ transom get pod nobody
    error: pods "nobody" not found
    [exit 4]
    $ transom get pod hello nobody
    NAME    READY   STATUS    RESTARTS   AGE
    hello   0/1     Pending   0          [age]
    error: pods "nobody" not found
    [exit 4]
    $ transom get pod hello nobody --ignore-not-found -o name
    pod/hello
    $ transom get pod nobody -o json
    {"error":{"message":"pods \"nobody\" not found","causes":[],"hint":null,"code":4,"kind":"not-found"}}
    [exit 4]
    $ transom get pod/hello hello
    error: `hello` is not of the form KIND/NAME
      hint: either all words are KIND/NAME, or the first is the kind and the others are names
    [exit 2]
    $ transom get pod hello -l app=hello
    error: names and a selector cannot be given together
    [exit 2]
    $ transom get pod hello -A
    error: a name is looked for in one namespace, not in all
    [exit 2]
    $ transom get pods,nodes --watch
    error: one kind can be watched at a time, and of it all objects or one
    [exit 2]
    $ transom get pods -l 'a b'
    error: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
    [exit 1]
    $ transom get pods --kubeconfig nowhere.yaml
    error: there is no kubeconfig
      caused by: failed to open file `nowhere.yaml`: No such file or directory (os error 2)
      hint: start a cluster with `transom up` or `transom server`, or name the file with --kubeconfig
    [exit 4]
    "#);
}

#[test]
fn lists_longer_than_a_page_are_shown_whole() {
    let server = Server::start_with("memory");
    let items: Vec<String> = (0..510)
        .map(|number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: item-{number:03}, labels: {{paged: a}}}}\n---\n"))
        .collect();
    server.write("items.yaml", &items.concat());
    let applied = server.ok("transom apply -f items.yaml");
    assert_eq!(applied.lines().count(), 510);
    assert!(
        applied.lines().all(|line| line.ends_with(" created")),
        "{applied}"
    );
    let names = server.ok("transom get cm -l paged=a -o name");
    let expected: Vec<String> = (0..510)
        .map(|number| format!("configmap/item-{number:03}"))
        .collect();
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    let json = server.ok("transom get cm -l paged=a -o json | grep -c '\"kind\": \"ConfigMap\"'");
    assert_eq!(json.trim(), "510");
}

#[test]
fn a_watch_shows_what_changes() {
    let server = furnished();
    let watch = |words: &[&str]| {
        let mut command = server.transom();
        command.args(["get", "cm", "--watch"]).args(words);
        Beside::start(&mut command)
    };
    let rows = watch(&["--output-watch-events"]);
    let one = watch(&["second", "-o", "name"]);
    let objects = watch(&["-o", "json", "-l", "seen=yes"]);
    assert!(rows.until("settings").starts_with("ADDED"));
    server.write(
        "second.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n",
    );
    server.ok("transom apply -f second.yaml");
    assert!(rows.until("second").starts_with("ADDED"));
    one.until("configmap/second");
    server.ok("kubectl label configmap second seen=yes");
    assert!(rows.until("second").starts_with("MODIFIED"));
    objects.until("\"seen\": \"yes\"");
    server.ok("transom delete cm second");
    assert!(rows.until("second").starts_with("DELETED"));
}

#[test]
fn applying_makes_objects_what_files_say() {
    let server = Server::start();
    fs_err::create_dir_all(server.path("folder/below")).unwrap();
    // Namespace and definition are needed by what comes before them.
    server.write(
        "folder/a.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\nspec: {containers: [{name: c, image: registry.example/c:1}]}\n---\napiVersion: example.org/v1\nkind: Widget\nmetadata: {name: second, namespace: shop}\nspec: {size: large}\n",
    );
    server.ok("cp widgets.yaml folder/b.yaml");
    server.write(
        "folder/below/c.json",
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}"#,
    );
    server.write(
        "more.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: red}\n",
    );
    assert_transcript!(server, "
        transom apply -f folder -R --dry-run
        transom get ns shop
        transom apply -f folder -R
        transom apply -f folder -R
        transom get wd -n shop
        transom apply -f configmap.yaml
        transom apply -f configmap.yaml
        transom apply -f more.yaml --dry-run
        transom apply -f - < more.yaml
        transom apply -f more.yaml -f configmap.yaml -o json --dry-run
        transom get cm settings -o json --show-managed-fields | grep '\"manager\"'
    ", @r#"
    $ transom apply -f folder -R --dry-run
    namespace/shop created (dry run)
    customresourcedefinition.apiextensions.k8s.io/widgets.example.org created (dry run)
    pod/p created, but not checked: its namespace is not there yet (dry run)
    widget.example.org/second created, but not checked: its definition is not there yet (dry run)
    $ transom get ns shop
    error: namespaces "shop" not found
    [exit 4]
    $ transom apply -f folder -R
    namespace/shop created
    customresourcedefinition.apiextensions.k8s.io/widgets.example.org created
    pod/p created
    widget.example.org/second created
    $ transom apply -f folder -R
    namespace/shop unchanged
    customresourcedefinition.apiextensions.k8s.io/widgets.example.org unchanged
    pod/p unchanged
    widget.example.org/second unchanged
    $ transom get wd -n shop
    NAME     SIZE    COUNT   PHASE
    second   large   1
    $ transom apply -f configmap.yaml
    configmap/settings created
    $ transom apply -f configmap.yaml
    configmap/settings unchanged
    $ transom apply -f more.yaml --dry-run
    configmap/settings configured (dry run)
    $ transom apply -f - < more.yaml
    configmap/settings configured
    $ transom apply -f more.yaml -f configmap.yaml -o json --dry-run
    [
      {
        "object": "configmap/settings",
        "namespace": "default",
        "outcome": "unchanged",
        "dryRun": true
      },
      {
        "object": "configmap/settings",
        "namespace": "default",
        "outcome": "configured",
        "dryRun": true
      }
    ]
    $ transom get cm settings -o json --show-managed-fields | grep '"manager"'
            "manager": "transom",
    "#);
}

#[test]
fn nothing_is_sent_before_everything_was_understood() {
    let server = Server::start_with("memory");
    server.write(
        "good.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n",
    );
    server.write("broken.yaml", "apiVersion: v1\nkind: [\n");
    server.write(
        "nameless.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n",
    );
    server.write(
        "unknown.yaml",
        "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: a}\n",
    );
    server.write(
        "elsewhere.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n",
    );
    server.write("empty.yaml", "# nothing\n");
    assert_transcript!(server, "
        transom apply -f good.yaml -f broken.yaml
        transom apply -f good.yaml -f nameless.yaml
        transom apply -f good.yaml -f unknown.yaml
        transom apply -n default -f good.yaml -f elsewhere.yaml
        transom apply -f empty.yaml
        transom apply -f missing.yaml
        transom apply
        transom get cm good -o name
    ", @r#"
    $ transom apply -f good.yaml -f broken.yaml
    error: broken.yaml cannot be read
      caused by: error: line 2 column 7: unclosed bracket '['
         --> <input>:2:7
          |
        1 | apiVersion: v1
        2 | kind: [
          |       ^ unclosed bracket '['
    [exit 2]
    $ transom apply -f good.yaml -f nameless.yaml
    error: nameless.yaml, object 1: there is no metadata.name
      hint: every object has apiVersion, kind and metadata.name
    [exit 2]
    $ transom apply -f good.yaml -f unknown.yaml
    error: unknown.yaml, object 1: the server has no kind Gadget in example.org/v1
      hint: apply its definition first, or correct apiVersion and kind
    [exit 4]
    $ transom apply -n default -f good.yaml -f elsewhere.yaml
    error: elsewhere.yaml, object 1: a is for namespace shop, and --namespace says default
      hint: leave one of them out
    [exit 2]
    $ transom apply -f empty.yaml
    error: there are no objects in empty.yaml
      hint: folders are searched for .yaml, .yml and .json files, with -R also below them
    [exit 2]
    $ transom apply -f missing.yaml
    error: could not find `missing.yaml`
      caused by: failed to query resolved metadata `missing.yaml`: No such file or directory (os error 2)
    [exit 4]
    $ transom apply
    error: the following required arguments were not provided: --filename <FILE>
      hint: try --help

    Usage: transom apply --filename <FILE>
    [exit 2]
    $ transom get cm good -o name
    error: configmaps "good" not found
    [exit 4]
    "#);
}

#[test]
fn what_the_server_refuses_keeps_nothing_else_from_being_applied() {
    let server = Server::start_with("memory");
    server.write("bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\nnonsense: 1\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n");
    server.ok("kubectl create configmap shared --from-literal=colour=blue");
    server.write(
        "shared.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {colour: red}\n",
    );
    assert_transcript!(server, "
        transom apply -f bad.yaml
        transom apply -f shared.yaml
        transom apply -f shared.yaml --force-conflicts
        transom get cm shared -o json | grep colour
    ", @r#"
    $ transom apply -f bad.yaml
    configmap/good created
    error: 2 objects were not applied:
        configmap/Bad was not applied
          caused by: ConfigMap "Bad" is invalid: metadata.name: Invalid value: "Bad": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        configmap/extra was not applied
          caused by: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nonsense"
    [exit 1]
    $ transom apply -f shared.yaml
    error: configmap/shared was not applied, because fields belong to others
        .data.colour: conflict with "kubectl-create" using v1
      hint: leave these fields out of the file, or take them over with --force-conflicts
    [exit 1]
    $ transom apply -f shared.yaml --force-conflicts
    configmap/shared configured
    $ transom get cm shared -o json | grep colour
        "colour": "red"
    "#);
}

#[test]
fn objects_are_deleted_by_name_by_file_and_by_label() {
    let server = furnished();
    server.write("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.org/keeper]}\n");
    server.write("some.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {some: 'yes'}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {some: 'yes'}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
    server.ok("transom apply -f held.yaml -f some.yaml");
    assert_transcript!(server, "
        transom delete cm
        transom delete cm a --all
        transom delete
        transom delete cm a -f some.yaml
        transom delete cm c --dry-run
        transom delete cm -l some=yes
        transom delete -f some.yaml
        transom delete -f some.yaml --ignore-not-found
        transom delete cm/settings deploy/web
        transom delete cm nobody
        transom delete cm nobody --ignore-not-found
        transom delete cm held --timeout 1s
        transom delete cm held --wait=false
        transom delete pod hello --force --grace-period 3
        transom delete pod hello --force
        transom get pods
    ", @r#"
    $ transom delete cm
    error: it is not said which objects to delete
      hint: give names, labels with -l, or --all
    [exit 2]
    $ transom delete cm a --all
    error: names cannot be given together with a selector or --all
      hint: give one of them
    [exit 2]
    $ transom delete
    error: the following required arguments were not provided: <KIND>...
      hint: try --help

    Usage: transom delete <KIND>...
    [exit 2]
    $ transom delete cm a -f some.yaml
    error: the argument '[KIND]...' cannot be used with '--filename <FILE>'
      hint: try --help

    Usage: transom delete <KIND>...
    [exit 2]
    $ transom delete cm c --dry-run
    configmap/c deleted (dry run)
    $ transom delete cm -l some=yes
    configmap/a deleted
    configmap/b deleted
    $ transom delete -f some.yaml
    configmap/c deleted
    error: 2 objects were not deleted:
        configmap/b was not deleted
          caused by: configmaps "b" not found
        configmap/a was not deleted
          caused by: configmaps "a" not found
    [exit 4]
    $ transom delete -f some.yaml --ignore-not-found
    $ transom delete cm/settings deploy/web
    configmap/settings deleted
    deployment.apps/web deleted
    $ transom delete cm nobody
    error: configmap/nobody was not deleted
      caused by: configmaps "nobody" not found
    [exit 4]
    $ transom delete cm nobody --ignore-not-found
    $ transom delete cm held --timeout [age]
    configmap/held deleted
    error: configmap/held is still there after [age]
      caused by: it waits for whoever removes its finalizers: example.org/keeper
    [exit 1]
    $ transom delete cm held --wait=false
    configmap/held deleted
    $ transom delete pod hello --force --grace-period 3
    error: the argument '--force' cannot be used with '--grace-period <SECONDS>'
      hint: try --help

    Usage: transom delete --force <KIND>...
    [exit 2]
    $ transom delete pod hello --force
    warning: objects are forgotten at once; programs of pods may go on running on machines that do not answer
    pod/hello deleted
    $ transom get pods
    no pods found in namespace default
    "#);
}

#[test]
fn what_needs_a_machine_says_so() {
    let server = furnished();
    assert_transcript!(server, "
        transom logs hello
        transom logs hello -c nope
        transom logs deployment/web
        transom logs configmap/settings
        transom logs -l app=other
        transom logs
        transom exec hello -- echo hi
        transom exec nobody -- echo hi
        transom exec hello
        transom top nodes
        transom top pods
        transom top pods nobody
    ", @r#"
    $ transom logs hello
    error: could not read the log of container hello in pod hello
      caused by: no preferred addresses found; known addresses: []
    [exit 1]
    $ transom logs hello -c nope
    error: pod hello has no container `nope`
      hint: it has hello
    [exit 4]
    $ transom logs deployment/web
    error: deployment.apps/web has no pods now
      hint: its events say why: transom get events -n default --field-selector involvedObject.name=web
    [exit 4]
    $ transom logs configmap/settings
    error: configmap/settings has no pods of its own
      hint: name a pod, or something that makes pods, such as deployment/web
    [exit 2]
    $ transom logs -l app=other
    error: no pods in namespace default have the labels app=other
    [exit 4]
    $ transom logs
    error: the following required arguments were not provided: <POD>
      hint: try --help

    Usage: transom logs <POD>
    [exit 2]
    $ transom exec hello -- echo hi
    error: pod hello is Pending, not Running
      hint: its events say why: transom get events -n default --field-selector involvedObject.name=hello
    [exit 3]
    $ transom exec nobody -- echo hi
    error: pods "nobody" not found
    [exit 4]
    $ transom exec hello
    error: the following required arguments were not provided: <COMMAND>...
      hint: try --help

    Usage: transom exec <POD> -- <COMMAND>...
    [exit 2]
    $ transom top nodes
    error: there are no measurements of nodes yet
      hint: agents measure from some seconds after their start on; `transom get nodes` says whether they are Ready
    [exit 3]
    $ transom top pods
    no running pods found
    $ transom top pods nobody
    error: pods "nobody" not found
    [exit 4]
    "#);
}
