//! The tables, and what a start does to what is there.

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_line_of_the_tables_is_a_whole_rule() {
    let cluster = cluster::ROLES.iter().chain(controllers::ROLES);
    let lines = cluster.flat_map(|role| role.rules);
    let lines = lines.chain(namespaces::ROLES.iter().flat_map(|(_, _, rules)| *rules));
    for line in lines {
        let rule = parse(line);
        let known = [
            "approve",
            "create",
            "delete",
            "deletecollection",
            "escalate",
            "get",
            "impersonate",
            "list",
            "patch",
            "proxy",
            "sign",
            "update",
            "watch",
            "*",
        ];
        assert!(!rule.verbs.is_empty(), "{line}");
        for verb in &rule.verbs {
            assert!(known.contains(&verb.as_str()), "{line}");
        }
        let of_resources = !rule.groups.is_empty() && !rule.resources.is_empty();
        assert_eq!(of_resources, rule.paths.is_empty(), "{line}");
        for path in &rule.paths {
            assert!(path == "*" || path.starts_with('/'), "{line}");
        }
        for resource in &rule.resources {
            let plain = |letter: char| letter.is_ascii_lowercase() || "*/".contains(letter);
            assert!(resource.chars().all(plain), "{line}");
        }
    }
}

#[test]
fn names_are_there_once_and_bindings_find_their_roles() {
    let objects = bootstrap_policy();
    let mut names = BTreeSet::new();
    for object in &objects {
        let metadata = &object["metadata"];
        let name = format!(
            "{} {} {}",
            object["kind"], metadata["namespace"], metadata["name"]
        );
        assert!(names.insert(name.clone()), "{name}");
        assert_eq!(
            metadata["labels"]["kubernetes.io/bootstrapping"],
            "rbac-defaults"
        );
        if object["roleRef"].is_object() {
            let kind = &object["roleRef"]["kind"];
            let place = if kind == "Role" {
                &metadata["namespace"]
            } else {
                &Value::Null
            };
            let role = format!("{kind} {place} {}", object["roleRef"]["name"]);
            assert!(names.contains(&role), "{name} before {role}");
        }
    }
}

#[test]
fn a_line_means_what_its_words_say() {
    insta::assert_json_snapshot!(
        rules_of(&["read,create core,apps pods/log pods =b =a", "get url /b /a*"]),
        @r#"
        [
          {
            "apiGroups": [
              "",
              "apps"
            ],
            "resourceNames": [
              "a",
              "b"
            ],
            "resources": [
              "pods",
              "pods/log"
            ],
            "verbs": [
              "create",
              "get",
              "list",
              "watch"
            ]
          },
          {
            "nonResourceURLs": [
              "/a*",
              "/b"
            ],
            "verbs": [
              "get"
            ]
          }
        ]
        "#
    );
    insta::assert_json_snapshot!(aggregating("edit"), @r#"
    {
      "aggregationRule": {
        "clusterRoleSelectors": [
          {
            "matchLabels": {
              "rbac.authorization.k8s.io/aggregate-to-edit": "true"
            }
          }
        ]
      },
      "apiVersion": "rbac.authorization.k8s.io/v1",
      "kind": "ClusterRole",
      "metadata": {
        "annotations": {
          "rbac.authorization.kubernetes.io/autoupdate": "true"
        },
        "labels": {
          "kubernetes.io/bootstrapping": "rbac-defaults",
          "rbac.authorization.k8s.io/aggregate-to-admin": "true"
        },
        "name": "edit"
      },
      "rules": null
    }
    "#);
}

fn find(name: &str, kind: &str) -> Value {
    let objects = bootstrap_policy().into_iter();
    let mut found =
        objects.filter(|object| object["metadata"]["name"] == name && object["kind"] == kind);
    found.next().unwrap()
}

#[test]
fn missing_rights_come_back_and_additions_stay() {
    let wanted = find("system:node-problem-detector", "ClusterRole");
    assert_eq!(reconcile(None, &wanted), Reconciled::Create);
    assert_eq!(reconcile(Some(&wanted), &wanted), Reconciled::Keep);
    let mut changed = wanted.clone();
    changed["metadata"]["uid"] = "1".into();
    changed["metadata"]["labels"] = json!({"mine": "x"});
    changed["rules"] = json!([
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]},
        {"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]);
    let Reconciled::Update(merged) = reconcile(Some(&changed), &wanted) else {
        panic!("nothing to do?");
    };
    insta::assert_json_snapshot!(merged, @r#"
    {
      "apiVersion": "rbac.authorization.k8s.io/v1",
      "kind": "ClusterRole",
      "metadata": {
        "annotations": {
          "rbac.authorization.kubernetes.io/autoupdate": "true"
        },
        "labels": {
          "kubernetes.io/bootstrapping": "rbac-defaults",
          "mine": "x"
        },
        "name": "system:node-problem-detector",
        "uid": "1"
      },
      "rules": [
        {
          "apiGroups": [
            ""
          ],
          "resources": [
            "nodes"
          ],
          "verbs": [
            "*"
          ]
        },
        {
          "apiGroups": [
            "x"
          ],
          "resources": [
            "y"
          ],
          "verbs": [
            "z"
          ]
        },
        {
          "apiGroups": [
            "",
            "events.k8s.io"
          ],
          "resources": [
            "events"
          ],
          "verbs": [
            "create",
            "patch"
          ]
        },
        {
          "apiGroups": [
            ""
          ],
          "resources": [
            "events"
          ],
          "verbs": [
            "update"
          ]
        },
        {
          "apiGroups": [
            ""
          ],
          "resources": [
            "nodes/status"
          ],
          "verbs": [
            "patch"
          ]
        },
        {
          "apiGroups": [
            "events.k8s.io"
          ],
          "resources": [
            "events"
          ],
          "verbs": [
            "update"
          ]
        }
      ]
    }
    "#);
    assert_eq!(reconcile(Some(&merged), &wanted), Reconciled::Keep);
    changed["metadata"]["annotations"][AUTOUPDATE] = "false".into();
    assert_eq!(reconcile(Some(&changed), &wanted), Reconciled::Protected);
}

#[test]
fn missing_subjects_come_back_and_another_role_is_replaced() {
    let wanted = find("system:public-info-viewer", "ClusterRoleBinding");
    let mut changed = wanted.clone();
    let friend = json!({"kind": "User", "name": "friend"});
    changed["subjects"] = json!([friend, wanted["subjects"][1]]);
    let Reconciled::Update(merged) = reconcile(Some(&changed), &wanted) else {
        panic!("nothing to do?");
    };
    assert_eq!(
        merged["subjects"],
        json!([friend, wanted["subjects"][1], wanted["subjects"][0]])
    );
    changed["roleRef"]["name"] = "cluster-admin".into();
    assert_eq!(reconcile(Some(&changed), &wanted), Reconciled::Replace);
}

#[test]
fn an_aggregating_role_keeps_its_rules_and_gets_its_selectors_back() {
    let wanted = find("view", "ClusterRole");
    let mut computed = wanted.clone();
    computed["rules"] = json!([{"verbs": ["get"]}]);
    assert_eq!(reconcile(Some(&computed), &wanted), Reconciled::Keep);
    let mut bare = computed.clone();
    bare.as_object_mut().unwrap().remove("aggregationRule");
    let Reconciled::Update(merged) = reconcile(Some(&bare), &wanted) else {
        panic!("nothing to do?");
    };
    assert_eq!(merged["aggregationRule"], wanted["aggregationRule"]);
    assert_eq!(merged["rules"], computed["rules"]);
}
