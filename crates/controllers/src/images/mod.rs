//! Looks what images are for before their pods have a node, and keeps it in objects that the scheduler reads.
//!
//! A registry that does not answer costs nobody anything but the answer: what went wrong is written down, it is
//! asked again later and later, and the pod goes where it would have gone without us.

mod decide;
mod pods;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use k8s_openapi::{
    api::core::v1::{Pod, Secret, ServiceAccount},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind, Object},
    runtime::watcher::Config,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use transom_model::images::{self, ImagePlatform, ImageSpec, ImageStatus};

use self::{
    decide::{Facts, Step, decide, unused},
    pods::{PodFacts, Secrets},
};
use crate::{
    fault::{Fault, ask, found},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 8;
/// How often it is looked which objects nobody needs any more.
const ROUND: Duration = Duration::from_hours(1);
/// With how many pods' secrets a registry is asked, until it answers.
const TRIES: usize = 3;
/// How many of the pods that wait are looked at for secrets.
const MOST_ASKED: usize = 64;
/// The longest text of a registry that is passed on.
const LONGEST_MESSAGE: usize = 512;

/// Somebody who can ask registries.
pub trait Registry: fmt::Debug + Send + Sync {
    /// Looks what an image is for. What went wrong is told in words; an end must come in any case.
    fn look<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Answer, String>>;
}

/// What a registry is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The full name of the image.
    pub reference: String,
    /// The digest whose platforms are known already.
    pub known: Option<String>,
    /// Secrets that may have credentials for the registry.
    pub secrets: Vec<PullSecret>,
}

/// The content of a pull secret. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum PullSecret {
    /// `.dockerconfigjson`
    Config(Vec<u8>),
    /// `.dockercfg`
    OldConfig(Vec<u8>),
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PullSecret(…)")
    }
}

/// What a registry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The name still stands for the known digest.
    Same,
    Image {
        digest: String,
        platforms: Vec<ImagePlatform>,
    },
}

pub(crate) type Image = Object<ImageSpec, ImageStatus>;

pub(crate) fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(images::GROUP, images::VERSION, images::KIND);
    ApiResource::from_gvk_with_plural(&kind, images::PLURAL)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Item {
    /// An image, by its canonical name.
    Image(Arc<str>),
    Sweep,
}

/// What pods there are, seen from their images.
#[derive(Default)]
struct Users {
    /// How many pods that are not over use an image.
    counts: HashMap<Arc<str>, usize>,
    /// Those of them that have no node.
    waiting: HashMap<Arc<str>, BTreeSet<Key>>,
    /// How often a registry failed in a row, for images that somebody waits for.
    failures: HashMap<Arc<str>, u32>,
}

impl Users {
    fn note(&mut self, image: &Arc<str>, went_well: bool) {
        if went_well {
            self.failures.remove(image);
        } else {
            let failures = self.failures.entry(Arc::clone(image)).or_default();
            *failures = failures.saturating_add(1);
        }
    }

    fn leave(&mut self, image: &Arc<str>, key: &Key) {
        if let Some(pods) = self.waiting.get_mut(image) {
            pods.remove(key);
            if pods.is_empty() {
                self.waiting.remove(image);
            }
        }
        let Some(count) = self.counts.get_mut(image) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(image);
            self.failures.remove(image);
        }
    }
}

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    registry: Arc<dyn Registry>,
    pods: Known<PodFacts>,
    images: Known<Facts>,
    users: Mutex<Users>,
    queue: Queue<Item>,
}

