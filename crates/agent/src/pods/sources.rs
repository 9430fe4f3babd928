//! Where pods come from: the API, a folder of manifests, and what an earlier life of the agent kept.
//!
//! A pod that the API does not have any more is only known to be gone once the API was asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Config, Event},
    },
};
use tokio_util::sync::CancellationToken;
use transom_runtime::RuntimeError;

use super::{Pods, admission, checkpoint, static_pods, worker::Wish};
use crate::site::Site;

/// How often the folder of manifests is read.
const MANIFESTS: Duration = Duration::from_secs(20);
/// How often pods are looked for that belong to nobody.
const ORPHANS: Duration = Duration::from_mins(1);

/// Follows all sources until `stop`.
pub(crate) async fn run(site: Arc<Site>, pods: Arc<Pods>, stop: CancellationToken) {
    let kept = {
        let here = Arc::clone(&site);
        tokio::task::spawn_blocking(move || checkpoint::load(&here))
            .await
            .unwrap_or_default()
    };
    let mut state = Sources {
        site: Arc::clone(&site),
        pods,
        listed: BTreeSet::new(),
        mirrors: BTreeMap::new(),
        is_synced: false,
    };
    if let Err(error) = site.observer.fresh().await {
        tracing::warn!(error, "the runtime could not be seen at the start");
    }
    for checkpoint in kept {
        site.config.restore(checkpoint.objects);
        let uid = checkpoint.pod.uid().unwrap_or_default();
        site.config.set_service_variables(&uid, checkpoint.services);
        if !static_pods::is_static(&checkpoint.pod) {
            state.adopt(Arc::new(checkpoint.pod));
        }
    }
    state.read_manifests().await;
    let selector = format!("spec.nodeName={}", site.options.node);
    let api = Api::<Pod>::all(site.client.clone());
    let mut events =
        pin!(watcher::watcher(api, Config::default().fields(&selector)).default_backoff());
    let mut manifests = tokio::time::interval(MANIFESTS);
    let mut orphans = tokio::time::interval(ORPHANS);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => match event {
                Some(Ok(event)) => {
                    let done = matches!(event, Event::InitDone);
                    state.take(event);
                    if done {
                        state.remove_orphans().await;
                        state.read_manifests().await;
                    }
                }
                Some(Err(error)) => tracing::debug!(%error, "the watch for pods failed and is tried again"),
                None => return,
            },
            _ = manifests.tick() => state.read_manifests().await,
            _ = orphans.tick() => state.remove_orphans().await,
        }
    }
}

struct Sources {
    site: Arc<Site>,
    pods: Arc<Pods>,
    /// The uids of a list that is coming in.
    listed: BTreeSet<String>,
    /// Mirrors of static pods, by namespace and name.
    mirrors: BTreeMap<(String, String), Arc<Pod>>,
    is_synced: bool,
}

fn key(pod: &Pod) -> (String, String) {
    (pod.namespace().unwrap_or_default(), pod.name_any())
}

impl Sources {
    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.uid());
                self.apply(pod);
            }
            Event::InitDone => {
                self.is_synced = true;
                let gone = |pod: &Arc<Pod>| {
                    !static_pods::is_static(pod)
                        && pod.uid().is_some_and(|uid| !self.listed.contains(&uid))
                };
                for pod in self.pods.list().into_iter().filter(gone) {
                    self.pods.remove(&pod.uid().unwrap_or_default());
                }
                let listed = &self.listed;
                self.mirrors
                    .retain(|_, pod| pod.uid().is_some_and(|uid| listed.contains(&uid)));
            }
            Event::Apply(pod) => self.apply(pod),
            Event::Delete(pod) if static_pods::is_mirror(&pod) => {
                self.mirrors.remove(&key(&pod));
                self.site.statuses.forget(&pod.uid().unwrap_or_default());
            }
            Event::Delete(pod) => self.pods.remove(&pod.uid().unwrap_or_default()),
        }
    }

    fn apply(&mut self, pod: Pod) {
        let pod = Arc::new(pod);
        if static_pods::is_mirror(&pod) {
            self.mirrors.insert(key(&pod), pod);
            return;
        }
        let site = Arc::clone(&self.site);
        let wish = Wish {
            pod: Arc::clone(&pod),
            removed: false,
            object: Some(Arc::clone(&pod)),
        };
        self.pods
            .want(wish, |others| admission::judge(&site, &pod, others));
    }

    /// A pod that ran before the agent was started again: it was admitted then.
    fn adopt(&self, pod: Arc<Pod>) {
        let wish = Wish {
            pod: Arc::clone(&pod),
            removed: false,
            object: Some(pod),
        };
        self.pods.want(wish, |_| None);
    }

    async fn read_manifests(&mut self) {
        let Some(folder) = self.site.options.static_pods.clone() else {
            return;
        };
        let site = Arc::clone(&self.site);
        let read = tokio::task::spawn_blocking(move || static_pods::read(&site, &folder)).await;
        let Ok(Some(wanted)) = read else { return };
        let uids: BTreeSet<_> = wanted.iter().filter_map(Pod::uid).collect();
        let is_gone = |pod: &Arc<Pod>| {
            static_pods::is_static(pod) && pod.uid().is_none_or(|uid| !uids.contains(&uid))
        };
        for pod in self.pods.list().into_iter().filter(is_gone) {
            self.pods.remove(&pod.uid().unwrap_or_default());
            if let Some(mirror) = self.mirrors.get(&key(&pod)) {
                self.site.statuses.delete(mirror);
            }
        }
        for pod in wanted {
            let mirror = self.mirrors.get(&key(&pod)).cloned();
            if self.is_synced {
                static_pods::ensure_mirror(&self.site, &pod, mirror.as_deref()).await;
            }
            let same = mirror.filter(|mirror| static_pods::is_mirror_of(mirror, &pod));
            self.pods.want(
                Wish {
                    pod: Arc::new(pod),
                    removed: false,
                    object: same,
                },
                |_| None,
            );
        }
    }

    /// Ends what the runtime has and nobody wants: its objects went while the agent was away.
    async fn remove_orphans(&self) {
        if !self.is_synced {
            return;
        }
        let wanted: BTreeSet<_> = self
            .pods
            .list()
            .iter()
            .filter_map(|pod| pod.uid())
            .collect();
        for uid in self.site.observer.uids() {
            if wanted.contains(&uid) {
                continue;
            }
            for sandbox in self.site.observer.sandboxes(&uid).iter() {
                tracing::info!(pod = sandbox.name, "a pod that nobody wants is removed");
                match self.site.options.runtime.remove_pod(&sandbox.id).await {
                    Ok(()) | Err(RuntimeError::NotFound { .. }) => {}
                    Err(error) => {
                        tracing::warn!(pod = sandbox.name, %error, "it could not be removed");
                    }
                }
            }
        }
        self.remove_folders(&wanted).await;
    }

    /// Folders of pods that are no more, left by an agent that died in the middle.
    async fn remove_folders(&self, wanted: &BTreeSet<String>) {
        let (site, wanted) = (Arc::clone(&self.site), wanted.clone());
        let work = move || {
            let folder = site.pods_folder();
            for entry in site.options.files.names(&folder).unwrap_or_default() {
                if wanted.contains(&entry.name) || !site.observer.sandboxes(&entry.name).is_empty()
                {
                    continue;
                }
                if let Err(error) = site
                    .options
                    .files
                    .remove_tree(&site.pod_folder(&entry.name))
                {
                    tracing::warn!(%error, "the folder of a pod could not be removed");
                }
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(work).await {
            tracing::warn!(%error, "folders of pods could not be removed");
        }
    }
}
