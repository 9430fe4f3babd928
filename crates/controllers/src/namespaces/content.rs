//! Deletes what is in a namespace and tells what is left.
//!
//! Pods go before everything else, so that nothing runs without the policies that held it; events go last,
//! since they tell how the rest went.

use std::collections::BTreeMap;

use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
    core::DynamicObject,
};

use crate::{
    fault::{Fault, ask, fetch, found},
    resources::{Deletable, Metadata, discover},
};

const PAGE: u32 = 500;
/// A namespace with more than this in one resource is counted on the next look.
const PAGES: usize = 200;

/// What a look into a namespace showed.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// How many objects are left, by resource and group.
    pub(super) remaining: BTreeMap<(String, String), usize>,
    /// How many objects each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// What could not be deleted or looked at, and why.
    pub(super) failures: Vec<String>,
    pub(super) discovery_failure: Option<String>,
}

impl Sight {
    /// Whether nothing is left and nobody failed to look.
    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.failures.is_empty() && self.discovery_failure.is_none()
    }

    fn count(&mut self, resource: &Deletable, objects: &[Metadata]) {
        if objects.is_empty() {
            return;
        }
        let key = (resource.api.plural.clone(), resource.api.group.clone());
        self.remaining.insert(key, objects.len());
        for finalizer in objects.iter().flat_map(ResourceExt::finalizers) {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }
}

/// Deletes as much as can be deleted now.
pub(super) async fn remove(client: &Client, namespace: &str) -> Sight {
    let mut sight = Sight::default();
    let resources = match discover(client).await {
        Ok(resources) => resources,
        Err(fault) => {
            sight.discovery_failure = Some(fault.to_string());
            return sight;
        }
    };
    for step in plan_steps(resources) {
        for resource in step {
            match remove_all(client, &resource, namespace).await {
                Ok(left) => sight.count(&resource, &left),
                Err(fault) => sight.failures.push(fault.to_string()),
            }
        }
        if !sight.is_empty() {
            break;
        }
    }
    sight
}

/// Who goes first: a step begins when nothing of those before is left.
fn plan_steps(resources: Vec<Deletable>) -> [Vec<Deletable>; 3] {
    let mut steps = [Vec::new(), Vec::new(), Vec::new()];
    for resource in resources.into_iter().filter(|resource| resource.namespaced) {
        let step = if resource.is_pod() {
            0
        } else if resource.is_event() {
            2
        } else {
            1
        };
        steps[step].push(resource);
    }
    steps
}

/// Deletes all objects of a resource and tells which ones are still there.
async fn remove_all(
    client: &Client,
    resource: &Deletable,
    namespace: &str,
) -> Result<Vec<Metadata>, Fault> {
    let objects = resource.objects(client, Some(namespace));
    let before = list(&objects).await?;
    if before
        .iter()
        .all(|object| object.metadata.deletion_timestamp.is_some())
    {
        return Ok(before);
    }
    if resource.collective {
        let whole: Api<DynamicObject> = resource.objects(client, Some(namespace));
        let (background, all) = (DeleteParams::background(), ListParams::default());
        found(ask(whole.delete_collection(&background, &all)).await)?;
    } else {
        for object in &before {
            let parameters = DeleteParams::background().preconditions(Preconditions {
                uid: object.uid(),
                resource_version: None,
            });
            let name = object.name_any();
            match ask(objects.delete(&name, &parameters)).await {
                Ok(_) => {}
                // Gone, or gone and there again: the next look shows.
                Err(fault) if fault.is_absent() || fault.is_conflict() => {}
                Err(fault) => return Err(fault),
            }
        }
    }
    list(&objects).await
}

/// The objects of a resource; none if it is not served any more.
async fn list(objects: &Api<Metadata>) -> Result<Vec<Metadata>, Fault> {
    let mut all = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    for _ in 0..PAGES {
        let Some(page) = found(fetch(objects.list(&parameters)).await)? else {
            break;
        };
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use kube::discovery::ApiResource;

    use super::*;

    fn resource(group: &str, plural: &str, namespaced: bool) -> Deletable {
        Deletable {
            api: ApiResource {
                group: group.to_owned(),
                version: "v1".to_owned(),
                api_version: "v1".to_owned(),
                kind: String::new(),
                plural: plural.to_owned(),
            },
            namespaced,
            watchable: true,
            collective: true,
        }
    }

    #[test]
    fn pods_go_first_events_last_and_what_is_in_no_namespace_stays() {
        let steps = plan_steps(vec![
            resource("", "events", true),
            resource("events.k8s.io", "events", true),
            resource("example.org", "pods", true),
            resource("", "pods", true),
            resource("", "nodes", false),
        ]);
        let names = steps.map(|step| {
            step.iter()
                .map(|resource| format!("{}/{}", resource.api.group, resource.api.plural))
                .collect::<Vec<_>>()
        });
        assert_eq!(names[0], ["/pods"]);
        assert_eq!(names[1], ["example.org/pods"]);
        assert_eq!(names[2], ["/events", "events.k8s.io/events"]);
    }
}
