//! Tests of the chain: objects in memory, requests, and what becomes of them.

mod limits;
mod plugins;
mod security;

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{Access, Attributes, Chain, Context, Objects, Operation, Outcome};
use crate::{defaults, status::ApiError};

/// A cluster that is only a map: group, kind, namespace and name lead to objects.
#[derive(Default)]
struct World {
    objects: BTreeMap<(String, String, String, String), Arc<Value>>,
    /// Verbs and names of signers that the user has.
    rights: Vec<(&'static str, &'static str)>,
}

impl World {
    /// With the namespace `default` and its account.
    fn new() -> Self {
        let mut world = Self::default();
        world.add(
            "",
            "Namespace",
            &json!({"metadata": {"name": "default"}, "status": {"phase": "Active"}}),
        );
        world.add(
            "",
            "ServiceAccount",
            &json!({"metadata": {"name": "default", "namespace": "default"}}),
        );
        world
    }

    fn add(&mut self, group: &str, kind: &str, object: &Value) {
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        self.objects.insert(
            (
                group.to_owned(),
                kind.to_owned(),
                text("namespace"),
                text("name"),
            ),
            Arc::new(object.clone()),
        );
    }

    fn run(&self, request: &mut Attributes) -> Result<Outcome, ApiError> {
        let count = Cell::new(0);
        let suffix = || {
            count.set(count.get() + 1);
            format!("abcd{}", count.get())
        };
        let context = Context {
            objects: self,
            access: self,
            suffix: &suffix,
        };
        let chain = Chain::built_in();
        chain.mutate(request, &context)?;
        chain.validate(request, &context)
    }

    /// Runs a request that must be refused, and returns the sentence.
    fn refused(&self, request: &mut Attributes) -> String {
        match self.run(request) {
            Ok(_) => panic!("accepted: {}", request.object),
            Err(error) => error.message,
        }
    }
}

impl Objects for World {
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = (
            group.to_owned(),
            kind.to_owned(),
            namespace.to_owned(),
            name.to_owned(),
        );
        self.objects.get(&key).cloned()
    }

    fn list(&self, group: &str, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.objects
            .iter()
            .filter(|(key, _)| {
                key.0 == group && key.1 == kind && (namespace.is_empty() || key.2 == namespace)
            })
            .map(|(_, object)| object.clone())
            .collect()
    }
}

impl Access for World {
    fn allows(&self, verb: &str, _: &str, _: &str, name: &str) -> bool {
        self.rights.contains(&(verb, name))
    }
}

/// A request of an administrator about one object.
fn request(
    operation: Operation,
    group: &str,
    kind: &str,
    resource: &str,
    object: Value,
) -> Attributes {
    let mut object = object;
    defaults::apply(group, "v1", kind, &mut object);
    let text = |field: &str| {
        object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Attributes {
        operation,
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        resource: resource.to_owned(),
        subresource: String::new(),
        namespace: text("namespace"),
        name: text("name"),
        object,
        old: None,
        user: "admin".to_owned(),
        user_groups: vec!["system:masters".to_owned()],
        dry_run: false,
    }
}

/// The creation of a pod `p` in `default` with this spec, to which one container is added.
fn pod(spec: &Value) -> Attributes {
    let mut full = json!({"containers": [{"name": "c", "image": "i:1"}]});
    json_patch::merge(&mut full, spec);
    let object = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": full});
    request(Operation::Create, "", "Pod", "pods", object)
}

fn create(group: &str, kind: &str, resource: &str, object: Value) -> Attributes {
    request(Operation::Create, group, kind, resource, object)
}

#[test]
fn the_plugins_run_in_upstreams_order() {
    assert_eq!(
        Chain::built_in().names(),
        [
            "NamespaceLifecycle",
            "LimitRanger",
            "ServiceAccount",
            "NodeRestriction",
            "TaintNodesByCondition",
            "PodSecurity",
            "Priority",
            "DefaultTolerationSeconds",
            "DefaultStorageClass",
            "StorageObjectInUseProtection",
            "PersistentVolumeClaimResize",
            "RuntimeClass",
            "CertificateApproval",
            "CertificateSigning",
            "CertificateSubjectRestriction",
            "DefaultIngressClass",
            "ResourceQuota",
        ]
    );
}

#[test]
fn another_plugin_comes_before_the_quotas() {
    struct Webhook;
    impl super::Plugin for Webhook {
        fn name(&self) -> &'static str {
            "Webhook"
        }
    }
    let names = Chain::built_in().with(Box::new(Webhook)).names();
    assert_eq!(names[names.len() - 2..], ["Webhook", "ResourceQuota"]);
}

#[test]
fn a_pod_that_went_through_the_chain_keeps_to_the_rules() {
    let mut pod = pod(&json!({}));
    World::new().run(&mut pod).expect("a right pod");
    defaults::apply("", "v1", "Pod", &mut pod.object);
    assert_eq!(crate::validation::create("", "Pod", &pod.object), []);
}

#[test]
fn objects_of_any_shape_do_not_make_a_plugin_panic() {
    let world = World::new();
    for shape in [
        json!(null),
        json!([]),
        json!({"spec": 3}),
        json!({"spec": {"containers": {}}, "metadata": []}),
    ] {
        for kind in [
            "Pod",
            "Node",
            "Service",
            "PersistentVolumeClaim",
            "Namespace",
        ] {
            for operation in [
                Operation::Create,
                Operation::Update,
                Operation::Delete,
                Operation::Connect,
            ] {
                let mut request = create("", kind, "things", shape.clone());
                request.object = shape.clone();
                request.namespace = "default".to_owned();
                request.operation = operation;
                let _ = world.run(&mut request);
            }
        }
    }
}
