//! Asks the metrics API what pods use, and what each metric of an autoscaler makes of it.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        autoscaling::v2::{
            ContainerResourceMetricStatus, HorizontalPodAutoscalerSpec, MetricSpec, MetricStatus,
            MetricTarget, MetricValueStatus, ResourceMetricStatus,
        },
        core::v1::Pod,
    },
    apimachinery::pkg::api::resource::Quantity,
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, Client,
    api::{ApiResource, ListParams},
    core::DynamicObject,
};
use serde_json::Value;

use super::replicas::{Metric, Proposal, Sample, TOLERANCE, Target, propose};
use crate::{
    fault::{Fault, fetch},
    known::Key,
    quantity::Amount,
};

/// What all metrics of an autoscaler came to.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) statuses: Vec<MetricStatus>,
    /// The metric that wants most, and how much.
    pub(super) best: Option<(String, i32)>,
    /// The reason and message of the first one that could not be had.
    pub(super) failure: Option<(&'static str, String)>,
}

pub(super) async fn measure(
    client: &Client,
    key: &Key,
    spec: &HorizontalPodAutoscalerSpec,
    selector: &str,
    current: i32,
) -> Measured {
    let mut measured = Measured::default();
    if selector.is_empty() {
        measured.failure = Some(("InvalidSelector", NO_SELECTOR.to_owned()));
        return measured;
    }
    let found = async {
        let chosen = ListParams::default().labels(selector);
        let pods: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
        let pods = fetch(pods.list(&chosen)).await?.items;
        let metrics: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &key.namespace, &pod_metrics());
        let metrics = fetch(metrics.list(&chosen)).await?.items;
        Ok::<_, Fault>((pods, metrics))
    };
    let found = found.await;
    let usual = [default_metric()];
    for metric in spec.metrics.as_deref().unwrap_or(&usual) {
        let (reason, wanted) = match read(metric, spec) {
            Ok(read) => read,
            Err((reason, text)) => {
                measured.fail(reason, text);
                continue;
            }
        };
        let proposal = match &found {
            Ok((pods, metrics)) => {
                let samples = samples(metrics, &wanted);
                propose(&wanted, current, pods, &samples, Timestamp::now())
            }
            Err(fault) => Err(format!(
                "unable to get metrics for resource {}: unable to fetch metrics from resource metrics API: {fault}",
                wanted.resource
            )),
        };
        match proposal {
            Ok(proposal) => measured.take(&wanted, proposal),
            Err(text) => {
                let kind = if wanted.container.is_some() {
                    "container resource"
                } else {
                    "resource"
                };
                let text = format!(
                    "the HPA was unable to compute the replica count: failed to get {} {kind} metric value: {text}",
                    wanted.resource
                );
                measured.fail(reason, text);
            }
        }
    }
    measured
}

const NO_SELECTOR: &str = "the HPA target's scale is missing a selector";

impl Measured {
    fn fail(&mut self, reason: &'static str, text: String) {
        self.failure.get_or_insert((reason, text));
    }

    fn take(&mut self, metric: &Metric, proposal: Proposal) {
        let is_size = metric.resource != "cpu";
        let average = Amount::from_thousandths(proposal.average).quantity(is_size);
        let current = MetricValueStatus {
            average_utilization: proposal.utilization,
            average_value: Some(average),
            value: None,
        };
        let name = metric.resource.clone();
        let status = match &metric.container {
            Some(container) => MetricStatus {
                type_: "ContainerResource".to_owned(),
                container_resource: Some(ContainerResourceMetricStatus {
                    container: container.clone(),
                    current,
                    name,
                }),
                ..MetricStatus::default()
            },
            None => MetricStatus {
                type_: "Resource".to_owned(),
                resource: Some(ResourceMetricStatus { current, name }),
                ..MetricStatus::default()
            },
        };
        self.statuses.push(status);
        let is_most = |best: &(String, i32)| proposal.replicas > best.1;
        if self.best.as_ref().is_none_or(is_most) {
            self.best = Some((describe(metric), proposal.replicas));
        }
    }
}

fn describe(metric: &Metric) -> String {
    let kind = match &metric.container {
        Some(_) => "container resource",
        None => "resource",
    };
    match metric.target {
        Target::Utilization(_) => {
            format!(
                "{} {kind} utilization (percentage of request)",
                metric.resource
            )
        }
        Target::Average(_) => format!("{} {kind}", metric.resource),
    }
}

/// The metrics of pods, as the metrics API has them.
fn pod_metrics() -> ApiResource {
    ApiResource {
        group: "metrics.k8s.io".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "metrics.k8s.io/v1beta1".to_owned(),
        kind: "PodMetrics".to_owned(),
        plural: "pods".to_owned(),
    }
}

/// What counts if an autoscaler names no metric.
fn default_metric() -> MetricSpec {
    MetricSpec {
        type_: "Resource".to_owned(),
        resource: Some(k8s_openapi::api::autoscaling::v2::ResourceMetricSource {
            name: "cpu".to_owned(),
            target: MetricTarget {
                type_: "Utilization".to_owned(),
                average_utilization: Some(80),
                ..MetricTarget::default()
            },
        }),
        ..MetricSpec::default()
    }
}

