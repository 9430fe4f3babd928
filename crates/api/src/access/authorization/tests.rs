//! The authorizers together, reviews, and giving away rights.

use serde_json::{Value, json};

use super::{review::*, *};

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned());
    User::authenticated(name, groups.collect())
}

/// A cluster with the default policy; bob edits in `dev`, dora reads everywhere.
fn cluster() -> Authorizer {
    let mut authorizer = Authorizer::default();
    for object in policy::bootstrap_policy() {
        let kind = match object["kind"].as_str().unwrap() {
            "Role" => Kind::Role,
            "ClusterRole" => Kind::ClusterRole,
            "RoleBinding" => Kind::RoleBinding,
            _ => Kind::ClusterRoleBinding,
        };
        authorizer.rbac.put(kind, &object);
    }
    authorizer.rbac.put(
        Kind::RoleBinding,
        &json!({
            "metadata": {"namespace": "dev", "name": "bob-edits"},
            "roleRef": {"kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "User", "name": "bob"}],
        }),
    );
    authorizer.rbac.put(
        Kind::ClusterRoleBinding,
        &json!({
            "metadata": {"name": "dora-views"},
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "name": "dora"}],
        }),
    );
    authorizer
}

fn ask(user: User, verb: &str, what: &str, namespace: &str) -> Attributes {
    let (group, resource) = what.split_once(':').unwrap_or(("", what));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes::resource(
        user,
        verb,
        Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            ..Resource::default()
        },
    )
}

#[test]
fn the_default_roles_mean_what_people_expect() {
    let authorizer = cluster();
    for (name, verb, what, namespace, allowed) in [
        ("bob", "create", "pods", "dev", true),
        ("bob", "get", "pods/log", "dev", true),
        ("bob", "create", "pods/exec", "dev", true),
        ("bob", "list", "secrets", "dev", true),
        ("bob", "create", "pods", "prod", false),
        (
            "bob",
            "create",
            "rbac.authorization.k8s.io:roles",
            "dev",
            false,
        ),
        ("bob", "update", "pods/status", "dev", false),
        ("bob", "delete", "namespaces", "dev", false),
        ("bob", "list", "nodes", "", false),
        ("dora", "list", "pods", "", true),
        ("dora", "get", "apps:deployments", "prod", true),
        ("dora", "list", "secrets", "prod", false),
        ("dora", "create", "pods/exec", "prod", false),
        (
            "dora",
            "create",
            "authorization.k8s.io:selfsubjectaccessreviews",
            "",
            true,
        ),
        (
            "system:kube-scheduler",
            "create",
            "pods/binding",
            "prod",
            true,
        ),
        (
            "system:serviceaccount:kube-system:job-controller",
            "create",
            "pods",
            "x",
            true,
        ),
        (
            "system:serviceaccount:kube-system:job-controller",
            "get",
            "secrets",
            "x",
            false,
        ),
    ] {
        let verdict = authorizer.authorize(&ask(user(name, &[]), verb, what, namespace));
        assert_eq!(
            verdict.is_allowed(),
            allowed,
            "{name} {verb} {what} {namespace}"
        );
    }
    let paths = |name: User, path: &str| {
        let asked = Attributes::path(name, "get", path);
        authorizer.authorize(&asked).is_allowed()
    };
    assert!(paths(user("bob", &[]), "/apis/apps/v1"));
    assert!(!paths(user("bob", &[]), "/metrics"));
    assert!(paths(
        user("prometheus", &["system:monitoring"]),
        "/metrics"
    ));
    assert!(paths(User::anonymous(), "/version"));
    assert!(!paths(User::anonymous(), "/api"));
    assert!(paths(
        user("system:serviceaccount:a:b", &["system:serviceaccounts"]),
        "/openid/v1/jwks"
    ));
}

