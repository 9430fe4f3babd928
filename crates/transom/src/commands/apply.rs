//! `transom apply`: makes objects what files say. Invariant: all files are read, and all kinds and places known, before
//! the first object is sent.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use kube::core::response::Status;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::Value;

use crate::client::{
    self, Files, Kind, Kinds, Manifest, Place, Reader, Report, Stage, name_of, namespace_of,
};
use crate::cluster::{Chosen, Cluster};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Under which name fields are ours.
const MANAGER: &str = "transom";
/// How long the server may take to serve a new kind.
const NEW_KIND: Duration = Duration::from_mins(1);
/// How long a new namespace may take to have its account, without which there are no pods.
const ACCOUNT: Duration = Duration::from_secs(10);
/// How often the server is asked whether it has a new kind; that cannot be watched.
const AGAIN: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  transom apply -f web.yaml
  transom apply -f manifests/ -R             Folders, with those in them
  transom apply -f web.yaml --dry-run        Only say what would happen
  generate | transom apply -f -

Namespaces are made first, then definitions of new kinds, then the rest in the order of the files.
What a file does not say is left as it is; a field that was in the file the last time and no longer
is, goes away.";

/// Create objects, or change them to what files say
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("files", |files| files.required(true)))]
pub(super) struct Apply {
    #[command(flatten)]
    files: Files,

    #[command(flatten)]
    place: Place,

    /// Say what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Take over fields that belong to others
    #[arg(long)]
    force_conflicts: bool,

    #[command(flatten)]
    cluster: Chosen,
}

impl Apply {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            let manifests = self.files.read()?;
            let cluster = self.cluster.open(cx).await?;
            let kinds = Kinds::discover(&cluster).await?;
            let mut applying = Applying {
                reader: Reader::whole(&cluster),
                namespace: self.place.namespace(&cluster),
                steps: Vec::new(),
                made: Vec::new(),
                report: Report::new(cx, self.dry_run),
                cluster: &cluster,
                kinds,
                wanted: &self,
            };
            applying.plan(manifests)?;
            let failed = applying.work().await?;
            applying.report.finish()?;
            client::together(cx, "objects were not applied", failed)
        })
    }
}

/// An object that is to be sent.
struct Step {
    stage: Stage,
    manifest: Manifest,
    /// None as long as its definition is among what is to be sent.
    kind: Option<Kind>,
}

/// One call of the command.
struct Applying<'a> {
    reader: Reader<'a>,
    cluster: &'a Cluster,
    namespace: &'a str,
    kinds: Kinds,
    steps: Vec<Step>,
    /// Namespaces that were not there before.
    made: Vec<String>,
    report: Report<'a>,
    wanted: &'a Apply,
}

