//! Makes the claims of volumes that live and die with their pod.
//!
//! A claim is called `<pod>-<volume>` and is owned by its pod, so that it goes with it. One of that name that
//! somebody else made is left alone, and the pod is told: it must not see what is not its own.

use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimTemplate, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Api, Client, api::PostParams, runtime::watcher::Config};
use tokio_util::sync::CancellationToken;

use crate::{
    announce::{Announcer, core},
    fault::{Fault, ask},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 8;

/// A pod with volumes of its own.
#[derive(Clone, Debug, PartialEq)]
struct Needy {
    uid: String,
    /// The names of the claims, and what they are to be.
    claims: Vec<(String, PersistentVolumeClaimTemplate)>,
}

/// Whose a claim is: the uid of its controller.
type Owner = Option<String>;

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    pods: Known<Needy>,
    claims: Known<Owner>,
    queue: Queue<Key>,
    events: Announcer,
}

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let world = World {
        events: Announcer::new(client.clone(), "ephemeral-volume-controller"),
        client,
        shared_pods: pods,
        pods: Known::new(),
        claims: Known::new(),
        queue: Queue::new(),
    };
    let complete = async {
        tokio::join!(world.pods.complete(), world.claims.complete());
    };
    let work = async {
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |key| world.look(key);
            world.queue.drive("ephemeral", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

/// A pod that needs claims. One that goes needs none any more.
fn read(pod: &Pod) -> Option<Needy> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let name = pod.metadata.name.as_ref()?;
    let volumes = pod.spec.as_ref()?.volumes.iter().flatten();
    let claims: Vec<_> = volumes
        .filter_map(|volume| {
            let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
            Some((format!("{name}-{}", volume.name), template.clone()))
        })
        .collect();
    (!claims.is_empty()).then_some(Needy {
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        claims,
    })
}

fn owner(metadata: &ObjectMeta) -> Owner {
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.clone())
}

/// The claim of a pod.
fn claim(
    pod: &Key,
    uid: &str,
    name: &str,
    template: &PersistentVolumeClaimTemplate,
) -> PersistentVolumeClaim {
    let wanted = template.metadata.clone().unwrap_or_default();
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(pod.namespace.clone()),
            labels: wanted.labels,
            annotations: wanted.annotations,
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: pod.name.clone(),
                uid: uid.to_owned(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone()),
        status: None,
    }
}

impl World {
    async fn news(&self) {
        let pods = keep_shared(&self.shared_pods, &self.pods, read, |key, _, new| {
            if new.is_some() {
                self.queue.add(key.clone());
            }
        });
        let claims = keep(
            Api::<PersistentVolumeClaim>::all(self.client.clone()),
            Config::default(),
            &self.claims,
            |claim| Some(owner(&claim.metadata)),
            |key, old, _| {
                // One that came is what was wanted, or is seen when its pod is looked at.
                if old.is_some() {
                    self.claim_changed(key);
                }
            },
        );
        tokio::join!(pods, claims);
    }

    /// A claim is gone, or has another owner: whoever needs one of that name is looked at.
    fn claim_changed(&self, key: &Key) {
        for pod in self.pods.keys() {
            if pod.namespace != key.namespace || !key.name.starts_with(&pod.name) {
                continue;
            }
            let needy = self.pods.get(&pod.namespace, &pod.name);
            if needy.is_some_and(|needy| needy.claims.iter().any(|(name, _)| *name == key.name)) {
                self.queue.add(pod);
            }
        }
    }

    async fn look(&self, key: Key) -> Result<Next, Fault> {
        let Some(pod) = self.pods.get(&key.namespace, &key.name) else {
            return Ok(Next::Done);
        };
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &key.namespace);
        for (name, template) in &pod.claims {
            match self.claims.get(&key.namespace, name).as_deref() {
                Some(owner) if owner.as_ref() == Some(&pod.uid) => {}
                Some(_) => self.refuse(&key, &pod.uid, name).await,
                None => {
                    let claim = claim(&key, &pod.uid, name, template);
                    let made = ask(claims.create(&PostParams::default(), &claim)).await?;
                    self.claims.note(&made.metadata, owner(&made.metadata));
                }
            }
        }
        Ok(Next::Done)
    }

    /// Tells a pod that it cannot have its volume; it is looked at again when the claim changes.
    async fn refuse(&self, pod: &Key, uid: &str, claim: &str) {
        let about = core("Pod", &pod.namespace, &pod.name, uid);
        let text = format!(
            "PVC {}/{claim} was not created for pod {}/{} (pod is not owner)",
            pod.namespace, pod.namespace, pod.name
        );
        self.events
            .warn(&about, "EphemeralVolumeConflict", text)
            .await;
    }
}
