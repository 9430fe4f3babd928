//! `transom delete`: takes objects away. Invariant: it is known what is meant before the first is deleted, and who
//! waits is told what keeps an object from going.

use std::time::Duration;

use anyhow::Context as _;
use jiff::SignedDuration;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::Value;

use crate::client::{
    self, Everywhere, Files, Kind, Kinds, Manifest, Reader, Report, Selection, Target, name_of,
    namespace_of,
};
use crate::cluster::{Chosen, Cluster};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Nobody waits for longer, and clocks count no further than they must.
const LONGEST_WAIT: Duration = Duration::from_hours(365 * 24);

const EXAMPLES: &str = "\
Examples:
  transom delete pod web
  transom delete deployment/web service/web
  transom delete -f web.yaml --ignore-not-found
  transom delete pods -l app=web --wait=false
  transom delete pods --all -n test
  transom delete pod web --force              At once, whatever its machine says";

/// Delete objects of the cluster
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Delete {
    /// A kind and names, or KIND/NAME
    #[arg(
        value_name = "KIND",
        required_unless_present = "files",
        conflicts_with = "files"
    )]
    words: Vec<String>,

    #[command(flatten)]
    files: Files,

    #[command(flatten)]
    place: Everywhere,

    #[command(flatten)]
    selection: Selection,

    /// All objects of the kind
    #[arg(long, conflicts_with_all = ["files", "labels", "fields"])]
    all: bool,

    /// Wait until the objects are gone
    #[arg(long, value_name = "YES", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    wait: bool,

    /// How long to wait at most
    #[arg(long, value_name = "TIME", default_value = "5m")]
    timeout: SignedDuration,

    /// How many seconds the programs of a pod have to end, instead of what the pod says
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    grace_period: Option<u32>,

    /// Forget the object at once; programs may go on running on a machine that does not answer
    #[arg(long, conflicts_with = "grace_period")]
    force: bool,

    /// What becomes of what the object made
    #[arg(long, value_name = "HOW", default_value = "background")]
    cascade: Cascade,

    /// A name that is not there is no failure
    #[arg(long)]
    ignore_not_found: bool,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    cluster: Chosen,
}

/// What becomes of what an object made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Cascade {
    /// Deleted after it
    Background,
    /// Deleted before it
    Foreground,
    /// Kept
    Orphan,
}

/// An object that is to go.
struct Victim {
    kind: Kind,
    namespace: Option<String>,
    name: String,
    /// Known of objects that were listed: another of the same name is not meant.
    uid: Option<String>,
}

impl Delete {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            let manifests = if self.files.files.is_empty() {
                Vec::new()
            } else {
                self.files.read()?
            };
            let cluster = self.cluster.open(cx).await?;
            let kinds = Kinds::discover(&cluster).await?;
            let deleting = Deleting {
                namespace: self.place.namespace(&cluster),
                cluster: &cluster,
                cx,
                wanted: &self,
            };
            let victims = if manifests.is_empty() {
                let targets = client::targets(&kinds, &self.words)?;
                self.check(&targets)?;
                deleting.named(targets).await?
            } else {
                deleting.described(&kinds, manifests)?
            };
            deleting.delete_all(victims).await
        })
    }

    /// Refuses what cannot be meant: nothing is deleted by leaving a word out.
    fn check(&self, targets: &[Target]) -> anyhow::Result<()> {
        let wrong =
            |text: &str, hint: &str| Err(anyhow::anyhow!("{text}")).hint(hint).exit(Exit::Usage);
        let chooses = self.all || !self.selection.is_empty();
        let has_names = targets.iter().any(|target| !target.names.is_empty());
        if has_names && chooses {
            return wrong(
                "names cannot be given together with a selector or --all",
                "give one of them",
            );
        }
        if !has_names && !chooses {
            return wrong(
                "it is not said which objects to delete",
                "give names, labels with -l, or --all",
            );
        }
        let has_namespaces = targets.iter().any(|target| target.kind.is_namespaced);
        if has_names && has_namespaces && self.place.all_namespaces {
            return wrong(
                "a name is looked for in one namespace, not in all",
                "leave out --all-namespaces",
            );
        }
        Ok(())
    }

    fn parameters(&self, uid: Option<&String>) -> DeleteParams {
        DeleteParams {
            dry_run: self.dry_run,
            grace_period_seconds: if self.force {
                Some(0)
            } else {
                self.grace_period
            },
            propagation_policy: Some(match self.cascade {
                Cascade::Background => PropagationPolicy::Background,
                Cascade::Foreground => PropagationPolicy::Foreground,
                Cascade::Orphan => PropagationPolicy::Orphan,
            }),
            preconditions: uid.map(|uid| Preconditions {
                uid: Some(uid.clone()),
                ..Preconditions::default()
            }),
        }
    }
}

struct Deleting<'a> {
    namespace: Option<&'a str>,
    cluster: &'a Cluster,
    cx: &'a Context,
    wanted: &'a Delete,
}