impl Applying<'_> {
    /// Finds out what everything is. Nothing is sent before all of it is known.
    fn plan(&mut self, manifests: Vec<Manifest>) -> anyhow::Result<()> {
        let defined: Vec<(String, String)> = manifests.iter().filter_map(defines).collect();
        for manifest in manifests {
            let (version, kind) = manifest.type_of();
            let known = self.kinds.of_object(version, kind).cloned();
            let group = version.split_once('/').map_or("", |(group, _)| group);
            let is_defined = defined.iter().any(|(of, name)| of == group && name == kind);
            if known.is_none() && !is_defined {
                return Err(anyhow::anyhow!(
                    "{}: the server has no kind {kind} in {version}",
                    manifest.source
                ))
                .hint("apply its definition first, or correct apiVersion and kind")
                .exit(Exit::NotFound);
            }
            self.check_namespace(&manifest)?;
            let stage = manifest.stage();
            self.steps.push(Step {
                stage,
                manifest,
                kind: known,
            });
        }
        // A stable sort: within a stage the order is that of the files.
        self.steps.sort_by_key(|step| step.stage);
        Ok(())
    }

    fn check_namespace(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let asked = self.wanted.place.namespace.as_deref();
        match (asked, namespace_of(&manifest.object)) {
            (Some(asked), Some(own)) if asked != own => Err(anyhow::anyhow!(
                "{}: {} is for namespace {own}, and --namespace says {asked}",
                manifest.source,
                name_of(&manifest.object)
            ))
            .hint("leave one of them out")
            .exit(Exit::Usage),
            _ => Ok(()),
        }
    }

    /// Sends everything. What the server refuses does not keep the rest from being sent.
    async fn work(&mut self) -> anyhow::Result<Vec<anyhow::Error>> {
        let mut failed = Vec::new();
        let mut defined = Vec::new();
        let mut is_ready = false;
        for step in std::mem::take(&mut self.steps) {
            if step.stage == Stage::Rest && !std::mem::replace(&mut is_ready, true) {
                failed.extend(self.established(&defined).await.err());
            }
            let object = &step.manifest.object;
            if step.stage == Stage::Definitions {
                defined.push(name_of(object).to_owned());
            }
            match self.send(&step).await {
                Ok(()) => {}
                Err(error) if crate::output::OutputError::is_reader_gone(&error) => {
                    return Err(error);
                }
                Err(error) => failed.push(error),
            }
        }
        if !is_ready {
            failed.extend(self.established(&defined).await.err());
        }
        Ok(failed)
    }

    async fn send(&mut self, step: &Step) -> anyhow::Result<()> {
        let object = &step.manifest.object;
        let name = name_of(object);
        let kind = match &step.kind {
            Some(kind) => kind.clone(),
            None if self.wanted.dry_run => return self.unchecked(step),
            None => self.new_kind(step).await?,
        };
        let namespace = namespace_of(object).unwrap_or(self.namespace).to_owned();
        let namespace = kind.is_namespaced.then_some(namespace.as_str());
        let is_new_place = namespace.is_some_and(|name| self.made.iter().any(|made| made == name));
        if is_new_place && self.wanted.dry_run {
            let outcome = "created, but not checked: its namespace is not there yet";
            return Ok(self.report.tell(&kind, namespace, name, outcome)?);
        }
        if let Some(namespace) = namespace.filter(|_| is_new_place && kind.kind == "Pod") {
            self.account(namespace).await;
        }
        let before = self.reader.find(&kind, namespace, name).await?;
        let after = self.patch(&kind, namespace, object).await?;
        let outcome = match &before {
            None => "created",
            Some(before) if is_same(before, &after) => "unchanged",
            Some(_) => "configured",
        };
        if step.stage == Stage::Namespaces && before.is_none() {
            self.made.push(name.to_owned());
        }
        Ok(self.report.tell(&kind, namespace, name, outcome)?)
    }

    async fn patch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: &Value,
    ) -> anyhow::Result<Value> {
        let mut parameters = PatchParams::apply(MANAGER).validation_strict();
        parameters.force = self.wanted.force_conflicts;
        parameters.dry_run = self.wanted.dry_run;
        let mut object = object.clone();
        if let (Some(namespace), Some(metadata)) = (namespace, object["metadata"].as_object_mut()) {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        let name = name_of(&object);
        let request = Request::new(kind.path(namespace));
        let request = request.patch(name, &parameters, &Patch::Apply(&object));
        let answer = self
            .cluster
            .client
            .request(request.exit(Exit::Usage)?)
            .await;
        let whole = kind.name_of(name);
        match answer {
            Err(kube::Error::Api(status)) if is_conflict(&status) => conflict(&whole, &status),
            answer => self
                .cluster
                .answer(answer)
                .with_context(|| format!("{whole} was not applied")),
        }
    }

    fn unchecked(&mut self, step: &Step) -> anyhow::Result<()> {
        let object = &step.manifest.object;
        let (version, kind) = step.manifest.type_of();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = Kind::new(group, version, kind);
        let outcome = "created, but not checked: its definition is not there yet";
        Ok(self
            .report
            .tell(&kind, namespace_of(object), name_of(object), outcome)?)
    }

    /// Waits until definitions that were just sent are in force.
    async fn established(&self, names: &[String]) -> anyhow::Result<()> {
        if self.wanted.dry_run {
            return Ok(());
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.client.clone());
        for name in names {
            let waited =
                await_condition(definitions.clone(), name, conditions::is_crd_established());
            match tokio::time::timeout(NEW_KIND, waited).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    return Err(error)
                        .with_context(|| format!("could not wait for definition {name}"));
                }
                Err(_) => {
                    return Err(anyhow::anyhow!(
                        "definition {name} is not in force after {}s",
                        NEW_KIND.as_secs()
                    ))
                    .hint(format!(
                        "its conditions say why: transom get crd {name} -o yaml"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The kind that was defined a moment ago.
    async fn new_kind(&mut self, step: &Step) -> anyhow::Result<Kind> {
        let (version, kind) = step.manifest.type_of();
        let end = tokio::time::Instant::now() + NEW_KIND;
        loop {
            if let Some(found) = self.kinds.of_object(version, kind) {
                return Ok(found.clone());
            }
            if tokio::time::Instant::now() > end {
                return Err(anyhow::anyhow!(
                    "{}: the server still has no kind {kind} in {version}",
                    step.manifest.source
                ))
                .hint("look whether its definition serves this version")
                .exit(Exit::NotFound);
            }
            self.kinds = Kinds::discover(self.cluster).await?;
            if self.kinds.of_object(version, kind).is_none() {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Waits for the account of a new namespace. If it does not come, the server says what that means.
    async fn account(&self, namespace: &str) {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client.clone(), namespace);
        let waited = await_condition(accounts, "default", conditions::is_created());
        match tokio::time::timeout(ACCOUNT, waited).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(namespace, %error, "the account cannot be watched"),
            Err(_) => tracing::debug!(namespace, "there is no account yet"),
        }
    }
}

/// Whether nothing changed but versions, and whose fields they are.
fn is_same(before: &Value, after: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
        object
    };
    bare(before) == bare(after)
}

/// The group and the kind that a definition defines.
fn defines(manifest: &Manifest) -> Option<(String, String)> {
    if manifest.stage() != Stage::Definitions {
        return None;
    }
    let spec = &manifest.object["spec"];
    let group = spec["group"].as_str()?.to_owned();
    Some((group, spec["names"]["kind"].as_str()?.to_owned()))
}

fn is_conflict(status: &Status) -> bool {
    status.code == 409
        && status.details.as_ref().is_some_and(|details| {
            let mut causes = details.causes.iter();
            causes.any(|cause| cause.reason == "FieldManagerConflict")
        })
}

/// Which fields belong to whom.
fn conflict(whole: &str, status: &Status) -> anyhow::Result<Value> {
    let mut text = format!("{whole} was not applied, because fields belong to others");
    for cause in status.details.iter().flat_map(|details| &details.causes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}: {}", cause.field, cause.message);
    }
    Err(anyhow::anyhow!(text))
        .hint("leave these fields out of the file, or take them over with --force-conflicts")
}