#[test]
fn masters_may_do_everything_even_without_roles() {
    let authorizer = Authorizer::default();
    let master = user("root", &[group::MASTERS]);
    assert!(
        authorizer
            .authorize(&ask(master, "escalate", "x:y", "z"))
            .is_allowed()
    );
}

#[test]
fn refusals_are_worded_as_upstream_words_them() {
    let authorizer = cluster();
    let refused = |asked: Attributes| {
        let error = authorizer.require(&asked).unwrap_err();
        assert_eq!((error.code, error.reason), (403, "Forbidden"));
        error.message
    };
    let mut texts = vec![
        refused(ask(user("eve", &[]), "list", "pods", "default")),
        refused(ask(user("eve", &[]), "list", "nodes", "")),
        refused(ask(user("eve", &[]), "get", "apps:deployments/scale", "x")),
        refused(Attributes::path(user("eve", &[]), "get", "/metrics")),
        refused(ask(
            user("system:node:a", &[group::NODES]),
            "list",
            "nodes",
            "",
        )),
    ];
    let mut named = ask(user("eve", &[]), "get", "secrets", "x");
    if let Target::Resource(about) = &mut named.target {
        about.name = "s".to_owned();
    }
    texts.push(refused(named));
    insta::assert_snapshot!(texts.join("\n"), @r#"
    pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "default"
    nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope
    deployments.apps is forbidden: User "eve" cannot get resource "deployments/scale" in API group "apps" in the namespace "x"
    forbidden: User "eve" cannot get path "/metrics"
    nodes is forbidden: User "system:node:a" cannot list resource "nodes" in API group "" at the cluster scope: node 'a' cannot read all nodes, only its own Node object
    secrets "s" is forbidden: User "eve" cannot get resource "secrets" in API group "" in the namespace "x"
    "#);
}

fn review(kind: &str, spec: &Value) -> Value {
    json!({"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec})
}

#[test]
fn reviews_answer_what_a_request_would_get() {
    let authorizer = cluster();
    let pods = json!({"verb": "list", "resource": "pods", "namespace": "dev"});
    let answered = self_subject_access_review(
        review(
            "SelfSubjectAccessReview",
            &json!({"resourceAttributes": pods}),
        ),
        &user("bob", &[]),
        |asked| authorizer.authorize(asked),
    );
    assert_eq!(
        answered.unwrap()["status"],
        json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"bob-edits/dev\" of ClusterRole \"edit\" to User \"bob\""})
    );
    let answered = subject_access_review(
        review(
            "SubjectAccessReview",
            &json!({
                "user": "eve", "groups": ["system:authenticated"],
                "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
            }),
        ),
        |asked| authorizer.authorize(asked),
    );
    assert_eq!(answered.unwrap()["status"], json!({"allowed": false}));
    let local = json!({"groups": ["system:masters"], "resourceAttributes": pods});
    let answered =
        local_subject_access_review(review("LocalSubjectAccessReview", &local), "dev", |asked| {
            authorizer.authorize(asked)
        });
    let answered = answered.unwrap();
    assert_eq!(answered["status"], json!({"allowed": true}));
    assert_eq!(answered["metadata"]["namespace"], "dev");
}

#[test]
fn reviews_without_a_question_are_refused() {
    let never = |_: &Attributes| -> Verdict { panic!("nobody is asked") };
    let mut texts = Vec::new();
    let path = json!({"verb": "get", "path": "/"});
    let pods = json!({"verb": "get", "resource": "pods"});
    for spec in [
        json!({}),
        json!({"user": "a", "resourceAttributes": pods, "nonResourceAttributes": path}),
        json!({"resourceAttributes": pods}),
    ] {
        let asked = subject_access_review(review("SubjectAccessReview", &spec), never);
        texts.push(asked.unwrap_err().message);
    }
    let mut named = review(
        "SelfSubjectAccessReview",
        &json!({"resourceAttributes": pods}),
    );
    named["metadata"] = json!({"name": "x"});
    let bob = user("bob", &[]);
    texts.push(
        self_subject_access_review(named, &bob, never)
            .unwrap_err()
            .message,
    );
    let local = |spec: Value| {
        let asked =
            local_subject_access_review(review("LocalSubjectAccessReview", &spec), "n", never);
        asked.unwrap_err().message
    };
    texts.push(local(
        json!({"user": "a", "resourceAttributes": {"namespace": "other"}}),
    ));
    texts.push(local(json!({"user": "a", "nonResourceAttributes": path})));
    let rules = review("SelfSubjectRulesReview", &json!({}));
    let asked = self_subject_rules_review(rules, &bob, |_, _| (Vec::new(), Vec::new()));
    texts.push(asked.unwrap_err().message);
    insta::assert_snapshot!(texts.join("\n"), @r#"
    SubjectAccessReview.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]
    SubjectAccessReview.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"path":"/","verb":"get"}: cannot be specified in combination with resourceAttributes
    SubjectAccessReview.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified
    SelfSubjectAccessReview.authorization.k8s.io "" is invalid: metadata: Invalid value: {"name":"x"}: must be empty
    LocalSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace
    LocalSubjectAccessReview.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"path":"/","verb":"get"}: disallowed on this kind of request
    no namespace on request
    "#);
}

