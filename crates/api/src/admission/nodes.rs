//! Nodes: what they may change, and that a new one gets no pods before it is ready.

use serde_json::{Value, json};

use super::{Access, Attributes, Context, Objects, Operation, Outcome, Plugin, edit};
use crate::{
    access::{
        authentication::User,
        authorization::{
            Resource,
            node::restriction::{self, Change, Known},
        },
    },
    status::ApiError,
    validation::read::Read,
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn mutate(&self, request: &mut Attributes, _: &Context<'_>) -> Result<(), ApiError> {
        if !request.creates("", "Node") {
            return Ok(());
        }
        if edit::within(&mut request.object, "spec").is_some()
            && let Some(spec) = request.object.get_mut("spec")
            && let Some(taints) = edit::list(spec, "taints")
            && !taints
                .iter()
                .any(|taint| taint.text("key") == NOT_READY && taint.text("effect") == "NoSchedule")
        {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        Ok(())
    }
}

pub(super) struct NodeRestriction;

/// What the rules for nodes must know of other objects.
struct Others<'a> {
    objects: &'a dyn Objects,
    access: &'a dyn Access,
}

impl Known for Others<'_> {
    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        let pod = self.objects.get("", "Pod", namespace, name)?;
        Some(pod.as_ref().clone())
    }

    fn node_uid(&self, name: &str) -> Option<String> {
        let node = self.objects.get("", "Node", "", name)?;
        Some(node["metadata"].text("uid").to_owned())
    }

    fn driver_audiences(&self, driver: &str) -> Vec<String> {
        let driver = self.objects.get("storage.k8s.io", "CSIDriver", "", driver);
        let requests = driver.as_deref().unwrap_or(&Value::Null)["spec"].items("tokenRequests");
        let audiences = requests.iter().map(|request| request.text("audience"));
        audiences.map(str::to_owned).collect()
    }

    fn claim_driver(&self, namespace: &str, claim: &str) -> Option<String> {
        let kind = "PersistentVolumeClaim";
        let claim = self.objects.get("", kind, namespace, claim)?;
        let volume = claim["spec"].text("volumeName");
        let volume = self.objects.get("", "PersistentVolume", "", volume)?;
        Some(volume["spec"]["csi"].text("driver").to_owned())
    }

    fn may_ask_for(&self, audience: &str, account: &str) -> bool {
        // As upstream has it, the audience stands where a resource would.
        let verb = "request-serviceaccounts-token-audience";
        self.access.allows(verb, "", audience, account)
    }
}

impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        let operation = match request.operation {
            Operation::Create => restriction::Operation::Create,
            Operation::Update => restriction::Operation::Update,
            Operation::Delete => restriction::Operation::Delete,
            Operation::Connect => return Ok(()),
        };
        let user = User {
            name: request.user.clone(),
            groups: request.user_groups.clone(),
            ..User::default()
        };
        let resource = Resource {
            group: request.group.clone(),
            version: request.version.clone(),
            resource: request.resource.clone(),
            subresource: request.subresource.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            fields: Vec::new(),
        };
        let change = Change {
            operation,
            resource: &resource,
            object: &request.object,
            old: request.old(),
        };
        let others = Others {
            objects: context.objects,
            access: context.access,
        };
        restriction::check_node(&user, &change, &others)
    }
}
