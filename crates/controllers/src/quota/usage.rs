//! What objects use of the resources that quotas can limit. It must agree with what the API charges when they are
//! made.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, PersistentVolumeClaim, Pod, PodAffinityTerm, PodSpec, ResourceQuotaSpec, Service,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use crate::quantity::Amount;

pub(super) type Amounts = BTreeMap<String, Amount>;

/// What one object uses, and which scopes it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Usage {
    pub(super) amounts: Amounts,
    /// Only pods are in scopes.
    scopes: Option<Scopes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Scopes {
    is_terminating: bool,
    is_best_effort: bool,
    priority_class: String,
    crosses_namespaces: bool,
}

impl Usage {
    fn of_one(resource: &str) -> Self {
        let one = Amount::whole(1);
        Self {
            amounts: [
                (format!("count/{resource}"), one),
                (resource.to_owned(), one),
            ]
            .into(),
            scopes: None,
        }
    }

    pub(super) fn of_pod(pod: &Pod) -> Self {
        let mut usage = Self::of_one("pods");
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        usage.scopes = Some(Scopes {
            is_terminating: spec.active_deadline_seconds.is_some(),
            is_best_effort: is_best_effort(spec),
            crosses_namespaces: crosses_namespaces(spec),
            priority_class: spec.priority_class_name.clone().unwrap_or_default(),
        });
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            usage.amounts.remove("pods");
            return usage;
        }
        for (name, amount) in of_spec(spec, true) {
            if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
                || name.starts_with("hugepages-")
            {
                usage.amounts.insert(name.clone(), amount);
            }
            usage.amounts.insert(format!("requests.{name}"), amount);
        }
        for (name, amount) in of_spec(spec, false) {
            if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
                usage.amounts.insert(format!("limits.{name}"), amount);
            }
        }
        usage
    }

    pub(super) fn of_service(service: Service) -> Self {
        let mut usage = Self::of_one("services");
        let spec = service.spec.unwrap_or_default();
        let ports = spec.ports.unwrap_or_default();
        let chosen = ports
            .iter()
            .filter(|port| port.node_port.unwrap_or_default() != 0);
        let (on_nodes, balancers) = match spec.type_.as_deref() {
            Some("NodePort") => (ports.len(), 0),
            Some("LoadBalancer") if spec.allocate_load_balancer_node_ports == Some(false) => {
                (chosen.count(), 1)
            }
            Some("LoadBalancer") => (ports.len(), 1),
            _ => (0, 0),
        };
        let on_nodes = i64::try_from(on_nodes).unwrap_or(i64::MAX);
        for (name, number) in [
            ("services.nodeports", on_nodes),
            ("services.loadbalancers", balancers),
        ] {
            usage.amounts.insert(name.to_owned(), Amount::whole(number));
        }
        usage
    }

    pub(super) fn of_claim(claim: PersistentVolumeClaim) -> Self {
        let mut usage = Self::of_one("persistentvolumeclaims");
        let spec = claim.spec.unwrap_or_default();
        let class = spec.storage_class_name.unwrap_or_default();
        let of_class = |what: &str| format!("{class}.storageclass.storage.k8s.io/{what}");
        let storage = |list: Option<BTreeMap<String, Quantity>>| {
            list.and_then(|list| list.get("storage").and_then(Amount::of))
        };
        if !class.is_empty() {
            let name = of_class("persistentvolumeclaims");
            usage.amounts.insert(name, Amount::whole(1));
        }
        let wanted = storage(spec.resources.and_then(|resources| resources.requests));
        if let Some(wanted) = wanted {
            let allocated = storage(claim.status.and_then(|status| status.allocated_resources));
            let wanted = allocated.map_or(wanted, |allocated| allocated.max(wanted));
            usage.amounts.insert("requests.storage".to_owned(), wanted);
            if !class.is_empty() {
                usage.amounts.insert(of_class("requests.storage"), wanted);
            }
        }
        usage
    }

    /// Whether a quota counts this object.
    pub(super) fn is_in(&self, quota: &ResourceQuotaSpec) -> bool {
        let plain = quota.scopes.iter().flatten();
        let plain = plain.map(|scope| (scope.as_str(), "Exists", &[][..]));
        let selector = quota.scope_selector.iter();
        let chosen = selector.flat_map(|selector| selector.match_expressions.iter().flatten());
        let chosen = chosen.map(|each| {
            let values = each.values.as_deref().unwrap_or_default();
            (each.scope_name.as_str(), each.operator.as_str(), values)
        });
        plain
            .chain(chosen)
            .all(|(scope, operator, values)| self.fits(scope, operator, values))
    }

    fn fits(&self, scope: &str, operator: &str, values: &[String]) -> bool {
        let Some(scopes) = &self.scopes else {
            return false;
        };
        match scope {
            "Terminating" => scopes.is_terminating,
            "NotTerminating" => !scopes.is_terminating,
            "BestEffort" => scopes.is_best_effort,
            "NotBestEffort" => !scopes.is_best_effort,
            "CrossNamespacePodAffinity" => scopes.crosses_namespaces,
            "PriorityClass" => match operator {
                "In" => values.contains(&scopes.priority_class),
                "NotIn" => !values.contains(&scopes.priority_class),
                "DoesNotExist" => scopes.priority_class.is_empty(),
                _ => !scopes.priority_class.is_empty(),
            },
            _ => false,
        }
    }
}

