//! Binds claims to volumes, says what becomes of volumes whose claim is gone, and holds back what is in use.
//!
//! Binding takes up to four writes, each on the version that was seen. After any of them everything may die: the
//! next look completes what is missing.

mod claims;
mod supply;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::{
    api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    runtime::watcher::Config,
};
use tokio_util::sync::CancellationToken;

use self::claims::{Remark, class_of, class_of_volume, plan_claim};
use crate::{
    announce::{Announcer, core},
    fault::{Fault, ask, fetch, found},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 8;
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Item {
    Claim(Key),
    Volume(String),
}

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    /// Those that are not bound, in groups by their class.
    claims: Known<PersistentVolumeClaim>,
    /// Those that are nobody's, in groups by their class.
    volumes: Known<PersistentVolume>,
    classes: Known<StorageClass>,
    /// Claims that pods on nodes use.
    users: Known<Vec<String>>,
    queue: Queue<Item>,
    events: Announcer,
}

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let world = World {
        events: Announcer::new(client.clone(), "persistentvolume-controller"),
        client,
        shared_pods: pods,
        claims: Known::grouped(|claim| {
            let is_bound = claims::has_annotation(&claim.metadata, claims::BIND_COMPLETED);
            (!is_bound).then(|| class_of(claim))
        }),
        volumes: Known::grouped(|volume| {
            let reference = volume
                .spec
                .as_ref()
                .and_then(|spec| spec.claim_ref.as_ref());
            let uid = reference.and_then(|reference| reference.uid.as_ref());
            uid.is_none().then(|| class_of_volume(volume))
        }),
        classes: Known::new(),
        users: Known::new(),
        queue: Queue::new(),
    };
    let complete = async {
        tokio::join!(
            world.claims.complete(),
            world.volumes.complete(),
            world.classes.complete(),
            world.users.complete(),
        );
    };
    let work = async {
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |item| world.look(item);
            world.queue.drive("volumes", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

/// The claims that a pod keeps in use. One without a node, or that ended, uses none.
fn claims_of(pod: &Pod) -> Option<Vec<String>> {
    let spec = pod.spec.as_ref()?;
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    if has_ended || spec.node_name.as_ref().is_none_or(String::is_empty) {
        return None;
    }
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = spec.volumes.iter().flatten();
    let claims: Vec<String> = volumes
        .filter_map(|volume| match &volume.persistent_volume_claim {
            Some(source) => Some(source.claim_name.clone()),
            None => (volume.ephemeral.as_ref()).map(|_| format!("{pod}-{}", volume.name)),
        })
        .collect();
    (!claims.is_empty()).then_some(claims)
}

fn is_held(metadata: &ObjectMeta, finalizer: &str) -> bool {
    let mut finalizers = metadata.finalizers.iter().flatten();
    metadata.deletion_timestamp.is_some() && finalizers.any(|each| each == finalizer)
}

fn release(metadata: &mut ObjectMeta, finalizer: &str) {
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|each| each != finalizer);
    }
}

impl World {
    async fn news(&self) {
        let claims = keep(
            Api::<PersistentVolumeClaim>::all(self.client.clone()),
            Config::default(),
            &self.claims,
            |mut claim| {
                claim.metadata.managed_fields = None;
                Some(claim)
            },
            |key, old, new| {
                self.queue.add(Item::Claim(key.clone()));
                for claim in [old, new].into_iter().flatten() {
                    let spec = claim.spec.as_ref();
                    if let Some(name) = spec.and_then(|spec| spec.volume_name.clone()) {
                        self.queue.add(Item::Volume(name));
                    }
                }
            },
        );
        let volumes = keep(
            Api::<PersistentVolume>::all(self.client.clone()),
            Config::default(),
            &self.volumes,
            |mut volume| {
                volume.metadata.managed_fields = None;
                Some(volume)
            },
            |key, old, new| self.volume_changed(&key.name, old, new),
        );
        let classes = keep(
            Api::<StorageClass>::all(self.client.clone()),
            Config::default(),
            &self.classes,
            |mut class| {
                class.metadata.managed_fields = None;
                Some(class)
            },
            |key, _, _| self.look_at_claims_of(&key.name),
        );
        let users = keep_shared(&self.shared_pods, &self.users, claims_of, |key, old, _| {
            for name in old.into_iter().flatten() {
                self.queue.add(Item::Claim(Key::new(&key.namespace, name)));
            }
        });
        tokio::join!(claims, volumes, classes, users);
    }

