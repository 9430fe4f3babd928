//! Fills cluster roles that are made of others with the rules of those.
//!
//! Any role may be a part of any other, so all that are made of parts are looked at after each change; a request
//! is sent only where the rules differ.

mod plan;

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{
        reflector::{ObjectRef, Store, store::Writer},
        watcher::{Config, Event},
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::plan::plan_rules;
use crate::{
    fault::{Fault, ask, found},
    follow::follow,
    queue::{Next, Queue},
};

const AT_ONCE: usize = 2;
/// Upstream's name for who writes these rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

pub(crate) async fn run(client: Client, stop: CancellationToken) {
    let mut writer = Writer::default();
    let roles = writer.as_reader();
    let queue = Queue::new();
    let news = follow(
        Api::<ClusterRole>::all(client.clone()),
        Config::default(),
        |event| {
            writer.apply_watcher_event(&event);
            if matches!(event, Event::Apply(_) | Event::Delete(_) | Event::InitDone) {
                for role in roles.state() {
                    if role.aggregation_rule.is_some() {
                        queue.add(role.name_any());
                    }
                }
            }
        },
    );
    let work = async {
        if let Some(Ok(())) = stop.run_until_cancelled(roles.wait_until_ready()).await {
            let work = |name| fill(&client, &roles, name);
            queue.drive("roles", AT_ONCE, &stop, work).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

/// Gives a role the rules of its parts.
async fn fill(client: &Client, known: &Store<ClusterRole>, name: String) -> Result<Next, Fault> {
    let Some(whole) = known.get(&ObjectRef::new(&name)) else {
        return Ok(Next::Done);
    };
    let Some(rules) = plan_rules(&whole, &known.state()) else {
        return Ok(Next::Done);
    };
    let patch = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    });
    let all: Api<ClusterRole> = Api::all(client.clone());
    let parameters = PatchParams::apply(MANAGER).force();
    found(ask(all.patch(&name, &parameters, &Patch::Apply(patch))).await)?;
    Ok(Next::Done)
}