fn read(list: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let list = list.into_iter().flatten();
    list.filter_map(|(name, quantity)| Some((name.clone(), Amount::of(quantity)?)))
        .collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.plus(*amount);
    }
}

fn of_container(container: &Container, requests: bool) -> Amounts {
    let resources = container.resources.as_ref();
    read(resources.and_then(|resources| {
        if requests {
            resources.requests.as_ref()
        } else {
            resources.limits.as_ref()
        }
    }))
}

/// What a pod requests, or is limited to, as a whole.
fn of_spec(spec: &PodSpec, requests: bool) -> Amounts {
    let mut sum = Amounts::new();
    for container in &spec.containers {
        add(&mut sum, &of_container(container, requests));
    }
    // Containers before the others need the most that any of them needs beside the sidecars started so far.
    let mut sidecars = Amounts::new();
    let mut most = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container, requests);
        let mut together = sidecars.clone();
        add(&mut together, &own);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
        }
        for (name, amount) in together {
            let entry = most.entry(name).or_default();
            *entry = amount.max(*entry);
        }
    }
    for (name, amount) in most {
        let entry = sum.entry(name).or_default();
        *entry = amount.max(*entry);
    }
    let whole = spec.resources.as_ref().and_then(|resources| {
        if requests {
            resources.requests.as_ref()
        } else {
            resources.limits.as_ref()
        }
    });
    for (name, amount) in read(whole) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            sum.insert(name, amount);
        }
    }
    for (name, amount) in read(spec.overhead.as_ref()) {
        // Overhead only raises limits that there are.
        if requests || sum.contains_key(&name) {
            let entry = sum.entry(name).or_default();
            *entry = entry.plus(amount);
        }
    }
    sum
}

fn is_best_effort(spec: &PodSpec) -> bool {
    let whole = spec.resources.iter();
    let each = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let resources = whole.chain(each.filter_map(|container| container.resources.as_ref()));
    let mut lists = resources.flat_map(|resources| [&resources.requests, &resources.limits]);
    !lists.any(|list| {
        let amounts = read(list.as_ref());
        let mut basic = ["cpu", "memory"].into_iter();
        basic.any(|name| {
            amounts
                .get(name)
                .is_some_and(|amount| *amount > Amount::ZERO)
        })
    })
}

/// Whether a pod wants to be near pods of other namespaces, or far from them.
fn crosses_namespaces(spec: &PodSpec) -> bool {
    let Some(affinity) = &spec.affinity else {
        return false;
    };
    let far = |term: &PodAffinityTerm| {
        term.namespaces
            .as_ref()
            .is_some_and(|names| !names.is_empty())
            || term.namespace_selector.is_some()
    };
    let near = affinity.pod_affinity.as_ref().map(|near| {
        (
            &near.required_during_scheduling_ignored_during_execution,
            &near.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let anti = affinity.pod_anti_affinity.as_ref().map(|anti| {
        (
            &anti.required_during_scheduling_ignored_during_execution,
            &anti.preferred_during_scheduling_ignored_during_execution,
        )
    });
    near.into_iter().chain(anti).any(|(required, preferred)| {
        let mut preferred = preferred.iter().flatten();
        required.iter().flatten().any(far) || preferred.any(|each| far(&each.pod_affinity_term))
    })
}