#[test]
fn a_rules_review_lists_rules_and_says_when_it_cannot_know_all() {
    let authorizer = cluster();
    let ask = |user: &User| {
        let asked = review("SelfSubjectRulesReview", &json!({"namespace": "dev"}));
        let rules_for = |user: &User, namespace: &str| authorizer.rules_for(user, namespace);
        self_subject_rules_review(asked, user, rules_for).unwrap()["status"].clone()
    };
    let bob = ask(&user("bob", &[]));
    assert_eq!(bob["incomplete"], false);
    assert_eq!(bob["evaluationError"], Value::Null);
    assert_eq!(
        bob["resourceRules"][0],
        json!({
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        })
    );
    assert!(bob["nonResourceRules"][0]["nonResourceURLs"].is_array());
    let node = ask(&user("system:node:a", &[group::NODES]));
    assert_eq!(node["incomplete"], true);
    assert_eq!(
        node["evaluationError"],
        "node authorizer does not support user rule resolution"
    );
}

#[test]
fn field_selectors_narrow_only_when_they_say_is() {
    let narrowed = |text: &str| narrowed_fields(text);
    let expected = [("spec.nodeName".to_owned(), "a".to_owned())];
    assert_eq!(narrowed("spec.nodeName=a"), expected);
    assert_eq!(narrowed("spec.nodeName==a"), expected);
    assert!(narrowed("spec.nodeName!=a").is_empty());
    assert!(narrowed("").is_empty());
    assert!(narrowed("spec.nodeName").is_empty());
    // The comma is part of a name that nothing has, so all but nothing is selected.
    assert!(narrowed(r"metadata.name!=x\,spec.nodeName=a").is_empty());
    assert_eq!(
        narrowed(r"metadata.name=x\,spec.nodeName=a"),
        [("metadata.name".to_owned(), "x,spec.nodeName=a".to_owned())]
    );
    assert!(narrowed("spec.nodeName=a,nonsense").is_empty());
}

fn write(user: &User, kind: Kind, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let authorizer = cluster();
    check_escalation(&authorizer.rbac, kind, object, old, user, |asked| {
        authorizer.authorize(asked).is_allowed()
    })
}

fn role(rules: &Value) -> Value {
    json!({"metadata": {"namespace": "dev", "name": "r"}, "rules": rules})
}

