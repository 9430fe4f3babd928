//! Decides what a namespace lacks.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ConfigMap, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

/// The account that pods have which name none.
pub(super) const ACCOUNT: &str = "default";
/// The map that is mounted into pods beside their token.
pub(super) const MAP: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
);

/// Something to do in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    MakeAccount(Box<ServiceAccount>),
    MakeMap(Box<ConfigMap>),
    /// The map as it should be, on top of the version that was seen.
    MendMap(Box<ConfigMap>),
}

/// What to do in a namespace, from what is there.
pub(super) fn plan_steps(
    namespace: &ObjectMeta,
    has_account: bool,
    map: Option<&ConfigMap>,
    root_ca: &str,
) -> Vec<Step> {
    if namespace.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let mut steps = Vec::new();
    if !has_account {
        steps.push(Step::MakeAccount(Box::new(ServiceAccount {
            metadata: named(ACCOUNT),
            ..ServiceAccount::default()
        })));
    }
    match map {
        None => {
            let mut map = ConfigMap {
                metadata: named(MAP),
                ..ConfigMap::default()
            };
            complete(&mut map, root_ca);
            steps.push(Step::MakeMap(Box::new(map)));
        }
        Some(map) => {
            let mut wanted = map.clone();
            complete(&mut wanted, root_ca);
            if wanted != *map {
                steps.push(Step::MendMap(Box::new(wanted)));
            }
        }
    }
    steps
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn complete(map: &mut ConfigMap, root_ca: &str) {
    map.data = Some(BTreeMap::from([(KEY.to_owned(), root_ca.to_owned())]));
    let annotations = map.metadata.annotations.get_or_insert_default();
    let (name, text) = DESCRIPTION;
    // Somebody may describe it in their own words.
    annotations
        .entry(name.to_owned())
        .or_insert_with(|| text.to_owned());
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn map(data: &[(&str, &str)]) -> ConfigMap {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ConfigMap {
            metadata: ObjectMeta {
                resource_version: Some("7".to_owned()),
                annotations: Some([text(&DESCRIPTION)].into()),
                ..named(MAP)
            },
            data: Some(data.iter().map(text).collect()),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn a_new_namespace_gets_both() {
        let steps = plan_steps(&named("n"), false, None, "PEM");
        let [Step::MakeAccount(account), Step::MakeMap(map)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(account.metadata.name.as_deref(), Some("default"));
        assert_eq!(map.data.as_ref().unwrap()["ca.crt"], "PEM");
    }

    #[test]
    fn a_namespace_that_has_both_needs_nothing() {
        assert_eq!(
            plan_steps(&named("n"), true, Some(&map(&[(KEY, "PEM")])), "PEM"),
            []
        );
    }

    #[test]
    fn a_map_that_somebody_changed_is_mended_on_the_version_that_was_seen() {
        for data in [&[(KEY, "other")][..], &[], &[(KEY, "PEM"), ("more", "")]] {
            let steps = plan_steps(&named("n"), true, Some(&map(data)), "PEM");
            assert_eq!(steps, [Step::MendMap(Box::new(map(&[(KEY, "PEM")])))]);
        }
    }

    #[test]
    fn a_namespace_on_its_way_out_gets_nothing() {
        let namespace = ObjectMeta {
            deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)),
            ..named("n")
        };
        assert_eq!(plan_steps(&namespace, false, None, "PEM"), []);
    }
}