/// A metric as it is counted, and the reason that is given when it cannot be. Metrics that nobody here can give are
/// an error at once.
fn read(
    metric: &MetricSpec,
    spec: &HorizontalPodAutoscalerSpec,
) -> Result<(&'static str, Metric), (&'static str, String)> {
    let (reason, resource, container, target) = match (&metric.resource, &metric.container_resource)
    {
        (Some(source), _) => (
            "FailedGetResourceMetric",
            &source.name,
            None,
            &source.target,
        ),
        (None, Some(source)) => (
            "FailedGetContainerResourceMetric",
            &source.name,
            Some(source.container.clone()),
            &source.target,
        ),
        (None, None) => {
            let reason = match metric.type_.as_str() {
                "Pods" => "FailedGetPodsMetric",
                "Object" => "FailedGetObjectMetric",
                "External" => "FailedGetExternalMetric",
                _ => "InvalidMetricSourceType",
            };
            let text = format!(
                "the HPA was unable to compute the replica count: metrics of type {} need an API that this cluster does not have",
                metric.type_
            );
            return Err((reason, text));
        }
    };
    let average = target.average_value.as_ref().and_then(Amount::of);
    let target = match (target.average_utilization, average) {
        (Some(percent), _) => Target::Utilization(percent),
        (None, Some(average)) => Target::Average(average.thousandths()),
        (None, None) => {
            let text = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set";
            return Err((reason, text.to_owned()));
        }
    };
    let behavior = spec.behavior.clone().unwrap_or_default();
    let tolerance = |rules: Option<k8s_openapi::api::autoscaling::v2::HPAScalingRules>| {
        let own = rules.and_then(|rules| rules.tolerance);
        let own: Option<Amount> = own.as_ref().and_then(|own: &Quantity| Amount::of(own));
        own.map_or(TOLERANCE, Amount::thousandths)
    };
    Ok((
        reason,
        Metric {
            resource: resource.clone(),
            container,
            target,
            tolerance: (tolerance(behavior.scale_up), tolerance(behavior.scale_down)),
        },
    ))
}

/// What pods were measured to use of a resource. A pod of which something is missing was not measured.
fn samples(metrics: &[DynamicObject], wanted: &Metric) -> BTreeMap<String, Sample> {
    let sample = |object: &DynamicObject| {
        let containers = object.data["containers"].as_array()?;
        let mut used = Amount::ZERO;
        let mut is_found = false;
        for container in containers {
            let name = container["name"].as_str();
            if wanted.container.is_some() && wanted.container.as_deref() != name {
                continue;
            }
            used = used.plus(amount(&container["usage"][&wanted.resource])?);
            is_found = true;
        }
        let at = object.data["timestamp"].as_str()?.parse().ok()?;
        let window = object.data["window"].as_str()?.parse::<SignedDuration>();
        let name = object.metadata.name.clone()?;
        let sample = Sample {
            used: used.thousandths(),
            at,
            window: window.ok()?,
        };
        is_found.then_some((name, sample))
    };
    metrics.iter().filter_map(sample).collect()
}

fn amount(value: &Value) -> Option<Amount> {
    value.as_str().and_then(Amount::parse)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metric(value: Value) -> Result<(&'static str, Metric), (&'static str, String)> {
        let metric: MetricSpec = serde_json::from_value(value).unwrap();
        read(&metric, &HorizontalPodAutoscalerSpec::default())
    }

    #[test]
    fn metrics_of_resources_are_read_and_others_are_refused() {
        let cpu = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60},
        }});
        assert_eq!(metric(cpu).unwrap().1.target, Target::Utilization(60));
        let memory = json!({"type": "ContainerResource", "containerResource": {
            "name": "memory", "container": "c", "target": {"type": "AverageValue", "averageValue": "1Ki"},
        }});
        let (reason, memory) = metric(memory).unwrap();
        assert_eq!(reason, "FailedGetContainerResourceMetric");
        assert_eq!(memory.target, Target::Average(1_024_000));
        let pods = json!({"type": "Pods", "pods": {
            "metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"},
        }});
        assert_eq!(metric(pods).unwrap_err().0, "FailedGetPodsMetric");
    }

    #[test]
    fn samples_are_sums_over_containers_or_of_one() {
        let object = |containers: Value| -> DynamicObject {
            serde_json::from_value(json!({
                "metadata": {"name": "p"}, "timestamp": "2026-01-01T00:00:00Z", "window": "15.5s",
                "containers": containers,
            }))
            .unwrap()
        };
        let both = json!([
            {"name": "a", "usage": {"cpu": "100m"}},
            {"name": "b", "usage": {"cpu": "1500u"}},
        ]);
        let mut wanted = metric(json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60},
        }}))
        .unwrap()
        .1;
        let used = |objects: &[DynamicObject], wanted: &Metric| {
            samples(objects, wanted).get("p").map(|sample| sample.used)
        };
        assert_eq!(used(&[object(both.clone())], &wanted), Some(102));
        assert_eq!(
            used(&[object(json!([{"name": "a", "usage": {}}]))], &wanted),
            None
        );
        wanted.container = Some("b".to_owned());
        assert_eq!(used(&[object(both)], &wanted), Some(2));
        wanted.container = Some("other".to_owned());
        assert_eq!(
            used(
                &[object(json!([{"name": "a", "usage": {"cpu": "1"}}]))],
                &wanted
            ),
            None
        );
    }
}
