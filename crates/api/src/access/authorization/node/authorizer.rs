//! Answers to nodes.
//!
//! Resources that pods bring along are looked up in the graph; the rest is a fixed list of rules.

use std::sync::LazyLock;

use transom_model::images;

use super::{graph::NodeGraph, references::Sort};
use crate::access::authorization::{Attributes, Resource, Rule, Target, Verdict, policy};

const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The rules of the cluster role `system:node`.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(policy::node_rules);

impl NodeGraph {
    /// Whether a node may. Says nothing about anybody else.
    pub fn authorize(&self, attributes: &Attributes) -> Verdict {
        let Some(node) = attributes.user.node_name() else {
            return Verdict::no_opinion("");
        };
        let verb = attributes.verb.as_str();
        let answer = match &attributes.target {
            Target::Resource(about) => self.resource(node, verb, about),
            Target::Path(_) => None,
        };
        match answer {
            Some(Ok(())) => Verdict::allow(""),
            Some(Err(reason)) => Verdict::no_opinion(reason),
            None => {
                let mut rules = RULES.iter();
                if rules.any(|rule| rule.allows(verb, &attributes.target)) {
                    Verdict::allow("")
                } else {
                    Verdict::no_opinion("")
                }
            }
        }
    }

    /// `None` for resources that need no special look.
    fn resource(&self, node: &str, verb: &str, about: &Resource) -> Option<Result<(), String>> {
        Some(match (about.group.as_str(), about.resource.as_str()) {
            ("", "secrets") => self.read(node, verb, Sort::Secret, about),
            ("", "configmaps") => self.read(node, verb, Sort::ConfigMap, about),
            ("", "persistentvolumeclaims") if about.subresource == "status" => {
                self.claim_status(node, verb, about)
            }
            ("", "persistentvolumeclaims") => self.get(node, verb, Sort::Claim, about),
            ("resource.k8s.io", "resourceclaims") => {
                self.get(node, verb, Sort::ResourceClaim, about)
            }
            ("", "persistentvolumes") => only_get(verb, about)
                .and_then(|()| related(node, self.uses_volume(node, &about.name))),
            ("storage.k8s.io", "volumeattachments") => only_get(verb, about)
                .and_then(|()| related(node, self.is_attached(node, &about.name))),
            ("", "serviceaccounts") if verb == "get" && about.subresource.is_empty() => {
                self.get(node, verb, Sort::ServiceAccount, about)
            }
            ("", "serviceaccounts") => self.token(node, verb, about),
            ("coordination.k8s.io", "leases") => lease(node, verb, about),
            ("storage.k8s.io", "csinodes") => csi_node(node, verb, about),
            ("resource.k8s.io", "resourceslices") => self.slice(node, verb, about),
            ("", "nodes") => own_node(node, verb, about),
            ("", "pods") => self.pod(node, verb, about),
            (images::GROUP, images::PLURAL) => image(verb, about),
            _ => return None,
        })
    }

    fn read(&self, node: &str, verb: &str, sort: Sort, about: &Resource) -> Result<(), String> {
        check(is_read(verb), "can only read resources of this type")?;
        check(about.subresource.is_empty(), "cannot read subresource")?;
        let namespaced = !about.namespace.is_empty();
        check(namespaced, "can only read namespaced object of this type")?;
        self.named(node, sort, about)
    }

    fn get(&self, node: &str, verb: &str, sort: Sort, about: &Resource) -> Result<(), String> {
        only_get(verb, about)?;
        self.named(node, sort, about)
    }

    fn named(&self, node: &str, sort: Sort, about: &Resource) -> Result<(), String> {
        check(!about.name.is_empty(), "No Object name found")?;
        related(node, self.uses(node, sort, &about.namespace, &about.name))
    }

    fn claim_status(&self, node: &str, verb: &str, about: &Resource) -> Result<(), String> {
        let writes = matches!(verb, "update" | "patch");
        check(writes, "can only get/update/patch this type")?;
        self.named(node, Sort::Claim, about)
    }

