//! Every pod runs as a service account, and finds its token in a file.

use serde_json::{Value, json};

use super::{Attributes, Context, Outcome, Plugin, edit};
use crate::{status::ApiError, validation::read::Read};

const TOKEN_PLACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// A little more than an hour, so that tokens of pods can be told from others.
const TOKEN_SECONDS: i64 = 3607;

pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        if !request.creates("", "Pod") || is_mirror(&request.object) {
            return Ok(());
        }
        if let Some(spec) = request.object.get_mut("spec") {
            if spec.text("serviceAccountName").is_empty() {
                edit::put(spec, "serviceAccountName", "default");
            }
            // The old name of the field is still on the wire.
            let name = spec.text("serviceAccountName").to_owned();
            edit::put(spec, "serviceAccount", name);
        }
        let account = find(request, context)?;
        if let Some(spec) = request.object.get_mut("spec") {
            if wants_token(&account, spec) {
                mount_token(spec, context);
            }
            if spec.items("imagePullSecrets").is_empty()
                && !account.items("imagePullSecrets").is_empty()
            {
                edit::put(
                    spec,
                    "imagePullSecrets",
                    account["imagePullSecrets"].clone(),
                );
            }
        }
        Ok(())
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        if !request.creates("", "Pod") {
            return Ok(());
        }
        if !is_mirror(&request.object) {
            return find(request, context).map(|_| ());
        }
        let spec = &request.object["spec"];
        if !spec.text("serviceAccountName").is_empty() {
            return Err(request.refuse("a mirror pod may not reference service accounts"));
        }
        let names_secrets = spec
            .items("volumes")
            .iter()
            .any(|volume| volume.has("secret"));
        if names_secrets {
            return Err(request.refuse("a mirror pod may not reference secrets"));
        }
        let has_token = spec
            .items("volumes")
            .iter()
            .flat_map(|volume| volume["projected"].items("sources"))
            .any(|source| source.has("serviceAccountToken"));
        if has_token {
            return Err(
                request.refuse("a mirror pod may not use ServiceAccountToken volume projections")
            );
        }
        Ok(())
    }
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].has(MIRROR)
}

fn find(request: &Attributes, context: &Context<'_>) -> Result<std::sync::Arc<Value>, ApiError> {
    let name = request.object["spec"].text("serviceAccountName");
    context
        .objects
        .get("", "ServiceAccount", &request.namespace, name)
        .ok_or_else(|| {
            request.refuse(format!(
                "error looking up service account {}/{name}: serviceaccount {name:?} not found",
                request.namespace
            ))
        })
}

fn wants_token(account: &Value, spec: &Value) -> bool {
    spec.maybe_flag("automountServiceAccountToken")
        .or_else(|| account.maybe_flag("automountServiceAccountToken"))
        .unwrap_or(true)
}

/// Adds the volume with the token, and mounts it in containers that have nothing there yet.
fn mount_token(spec: &mut Value, context: &Context<'_>) {
    let existing = spec
        .items("volumes")
        .iter()
        .map(|volume| volume.text("name"))
        .find(|name| name.starts_with("kube-api-access-"))
        .map(str::to_owned);
    let name = existing
        .clone()
        .unwrap_or_else(|| format!("kube-api-access-{}", (context.suffix)()));
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in edit::items(spec, list) {
            let mounted = container
                .items("volumeMounts")
                .iter()
                .any(|mount| mount.text("mountPath") == TOKEN_PLACE);
            if mounted {
                continue;
            }
            needed = true;
            if let Some(mounts) = edit::list(container, "volumeMounts") {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PLACE}));
            }
        }
    }
    if needed
        && existing.is_none()
        && let Some(volumes) = edit::list(spec, "volumes")
    {
        volumes.push(token_volume(&name));
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}