#[test]
fn nobody_gives_away_what_they_do_not_have() {
    let bob = user("bob", &[]);
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!([{"apiGroups": groups, "resources": resources, "verbs": verbs}]);
    for held in [
        rule(&[""], &["pods"], &["create", "get"]),
        rule(&["apps", "batch"], &[], &["*"]),
        rule(&[], &["pods"], &["*"]),
        json!([]),
        json!(null),
    ] {
        write(&bob, Kind::Role, &role(&held), None)
            .unwrap_or_else(|error| panic!("{held} {error}"));
    }
    let mut texts = Vec::new();
    for wanted in [
        rule(&[""], &["pods", "nodes"], &["get", "list"]),
        rule(&["*"], &["pods"], &["get"]),
        rule(&[""], &["*"], &["get"]),
        rule(&[""], &["pods"], &["*"]),
        rule(&[""], &["*/log"], &["get"]),
        json!([{"nonResourceURLs": ["/api/*", "/metrics"], "verbs": ["get"]}]),
        json!([{"apiGroups": [""], "resources": ["pods/status"], "resourceNames": ["p"], "verbs": ["patch"]}]),
    ] {
        texts.push(
            write(&bob, Kind::Role, &role(&wanted), None)
                .unwrap_err()
                .message,
        );
    }
    insta::assert_snapshot!(texts.join("\n\n"), @r#"
    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}

    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:["*"], Resources:["pods"], Verbs:["get"]}

    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["*"], Verbs:["get"]}

    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["pods"], Verbs:["*"]}

    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["*/log"], Verbs:["get"]}

    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {NonResourceURLs:["/metrics"], Verbs:["get"]}

    roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:[""], Resources:["pods/status"], ResourceNames:["p"], Verbs:["patch"]}
    "#);
}

#[test]
fn those_who_may_escalate_or_bind_may() {
    let everything = role(&json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]));
    let master = user("root", &[group::MASTERS]);
    write(&master, Kind::Role, &everything, None).unwrap();
    let aggregator = user(
        "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
        &[],
    );
    write(&aggregator, Kind::ClusterRole, &everything, None).unwrap();
    write(&aggregator, Kind::Role, &everything, None).unwrap_err();
    let bob = user("bob", &[]);
    let mut finalized = everything.clone();
    finalized["metadata"]["finalizers"] = json!([]);
    write(&bob, Kind::Role, &finalized, Some(&everything)).unwrap();
    // A label could make the role a part of one that bob has.
    let mut labelled = everything.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    write(&bob, Kind::Role, &labelled, Some(&everything)).unwrap_err();
    write(&bob, Kind::Role, &everything, Some(&role(&json!([])))).unwrap_err();
}

#[test]
fn binding_a_role_needs_its_rights() {
    let bind = |name: &str, role: &str| {
        let object = json!({
            "metadata": {"namespace": "dev", "name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": "friend"}],
        });
        write(&user(name, &[]), Kind::RoleBinding, &object, None)
    };
    bind("bob", "view").unwrap();
    bind("bob", "edit").unwrap();
    assert_eq!(bind("bob", "admin").unwrap_err().code, 403);
    assert_eq!(bind("dora", "edit").unwrap_err().code, 403);
    let missing = bind("bob", "gone").unwrap_err();
    assert_eq!(
        missing.message,
        r#"clusterroles.rbac.authorization.k8s.io "gone" not found"#
    );
}

#[test]
fn an_aggregation_rule_needs_all_rights() {
    let object = json!({
        "metadata": {"name": "r"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    });
    let error = write(&user("dora", &[]), Kind::ClusterRole, &object, None).unwrap_err();
    assert_eq!(
        error.message,
        r#"clusterroles.rbac.authorization.k8s.io "r" is forbidden: must have cluster-admin privileges to use the aggregationRule"#
    );
}

#[test]
fn a_role_with_a_million_rights_is_refused_quickly() {
    let many: Vec<String> = (0..100).map(|number| format!("x{number}")).collect();
    let rules = json!([{"apiGroups": many, "resources": many, "verbs": many}]);
    let error = write(&user("bob", &[]), Kind::Role, &role(&rules), None).unwrap_err();
    assert!(error.message.contains("more than 65536"), "{error}");
}
