//! Bodies that kubectl 1.33 sent, and the JSON that the same command prints with `--dry-run=client -o json`,
//! without its nulls.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::decode;
use crate::schema::builtin;

/// `kubectl create deployment web --image=nginx --replicas=0 --port=80`
const DEPLOYMENT: &str = "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErgBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEoYBCAASDAoKCgNhcHASA3dlYhpsChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkwSLgoFbmdpbngSBW5naW54KgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA=";

/// `kubectl create service nodeport np --tcp=80:8080`
const SERVICE: &str = "azhzAAoNCgJ2MRIHU2VydmljZRJlCh0KAm5wEgAaACIAKgAyADgAQgBaCQoDYXBwEgJucBJAChsKBzgwLTgwODASA1RDUBhQIgcIABCQPxoAKAASCQoDYXBwEgJucBoAIghOb2RlUG9ydDoAQgBSAFoAYABoABoCCgAaACIA";

/// `kubectl create poddisruptionbudget p --min-available=50% --selector=a=b`
const BUDGET: &str = "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFwEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggKBgoBYRIBYhoKCAAYACAAKAAwABoAIgA=";

/// `kubectl auth can-i list pods`
const REVIEW: &str = "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPQoQCgASABoAIgAqADIAOABCABIfCh0KB2RlZmF1bHQSBGxpc3QaACIAKgRwb2RzMgA6ABoICAASABoAIAAaACIA";

fn read(recorded: &str) -> Value {
    decode(builtin(), &STANDARD.decode(recorded).unwrap())
        .unwrap()
        .2
}

#[test]
fn a_deployment_without_replicas_keeps_its_zero() {
    assert_eq!(
        read(DEPLOYMENT),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{
                        "image": "nginx",
                        "name": "nginx",
                        "ports": [{"containerPort": 80}],
                        "resources": {},
                    }]},
                },
            },
            "status": {},
        })
    );
}

#[test]
fn a_service() {
    assert_eq!(
        read(SERVICE),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "np", "labels": {"app": "np"}},
            "spec": {
                "ports": [{"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}],
                "selector": {"app": "np"},
                "type": "NodePort",
            },
            "status": {"loadBalancer": {}},
        })
    );
}

#[test]
fn a_budget_has_numbers_that_are_always_there() {
    assert_eq!(
        read(BUDGET),
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "p"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
            "status": {
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "disruptionsAllowed": 0,
                "expectedPods": 0,
            },
        })
    );
}

#[test]
fn a_review() {
    assert_eq!(
        read(REVIEW),
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": {
                "namespace": "default",
                "resource": "pods",
                "verb": "list",
            }},
            "status": {"allowed": false},
        })
    );
}
