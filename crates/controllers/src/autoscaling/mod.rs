//! Sizes workloads by what their pods use, as the metrics API tells it.
//!
//! Each autoscaler is looked at every so often. What cannot be measured changes nothing, and is said.

mod measure;
mod pace;
mod replicas;
mod status;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::autoscaling::{
        v1::Scale,
        v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricStatus},
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ApiResource, Patch, PatchParams, PostParams},
    core::{DynamicObject, GroupVersionKind},
    runtime::watcher::Config,
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{measure::Measured, pace::History, status::set_condition};
use crate::{
    announce::{Announcer, core},
    fault::{Fault, ask, found},
    known::{Key, Known, keep},
    queue::{Next, Queue},
};

const AT_ONCE: usize = 8;
/// How often an autoscaler is looked at.
const PERIOD: Duration = Duration::from_secs(15);

struct World {
    client: Client,
    scalers: Known<HorizontalPodAutoscaler>,
    histories: Mutex<HashMap<Key, History>>,
    resources: Mutex<HashMap<GroupVersionKind, ApiResource>>,
    queue: Queue<Key>,
    events: Announcer,
}

pub(crate) async fn run(client: Client, stop: CancellationToken) {
    let world = World {
        events: Announcer::new(client.clone(), "horizontal-pod-autoscaler"),
        client,
        scalers: Known::new(),
        histories: Mutex::default(),
        resources: Mutex::default(),
        queue: Queue::new(),
    };
    let news = keep(
        Api::<HorizontalPodAutoscaler>::all(world.client.clone()),
        Config::default(),
        &world.scalers,
        |mut scaler| {
            scaler.metadata.managed_fields = None;
            Some(scaler)
        },
        |key, old, new| match (old, new) {
            (None, Some(_)) => world.queue.add(key.clone()),
            (_, None) => {
                world.histories().remove(key);
            }
            // What it says of itself is no news; the rest comes with its next turn.
            _ => {}
        },
    );
    let look = |key| world.look(key);
    let work = world.queue.drive("autoscaling", AT_ONCE, &stop, look);
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

/// What a look came to.
#[derive(Debug, Default)]
struct Outcome {
    current: i32,
    /// `None` if it is not known.
    desired: Option<i32>,
    metrics: Option<Vec<MetricStatus>>,
    reason: String,
}

impl World {
    fn histories(&self) -> MutexGuard<'_, HashMap<Key, History>> {
        self.histories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn look(&self, key: Key) -> Result<Next, Fault> {
        let Some(scaler) = self.scalers.get(&key.namespace, &key.name) else {
            return Ok(Next::Done);
        };
        self.queue.add_after(key.clone(), PERIOD);
        let mut changed = HorizontalPodAutoscaler::clone(&scaler);
        self.adjust(&key, &mut changed).await?;
        if changed.status == scaler.status {
            return Ok(Next::Done);
        }
        let scalers: Api<HorizontalPodAutoscaler> =
            Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let written = scalers.replace_status(&key.name, &parameters, &changed);
        if let Some(mut newer) = found(ask(written).await)? {
            newer.metadata.managed_fields = None;
            self.scalers.note(&newer.metadata.clone(), newer);
        }
        Ok(Next::Done)
    }

    /// Sizes the target, and puts into the status what was found and done.
    async fn adjust(&self, key: &Key, scaler: &mut HorizontalPodAutoscaler) -> Result<(), Fault> {
        let spec = scaler.spec.clone();
        let uid = scaler.metadata.uid.clone().unwrap_or_default();
        let mut about = core("HorizontalPodAutoscaler", &key.namespace, &key.name, &uid);
        about.api_version = Some("autoscaling/v2".to_owned());
        let generation = scaler.metadata.generation;
        let status = scaler.status.get_or_insert_default();
        status.observed_generation = generation;
        let now = Timestamp::now();
        let target = self.target(key, &spec).await;
        let scale = match target {
            Ok((objects, name)) => ask(objects.get_subresource("scale", &name))
                .await
                .map(|scale| (objects, name, scale)),
            Err(fault) => Err(fault),
        };
        let (objects, name, scale) = match scale {
            Ok(found) => found,
            Err(fault) => {
                let text = fault.to_string();
                let message = format!(
                    "the HPA controller was unable to get the target's current scale: {text}"
                );
                set_condition(
                    status,
                    "AbleToScale",
                    (false, "FailedGetScale", &message),
                    now,
                );
                self.events.warn(&about, "FailedGetScale", text).await;
                return Ok(());
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        set_condition(
            status,
            "AbleToScale",
            (true, "SucceededGetScale", message),
            now,
        );
        let scale: Scale = match serde_json::to_value(&scale).and_then(serde_json::from_value) {
            Ok(scale) => scale,
            Err(error) => {
                let message = error.to_string();
                set_condition(
                    status,
                    "AbleToScale",
                    (false, "FailedGetScale", &message),
                    now,
                );
                return Ok(());
            }
        };
        let mut outcome = Outcome {
            current: scale
                .spec
                .as_ref()
                .and_then(|spec| spec.replicas)
                .unwrap_or_default(),
            ..Outcome::default()
        };
        let measured = self.measure(key, &spec, &scale, &outcome).await;
        self.decide(key, &spec, status, measured, &mut outcome, now);
        status.current_replicas = Some(outcome.current);
        if let Some(metrics) = outcome.metrics.take() {
            status.current_metrics = Some(metrics);
        }
        let Some(desired) = outcome.desired else {
            let active = status.conditions.iter().flatten();
            let mut active = active.filter(|each| each.type_ == "ScalingActive");
            if let Some(failed) = active.next() {
                let text = failed.message.clone().unwrap_or_default();
                self.events
                    .warn(&about, "FailedComputeMetricsReplicas", text)
                    .await;
            }
            return Ok(());
        };
        status.desired_replicas = desired;
        if desired == outcome.current {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"spec": {"replicas": desired}}));
        let parameters = PatchParams::default();
        let patched = objects.patch_subresource("scale", &name, &parameters, &patch);
        if let Err(fault) = ask(patched).await {
            let message =
                format!("the HPA controller was unable to update the target scale: {fault}");
            set_condition(
                status,
                "AbleToScale",
                (false, "FailedUpdateScale", &message),
                now,
            );
            let text = format!(
                "New size: {desired}; reason: {}; error: {fault}",
                outcome.reason
            );
            self.events.warn(&about, "FailedRescale", text).await;
            return Ok(());
        }
        let message =
            format!("the HPA controller was able to update the target scale to {desired}");
        set_condition(
            status,
            "AbleToScale",
            (true, "SucceededRescale", &message),
            now,
        );
        status.last_scale_time = Some(Time(now));
        let change = desired.saturating_sub(outcome.current);
        {
            let mut histories = self.histories();
            let history = histories.entry(key.clone()).or_default();
            history.note_change(change, Instant::now());
        }
        let text = format!("New size: {desired}; reason: {}", outcome.reason);
        self.events.note(&about, "SuccessfulRescale", text).await;
        Ok(())
    }

    /// Measures, if that decides anything.
    async fn measure(
        &self,
        key: &Key,
        spec: &HorizontalPodAutoscalerSpec,
        scale: &Scale,
        outcome: &Outcome,
    ) -> Option<Measured> {
        let least = spec.min_replicas.unwrap_or(1);
        let is_off = outcome.current == 0 && least != 0;
        let is_within = (least..=spec.max_replicas).contains(&outcome.current);
        if is_off || !is_within {
            return None;
        }
        let selector = scale
            .status
            .as_ref()
            .and_then(|status| status.selector.clone());
        let selector = selector.unwrap_or_default();
        Some(measure::measure(&self.client, key, spec, &selector, outcome.current).await)
    }

    /// Decides on the size, from what was measured if it had to be.
    fn decide(
        &self,
        key: &Key,
        spec: &HorizontalPodAutoscalerSpec,
        status: &mut k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscalerStatus,
        measured: Option<Measured>,
        outcome: &mut Outcome,
        now: Timestamp,
    ) {
        let least = spec.min_replicas.unwrap_or(1);
        let Some(measured) = measured else {
            if outcome.current == 0 && least != 0 {
                let message = "scaling is disabled since the replica count of the target is zero";
                set_condition(
                    status,
                    "ScalingActive",
                    (false, "ScalingDisabled", message),
                    now,
                );
                outcome.desired = Some(0);
            } else if outcome.current > spec.max_replicas {
                outcome.desired = Some(spec.max_replicas);
                "Current number of replicas above Spec.MaxReplicas".clone_into(&mut outcome.reason);
            } else {
                outcome.desired = Some(least);
                "Current number of replicas below Spec.MinReplicas".clone_into(&mut outcome.reason);
            }
            return;
        };
        outcome.metrics = Some(measured.statuses);
        if let Some((reason, message)) = &measured.failure {
            let is_safe = measured.best.as_ref();
            // What is not known could want more, so only growing is safe.
            if is_safe.is_none_or(|(_, replicas)| *replicas < outcome.current) {
                set_condition(status, "ScalingActive", (false, reason, message), now);
                return;
            }
        }
        let Some((metric, wanted)) = measured.best else {
            return;
        };
        let message =
            format!("the HPA was able to successfully calculate a replica count from {metric}");
        set_condition(
            status,
            "ScalingActive",
            (true, "ValidMetricFound", &message),
            now,
        );
        let paced = {
            let mut histories = self.histories();
            let history = histories.entry(key.clone()).or_default();
            history.pace(spec, outcome.current, wanted, Instant::now())
        };
        set_condition(status, "AbleToScale", paced.able, now);
        set_condition(status, "ScalingLimited", paced.limited, now);
        outcome.desired = Some(paced.replicas);
        outcome.reason = if paced.replicas > outcome.current {
            format!("{metric} above target")
        } else {
            "All metrics below target".to_owned()
        };
    }

    /// Access to the kind of object that is sized, and its name.
    async fn target(
        &self,
        key: &Key,
        spec: &HorizontalPodAutoscalerSpec,
    ) -> Result<(Api<DynamicObject>, String), Fault> {
        let reference = &spec.scale_target_ref;
        let version = reference.api_version.as_deref().unwrap_or("v1");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, &reference.kind);
        let cache = || {
            self.resources
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let known = cache().get(&kind).cloned();
        let resource = match known {
            Some(resource) => resource,
            None => {
                let pinned = kube::discovery::pinned_kind(&self.client, &kind);
                let (resource, _) = ask(pinned).await?;
                cache().insert(kind, resource.clone());
                resource
            }
        };
        let objects = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        Ok((objects, reference.name.clone()))
    }
}
