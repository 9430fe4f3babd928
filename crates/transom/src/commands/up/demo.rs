//! Something to look at: one page, served by a deployment of this very program.

use std::env;
use std::net::SocketAddr;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::node::{Choice, OWN_IMAGE};

pub(super) const NAMESPACE: &str = "default";
pub(super) const NAME: &str = "hello";
/// Where the page is inside a pod that has a network of its own.
const INSIDE: u16 = 8080;

/// Applies the deployment. One that is there already is brought to this form.
pub(super) async fn deploy(
    client: &Client,
    runtime: Choice,
    address: SocketAddr,
) -> anyhow::Result<()> {
    let program = env::current_exe().context("could not find this program")?;
    let program = program
        .to_str()
        .context("the path of this program is not text")?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let manifest = manifest(runtime, address, program);
    let how = PatchParams::apply("transom-up").force();
    deployments
        .patch(NAME, &how, &Patch::Apply(manifest))
        .await
        .context("could not deploy the demonstration")?;
    Ok(())
}

fn manifest(runtime: Choice, address: SocketAddr, program: &str) -> Value {
    let has_own_network = runtime == Choice::Oci;
    let (program, listen) = if has_own_network {
        ("/transom", format!("0.0.0.0:{INSIDE}"))
    } else {
        (program, address.to_string())
    };
    let port = if has_own_network {
        json!({
            "name": "http",
            "containerPort": INSIDE,
            "hostPort": address.port(),
            "hostIP": address.ip(),
        })
    } else {
        json!({"name": "http", "containerPort": address.port(), "hostPort": address.port()})
    };
    // Windows runs no program of the machine that is not said to be one; Linux does not ask.
    let security = if has_own_network {
        json!({})
    } else {
        json!({"windowsOptions": {"hostProcess": true}})
    };
    let from_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let command = json!([
        program,
        "hello",
        format!("--listen={listen}"),
        "--pod=$(POD)",
        "--node=$(NODE)",
    ]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            // The port of the machine is taken by the old pod until it is gone.
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "hostNetwork": !has_own_network,
                    "securityContext": security,
                    "automountServiceAccountToken": false,
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{
                        "name": NAME,
                        "image": OWN_IMAGE,
                        "imagePullPolicy": "IfNotPresent",
                        "command": command,
                        "env": [from_field("POD", "metadata.name"), from_field("NODE", "spec.nodeName")],
                        "ports": [port],
                        "readinessProbe": {
                            "httpGet": {"path": "/healthz", "port": "http", "host": probe_host(has_own_network, address)},
                            "periodSeconds": 1,
                        },
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "16Mi"},
                            "limits": {"memory": "128Mi"},
                        },
                    }],
                },
            },
        },
    })
}

/// A page of the machine's network may listen on loopback only.
fn probe_host(has_own_network: bool, address: SocketAddr) -> Value {
    if has_own_network {
        Value::Null
    } else {
        address.ip().to_string().into()
    }
}