    fn volume_changed(
        &self,
        name: &str,
        old: Option<&PersistentVolume>,
        new: Option<&PersistentVolume>,
    ) {
        self.queue.add(Item::Volume(name.to_owned()));
        for volume in [old, new].into_iter().flatten() {
            let reference = volume
                .spec
                .as_ref()
                .and_then(|spec| spec.claim_ref.as_ref());
            match reference.map(|reference| (&reference.namespace, &reference.name)) {
                Some((Some(namespace), Some(name))) => {
                    self.queue.add(Item::Claim(Key::new(namespace, name)));
                }
                // One that somebody may have.
                _ => self.look_at_claims_of(&class_of_volume(volume)),
            }
        }
    }

    fn look_at_claims_of(&self, class: &str) {
        for claim in self.claims.group(class) {
            self.queue.add(Item::Claim(Key::of(&claim.metadata)));
        }
    }

    async fn look(&self, item: Item) -> Result<Next, Fault> {
        match item {
            Item::Claim(key) => self.look_at_claim(&key).await?,
            Item::Volume(name) => Box::pin(self.look_at_volume(&name)).await?,
        }
        Ok(Next::Done)
    }

    async fn look_at_claim(&self, key: &Key) -> Result<(), Fault> {
        let Some(claim) = self.claims.get(&key.namespace, &key.name) else {
            return Ok(());
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return self.let_claim_go(&claim).await;
        }
        let class = class_of(&claim);
        let spec = claim.spec.as_ref();
        let named = spec.and_then(|spec| spec.volume_name.as_ref());
        let named = named.and_then(|name| self.volumes.get("", name));
        let candidates = self.volumes.group(&class);
        let class = self.classes.get("", &class);
        match plan_claim(&claim, named, &candidates, class.as_deref()) {
            claims::Step::Bind(volume) => self.bind(&claim, volume).await,
            claims::Step::Pend {
                provisioner,
                remark,
            } => {
                let mut claim = claim;
                let told = provisioner.and_then(|name| claims::told_claim(&claim, &name));
                if let Some(told) = told {
                    claim = self.write_claim(&told).await?;
                }
                self.unbind(&claim, "Pending", remark).await
            }
            claims::Step::Lose(remark) => self.unbind(&claim, "Lost", Some(remark)).await,
        }
    }

    /// Completes what is missing on either side.
    async fn bind(
        &self,
        claim: &Arc<PersistentVolumeClaim>,
        mut volume: Arc<PersistentVolume>,
    ) -> Result<(), Fault> {
        if let Some(given) = supply::given(&volume, claim) {
            volume = self.write_volume(&given).await?;
        }
        let now = Timestamp::now();
        if let Some(bound) = supply::in_phase(&volume, "Bound", None, now) {
            volume = self.write_volume_status(&bound).await?;
        }
        let mut claim = Arc::clone(claim);
        if let Some(bound) = claims::bound_claim(&claim, &volume) {
            claim = self.write_claim(&bound).await?;
        }
        if let Some(bound) = claims::bound_status(&claim, &volume) {
            self.write_claim_status(&bound).await?;
        }
        Ok(())
    }

    async fn unbind(
        &self,
        claim: &PersistentVolumeClaim,
        phase: &str,
        remark: Option<Remark>,
    ) -> Result<(), Fault> {
        if let Some(changed) = claims::unbound_status(claim, phase) {
            self.write_claim_status(&changed).await?;
        }
        let key = Key::of(&claim.metadata);
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let about = core("PersistentVolumeClaim", &key.namespace, &key.name, &uid);
        match remark {
            Some(remark) if remark.is_warning => {
                self.events.warn(&about, remark.reason, remark.text).await;
            }
            Some(remark) => self.events.note(&about, remark.reason, remark.text).await,
            None => {}
        }
        Ok(())
    }

    /// A claim that is deleted goes when no pod uses it, and the API itself says so.
    async fn let_claim_go(&self, claim: &PersistentVolumeClaim) -> Result<(), Fault> {
        let key = Key::of(&claim.metadata);
        let uses = |claims: &Vec<String>| claims.contains(&key.name);
        if !is_held(&claim.metadata, CLAIM_PROTECTION)
            || !self.users.find(&key.namespace, uses).is_empty()
        {
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let pods = fetch(pods.list(&ListParams::default())).await?;
        if pods.iter().filter_map(claims_of).any(|used| uses(&used)) {
            return Ok(());
        }
        let mut free = claim.clone();
        release(&mut free.metadata, CLAIM_PROTECTION);
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &key.namespace);
        found(ask(claims.replace(&key.name, &PostParams::default(), &free)).await)?;
        Ok(())
    }

