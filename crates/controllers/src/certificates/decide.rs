//! Decides which requests for certificates are approved, and when one is not kept any more.

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::{
    api::{
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
        core::v1::Node,
    },
    jiff::{SignedDuration, Timestamp},
};

use super::request::Names;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";
const NODES: &str = "system:nodes";
const NODE: &str = "system:node:";

/// How long requests are kept that were decided about, and those that were not.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// On what grounds a request can be approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// Who asks may create this subresource of requests.
    Right {
        subresource: &'static str,
        message: &'static str,
    },
    /// A node asks for its own names, if they are those of this node.
    NamesOf { node: String },
}

pub(super) const SERVING_MESSAGE: &str =
    "Auto approving kubelet serving certificate: all names and addresses are those of the node.";

/// The grounds to look at, the first that holds counts.
pub(super) fn grounds(spec: &CertificateSigningRequestSpec, names: &Names) -> Vec<Ground> {
    let asks = spec.username.as_deref().unwrap_or_default();
    let of_node = names.organizations == [NODES] && names.common.len() > NODE.len();
    let Some(node) = names.common.strip_prefix(NODE).filter(|_| of_node) else {
        return Vec::new();
    };
    let itself = asks == names.common;
    if spec.signer_name == CLIENT && wants(spec, "client auth") && !names.has_alternatives() {
        let own = Ground::Right {
            subresource: "selfnodeclient",
            message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
        };
        let any = Ground::Right {
            subresource: "nodeclient",
            message: "Auto approving kubelet client certificate after SubjectAccessReview.",
        };
        return Some(own)
            .filter(|_| itself)
            .into_iter()
            .chain([any])
            .collect();
    }
    let is_named = names.has_alternatives() && !names.has_others;
    if spec.signer_name == SERVING && wants(spec, "server auth") && is_named && itself {
        return vec![Ground::NamesOf {
            node: node.to_owned(),
        }];
    }
    Vec::new()
}

/// Whether a request is for exactly what nodes need. Only keys of RSA can be for enciphering keys.
fn wants(spec: &CertificateSigningRequestSpec, role: &str) -> bool {
    let usages = spec.usages.iter().flatten().map(String::as_str);
    let mut usages: BTreeSet<&str> = usages.collect();
    usages.remove("key encipherment");
    usages == BTreeSet::from(["digital signature", role])
}

/// Whether all names of a request are those that a node has.
pub(super) fn are_names_of(names: &Names, node: &Node) -> bool {
    let status = node.status.clone().unwrap_or_default();
    let known: Vec<String> = status
        .addresses
        .unwrap_or_default()
        .into_iter()
        .map(|address| address.address)
        .collect();
    let name = node.metadata.name.as_deref();
    let has_host = |host: &String| known.contains(host) || name == Some(host);
    let has_address = |address: &IpAddr| known.iter().any(|each| each.parse() == Ok(*address));
    names.hosts.iter().all(has_host) && names.addresses.iter().all(has_address)
}

/// What was decided about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Pending,
    /// It waits to be signed.
    Approved,
    Issued,
    Over,
}

pub(super) fn stage(request: &CertificateSigningRequest) -> Stage {
    let Some(status) = &request.status else {
        return Stage::Pending;
    };
    let has = |kind: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.any(|each| each.type_ == kind && each.status != "False")
    };
    if has("Denied") || has("Failed") {
        Stage::Over
    } else if status
        .certificate
        .as_ref()
        .is_some_and(|each| !each.0.is_empty())
    {
        Stage::Issued
    } else if has("Approved") {
        Stage::Approved
    } else {
        Stage::Pending
    }
}

