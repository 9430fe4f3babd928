//! Who may do what: the administrator, somebody impersonated, somebody with a certificate of their
//! own, a service account, and somebody without credentials.

use crate::server::Server;
use crate::transcript::assert_transcript;

#[test]
fn rights_come_from_roles() {
    let server = Server::start();
    server.ok("kubectl create -f configmap.yaml");
    assert_transcript!(server, "
        kubectl auth whoami
        kubectl auth can-i create pods
        kubectl auth can-i --list
        kubectl auth can-i get configmaps --as=jane
        kubectl get configmaps --as=jane
        kubectl create role reader --verb=get,list,watch --resource=configmaps
        kubectl create rolebinding readers --role=reader --group=readers
        kubectl get configmaps --as=jane --as-group=readers
        kubectl get configmaps --as=jane --as-group=readers -n kube-system
        kubectl delete configmap settings --as=jane --as-group=readers
        kubectl create clusterrolebinding all --clusterrole=view --user=joe
        kubectl auth can-i list pods --as=joe -A
        kubectl auth can-i list secrets --as=joe -A
        kubectl get configmaps --as=joe -o name
        kubectl create role more --verb='*' --resource=secrets --as=joe
        kubectl get --raw /metrics --as=joe
    ", @r#"
    $ kubectl auth whoami
    ATTRIBUTE                                           VALUE
    Username                                            transom-admin
    Groups                                              [system:masters system:authenticated]
    Extra: authentication.kubernetes.io/credential-id   [X509SHA256=[hash]]
    $ kubectl auth can-i create pods
    yes
    $ kubectl auth can-i --list
    Resources                                       Non-Resource URLs   Resource Names   Verbs
    *.*                                             []                  []               [*]
                                                    [*]                 []               [*]
    selfsubjectreviews.authentication.k8s.io        []                  []               [create]
    selfsubjectaccessreviews.authorization.k8s.io   []                  []               [create]
    selfsubjectrulesreviews.authorization.k8s.io    []                  []               [create]
                                                    [/api/*]            []               [get]
                                                    [/api]              []               [get]
                                                    [/apis/*]           []               [get]
                                                    [/apis]             []               [get]
                                                    [/healthz]          []               [get]
                                                    [/healthz]          []               [get]
                                                    [/livez]            []               [get]
                                                    [/livez]            []               [get]
                                                    [/openapi/*]        []               [get]
                                                    [/openapi]          []               [get]
                                                    [/readyz]           []               [get]
                                                    [/readyz]           []               [get]
                                                    [/version/]         []               [get]
                                                    [/version/]         []               [get]
                                                    [/version]          []               [get]
                                                    [/version]          []               [get]
    $ kubectl auth can-i get configmaps --as=jane
    no
    [exit 1]
    $ kubectl get configmaps --as=jane
    Error from server (Forbidden): configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"
    [exit 1]
    $ kubectl create role reader --verb=get,list,watch --resource=configmaps
    role.rbac.authorization.k8s.io/reader created
    $ kubectl create rolebinding readers --role=reader --group=readers
    rolebinding.rbac.authorization.k8s.io/readers created
    $ kubectl get configmaps --as=jane --as-group=readers
    NAME               DATA   AGE
    kube-root-ca.crt   1      [age]
    settings           1      [age]
    $ kubectl get configmaps --as=jane --as-group=readers -n kube-system
    Error from server (Forbidden): configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "kube-system"
    [exit 1]
    $ kubectl delete configmap settings --as=jane --as-group=readers
    Error from server (Forbidden): configmaps "settings" is forbidden: User "jane" cannot delete resource "configmaps" in API group "" in the namespace "default"
    [exit 1]
    $ kubectl create clusterrolebinding all --clusterrole=view --user=joe
    clusterrolebinding.rbac.authorization.k8s.io/all created
    $ kubectl auth can-i list pods --as=joe -A
    yes
    $ kubectl auth can-i list secrets --as=joe -A
    no
    [exit 1]
    $ kubectl get configmaps --as=joe -o name
    configmap/kube-root-ca.crt
    configmap/settings
    $ kubectl create role more --verb='*' --resource=secrets --as=joe
    Error from server (Forbidden): roles.rbac.authorization.k8s.io is forbidden: User "joe" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "default"
    [exit 1]
    $ kubectl get --raw /metrics --as=joe
    Error from server (Forbidden): forbidden: User "joe" cannot get path "/metrics"
    [exit 1]
    "#);
}

#[test]
fn people_and_programs_are_known_by_certificates_and_tokens() {
    let server = Server::start();
    server.ok("kubectl create serviceaccount robot");
    server.ok("kubectl create token robot > token");
    server.ok("openssl req -new -newkey rsa:2048 -nodes -keyout jane.key -subj /O=readers/CN=jane -out jane.csr");
    server.write("usage", "extendedKeyUsage=clientAuth\n");
    server.ok("openssl x509 -req -in jane.csr -CA data/pki/authority.pem -days 1 -extfile usage -out jane.crt");
    server.ok("openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -subj /O=system:masters/CN=eve -days 1 -out other.crt");
    for (name, flags) in [
        ("robot", "--token=$(cat token)"),
        ("wrong", "--token=wrong"),
        (
            "jane",
            "--client-certificate=jane.crt --client-key=jane.key",
        ),
        (
            "eve",
            "--client-certificate=other.crt --client-key=other.key",
        ),
    ] {
        let config = format!("kubectl config --kubeconfig={name}");
        let address = server.address();
        server.ok(&format!("{config} set-cluster here --server=https://{address} --certificate-authority=data/pki/ca.pem"));
        server.ok(&format!("{config} set-credentials me {flags}"));
        server.ok(&format!(
            "{config} set-context here --cluster=here --user=me"
        ));
        server.ok(&format!("{config} use-context here"));
    }
    assert_transcript!(server, "
        kubectl --kubeconfig=robot auth whoami -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}'
        kubectl --kubeconfig=robot get pods
        kubectl --kubeconfig=wrong get pods
        kubectl --kubeconfig=jane auth whoami -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}'
        kubectl --kubeconfig=jane get pods
    ", @r#"
    $ kubectl --kubeconfig=robot auth whoami -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}'
    system:serviceaccount:default:robot ["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"]
    $ kubectl --kubeconfig=robot get pods
    Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" in the namespace "default"
    [exit 1]
    $ kubectl --kubeconfig=wrong get pods
    error: You must be logged in to the server (Unauthorized)
    [exit 1]
    $ kubectl --kubeconfig=jane auth whoami -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}'
    jane ["readers","system:authenticated"]
    $ kubectl --kubeconfig=jane get pods
    Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"
    [exit 1]
    "#);
    // How a refused handshake reads depends on who writes first.
    let (text, code) = server.shell("kubectl --kubeconfig=eve get pods");
    assert_eq!(code, 1, "{text}");
    server.ok("kubectl delete serviceaccount robot");
    let token = fs_err::read_to_string(server.path("token")).unwrap();
    let header = format!("Authorization: Bearer {}", token.trim());
    let answer = server.fetch("/api/v1/namespaces", &["--header", &header]);
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(text.ends_with("\n401"), "{text}");
}

#[test]
fn without_credentials_only_health_and_version_answer() {
    let server = Server::start();
    for path in ["/livez", "/readyz", "/version"] {
        let text = String::from_utf8(server.fetch(path, &[]).stdout).unwrap();
        assert!(text.ends_with("\n200"), "{path}: {text}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/api/v1/namespaces",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/transom/backup",
        "/nonsense",
        "/api/v1/secrets",
    ] {
        let text = String::from_utf8(server.fetch(path, &["--path-as-is"]).stdout).unwrap();
        assert!(text.ends_with("\n401"), "{path}: {text}");
    }
    let metrics = server.ok("kubectl get --raw /metrics");
    assert!(metrics.contains("apiserver_request_total"), "{metrics}");
}

#[test]
fn nobody_gives_away_rights_that_they_do_not_have() {
    let server = Server::start();
    // Joe may write roles and bindings, and read config maps; that is all.
    server.ok("kubectl create role keeper --verb=create,update,patch,get --resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io");
    server.ok("kubectl create role reader --verb=get,list --resource=configmaps");
    for role in ["keeper", "reader"] {
        server.ok(&format!(
            "kubectl create rolebinding joe-{role} --role={role} --user=joe"
        ));
    }
    assert_transcript!(server, "
        kubectl create role mine --verb=get --resource=configmaps --as=joe
        kubectl create role more --verb=get,delete --resource=secrets --as=joe
        kubectl patch role mine --type=json -p '[{\"op\":\"add\",\"path\":\"/rules/0/verbs/-\",\"value\":\"delete\"}]' --as=joe
        kubectl create rolebinding fine --role=reader --user=ann --as=joe
        kubectl create rolebinding all --clusterrole=cluster-admin --user=joe --as=joe
    ", @r#"
    $ kubectl create role mine --verb=get --resource=configmaps --as=joe
    role.rbac.authorization.k8s.io/mine created
    $ kubectl create role more --verb=get,delete --resource=secrets --as=joe
    Error from server (Forbidden): roles.rbac.authorization.k8s.io "more" is forbidden: user "joe" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["secrets"], Verbs:["delete" "get"]}
    [exit 1]
    $ kubectl patch role mine --type=json -p '[{"op":"add","path":"/rules/0/verbs/-","value":"delete"}]' --as=joe
    Error from server (Forbidden): roles.rbac.authorization.k8s.io "mine" is forbidden: user "joe" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}
    [exit 1]
    $ kubectl create rolebinding fine --role=reader --user=ann --as=joe
    rolebinding.rbac.authorization.k8s.io/fine created
    $ kubectl create rolebinding all --clusterrole=cluster-admin --user=joe --as=joe
    error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "all" is forbidden: user "joe" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:["*"], Resources:["*"], Verbs:["*"]}
    {NonResourceURLs:["*"], Verbs:["*"]}
    [exit 1]
    "#);
    server.ok(
        "kubectl create role escalator --verb=escalate --resource=roles.rbac.authorization.k8s.io",
    );
    server.ok("kubectl create rolebinding joe-escalator --role=escalator --user=joe");
    server.ok("kubectl create clusterrole binder --verb=bind --resource=clusterroles.rbac.authorization.k8s.io --resource-name=view");
    server.ok("kubectl create rolebinding joe-binder --clusterrole=binder --user=joe");
    // Whoever may go beyond their rights says so; each right is for one thing only.
    server.ok("kubectl create role more --verb=get,delete --resource=secrets --as=joe");
    server.ok("kubectl create rolebinding view --clusterrole=view --user=ann --as=joe");
    let (text, code) = server
        .shell("kubectl create rolebinding all --clusterrole=cluster-admin --user=joe --as=joe");
    assert_eq!(code, 1, "{text}");
}

#[test]
fn a_secret_for_an_account_is_filled_and_goes_with_it() {
    let server = Server::start();
    server.write(
        "token.yaml",
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata:\n  name: robot-token\n  annotations:\n    kubernetes.io/service-account.name: robot\n",
    );
    // The secret may come first.
    server.ok("kubectl create -f token.yaml");
    server.ok("kubectl create serviceaccount robot");
    server.ok("kubectl wait --for=jsonpath={.data.token} secret/robot-token --timeout=50s");
    let field = |name: &str| {
        server.ok(&format!(
            "kubectl get secret robot-token -o jsonpath='{{.data.{name}}}' | base64 -d"
        ))
    };
    assert_eq!(field("namespace"), "default");
    assert_eq!(
        field("ca\\.crt"),
        fs_err::read_to_string(server.path("data/pki/ca.pem")).unwrap()
    );
    let header = format!("Authorization: Bearer {}", field("token"));
    let code = || {
        let answer = server.fetch("/api", &["--header", &header]).stdout;
        let text = String::from_utf8(answer).unwrap();
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(code(), "200");
    server.ok("kubectl delete serviceaccount robot");
    assert_eq!(code(), "401");
    server.ok("kubectl wait --for=delete secret/robot-token --timeout=50s");
}
