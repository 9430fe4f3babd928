//! Tells where services lead: `EndpointSlices`, and the older `Endpoints`, from the pods that services select.
//!
//! All that is needed is kept from watches. A change of a pod has the services looked at that select it, no others.

mod classic;
mod facts;
mod mirror;
mod slices;
#[cfg(test)]
mod tests;
mod trigger;

use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{Endpoints, Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
    core::PartialObjectMeta,
    runtime::watcher::Config,
};
use tokio_util::sync::CancellationToken;

use self::{
    facts::{PodFacts, selector, selects},
    slices::{NodeFacts, Plan},
    trigger::Triggers,
};
use crate::{
    fault::{Fault, ask, found},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 8;
/// Changes of pods that come one upon the other are written together.
const GATHER: Duration = Duration::from_millis(50);
const ZONE: &str = "topology.kubernetes.io/zone";

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    services: Known<Service>,
    /// In groups by their node.
    pods: Known<PodFacts>,
    nodes: Known<NodeFacts>,
    /// Ours only, in groups by their service.
    slices: Known<EndpointSlice>,
    endpoints: Known<Endpoints>,
    triggers: Triggers,
    queue: Queue<Key>,
}

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let world = World {
        client,
        shared_pods: pods,
        services: Known::new(),
        pods: Known::grouped(|pod| pod.node.clone()),
        nodes: Known::new(),
        slices: Known::grouped(|slice| service_of(slice).map(|key| group(&key))),
        endpoints: Known::new(),
        triggers: Triggers::default(),
        queue: Queue::new(),
    };
    let work = async {
        if stop.run_until_cancelled(world.complete()).await.is_some() {
            let look = |key| world.look(key);
            world.queue.drive("endpoints", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

fn group(service: &Key) -> String {
    format!("{}/{}", service.namespace, service.name)
}

/// The service that a slice tells about.
fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let labels = slice.metadata.labels.as_ref()?;
    let name = labels.get(slices::SERVICE_NAME)?;
    let namespace = slice.metadata.namespace.as_ref()?;
    Some(Key::new(namespace, name))
}

fn is_ours(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    let manager = labels.and_then(|labels| labels.get(classic::MANAGED_BY));
    manager.is_some_and(|name| name == classic::CONTROLLER)
}

fn is_mirrored(slice: &EndpointSlice) -> bool {
    let labels = slice.metadata.labels.as_ref();
    let manager = labels.and_then(|labels| labels.get(slices::MANAGED_BY));
    manager.is_some_and(|name| name == mirror::CONTROLLER)
}

/// That a namespace takes nothing more, since it is on its way out, is as good.
fn unless_closed(key: &Key, done: Result<(), Fault>) -> Result<Next, Fault> {
    match done {
        Err(fault) if fault.is_forbidden() => {
            tracing::debug!(?key, %fault, "a service gets no endpoints");
            Ok(Next::Done)
        }
        other => other.map(|()| Next::Done),
    }
}

impl World {
    async fn complete(&self) {
        tokio::join!(
            self.services.complete(),
            self.pods.complete(),
            self.nodes.complete(),
            self.slices.complete(),
            self.endpoints.complete(),
        );
    }

    /// Follows everything. It ends only if a watch does, which none should.
    async fn news(&self) {
        let all = Config::default;
        let ours = format!(
            "{} in ({},{})",
            slices::MANAGED_BY,
            slices::CONTROLLER,
            mirror::CONTROLLER
        );
        let services = keep(
            Api::<Service>::all(self.client.clone()),
            all(),
            &self.services,
            |mut service| {
                service.metadata.managed_fields = None;
                service.status = None;
                Some(service)
            },
            |key, _, _| self.queue.add(key.clone()),
        );
        let pods = keep_shared(
            &self.shared_pods,
            &self.pods,
            |pod| Some(PodFacts::read(pod)),
            |_, old, new| self.pod_changed(old, new),
        );
        let nodes = keep(
            Api::<PartialObjectMeta<Node>>::all(self.client.clone()),
            all(),
            &self.nodes,
            |node| {
                let zone = node.metadata.labels.and_then(|mut map| map.remove(ZONE));
                let zone = zone.filter(|zone| !zone.is_empty());
                Some(NodeFacts { zone })
            },
            |key, _, _| {
                for pod in self.pods.group(&key.name) {
                    self.pod_changed(None, Some(&pod));
                }
            },
        );
        let slices = keep(
            Api::<EndpointSlice>::all(self.client.clone()),
            all().labels(&ours),
            &self.slices,
            |mut slice| {
                slice.metadata.managed_fields = None;
                Some(slice)
            },
            |_, old, new| {
                for service in [old, new].into_iter().flatten().filter_map(service_of) {
                    self.queue.add(service);
                }
            },
        );
        let endpoints = keep(
            Api::<Endpoints>::all(self.client.clone()),
            all(),
            &self.endpoints,
            |mut endpoints| {
                endpoints.metadata.managed_fields = None;
                Some(endpoints)
            },
            |key, _, new| {
                // What somebody made for a service that is not there is theirs.
                if self.services.get(&key.namespace, &key.name).is_some()
                    || new.is_some_and(is_ours)
                {
                    self.queue.add(key.clone());
                }
            },
        );
        tokio::join!(services, pods, nodes, slices, endpoints);
    }

    fn pod_changed(&self, old: Option<&PodFacts>, new: Option<&PodFacts>) {
        let Some(pod) = new.or(old) else {
            return;
        };
        let concerns = |service: &Service| {
            [old, new]
                .into_iter()
                .flatten()
                .any(|pod| selects(service, &pod.labels))
        };
        for service in self.services.find(&pod.namespace, concerns) {
            self.queue.add_after(Key::of(&service.metadata), GATHER);
        }
    }

    /// Makes slices and endpoints of a service what they should be.
    async fn look(&self, key: Key) -> Result<Next, Fault> {
        let (mirrored, slices): (Vec<_>, Vec<_>) = self
            .slices
            .group(&group(&key))
            .into_iter()
            .partition(|slice| is_mirrored(slice));
        let endpoints = self.endpoints.get(&key.namespace, &key.name);
        let Some(service) = self.services.get(&key.namespace, &key.name) else {
            self.triggers.forget(&key);
            // Slices go with their owner.
            if endpoints.is_some() {
                self.delete_endpoints(&key).await?;
            }
            return Ok(Next::Done);
        };
        if service.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let plan = mirror::plan_mirror(&service, endpoints.as_deref(), &mirrored);
        let written = self.write_slices(&key.namespace, plan).await;
        if selector(&service).is_none() || written.is_err() {
            return unless_closed(&key, written);
        }
        let of_service = |pod: &PodFacts| selects(&service, &pod.labels);
        let pods = self.pods.find(&key.namespace, of_service);
        let trigger = self.triggers.take(&key, &service, &pods);
        let node = |name: &str| self.nodes.get("", name);
        let plan = slices::plan_slices(&service, &pods, node, &slices, trigger);
        let wanted = classic::plan_endpoints(&service, &pods, endpoints.as_deref(), trigger);
        let done = async {
            self.write_slices(&key.namespace, plan).await?;
            match wanted {
                Some(wanted) => self.write_endpoints(&key, wanted).await,
                None => Ok(()),
            }
        };
        unless_closed(&key, done.await)
    }

    async fn write_slices(&self, namespace: &str, plan: Plan) -> Result<(), Fault> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let parameters = PostParams::default();
        let note = |mut slice: EndpointSlice| {
            slice.metadata.managed_fields = None;
            self.slices.note(&slice.metadata.clone(), slice);
        };
        for slice in plan.create {
            note(ask(slices.create(&parameters, &slice)).await?);
        }
        for slice in plan.update {
            let name = slice.metadata.name.clone().unwrap_or_default();
            note(ask(slices.replace(&name, &parameters, &slice)).await?);
        }
        for slice in plan.delete {
            let key = Key::of(&slice.metadata);
            found(ask(slices.delete(&key.name, &DeleteParams::default())).await)?;
            self.slices.forget(&key);
        }
        Ok(())
    }

    async fn write_endpoints(&self, key: &Key, wanted: Endpoints) -> Result<(), Fault> {
        let endpoints: Api<Endpoints> = Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let mut newer = if wanted.metadata.resource_version.is_some() {
            ask(endpoints.replace(&key.name, &parameters, &wanted)).await?
        } else {
            ask(endpoints.create(&parameters, &wanted)).await?
        };
        newer.metadata.managed_fields = None;
        self.endpoints.note(&newer.metadata.clone(), newer);
        Ok(())
    }

    async fn delete_endpoints(&self, key: &Key) -> Result<(), Fault> {
        let endpoints: Api<Endpoints> = Api::namespaced(self.client.clone(), &key.namespace);
        found(ask(endpoints.delete(&key.name, &DeleteParams::default())).await)?;
        self.endpoints.forget(key);
        Ok(())
    }
}
