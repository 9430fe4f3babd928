//! What a pod asks of a node: its requests and limits, its class of service, and what follows from it.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::quantity;

pub(crate) type Amounts = BTreeMap<String, i128>;

fn amounts(list: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let readable = |(name, value): (&String, &Quantity)| {
        quantity::millis(value).map(|millis| (name.clone(), millis))
    };
    list.into_iter().flatten().filter_map(readable).collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, millis) in more {
        *to.entry(name.clone()).or_default() += millis;
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, millis) in least {
        let entry = to.entry(name.clone()).or_default();
        *entry = (*entry).max(*millis);
    }
}

fn requests(container: &Container) -> Amounts {
    let resources = container.resources.as_ref();
    amounts(resources.and_then(|resources| resources.requests.as_ref()))
}

pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// What a pod needs at its most hungry moment, in thousandths: the sum of its containers, or an init
/// container together with the sidecars that were started before it.
pub(crate) fn pod_requests(spec: &PodSpec) -> Amounts {
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &requests(container));
    }
    let mut sidecars = Amounts::new();
    let mut peak = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let own = requests(container);
        if is_sidecar(container) {
            add(&mut sidecars, &own);
            raise(&mut peak, &sidecars);
        } else {
            let mut moment = sidecars.clone();
            add(&mut moment, &own);
            raise(&mut peak, &moment);
        }
    }
    add(&mut total, &sidecars);
    raise(&mut total, &peak);
    let whole = spec.resources.as_ref();
    for (name, millis) in amounts(whole.and_then(|whole| whole.requests.as_ref())) {
        total.insert(name, millis);
    }
    add(&mut total, &amounts(spec.overhead.as_ref()));
    total
}

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn class_of_service(spec: &PodSpec) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    let containers = spec.containers.iter();
    let lists: Vec<_> = match &spec.resources {
        Some(whole) => vec![(whole.requests.as_ref(), whole.limits.as_ref())],
        None => containers
            .chain(spec.init_containers.iter().flatten())
            .map(|container| {
                let resources = container.resources.as_ref();
                (
                    resources.and_then(|resources| resources.requests.as_ref()),
                    resources.and_then(|resources| resources.limits.as_ref()),
                )
            })
            .collect(),
    };
    for (requests, limits) in lists {
        let (requests, limits) = (amounts(requests), amounts(limits));
        for name in ["cpu", "memory"] {
            let request = requests.get(name).copied().filter(|amount| *amount > 0);
            let limit = limits.get(name).copied().filter(|amount| *amount > 0);
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// How readily the kernel kills a container when memory runs out: as upstream's formula has it.
pub(crate) fn oom_score_adjustment(pod: &Pod, container: &Container, memory: u64) -> i32 {
    let Some(spec) = &pod.spec else { return 1000 };
    if spec
        .priority
        .is_some_and(|priority| priority >= 2_000_000_000)
    {
        return -997;
    }
    match class_of_service(spec) {
        "Guaranteed" => -997,
        "BestEffort" => 1000,
        _ => {
            let request = requests(container).get("memory").copied().unwrap_or(0) / 1000;
            let share = 1000 - (1000 * request) / i128::from(memory.max(1));
            let least = if is_sidecar(container) { 2 } else { 3 };
            i32::try_from(share.clamp(least, 999)).unwrap_or(999)
        }
    }
}

/// A limit or request of a container in thousandths.
pub(crate) fn amount(container: &Container, limits: bool, name: &str) -> Option<i128> {
    let resources = container.resources.as_ref()?;
    let list = if limits {
        &resources.limits
    } else {
        &resources.requests
    };
    quantity::millis(list.as_ref()?.get(name)?).filter(|millis| *millis > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(value: Value) -> PodSpec {
        serde_json::from_value(value).unwrap()
    }

    fn container(resources: Value) -> Value {
        let mut container = json!({"name": "a"});
        container["resources"] = resources;
        container
    }

    #[test]
    fn classes_follow_requests_and_limits() {
        for (resources, wanted) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": {"cpu": "1"}}), "Burstable"),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
                "Guaranteed",
            ),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}),
                "Guaranteed",
            ),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}}),
                "Burstable",
            ),
        ] {
            let spec = spec(json!({"containers": [container(resources.clone())]}));
            assert_eq!(class_of_service(&spec), wanted, "{resources}");
        }
    }

    #[test]
    fn a_pod_needs_the_more_of_its_containers_and_of_its_beginning() {
        let need = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let spec = spec(json!({
            "containers": [container(need("1")), container(need("500m"))],
            "initContainers": [
                {"name": "side", "restartPolicy": "Always", "resources": need("250m")},
                {"name": "init", "resources": need("2")},
            ],
            "overhead": {"cpu": "100m"},
        }));
        assert_eq!(pod_requests(&spec)["cpu"], 2250 + 100);
    }
}
