//! The kinds that a server has, and which of them a word means. Invariant: words mean what they mean to kubectl:
//! plural, singular, kind or short name in any case, with or without version and group.

use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
use kube::core::{ApiResource, GroupVersionKind};

use crate::cluster::Cluster;
use crate::failure::{Advice as _, Exit};
use crate::suggestion;

/// A kind of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "objects call it their kind, too")]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    verbs: Vec<String>,
}

impl Kind {
    fn of(group: &str, version: &str, resource: APIResourceDiscovery) -> Option<Self> {
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource.response_kind?.kind?,
            plural: resource.resource?,
            singular: resource.singular_resource.unwrap_or_default(),
            short_names: resource.short_names,
            categories: resource.categories,
            is_namespaced: resource.scope.as_deref() == Some("Namespaced"),
            verbs: resource.verbs,
        })
    }

    /// A kind that the server does not have yet.
    pub(crate) fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// `pod`, `deployment.apps`.
    pub(crate) fn name(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() {
            kind
        } else {
            format!("{kind}.{}", self.group)
        }
    }

    /// `pod/web`, `deployment.apps/web`.
    pub(crate) fn name_of(&self, object: &str) -> String {
        format!("{}/{object}", self.name())
    }

    /// Whether a request of this name can be made for the kind.
    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// The same for the client library.
    pub(crate) fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, &self.kind);
        ApiResource::from_gvk_with_plural(&kind, &self.plural)
    }

    /// Where the objects are; without a namespace those of all, unless the kind has none.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    fn is_called(&self, word: &str) -> bool {
        let (name, rest) = word.split_once('.').unwrap_or((word, ""));
        let is_name = name == self.plural
            || name == self.singular
            || name == self.kind.to_lowercase()
            || self.short_names.iter().any(|short| short == name);
        let is_place = rest.is_empty()
            || rest == self.group
            || rest == self.version
            || rest
                .strip_prefix(&self.version)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|group| group == self.group);
        is_name && is_place
    }
}

