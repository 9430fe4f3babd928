//! Who owns what: a controller keeps what it owns and still selects, and adopts what nobody owns.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::index::{Index, Key};
use crate::fault::{Fault, ask, fetch, found};

/// The owner that manages an object; there is at most one.
pub(crate) fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = metadata.owner_references.iter().flatten();
    owners
        .into_iter()
        .find(|owner| owner.controller == Some(true))
}

pub(crate) fn is_controlled_by(metadata: &ObjectMeta, uid: Option<&str>) -> bool {
    controller_of(metadata).is_some_and(|owner| Some(owner.uid.as_str()) == uid)
}

/// The reference with which an object says that `owner` manages it.
pub(crate) fn reference_to<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether labels are selected. A selector that says nothing selects all.
pub(crate) fn selects(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let mut pairs = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    pairs.all(|(key, wanted)| value(key) == Some(wanted))
        && expressions.all(|expression| {
            let listed =
                |value: &String| expression.values.iter().flatten().any(|one| one == value);
            match (expression.operator.as_str(), value(&expression.key)) {
                ("In", Some(value)) => listed(value),
                ("NotIn", Some(value)) => !listed(value),
                ("Exists", found) => found.is_some(),
                ("NotIn" | "DoesNotExist", None) => true,
                _ => false,
            }
        })
}

/// What becomes of the objects that a controller owns or could own.
#[derive(Debug, PartialEq)]
pub(crate) struct Claims<K> {
    pub(crate) kept: Vec<Arc<K>>,
    pub(crate) adopted: Vec<Arc<K>>,
    pub(crate) released: Vec<Arc<K>>,
}

/// Decides which objects a controller has.
pub(crate) fn plan_claims<K: Resource>(
    owner: &ObjectMeta,
    selector: &LabelSelector,
    held: Vec<Arc<K>>,
    ownerless: Vec<Arc<K>>,
) -> Claims<K> {
    let is_selected = |object: &Arc<K>| selects(selector, object.meta().labels.as_ref());
    let is_going = owner.deletion_timestamp.is_some();
    let (kept, others): (Vec<_>, Vec<_>) = held.into_iter().partition(is_selected);
    // An owner on its way out neither takes nor gives.
    let (released, adopted) = if is_going {
        (Vec::new(), Vec::new())
    } else {
        let adopted = ownerless
            .into_iter()
            .filter(|object| is_selected(object) && object.meta().deletion_timestamp.is_none());
        (others, adopted.collect())
    };
    Claims {
        kept,
        adopted,
        released,
    }
}

/// Makes claims so, and gives all that the owner has then.
pub(crate) async fn claim<O, K>(
    client: &Client,
    owner: &O,
    index: &Index<K>,
    claims: Claims<K>,
) -> Result<Vec<Arc<K>>, Fault>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let mut kept = claims.kept;
    let namespace = owner.namespace().unwrap_or_default();
    let objects = Api::<K>::namespaced(client.clone(), &namespace);
    if !claims.adopted.is_empty() {
        let owners = Api::<O>::namespaced(client.clone(), &namespace);
        let live = found(fetch(owners.get(&owner.name_any())).await)?;
        let is_same = live.is_some_and(|live| {
            live.uid() == owner.uid() && live.meta().deletion_timestamp.is_none()
        });
        if !is_same {
            // What we know of the owner is old; its news are on the way.
            return Err(Fault::Incomplete);
        }
    }
    for object in claims.adopted {
        let mut owners = object.owner_references().to_vec();
        owners.push(reference_to(owner));
        if let Some(adopted) = set_owners(&objects, &*object, owners).await? {
            kept.push(index.note(adopted));
        }
    }
    for object in claims.released {
        let mut owners = object.owner_references().to_vec();
        owners.retain(|one| Some(&one.uid) != owner.meta().uid.as_ref());
        if let Some(released) = set_owners(&objects, &*object, owners).await? {
            index.note(released);
        }
    }
    kept.sort_by_cached_key(|object| Key::of(&**object));
    Ok(kept)
}

async fn set_owners<K>(
    objects: &Api<K>,
    object: &K,
    owners: Vec<OwnerReference>,
) -> Result<Option<K>, Fault>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let list = if owners.is_empty() {
        Value::Null
    } else {
        json!(owners)
    };
    let metadata = json!({
        "uid": object.uid(), "resourceVersion": object.resource_version(), "ownerReferences": list,
    });
    let change = Patch::Merge(json!({"metadata": metadata}));
    let (name, parameters) = (object.name_any(), PatchParams::default());
    found(ask(objects.patch(&name, &parameters, &change)).await)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp,
    };

    use super::*;

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn selectors_select_as_they_say() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let expression = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (value, wanted) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchLabels": {"a": "1", "b": "1"}}), false),
            (expression("In", "a", &["1", "2"]), true),
            (expression("In", "b", &["1"]), false),
            (expression("NotIn", "a", &["1"]), false),
            (expression("NotIn", "b", &["1"]), true),
            (expression("Exists", "a", &[]), true),
            (expression("Exists", "b", &[]), false),
            (expression("DoesNotExist", "a", &[]), false),
            (expression("DoesNotExist", "b", &[]), true),
            (expression("Gt", "a", &["0"]), false),
        ] {
            assert_eq!(
                selects(&selector(value.clone()), Some(&labels)),
                wanted,
                "{value}"
            );
        }
        assert!(!selects(
            &selector(json!({"matchLabels": {"a": "1"}})),
            None
        ));
    }

    #[test]
    fn an_owner_keeps_what_it_selects_adopts_strays_and_releases_the_rest() {
        let pod = |name: &str, label: &str, deleted: bool| -> Arc<Pod> {
            let time = deleted.then_some("2026-01-01T00:00:00Z");
            let metadata = json!({"name": name, "labels": {"a": label}, "deletionTimestamp": time});
            Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
        };
        let names = |pods: &[Arc<Pod>]| pods.iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
        let selector = selector(json!({"matchLabels": {"a": "1"}}));
        let owned = vec![pod("mine", "1", false), pod("lost", "2", false)];
        let free = vec![
            pod("stray", "1", false),
            pod("dying", "1", true),
            pod("other", "2", false),
        ];
        let claims = plan_claims(
            &ObjectMeta::default(),
            &selector,
            owned.clone(),
            free.clone(),
        );
        assert_eq!(names(&claims.kept), ["mine"]);
        assert_eq!(names(&claims.adopted), ["stray"]);
        assert_eq!(names(&claims.released), ["lost"]);
        let going = ObjectMeta {
            deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        let claims = plan_claims(&going, &selector, owned, free);
        assert_eq!(names(&claims.kept), ["mine"]);
        assert!(claims.adopted.is_empty() && claims.released.is_empty());
    }
}
