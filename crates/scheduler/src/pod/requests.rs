//! What a pod asks for as a whole: containers run side by side, init containers one after the other, and
//! sidecars beside all that come after them.

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};

use crate::{resources::Resources, text::Texts};

/// What is asked for, and what counts as asked for when nodes are compared.
pub(super) fn requests(spec: &PodSpec, texts: &mut Texts) -> (Resources, Resources) {
    let exact = total(spec, texts, |container, texts| {
        Resources::of(requested(container.resources.as_ref()), texts)
    });
    let padded = total(spec, texts, |container, texts| {
        let quantities = requested(container.resources.as_ref());
        Resources::of(quantities, texts).at_least_a_little(quantities)
    });
    (exact, padded)
}

type Quantities =
    std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>;

fn requested(resources: Option<&ResourceRequirements>) -> Option<&Quantities> {
    resources?.requests.as_ref()
}

fn total(
    spec: &PodSpec,
    texts: &mut Texts,
    of: impl Fn(&Container, &mut Texts) -> Resources,
) -> Resources {
    let mut beside = Resources::default();
    for container in &spec.containers {
        beside.add(&of(container, texts));
    }
    let mut sidecars = Resources::default();
    let mut before = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let own = of(container, texts);
        if is_sidecar(container) {
            sidecars.add(&own);
            beside.add(&own);
            before.raise(&sidecars);
        } else {
            let mut at_once = sidecars.clone();
            at_once.add(&own);
            before.raise(&at_once);
        }
    }
    let mut all = beside;
    all.raise(&before);
    if let Some(quantities) = requested(spec.resources.as_ref()) {
        override_with(
            &mut all,
            &Resources::of(Some(quantities), texts),
            quantities,
        );
    }
    all.add(&Resources::of(spec.overhead.as_ref(), texts));
    all
}

pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// What is asked for the pod as a whole counts instead of the sum of its containers.
fn override_with(all: &mut Resources, pod: &Resources, named: &Quantities) {
    if named.contains_key(crate::resources::CPU) {
        all.cpu = pod.cpu;
    }
    if named.contains_key(crate::resources::MEMORY) {
        all.memory = pod.memory;
    }
    for (name, amount) in &pod.others {
        match all.others.binary_search_by(|(known, _)| known.cmp(name)) {
            Ok(place) => all.others[place].1 = *amount,
            Err(place) => all.others.insert(place, (name.clone(), *amount)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cpu_and_memory(spec: Value) -> [(i64, i64); 2] {
        let mut spec = spec;
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                container["name"] = "c".into();
            }
        }
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        let (exact, padded) = requests(&spec, &mut Texts::default());
        [exact, padded].map(|one| (one.cpu, one.memory))
    }

    fn asks(cpu: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu, "memory": "1"}}})
    }

    fn sidecar(cpu: &str) -> Value {
        let mut value = asks(cpu);
        value["restartPolicy"] = "Always".into();
        value
    }

    #[test]
    fn each_kind_of_container_counts_when_it_runs() {
        for (spec, expected) in [
            (json!({"containers": [asks("1"), asks("2")]}), (3_000, 2)),
            (
                json!({"containers": [asks("1")], "initContainers": [asks("5"), asks("2")]}),
                (5_000, 1),
            ),
            (
                json!({"containers": [asks("1")], "initContainers": [sidecar("2"), asks("3")]}),
                (5_000, 2),
            ),
            (
                json!({"containers": [asks("9")], "initContainers": [sidecar("2"), asks("3")]}),
                (11_000, 2),
            ),
            (
                json!({"containers": [asks("1")], "initContainers": [asks("3"), sidecar("1")]}),
                (3_000, 2),
            ),
            (
                json!({"containers": [asks("1")], "overhead": {"cpu": "250m"}}),
                (1_250, 1),
            ),
            (
                json!({"containers": [asks("1")], "resources": {"requests": {"cpu": "4"}}}),
                (4_000, 1),
            ),
        ] {
            assert_eq!(cpu_and_memory(spec.clone())[0], expected, "{spec}");
        }
    }

    #[test]
    fn a_container_that_asks_for_nothing_counts_a_little_when_nodes_are_compared() {
        let little = 200 * 1024 * 1024;
        assert_eq!(
            cpu_and_memory(json!({"containers": [{}, {}]})),
            [(0, 0), (200, 2 * little)]
        );
        assert_eq!(
            cpu_and_memory(json!({"containers": [{"resources": {"requests": {"cpu": "0"}}}]})),
            [(0, 0), (0, little)]
        );
    }

    #[test]
    fn other_resources_are_told_apart_by_name() {
        let spec: PodSpec = serde_json::from_value(json!({"containers": [
            {"name": "a", "resources": {"requests": {"example.org/gpu": "1", "hugepages-2Mi": "4Mi"}}},
            {"name": "b", "resources": {"requests": {"example.org/gpu": "2"}}},
        ]}))
        .unwrap();
        let mut texts = Texts::default();
        let (exact, _) = requests(&spec, &mut texts);
        assert_eq!(exact.other(&texts.keep("example.org/gpu")), 3);
        assert_eq!(exact.other(&texts.keep("hugepages-2Mi")), 4 << 20);
        assert_eq!(exact.other(&texts.keep("none")), 0);
    }
}