    fn token(&self, node: &str, verb: &str, about: &Resource) -> Result<(), String> {
        let creates = verb == "create" && !about.name.is_empty();
        check(
            creates,
            "can only create tokens for individual service accounts",
        )?;
        let is_token = about.subresource == "token";
        check(
            is_token,
            "can only create token subresource of serviceaccount",
        )?;
        self.named(node, Sort::ServiceAccount, about)
    }

    fn slice(&self, node: &str, verb: &str, about: &Resource) -> Result<(), String> {
        let whole = about.subresource.is_empty();
        check(whole, "cannot authorize ResourceSlice subresources")?;
        match verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => {
                check(!about.name.is_empty(), "No Object name found")?;
                related(node, self.has_slice(node, &about.name))
            }
            "list" | "watch" | "deletecollection" => check(
                is_narrowed(about, node),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => Err("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection".to_owned()),
        }
    }

    fn pod(&self, node: &str, verb: &str, about: &Resource) -> Result<(), String> {
        let runs = || related(node, self.runs_pod(node, &about.namespace, &about.name));
        match (about.subresource.as_str(), verb) {
            ("", "get") => {
                check(!about.name.is_empty(), "No Object name found")?;
                runs()
            }
            ("", "list" | "watch") if is_narrowed(about, node) => Ok(()),
            ("", "list" | "watch") if !about.name.is_empty() => runs(),
            ("", "list" | "watch") => {
                Err("can only list/watch pods with spec.nodeName field selector".to_owned())
            }
            // Which pods these may be is a question of their content, for admission.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => Err(String::new()),
        }
    }
}

fn check(is_right: bool, otherwise: &str) -> Result<(), String> {
    if is_right {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

fn related(node: &str, is_related: bool) -> Result<(), String> {
    if is_related {
        Ok(())
    } else {
        Err(format!(
            "no relationship found between node '{node}' and this object"
        ))
    }
}

fn is_read(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}

fn is_narrowed(about: &Resource, node: &str) -> bool {
    let mut fields = about.fields.iter();
    fields.any(|(key, value)| key == "spec.nodeName" && value == node)
}

fn only_get(verb: &str, about: &Resource) -> Result<(), String> {
    check(
        verb == "get",
        "can only get individual resources of this type",
    )?;
    check(about.subresource.is_empty(), "cannot get subresource")?;
    check(!about.name.is_empty(), "No Object name found")
}

fn writes_own(verb: &str) -> bool {
    matches!(verb, "get" | "create" | "update" | "patch" | "delete")
}

fn lease(node: &str, verb: &str, about: &Resource) -> Result<(), String> {
    let text = "can only get, create, update, patch, or delete a node lease";
    check(writes_own(verb), text)?;
    let text = format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace");
    check(about.namespace == LEASE_NAMESPACE, &text)?;
    // The name of what is created is not known here; admission looks at it.
    let text = "can only access node lease with the same name as the requesting node";
    check(verb == "create" || about.name == node, text)
}

fn csi_node(node: &str, verb: &str, about: &Resource) -> Result<(), String> {
    let text = "can only get, create, update, patch, or delete a CSINode";
    check(writes_own(verb), text)?;
    let whole = about.subresource.is_empty();
    check(whole, "cannot authorize CSINode subresources")?;
    let text = "can only access CSINode with the same name as the requesting node";
    check(verb == "create" || about.name == node, text)
}

/// A node tells what it sees of images, and takes nothing back. What it may say is for admission.
fn image(verb: &str, about: &Resource) -> Result<(), String> {
    let text = "can only get, create, update or patch an image";
    let is_told = matches!(verb, "get" | "create" | "update" | "patch");
    check(is_told && about.subresource.is_empty(), text)?;
    check(
        verb == "create" || !about.name.is_empty(),
        "No Object name found",
    )
}

fn own_node(node: &str, verb: &str, about: &Resource) -> Result<(), String> {
    match (about.subresource.as_str(), verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") => match about.name.as_str() {
            name if name == node => Ok(()),
            "" => Err(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            other => Err(format!(
                "node '{node}' cannot read '{other}', only its own Node object"
            )),
        },
        _ => Err(String::new()),
    }
}