impl Deleting<'_> {
    /// The objects that words or a selector name.
    async fn named(&self, targets: Vec<Target>) -> anyhow::Result<Vec<Victim>> {
        let mut victims = Vec::new();
        for Target { kind, names } in targets {
            if names.is_empty() {
                let list = Reader::whole(self.cluster);
                let (objects, _) = list
                    .objects(&kind, self.namespace, &self.wanted.selection)
                    .await?;
                victims.extend(objects.iter().map(|object| Victim {
                    namespace: namespace_of(object).map(str::to_owned),
                    name: name_of(object).to_owned(),
                    uid: uid_of(object),
                    kind: kind.clone(),
                }));
                continue;
            }
            victims.extend(names.into_iter().map(|name| {
                Victim {
                    namespace: self
                        .namespace
                        .filter(|_| kind.is_namespaced)
                        .map(str::to_owned),
                    name,
                    uid: None,
                    kind: kind.clone(),
                }
            }));
        }
        Ok(victims)
    }

    /// The objects that files describe, the last first: what was made later may need what was made before, and a
    /// namespace would take others along.
    fn described(
        &self,
        kinds: &Kinds,
        mut manifests: Vec<Manifest>,
    ) -> anyhow::Result<Vec<Victim>> {
        manifests.sort_by_key(Manifest::stage);
        let mut victims = Vec::new();
        for manifest in manifests.into_iter().rev() {
            let object = &manifest.object;
            let (version, kind) = manifest.type_of();
            let Some(kind) = kinds.of_object(version, kind) else {
                // What has no kind has no objects.
                if self.wanted.ignore_not_found {
                    continue;
                }
                return Err(anyhow::anyhow!(
                    "{}: the server has no kind {kind} in {version}",
                    manifest.source
                ))
                .exit(Exit::NotFound);
            };
            let namespace = namespace_of(object)
                .or(self.namespace)
                .unwrap_or_else(|| self.cluster.client.default_namespace());
            victims.push(Victim {
                namespace: kind.is_namespaced.then(|| namespace.to_owned()),
                name: name_of(object).to_owned(),
                uid: None,
                kind: kind.clone(),
            });
        }
        Ok(victims)
    }

    async fn delete_all(&self, victims: Vec<Victim>) -> anyhow::Result<Exit> {
        if victims.is_empty() {
            self.cx.out.remark("no objects found");
        }
        if self.wanted.force && !victims.is_empty() {
            self.cx.out.warn(
                "objects are forgotten at once; programs of pods may go on running on machines that do not answer",
            );
        }
        let mut report = Report::new(self.cx, self.wanted.dry_run);
        let mut failed = Vec::new();
        let mut going = Vec::new();
        for mut victim in victims {
            match self.delete(&mut victim).await {
                Ok(true) => {
                    let namespace = victim.namespace.as_deref();
                    report.tell(&victim.kind, namespace, &victim.name, "deleted")?;
                    going.push(victim);
                }
                Ok(false) => {}
                Err(error) => failed.push(error),
            }
        }
        if self.wanted.wait && !self.wanted.dry_run {
            failed.extend(self.wait(going).await);
        }
        report.finish()?;
        client::together(self.cx, "objects were not deleted", failed)
    }

    /// Asks for the end of one. Tells whether there was one.
    async fn delete(&self, victim: &mut Victim) -> anyhow::Result<bool> {
        let Victim {
            kind,
            namespace,
            name,
            uid,
        } = &*victim;
        let request = Request::new(kind.path(namespace.as_deref()));
        let request = request.delete(name, &self.wanted.parameters(uid.as_ref()));
        let answer = self
            .cluster
            .client
            .request::<Value>(request.exit(Exit::Usage)?)
            .await;
        let is_listed = uid.is_some();
        match answer {
            // Somebody else was faster with one that was found a moment ago.
            Err(kube::Error::Api(status))
                if (status.code == 404 && (self.wanted.ignore_not_found || is_listed))
                    || (status.code == 409 && is_listed) =>
            {
                Ok(false)
            }
            answer => {
                let answer = self
                    .cluster
                    .answer(answer)
                    .with_context(|| format!("{} was not deleted", kind.name_of(name)))?;
                // The object as it goes, or a status with its details.
                let status = &answer["details"]["uid"];
                let found = uid_of(&answer).or_else(|| status.as_str().map(str::to_owned));
                victim.uid = victim.uid.take().or(found);
                Ok(true)
            }
        }
    }

    /// Waits for the end of all, for as long as was allowed for all of them.
    async fn wait(&self, going: Vec<Victim>) -> Vec<anyhow::Error> {
        let limit = Duration::try_from(self.wanted.timeout).unwrap_or_default();
        let limit = limit.min(LONGEST_WAIT);
        let end = tokio::time::Instant::now() + limit;
        let mut failed = Vec::new();
        for victim in going {
            let Some(uid) = &victim.uid else { continue };
            let api = self.api(&victim);
            let gone = await_condition(api, &victim.name, conditions::is_deleted(uid));
            let whole = victim.kind.name_of(&victim.name);
            match tokio::time::timeout_at(end, gone).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => failed.push(
                    anyhow::Error::new(error)
                        .context(format!("could not wait for the end of {whole}")),
                ),
                Err(_) => failed.push(self.still_there(&victim, &whole).await),
            }
        }
        failed
    }

    fn api(&self, victim: &Victim) -> Api<DynamicObject> {
        let client = self.cluster.client.clone();
        let resource = victim.kind.resource();
        match &victim.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    /// What keeps an object from going.
    async fn still_there(&self, victim: &Victim, whole: &str) -> anyhow::Error {
        let found = Reader::whole(self.cluster)
            .find(&victim.kind, victim.namespace.as_deref(), &victim.name)
            .await;
        let finalizers: Vec<String> = match found {
            Ok(Some(object)) => object["metadata"]["finalizers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            Ok(None) | Err(_) => Vec::new(),
        };
        let why = if finalizers.is_empty() {
            "its machine has not said yet that it ended".to_owned()
        } else {
            format!(
                "it waits for whoever removes its finalizers: {}",
                finalizers.join(", ")
            )
        };
        let what = format!("{whole} is still there after {:#}", self.wanted.timeout);
        anyhow::anyhow!(why).context(what)
    }
}

fn uid_of(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}
