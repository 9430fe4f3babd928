//! Decides how many pods a metric asks for, from what pods use and what is known of each.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::Pod,
    jiff::{SignedDuration, Timestamp},
};

use crate::quantity::Amount;

/// How long the CPU of a new pod says nothing: it starts.
const STARTING: SignedDuration = SignedDuration::from_mins(5);
/// A pod that was not ready for so long after its start never was ready.
const FIRST_READY: SignedDuration = SignedDuration::from_secs(30);
/// How far, in thousandths, a ratio may be from one.
pub(super) const TOLERANCE: i128 = 100;

/// What one pod was measured to use, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) used: i128,
    pub(super) at: Timestamp,
    pub(super) window: SignedDuration,
}

/// What a metric is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) resource: String,
    /// Of one container only.
    pub(super) container: Option<String>,
    pub(super) target: Target,
    /// How far a ratio may be above and below one, in thousandths.
    pub(super) tolerance: (i128, i128),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Per cent of what pods request.
    Utilization(i32),
    /// Thousandths for each pod.
    Average(i128),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// What the pods use on average, in thousandths, and in per cent of their requests if that counts.
    pub(super) average: i128,
    pub(super) utilization: Option<i32>,
}

#[derive(Default)]
struct Groups<'a> {
    measured: Vec<(&'a Pod, i128)>,
    starting: Vec<&'a Pod>,
    missing: Vec<&'a Pod>,
}

/// How many pods the metric asks for.
pub(super) fn propose(
    metric: &Metric,
    current: i32,
    pods: &[Pod],
    samples: &BTreeMap<String, Sample>,
    now: Timestamp,
) -> Result<Proposal, String> {
    let groups = group(metric, pods, samples, now);
    if groups.measured.is_empty() {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    let requests = match metric.target {
        Target::Utilization(_) => pods
            .iter()
            .filter(|pod| !is_over(pod))
            .map(|pod| Ok((name(pod), request(metric, pod)?)))
            .collect::<Result<BTreeMap<&str, i128>, String>>()?,
        Target::Average(_) => BTreeMap::new(),
    };
    let request_of = |pod: &Pod| requests.get(name(pod)).copied().unwrap_or_default();
    let sum: i128 = groups.measured.iter().map(|(_, used)| *used).sum();
    let count = i128::try_from(groups.measured.len()).unwrap_or(i128::MAX);
    let wanted: i128 = groups.measured.iter().map(|(pod, _)| request_of(pod)).sum();
    let ratio = ratio(metric.target, sum, wanted, count)?;
    let proposal = |replicas| Proposal {
        replicas,
        average: sum / count,
        utilization: match metric.target {
            Target::Utilization(_) => i32::try_from(sum * 100 / wanted.max(1)).ok(),
            Target::Average(_) => None,
        },
    };
    let counts_starting = !groups.starting.is_empty() && ratio > 1000;
    if !counts_starting && groups.missing.is_empty() {
        let replicas = if is_tolerable(metric, ratio) {
            current
        } else {
            times(ratio, count)
        };
        return Ok(proposal(replicas));
    }
    // What is not known must not drive the size further: the pods are taken to use what speaks against it.
    let assumed = |pod: &&Pod| match metric.target {
        _ if ratio > 1000 => 0,
        Target::Utilization(target) => request_of(pod) * i128::from(target.max(100)) / 100,
        Target::Average(target) => target,
    };
    let starting: &[&Pod] = if counts_starting {
        &groups.starting
    } else {
        &[]
    };
    let filled: i128 = sum + groups.missing.iter().map(assumed).sum::<i128>();
    let others = groups.missing.len() + starting.len();
    let all = count + i128::try_from(others).unwrap_or_default();
    let more = groups.missing.iter().chain(starting);
    let wanted_by_all = wanted + more.map(|pod| request_of(pod)).sum::<i128>();
    let careful = self::ratio(metric.target, filled, wanted_by_all, all)?;
    let turned = (ratio < 1000 && careful > 1000) || (ratio > 1000 && careful < 1000);
    if turned || is_tolerable(metric, careful) {
        return Ok(proposal(current));
    }
    let replicas = times(careful, all);
    let contradicts =
        (careful < 1000 && replicas > current) || (careful > 1000 && replicas < current);
    Ok(proposal(if contradicts { current } else { replicas }))
}

/// Use over target, in thousandths.
fn ratio(target: Target, used: i128, requested: i128, count: i128) -> Result<i128, String> {
    let whole = match target {
        Target::Utilization(percent) => requested * i128::from(percent) / 100,
        Target::Average(each) => each * count,
    };
    if whole <= 0 {
        return Err("no metrics returned matched known pods".to_owned());
    }
    Ok((used * 1000).div_euclid(whole))
}

fn is_tolerable(metric: &Metric, ratio: i128) -> bool {
    let (above, below) = metric.tolerance;
    ratio <= 1000 + above && ratio >= 1000 - below
}

fn times(ratio: i128, count: i128) -> i32 {
    let product = ratio * count + 999;
    i32::try_from(product.div_euclid(1000)).unwrap_or(i32::MAX)
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

fn is_over(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() || matches!(phase(pod), "Failed" | "Succeeded")
}

fn group<'a>(
    metric: &Metric,
    pods: &'a [Pod],
    samples: &BTreeMap<String, Sample>,
    now: Timestamp,
) -> Groups<'a> {
    let mut groups = Groups::default();
    for pod in pods.iter().filter(|pod| !is_over(pod)) {
        let sample = samples.get(name(pod));
        match sample {
            _ if phase(pod) == "Pending" => groups.starting.push(pod),
            None => groups.missing.push(pod),
            Some(sample) if metric.resource == "cpu" && is_starting(pod, sample, now) => {
                groups.starting.push(pod);
            }
            Some(sample) => groups.measured.push((pod, sample.used)),
        }
    }
    groups
}