/// When a request is not kept any more.
pub(super) fn ends(request: &CertificateSigningRequest) -> Timestamp {
    let status = request.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let last = conditions.iter().filter_map(|condition| {
        let updated = condition.last_update_time.as_ref();
        Some(updated.or(condition.last_transition_time.as_ref())?.0)
    });
    let created = request.metadata.creation_timestamp.as_ref();
    let created = created.map_or(Timestamp::MAX, |time| time.0);
    let kept = if stage(request) == Stage::Pending {
        created.saturating_add(PENDING)
    } else {
        last.max().unwrap_or(created).saturating_add(DECIDED)
    };
    kept.unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(signer: &str, user: &str, usages: &[&str]) -> CertificateSigningRequestSpec {
        serde_json::from_value(json!({
            "signerName": signer, "username": user, "usages": usages, "request": "",
        }))
        .unwrap()
    }

    fn names(common: &str, organization: &str, hosts: &[&str]) -> Names {
        Names {
            common: common.to_owned(),
            organizations: vec![organization.to_owned()],
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..Names::default()
        }
    }

    fn found(spec: &CertificateSigningRequestSpec, names: &Names) -> Vec<String> {
        let grounds = grounds(spec, names).into_iter();
        grounds
            .map(|ground| match ground {
                Ground::Right { subresource, .. } => subresource.to_owned(),
                Ground::NamesOf { node } => format!("names of {node}"),
            })
            .collect()
    }

    #[test]
    fn nodes_are_recognized_by_exactly_what_they_ask_for() {
        let client = ["digital signature", "client auth"];
        let serving = ["digital signature", "server auth", "key encipherment"];
        let node = "system:node:one";
        for (spec, names, expected) in [
            (
                spec(CLIENT, "system:bootstrap:abc", &client),
                names(node, NODES, &[]),
                &["nodeclient"][..],
            ),
            (
                spec(CLIENT, node, &client),
                names(node, NODES, &[]),
                &["selfnodeclient", "nodeclient"],
            ),
            (spec(CLIENT, node, &client), names(node, NODES, &["x"]), &[]),
            (spec(CLIENT, node, &serving), names(node, NODES, &[]), &[]),
            (
                spec(CLIENT, node, &client),
                names(node, "system:masters", &[]),
                &[],
            ),
            (
                spec(CLIENT, node, &client),
                names("system:node:", NODES, &[]),
                &[],
            ),
            (
                spec(SERVING, node, &serving),
                names(node, NODES, &["one"]),
                &["names of one"],
            ),
            (spec(SERVING, node, &serving), names(node, NODES, &[]), &[]),
            (
                spec(SERVING, "system:node:two", &serving),
                names(node, NODES, &["one"]),
                &[],
            ),
            (
                spec("example.org/own", node, &client),
                names(node, NODES, &[]),
                &[],
            ),
        ] {
            assert_eq!(found(&spec, &names), expected, "{spec:?} {names:?}");
        }
    }

    #[test]
    fn a_node_may_have_its_own_names_only() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "one"},
            "status": {"addresses": [
                {"type": "InternalIP", "address": "10.0.0.5"},
                {"type": "Hostname", "address": "one.example.org"},
            ]},
        }))
        .unwrap();
        let mut own = names("", "", &["one", "one.example.org"]);
        own.addresses = vec!["10.0.0.5".parse().unwrap()];
        assert!(are_names_of(&own, &node));
        assert!(!are_names_of(&names("", "", &["two"]), &node));
        own.addresses.push("10.0.0.6".parse().unwrap());
        assert!(!are_names_of(&own, &node));
    }

    fn request(status: &Value) -> CertificateSigningRequest {
        serde_json::from_value(json!({
            "metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"request": "", "signerName": CLIENT},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn requests_are_kept_until_nobody_needs_them() {
        let condition = |kind: &str| json!([{"type": kind, "status": "True", "lastUpdateTime": "2026-01-01T02:00:00Z"}]);
        for (status, expected, end) in [
            (json!({}), Stage::Pending, "2026-01-02T00:00:00Z"),
            (
                json!({"conditions": condition("Approved")}),
                Stage::Approved,
                "2026-01-01T03:00:00Z",
            ),
            (
                json!({"conditions": condition("Approved"), "certificate": "eA=="}),
                Stage::Issued,
                "2026-01-01T03:00:00Z",
            ),
            (
                json!({"conditions": condition("Denied")}),
                Stage::Over,
                "2026-01-01T03:00:00Z",
            ),
        ] {
            let request = request(&status);
            assert_eq!(stage(&request), expected);
            assert_eq!(ends(&request).to_string(), end);
        }
    }
}