pub(crate) async fn run(
    client: Client,
    pods: Shared<Pod>,
    registry: Arc<dyn Registry>,
    stop: CancellationToken,
) {
    let world = World {
        client,
        shared_pods: pods,
        registry,
        pods: Known::new(),
        images: Known::new(),
        users: Mutex::default(),
        queue: Queue::new(),
    };
    world.queue.add_after(Item::Sweep, ROUND);
    let complete = async {
        tokio::join!(world.pods.complete(), world.images.complete());
    };
    let work = async {
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |item| world.work(item);
            world.queue.drive("images", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

impl World {
    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn objects(&self) -> Api<Image> {
        Api::all_with(self.client.clone(), &resource())
    }

    async fn news(&self) {
        let pods = keep_shared(
            &self.shared_pods,
            &self.pods,
            PodFacts::read,
            |key, old, new| self.pod_changed(key, old, new),
        );
        let images = keep(
            self.objects(),
            Config::default(),
            &self.images,
            |image| Some(Facts::read(image)),
            |_, _, _| {},
        );
        tokio::join!(pods, images);
    }

    fn pod_changed(&self, key: &Key, old: Option<&PodFacts>, new: Option<&PodFacts>) {
        let mut users = self.users();
        // In this order, an image that stays is never forgotten.
        for image in new.iter().flat_map(|pod| &pod.images) {
            *users.counts.entry(Arc::clone(image)).or_default() += 1;
        }
        for image in old.iter().flat_map(|pod| &pod.images) {
            users.leave(image, key);
        }
        let Some(pod) = new.filter(|pod| pod.is_waiting) else {
            return;
        };
        for image in &pod.images {
            let waiting = users.waiting.entry(Arc::clone(image)).or_default();
            waiting.insert(key.clone());
            self.queue.add(Item::Image(Arc::clone(image)));
        }
    }

    async fn work(&self, item: Item) -> Result<Next, Fault> {
        match item {
            Item::Image(image) => self.look(&image).await,
            Item::Sweep => self.sweep().await,
        }
    }

    async fn look(&self, image: &Arc<str>) -> Result<Next, Fault> {
        let failures = {
            let users = self.users();
            if !users.waiting.contains_key(image) {
                return Ok(Next::Done);
            }
            users.failures.get(image).copied().unwrap_or_default()
        };
        let name = images::object_name(image);
        let facts = self.images.get("", &name);
        if facts
            .as_ref()
            .is_some_and(|facts| *facts.reference != **image)
        {
            tracing::warn!(%image, name, "an object that should be about this image is about another");
            return Ok(Next::Done);
        }
        let known = match decide(facts.as_deref(), failures, Timestamp::now()) {
            Step::Nothing => return Ok(Next::Done),
            Step::Later(pause) => {
                self.queue.add_after(Item::Image(Arc::clone(image)), pause);
                return Ok(Next::Done);
            }
            Step::Look { known } => known,
        };
        let answer = self.ask_registry(image, known).await?;
        self.users().note(image, answer.is_ok());
        let status = decide::status(facts.as_deref(), answer, Timestamp::now());
        self.write(image, &name, facts.is_some(), status).await?;
        // Whoever still waits when the answer is old wants a new one.
        self.queue.add(Item::Image(Arc::clone(image)));
        Ok(Next::Done)
    }

    /// The secrets of some pods that wait for an image; those of one deployment have the same.
    fn kinds_of_secrets(&self, image: &Arc<str>) -> BTreeSet<Secrets> {
        let users = self.users();
        let keys = users.waiting.get(image).into_iter().flatten();
        let pods = keys
            .take(MOST_ASKED)
            .filter_map(|key| self.pods.get(&key.namespace, &key.name));
        let mut kinds: BTreeSet<Secrets> = pods.map(|pod| pod.secrets.clone()).collect();
        while kinds.len() > TRIES {
            kinds.pop_last();
        }
        kinds
    }

    async fn ask_registry(
        &self,
        image: &Arc<str>,
        known: Option<String>,
    ) -> Result<Result<Answer, String>, Fault> {
        let mut last = Err("nobody waits for it".to_owned());
        for sort in self.kinds_of_secrets(image) {
            let question = Question {
                reference: image.to_string(),
                known: known.clone(),
                secrets: self.secrets(&sort).await?,
            };
            last = self.registry.look(&question).await;
            if last.is_ok() {
                break;
            }
        }
        Ok(last)
    }

    async fn secrets(&self, of: &Secrets) -> Result<Vec<PullSecret>, Fault> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &of.namespace);
        let account = found(ask(accounts.get(&of.account)).await)?;
        let of_account = account.and_then(|account| account.image_pull_secrets);
        let of_account = of_account.into_iter().flatten().map(|one| one.name);
        let names: BTreeSet<String> = of.names.iter().cloned().chain(of_account).collect();
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &of.namespace);
        let mut contents = Vec::new();
        for name in names {
            let secret = found(ask(secrets.get(&name)).await)?;
            let mut data = secret.and_then(|secret| secret.data).unwrap_or_default();
            if let Some(new) = data.remove(".dockerconfigjson") {
                contents.push(PullSecret::Config(new.0));
            } else if let Some(old) = data.remove(".dockercfg") {
                contents.push(PullSecret::OldConfig(old.0));
            }
        }
        Ok(contents)
    }

    async fn write(
        &self,
        image: &str,
        name: &str,
        is_there: bool,
        status: ImageStatus,
    ) -> Result<(), Fault> {
        let written = if is_there {
            // Fields that the status does not have any more must go.
            let mut change = json!({"digest": null, "platforms": null, "runsOn": null,
                "checkedAt": null, "message": null, "node": null});
            let new = json!(status);
            for (field, value) in new.as_object().into_iter().flatten() {
                change[field] = value.clone();
            }
            let change = Patch::Merge(json!({"status": change}));
            let objects = self.objects();
            found(ask(objects.patch(name, &PatchParams::default(), &change)).await)?
        } else {
            let mut object = Image::new(
                name,
                &resource(),
                ImageSpec {
                    reference: image.to_owned(),
                },
            );
            object.status = Some(status);
            Some(ask(self.objects().create(&PostParams::default(), &object)).await?)
        };
        match written {
            Some(object) => {
                let metadata: ObjectMeta = object.metadata.clone();
                self.images.note(&metadata, Facts::read(object));
            }
            None => self.images.forget(&Key::new("", name)),
        }
        Ok(())
    }

    /// Removes objects that no pod needed for a long time.
    async fn sweep(&self) -> Result<Next, Fault> {
        let all = self.images.find("", |_| true);
        let names = {
            let users = self.users();
            let is_used = |reference: &str| users.counts.contains_key(reference);
            unused(&all, is_used, Timestamp::now())
        };
        for name in names {
            found(ask(self.objects().delete(&name, &DeleteParams::default())).await)?;
            self.images.forget(&Key::new("", name));
        }
        self.queue.add_after(Item::Sweep, ROUND);
        Ok(Next::Done)
    }
}