/// All kinds of a server, the preferred versions of each group first.
#[derive(Debug, Clone)]
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    /// Asks the server.
    pub(crate) async fn discover(cluster: &Cluster) -> anyhow::Result<Self> {
        let core = cluster.answer(cluster.client.list_core_api_versions_aggregated().await)?;
        let groups = cluster.answer(cluster.client.list_api_groups_aggregated().await)?;
        let all = core.items.into_iter().chain(groups.items);
        Ok(Self(all.flat_map(kinds_of).collect()))
    }

    /// What a word means: one kind, or all of a category such as `all`.
    pub(crate) fn find(&self, word: &str) -> anyhow::Result<Vec<Kind>> {
        let wanted = word.to_lowercase();
        if let Some(kind) = self.0.iter().find(|kind| kind.is_called(&wanted)) {
            return Ok(vec![kind.clone()]);
        }
        let mut found: Vec<Kind> = Vec::new();
        for kind in &self.0 {
            let is_known = found
                .iter()
                .any(|known| known.group == kind.group && known.plural == kind.plural);
            if kind.categories.contains(&wanted) && !is_known {
                found.push(kind.clone());
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let names = self.0.iter().map(|kind| kind.plural.as_str());
        let missing = Err(anyhow::anyhow!("the server has no kind `{word}`")).exit(Exit::NotFound);
        match suggestion::closest(&wanted, names) {
            Some(meant) => missing.hint(format!("did you mean `{meant}`?")),
            None => missing.hint("a definition of a new kind must be applied before its objects"),
        }
    }

    /// The one kind that a word means.
    pub(crate) fn find_one(&self, word: &str) -> anyhow::Result<Kind> {
        match <[Kind; 1]>::try_from(self.find(word)?) {
            Ok([kind]) => Ok(kind),
            Err(several) => Err(anyhow::anyhow!(
                "`{word}` means {} kinds, and one is needed here",
                several.len()
            ))
            .exit(Exit::Usage),
        }
    }

    /// The kind of an object that says so itself.
    pub(crate) fn of_object(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.0
            .iter()
            .find(|known| known.group == group && known.version == version && known.kind == kind)
    }
}

fn kinds_of(group: APIGroupDiscovery) -> Vec<Kind> {
    let name = group.metadata.and_then(|metadata| metadata.name);
    let name = name.unwrap_or_default();
    group
        .versions
        .into_iter()
        .flat_map(|version| {
            let number = version.version.unwrap_or_default();
            let kinds = version.resources.into_iter();
            kinds
                .filter_map(|resource| Kind::of(&name, &number, resource))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn some() -> Kinds {
        let kind = |group: &str, version: &str, kind: &str, plural: &str, short: &[&str]| Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: short.iter().map(ToString::to_string).collect(),
            categories: vec!["all".to_owned()],
            is_namespaced: kind != "Node",
            verbs: vec!["get".to_owned()],
        };
        Kinds(vec![
            kind("", "v1", "Pod", "pods", &["po"]),
            kind("", "v1", "Node", "nodes", &["no"]),
            kind("apps", "v1", "Deployment", "deployments", &["deploy"]),
            kind(
                "autoscaling",
                "v2",
                "HorizontalPodAutoscaler",
                "horizontalpodautoscalers",
                &["hpa"],
            ),
            kind(
                "autoscaling",
                "v1",
                "HorizontalPodAutoscaler",
                "horizontalpodautoscalers",
                &["hpa"],
            ),
            kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", &[]),
        ])
    }

    fn found(word: &str) -> String {
        let kind = some().find_one(word).unwrap();
        format!("{}/{} {}", kind.group, kind.version, kind.kind)
    }

    #[test]
    fn a_kind_goes_by_many_names() {
        for word in ["pods", "pod", "po", "Pod", "PODS", "pods.v1"] {
            assert_eq!(found(word), "/v1 Pod", "{word}");
        }
        for word in [
            "deploy",
            "deployments.apps",
            "deployment.v1.apps",
            "Deployment",
        ] {
            assert_eq!(found(word), "apps/v1 Deployment", "{word}");
        }
        assert_eq!(found("hpa"), "autoscaling/v2 HorizontalPodAutoscaler");
        assert_eq!(
            found("hpa.v1.autoscaling"),
            "autoscaling/v1 HorizontalPodAutoscaler"
        );
        assert_eq!(
            found("pods.metrics.k8s.io"),
            "metrics.k8s.io/v1beta1 PodMetrics"
        );
    }

    #[test]
    fn a_category_means_each_of_its_kinds_once() {
        let names: Vec<String> = some().find("all").unwrap().iter().map(Kind::name).collect();
        assert_eq!(
            names,
            [
                "pod",
                "node",
                "deployment.apps",
                "horizontalpodautoscaler.autoscaling",
                "podmetrics.metrics.k8s.io",
            ]
        );
        assert!(some().find_one("all").is_err());
    }

    #[test]
    fn a_word_that_means_nothing_is_said_with_the_closest_one() {
        let error = some().find("deploymets").unwrap_err();
        let failure = crate::failure::Failure::from_error(&error, transom_model::Os::Linux);
        assert_eq!(failure.message, "the server has no kind `deploymets`");
        assert_eq!(failure.hint.as_deref(), Some("did you mean `deployments`?"));
        assert_eq!(failure.exit, Exit::NotFound);
    }

    #[test]
    fn paths_have_a_namespace_only_where_the_kind_has_one() {
        let kinds = some();
        let path = |word: &str| kinds.find_one(word).unwrap().path(Some("web"));
        assert_eq!(path("pods"), "/api/v1/namespaces/web/pods");
        assert_eq!(path("nodes"), "/api/v1/nodes");
        assert_eq!(path("deploy"), "/apis/apps/v1/namespaces/web/deployments");
    }
}
