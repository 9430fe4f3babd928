//! Gives every namespace what pods in it count on: the account `default` and the certificates of the API.
//!
//! Decisions are made on what watches told; a request is sent only to change something.

mod plan;

use std::sync::Arc;

use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, ServiceAccount},
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::PostParams,
    core::PartialObjectMeta,
    runtime::{
        reflector::{ObjectRef, Store, store::Writer},
        watcher::{Config, Event},
    },
};
use tokio_util::sync::CancellationToken;

use self::plan::{ACCOUNT, MAP, Step, plan_steps};
use crate::{
    fault::{Fault, ask},
    follow::follow,
    queue::{Next, Queue},
};

const AT_ONCE: usize = 8;

type NamespaceMetadata = PartialObjectMeta<Namespace>;
type AccountMetadata = PartialObjectMeta<ServiceAccount>;

/// What is known of the cluster.
struct World {
    namespaces: Store<NamespaceMetadata>,
    accounts: Store<AccountMetadata>,
    maps: Store<ConfigMap>,
}

impl World {
    /// Returns when everything is known; `false` if that can never be.
    async fn is_complete(&self) -> bool {
        let (namespaces, accounts, maps) = tokio::join!(
            self.namespaces.wait_until_ready(),
            self.accounts.wait_until_ready(),
            self.maps.wait_until_ready(),
        );
        namespaces.is_ok() && accounts.is_ok() && maps.is_ok()
    }
}

pub(crate) async fn run(client: Client, root_ca: Arc<str>, stop: CancellationToken) {
    let namespaces = Writer::default();
    let accounts = Writer::default();
    let maps = Writer::default();
    let world = World {
        namespaces: namespaces.as_reader(),
        accounts: accounts.as_reader(),
        maps: maps.as_reader(),
    };
    let queue = Queue::new();
    let news = async {
        tokio::join!(
            watch(&client, None, namespaces, &world, &queue),
            watch(&client, Some(ACCOUNT), accounts, &world, &queue),
            watch(&client, Some(MAP), maps, &world, &queue),
        );
    };
    let work = async {
        if stop.run_until_cancelled(world.is_complete()).await == Some(true) {
            let work = |name| equip(&client, &world, &root_ca, name);
            queue.drive("accounts", AT_ONCE, &stop, work).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

/// Keeps a store up to date, and has the namespaces looked at that a change is about.
async fn watch<K>(
    client: &Client,
    name: Option<&str>,
    mut writer: Writer<K>,
    world: &World,
    queue: &Queue<String>,
) where
    K: Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let config = match name {
        Some(name) => Config::default().fields(&format!("metadata.name={name}")),
        None => Config::default(),
    };
    follow(Api::<K>::all(client.clone()), config, |event| {
        writer.apply_watcher_event(&event);
        match event {
            Event::Apply(object) | Event::Delete(object) => {
                queue.add(object.namespace().unwrap_or_else(|| object.name_any()));
            }
            // What went away while nobody watched is not told: all are looked at.
            Event::InitDone => {
                for namespace in world.namespaces.state() {
                    queue.add(namespace.name_any());
                }
            }
            Event::Init | Event::InitApply(_) => {}
        }
    })
    .await;
}

/// Makes and mends what a namespace lacks.
async fn equip(client: &Client, world: &World, root_ca: &str, name: String) -> Result<Next, Fault> {
    let Some(namespace) = world.namespaces.get(&ObjectRef::new(&name)) else {
        return Ok(Next::Done);
    };
    let account = world.accounts.get(&ObjectRef::new(ACCOUNT).within(&name));
    let map = world.maps.get(&ObjectRef::new(MAP).within(&name));
    let steps = plan_steps(
        &namespace.metadata,
        account.is_some(),
        map.as_deref(),
        root_ca,
    );
    for step in steps {
        match take(client, &name, step).await {
            Ok(()) => {}
            // The namespace is gone or on its way out.
            Err(fault) if fault.is_absent() || fault.is_forbidden() => {
                tracing::debug!(namespace = name, %fault, "a namespace takes nothing more");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(Next::Done)
}

async fn take(client: &Client, namespace: &str, step: Step) -> Result<(), Fault> {
    let parameters = PostParams::default();
    match step {
        Step::MakeAccount(account) => {
            let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
            unless_there(ask(accounts.create(&parameters, &account)).await)
        }
        Step::MakeMap(map) => {
            let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
            unless_there(ask(maps.create(&parameters, &map)).await)
        }
        Step::MendMap(map) => {
            let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
            ask(maps.replace(MAP, &parameters, &map)).await.map(|_| ())
        }
    }
}

/// That somebody made it meanwhile is as good; its watch event brings the next look.
fn unless_there<T>(answer: Result<T, Fault>) -> Result<(), Fault> {
    match answer {
        Err(fault) if !fault.is_conflict() => Err(fault),
        _ => Ok(()),
    }
}
