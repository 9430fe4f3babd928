//! The pods that words name: one by its name, or those that belong to a deployment and the like. Invariant: pods come
//! sorted by name, so that the same words mean the same pod twice.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kinds::Kinds;
use super::reader::Reader;
use crate::cluster::Cluster;
use crate::failure::{Advice as _, Exit};

/// How many objects one answer has.
const PAGE: u32 = 500;
/// By which annotation a pod says which of its containers people mean.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Takes each object of a list, page by page.
pub(crate) async fn each<K>(
    cluster: &Cluster,
    api: &Api<K>,
    parameters: ListParams,
    mut take: impl FnMut(K),
) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut parameters = parameters.limit(PAGE);
    loop {
        let page = cluster.answer(api.list(&parameters).await)?;
        let next = page.metadata.continue_.filter(|next| !next.is_empty());
        page.items.into_iter().for_each(&mut take);
        match next {
            Some(next) => parameters = parameters.continue_token(&next),
            None => return Ok(()),
        }
    }
}

/// The pods with some labels.
pub(crate) async fn pods_with(
    cluster: &Cluster,
    namespace: &str,
    labels: &str,
) -> anyhow::Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let mut found = Vec::new();
    let parameters = ListParams::default().labels(labels);
    each(cluster, &api, parameters, |pod| found.push(pod)).await?;
    found.sort_by_key(Pod::name_any);
    Ok(found)
}

/// The pods that a word means: `web`, `pod/web`, `deployment/web`.
pub(crate) async fn pods_of(
    cluster: &Cluster,
    namespace: &str,
    word: &str,
) -> anyhow::Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let Some((kind, name)) = word.split_once('/') else {
        return Ok(vec![cluster.answer(api.get(word).await)?]);
    };
    if kind.is_empty() || name.is_empty() || name.contains('/') {
        return Err(anyhow::anyhow!("`{word}` is neither a pod nor KIND/NAME")).exit(Exit::Usage);
    }
    let kind = Kinds::discover(cluster).await?.find_one(kind)?;
    if kind.group.is_empty() && kind.kind == "Pod" {
        return Ok(vec![cluster.answer(api.get(name).await)?]);
    }
    let object = Reader::whole(cluster)
        .get(&kind, Some(namespace), name)
        .await?;
    let whole = kind.name_of(name);
    let Some(labels) = selector_of(&object) else {
        return Err(anyhow::anyhow!("{whole} has no pods of its own"))
            .hint("name a pod, or something that makes pods, such as deployment/web")
            .exit(Exit::Usage);
    };
    let pods = pods_with(cluster, namespace, &labels).await?;
    if pods.is_empty() {
        return Err(anyhow::anyhow!("{whole} has no pods now"))
            .hint(format!(
                "its events say why: transom get events -n {namespace} --field-selector involvedObject.name={name}"
            ))
            .exit(Exit::NotFound);
    }
    Ok(pods)
}

/// How an object finds its pods: by rules, or like a service by labels alone.
fn selector_of(object: &Value) -> Option<String> {
    let selector = object["spec"]["selector"].as_object()?;
    let has_rules =
        selector.contains_key("matchLabels") || selector.contains_key("matchExpressions");
    let selector: Selector = if has_rules {
        let rules: LabelSelector = serde_json::from_value(selector.clone().into()).ok()?;
        rules.try_into().ok()?
    } else {
        let pairs = selector
            .iter()
            .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        pairs.collect::<Option<Vec<_>>>()?.into_iter().collect()
    };
    (!selector.selects_all()).then(|| selector.to_string())
}

/// The names of all containers of a pod, in the order in which they start.
pub(crate) fn containers_of(pod: &Pod) -> Vec<&str> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let first = spec.init_containers.iter().flatten();
    let last = spec.ephemeral_containers.iter().flatten();
    first
        .chain(&spec.containers)
        .map(|container| container.name.as_str())
        .chain(last.map(|container| container.name.as_str()))
        .collect()
}

/// The container that is meant: the one that was asked for, that the pod says, or its first.
pub(crate) fn container_of(pod: &Pod, asked: Option<&str>) -> anyhow::Result<String> {
    let all = containers_of(pod);
    if let Some(asked) = asked {
        if all.contains(&asked) {
            return Ok(asked.to_owned());
        }
        return Err(anyhow::anyhow!(
            "pod {} has no container `{asked}`",
            pod.name_any()
        ))
        .hint(format!("it has {}", all.join(", ")))
        .exit(Exit::NotFound);
    }
    let said = pod.annotations().get(DEFAULT_CONTAINER);
    let said = said.filter(|name| all.contains(&name.as_str())).cloned();
    let first = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    said.or_else(|| first.map(|container| container.name.clone()))
        .ok_or_else(|| anyhow::anyhow!("pod {} has no containers", pod.name_any()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_found_by_rules_or_by_labels() {
        let of = |selector: Value| selector_of(&json!({"spec": {"selector": selector}}));
        let rules = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        });
        let rules = of(rules).unwrap();
        assert!(
            rules.contains("app=web") && rules.contains("tier in ("),
            "{rules}"
        );
        assert_eq!(of(json!({"app": "web"})).unwrap(), "app=web");
        // What selects everything is nobody's.
        assert_eq!(of(json!({})), None);
        assert_eq!(of(json!({"matchLabels": {}})), None);
        assert_eq!(of(json!({"app": 1})), None);
        assert_eq!(selector_of(&json!({"spec": {}})), None);
    }

    fn pod(annotation: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "annotations": {DEFAULT_CONTAINER: annotation.unwrap_or("gone")}},
            "spec": {
                "initContainers": [{"name": "setup"}],
                "containers": [{"name": "web"}, {"name": "side"}],
                "ephemeralContainers": [{"name": "debug"}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_container_is_the_one_asked_for_or_the_one_the_pod_says_or_the_first() {
        assert_eq!(containers_of(&pod(None)), ["setup", "web", "side", "debug"]);
        assert_eq!(container_of(&pod(None), None).unwrap(), "web");
        assert_eq!(container_of(&pod(Some("side")), None).unwrap(), "side");
        assert_eq!(
            container_of(&pod(Some("side")), Some("setup")).unwrap(),
            "setup"
        );
        let error = container_of(&pod(None), Some("nope")).unwrap_err();
        assert_eq!(error.to_string(), "pod p has no container `nope`");
    }
}