/// Whether the CPU of a pod says nothing yet.
fn is_starting(pod: &Pod, sample: &Sample, now: Timestamp) -> bool {
    let Some(status) = &pod.status else {
        return true;
    };
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|each| each.type_ == "Ready");
    let (Some(ready), Some(started)) = (ready, &status.start_time) else {
        return true;
    };
    let is_ready = ready.status == "True";
    let turned = ready.last_transition_time.as_ref();
    let turned = turned.map_or(started.0, |time| time.0);
    if now.duration_since(started.0) < STARTING {
        // A sample from before it was ready tells of its start.
        return !is_ready || sample.at.duration_since(turned) < sample.window;
    }
    !is_ready && turned.duration_since(started.0) < FIRST_READY
}

/// What a pod requests of the resource, in thousandths.
fn request(metric: &Metric, pod: &Pod) -> Result<i128, String> {
    let spec = pod.spec.clone().unwrap_or_default();
    let of_pod = spec
        .resources
        .as_ref()
        .and_then(|all| all.requests.as_ref());
    if metric.container.is_none()
        && let Some(amount) = of_pod.and_then(|all| Amount::of(all.get(&metric.resource)?))
    {
        return Ok(amount.thousandths());
    }
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|each| each.restart_policy.as_deref() == Some("Always"));
    let mut sum = 0;
    for container in spec.containers.iter().chain(sidecars) {
        if metric
            .container
            .as_ref()
            .is_some_and(|only| *only != container.name)
        {
            continue;
        }
        let requests = container.resources.as_ref();
        let requests = requests.and_then(|resources| resources.requests.as_ref());
        let amount = requests.and_then(|requests| Amount::of(requests.get(&metric.resource)?));
        sum += amount
            .ok_or_else(|| {
                format!(
                    "missing request for {} in container {} of Pod {}",
                    metric.resource,
                    container.name,
                    name(pod)
                )
            })?
            .thousandths();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn pod(number: usize, change: &Value) -> Pod {
        let mut value = json!({
            "metadata": {"name": format!("p{number}")},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {
                "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}],
            },
        });
        for (name, field) in change.as_object().into_iter().flatten() {
            for (inner, each) in field.as_object().into_iter().flatten() {
                value[name][inner] = each.clone();
            }
        }
        serde_json::from_value(value).unwrap()
    }

    /// Pods `p0`… that use so many thousandths; `None` was not measured.
    fn replicas(
        target: Target,
        current: i32,
        pods: &[Pod],
        used: &[Option<i128>],
    ) -> Result<i32, String> {
        let metric = Metric {
            resource: "cpu".to_owned(),
            container: None,
            target,
            tolerance: (TOLERANCE, TOLERANCE),
        };
        let samples = pods.iter().zip(used).filter_map(|(pod, used)| {
            let sample = Sample {
                used: (*used)?,
                at: "2026-01-01T00:59:50Z".parse().unwrap(),
                window: SignedDuration::from_secs(30),
            };
            Some((name(pod).to_owned(), sample))
        });
        let proposal = propose(
            &metric,
            current,
            pods,
            &samples.collect(),
            NOW.parse().unwrap(),
        );
        proposal.map(|proposal| proposal.replicas)
    }

    fn plain(count: usize) -> Vec<Pod> {
        (0..count).map(|number| pod(number, &json!({}))).collect()
    }

    #[test]
    fn size_follows_use_outside_of_the_tolerance() {
        let half = Target::Utilization(50);
        for (target, used, expected) in [
            (half, 500, 3),
            (half, 545, 3),
            (half, 560, 4),
            (half, 1000, 6),
            (half, 100, 1),
            (Target::Average(200), 400, 6),
            (Target::Average(200), 210, 3),
        ] {
            let found = replicas(target, 3, &plain(3), &[Some(used); 3]);
            assert_eq!(found, Ok(expected), "{target:?} {used}");
        }
    }

    #[test]
    fn what_was_not_measured_speaks_against_a_change() {
        let half = Target::Utilization(50);
        let pods = plain(4);
        // Up: the one that is missing is taken to use nothing.
        let up = [Some(1000), Some(1000), Some(1000), None];
        assert_eq!(replicas(half, 4, &pods, &up), Ok(6));
        // Down: it is taken to use all that it requests.
        let down = [Some(100), Some(100), Some(100), None];
        assert_eq!(replicas(half, 4, &pods, &down), Ok(3));
        let turned = [Some(600), Some(600), None, None];
        assert_eq!(replicas(half, 4, &pods, &turned), Ok(4));
    }

    #[test]
    fn pods_that_start_do_not_drive_the_size_up() {
        let young = json!({"status": {
            "startTime": "2026-01-01T00:59:00Z",
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:59:00Z"}],
        }});
        let pods = [
            pod(0, &json!({})),
            pod(1, &young),
            pod(2, &json!({"status": {"phase": "Pending"}})),
        ];
        let used = [Some(1200), Some(1000), None];
        assert_eq!(replicas(Target::Utilization(50), 3, &pods, &used), Ok(3));
        let gone = pod(3, &json!({"metadata": {"deletionTimestamp": NOW}}));
        let pods = [pod(0, &json!({})), gone];
        let used = [Some(1000), Some(1000)];
        assert_eq!(replicas(Target::Utilization(50), 1, &pods, &used), Ok(2));
    }

    #[test]
    fn without_metrics_or_requests_nothing_can_be_said() {
        let half = Target::Utilization(50);
        replicas(half, 1, &plain(1), &[None]).unwrap_err();
        let bare = pod(0, &json!({"spec": {"containers": [{"name": "c"}]}}));
        assert_eq!(
            replicas(half, 1, &[bare], &[Some(1)]),
            Err("missing request for cpu in container c of Pod p0".to_owned())
        );
    }
}
