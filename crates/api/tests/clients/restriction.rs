//! A node with its real certificate against a server: what it is shown, and what it may change. Invariant: whatever
//! is refused here is allowed to the administrator, so that it is the node that is refused.

use serde_json::{Value, json};

use crate::raw::{Client, request};
use crate::tls::{Running, any_port};

struct Cluster {
    folder: tempfile::TempDir,
    server: Running,
    admin: Client,
    node: Client,
}

impl Cluster {
    /// Two nodes with a pod each; `node` is the first of them.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Running::with(&folder, any_port(), transom_api::Settings::default()).await;
        let admin = Client::admin(&folder, &server);
        let node = Client::new(&folder, &server, "system:node:n1", &["system:nodes"]);
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        admin.make(accounts, &named("default")).await;
        for (node, pod) in [("n1", "mine"), ("n2", "theirs")] {
            admin.make("/api/v1/nodes", &named(node)).await;
            let mut object = named(pod);
            object["spec"] = json!({
                "nodeName": node,
                "containers": [{"name": "a", "image": "registry.example/a:1"}],
            });
            admin.make(&pods(""), &object).await;
        }
        Self {
            folder,
            server,
            admin,
            node,
        }
    }

    async fn uid(&self, pod: &str) -> Value {
        let answer = self.admin.get(&pods(pod)).await;
        answer.json()["metadata"]["uid"].clone()
    }

    async fn token(&self, spec: &Value) -> (u16, String) {
        let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
        let answer = self.node.post(path, &json!({"spec": spec})).await;
        if answer.code == 201 {
            assert!(answer.json()["status"]["token"].is_string());
            return (201, String::new());
        }
        answer.refusal()
    }
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn pods(rest: &str) -> String {
    let slash = if rest.is_empty() { "" } else { "/" };
    format!("/api/v1/namespaces/default/pods{slash}{rest}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_gets_tokens_for_its_own_pods_only() {
    let cluster = Cluster::new().await;
    let bound =
        |pod: &str, uid: Value| json!({"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": uid});
    let mine = bound("mine", cluster.uid("mine").await);
    let theirs = bound("theirs", cluster.uid("theirs").await);
    let ask = async |audiences: &[&str], bound: &Value| {
        cluster
            .token(&json!({"audiences": audiences, "boundObjectRef": bound}))
            .await
    };
    assert_eq!(ask(&[], &mine).await, (201, String::new()));
    let refusals = [
        cluster.token(&json!({"expirationSeconds": 999_999})).await,
        ask(&[], &theirs).await,
        ask(&[], &bound("mine", "other".into())).await,
        ask(&["bank"], &mine).await,
    ];
    let lines = refusals.map(|(code, message)| format!("{code} {message}"));
    insta::assert_snapshot!(lines.join("\n").replace(cluster.uid("mine").await.as_str().unwrap(), "UID"), @r#"
    403 serviceaccounts "default" is forbidden: node requested token not bound to a pod
    403 serviceaccounts "default" is forbidden: node requested token bound to a pod scheduled on a different node
    403 serviceaccounts "default" is forbidden: the UID in the bound object reference (other) does not match the UID in record. The object might have been deleted and then recreated
    403 serviceaccounts "default" is forbidden: audience "bank" not found in pod spec volume, the node is not authorized to request tokens for this audience
    "#);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut role = named("for-the-bank");
    role["rules"] = json!([{
        "verbs": ["request-serviceaccounts-token-audience"],
        "apiGroups": [""], "resources": ["bank"], "resourceNames": ["default"],
    }]);
    let admin = &cluster.admin;
    admin.make(&format!("{rbac}/clusterroles"), &role).await;
    let mut binding = named("for-the-bank");
    let group = "rbac.authorization.k8s.io";
    binding["roleRef"] = json!({"apiGroup": group, "kind": "ClusterRole", "name": "for-the-bank"});
    binding["subjects"] = json!([{"apiGroup": group, "kind": "Group", "name": "system:nodes"}]);
    admin
        .make(&format!("{rbac}/clusterrolebindings"), &binding)
        .await;
    assert_eq!(ask(&["bank"], &mine).await, (201, String::new()));
    assert_eq!(ask(&["shop"], &mine).await.0, 403);
    cluster.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_lists_no_pods_but_its_own() {
    let cluster = Cluster::new().await;
    let answer = cluster
        .node
        .get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")
        .await;
    assert_eq!(answer.code, 200, "{answer:?}");
    let names: Vec<Value> = answer.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| pod["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["mine"]);
    for query in [
        "",
        "?fieldSelector=spec.nodeName%3Dn2",
        "?fieldSelector=spec.nodeName!%3Dn2",
        // The comma belongs to the name, so this would be all pods.
        r"?fieldSelector=metadata.name!%3Dx\,spec.nodeName%3Dn1",
        r"?watch=true&fieldSelector=metadata.name!%3Dx\,spec.nodeName%3Dn1",
    ] {
        let answer = cluster
            .node
            .get(&format!("/api/v1/pods{}", query.replace('\\', "%5C")))
            .await;
        assert_eq!(answer.code, 403, "{query}: {answer:?}");
    }
    cluster.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_changes_neither_other_nodes_nor_their_pods() {
    let cluster = Cluster::new().await;
    let code = async |client: &Client, method: &str, path: &str, body: &Value| {
        let answer = client.send(request(method, path, body.to_string())).await;
        (answer.code, answer.text)
    };
    let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1"});
    let binding = json!({"target": {"kind": "Node", "name": "n1"}});
    let labels = json!({"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}});
    let status = json!({"status": {"phase": "Running"}});
    let mut plain = named("no-mirror");
    plain["spec"] = json!({
        "nodeName": "n1",
        "containers": [{"name": "a", "image": "registry.example/a:1"}],
    });
    let refused = [
        ("PATCH", "/api/v1/nodes/n2/status".to_owned(), &json!({})),
        ("PATCH", "/api/v1/nodes/n1".to_owned(), &labels),
        ("PATCH", pods("theirs/status"), &status),
        ("POST", pods("theirs/eviction"), &eviction),
        ("POST", pods("mine/binding"), &binding),
        ("DELETE", pods("theirs"), &json!({})),
        ("POST", pods(""), &plain),
        (
            "GET",
            "/api/v1/namespaces/kube-system/secrets".to_owned(),
            &json!({}),
        ),
    ];
    for (method, path, body) in &refused {
        let (code, text) = code(&cluster.node, method, path, body).await;
        assert_eq!(code, 403, "{method} {path}: {text}");
    }
    for (method, path, body) in [
        (
            "PATCH",
            "/api/v1/nodes/n1/status".to_owned(),
            &json!({"status": {"nodeInfo": {}}}),
        ),
        ("PATCH", pods("mine/status"), &status),
        ("DELETE", pods("mine"), &json!({"gracePeriodSeconds": 0})),
    ] {
        let (code, text) = code(&cluster.node, method, &path, body).await;
        assert_eq!(code, 200, "{method} {path}: {text}");
    }
    // Nobody but a node is kept from these.
    for (method, path, body) in &refused[..4] {
        let (code, text) = code(&cluster.admin, method, path, body).await;
        assert!(matches!(code, 200 | 201), "{method} {path}: {text}");
    }
    // A certificate of the group alone makes no node.
    let nameless = Client::new(
        &cluster.folder,
        &cluster.server,
        "somebody",
        &["system:nodes"],
    );
    assert_eq!(nameless.get("/api/v1/nodes/n1").await.code, 403);
    cluster.server.stop().await;
}