    async fn look_at_volume(&self, name: &str) -> Result<(), Fault> {
        let Some(volume) = self.volumes.get("", name) else {
            return Ok(());
        };
        let phase = volume
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if is_held(&volume.metadata, VOLUME_PROTECTION) && phase != Some("Bound") {
            let mut free = PersistentVolume::clone(&volume);
            release(&mut free.metadata, VOLUME_PROTECTION);
            let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
            found(ask(volumes.replace(name, &PostParams::default(), &free)).await)?;
            return Ok(());
        }
        let claim = self.claim_of(&volume).await?;
        let now = Timestamp::now();
        let changed = match supply::plan_volume(&volume, claim.as_deref()) {
            supply::Step::Phase(phase) => supply::in_phase(&volume, phase, None, now),
            supply::Step::TakeBack => {
                let newer = self.write_volume(&supply::taken_back(&volume)).await?;
                self.look_at_claims_of(&class_of_volume(&newer));
                return Ok(());
            }
            supply::Step::Fail(why) => {
                let uid = volume.metadata.uid.clone().unwrap_or_default();
                let about = core("PersistentVolume", "", name, &uid);
                let failed = supply::in_phase(&volume, "Failed", Some(&why), now);
                self.events.warn(&about, "VolumeFailedDelete", why).await;
                failed
            }
        };
        if let Some(changed) = changed {
            let newer = self.write_volume_status(&changed).await?;
            // What we wrote ourselves is no news, but it may be what a claim waits for.
            self.look_at_claims_of(&class_of_volume(&newer));
        }
        Ok(())
    }

    /// The claim that a volume was given to. That it is gone must be said by the API itself.
    async fn claim_of(
        &self,
        volume: &PersistentVolume,
    ) -> Result<Option<Arc<PersistentVolumeClaim>>, Fault> {
        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.clone());
        let Some(reference) = reference.filter(|reference| reference.uid.is_some()) else {
            return Ok(None);
        };
        let namespace = reference.namespace.unwrap_or_default();
        let name = reference.name.unwrap_or_default();
        let is_it = |claim: &PersistentVolumeClaim| claim.metadata.uid == reference.uid;
        let known = self.claims.get(&namespace, &name);
        if let Some(claim) = known.filter(|claim| is_it(claim)) {
            return Ok(Some(claim));
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
        let live = found(fetch(claims.get(&name)).await)?;
        Ok(live.filter(is_it).map(Arc::new))
    }

    async fn write_claim(
        &self,
        claim: &PersistentVolumeClaim,
    ) -> Result<Arc<PersistentVolumeClaim>, Fault> {
        let key = Key::of(&claim.metadata);
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let newer = ask(claims.replace(&key.name, &parameters, claim)).await?;
        Ok(self.note_claim(newer))
    }

    async fn write_claim_status(&self, claim: &PersistentVolumeClaim) -> Result<(), Fault> {
        let key = Key::of(&claim.metadata);
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let newer = ask(claims.replace_status(&key.name, &parameters, claim)).await?;
        self.note_claim(newer);
        Ok(())
    }

    fn note_claim(&self, mut newer: PersistentVolumeClaim) -> Arc<PersistentVolumeClaim> {
        newer.metadata.managed_fields = None;
        self.claims.note(&newer.metadata, newer.clone());
        Arc::new(newer)
    }

    async fn write_volume(
        &self,
        volume: &PersistentVolume,
    ) -> Result<Arc<PersistentVolume>, Fault> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let parameters = PostParams::default();
        let newer = ask(volumes.replace(name, &parameters, volume)).await?;
        Ok(self.note_volume(newer))
    }

    async fn write_volume_status(
        &self,
        volume: &PersistentVolume,
    ) -> Result<Arc<PersistentVolume>, Fault> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let parameters = PostParams::default();
        let newer = ask(volumes.replace_status(name, &parameters, volume)).await?;
        Ok(self.note_volume(newer))
    }

    fn note_volume(&self, mut newer: PersistentVolume) -> Arc<PersistentVolume> {
        newer.metadata.managed_fields = None;
        self.volumes.note(&newer.metadata, newer.clone());
        Arc::new(newer)
    }
}
