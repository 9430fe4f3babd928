//! What types and fields are for, in the words that `k8s-openapi` carries.
//!
//! Asked for when a document is built, and not kept: the texts are larger than everything else about types.

use k8s_openapi::api::{
    apps, authentication, authorization, autoscaling, batch, certificates, coordination, core,
    discovery, events, networking, node, policy, rbac, scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// Definitions by the names of types, with all that they refer to.
#[derive(Default)]
pub(super) struct Descriptions(Map<String, Value>);

type Add = fn(&mut SchemaGenerator);

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

/// The kinds of each package; all other types hang on them.
const ROOTS: [(&str, &[Add]); 19] = [
    (
        "io.k8s.api.core.v1",
        &[
            add::<core::v1::Binding>,
            add::<core::v1::ComponentStatus>,
            add::<core::v1::ConfigMap>,
            add::<core::v1::Endpoints>,
            add::<core::v1::Event>,
            add::<core::v1::LimitRange>,
            add::<core::v1::Namespace>,
            add::<core::v1::Node>,
            add::<core::v1::PersistentVolume>,
            add::<core::v1::PersistentVolumeClaim>,
            add::<core::v1::Pod>,
            add::<core::v1::PodTemplate>,
            add::<core::v1::ReplicationController>,
            add::<core::v1::ResourceQuota>,
            add::<core::v1::Secret>,
            add::<core::v1::Service>,
            add::<core::v1::ServiceAccount>,
        ],
    ),
    (
        "io.k8s.api.apps.v1",
        &[
            add::<apps::v1::ControllerRevision>,
            add::<apps::v1::DaemonSet>,
            add::<apps::v1::Deployment>,
            add::<apps::v1::ReplicaSet>,
            add::<apps::v1::StatefulSet>,
        ],
    ),
    (
        "io.k8s.api.batch.v1",
        &[add::<batch::v1::CronJob>, add::<batch::v1::Job>],
    ),
    (
        "io.k8s.api.autoscaling.v1",
        &[
            add::<autoscaling::v1::HorizontalPodAutoscaler>,
            add::<autoscaling::v1::Scale>,
        ],
    ),
    (
        "io.k8s.api.autoscaling.v2",
        &[add::<autoscaling::v2::HorizontalPodAutoscaler>],
    ),
    (
        "io.k8s.api.networking.v1",
        &[
            add::<networking::v1::IPAddress>,
            add::<networking::v1::Ingress>,
            add::<networking::v1::IngressClass>,
            add::<networking::v1::NetworkPolicy>,
            add::<networking::v1::ServiceCIDR>,
        ],
    ),
    (
        "io.k8s.api.discovery.v1",
        &[add::<discovery::v1::EndpointSlice>],
    ),
    (
        "io.k8s.api.coordination.v1",
        &[add::<coordination::v1::Lease>],
    ),
    (
        "io.k8s.api.storage.v1",
        &[
            add::<storage::v1::CSIDriver>,
            add::<storage::v1::CSINode>,
            add::<storage::v1::CSIStorageCapacity>,
            add::<storage::v1::StorageClass>,
            add::<storage::v1::VolumeAttachment>,
            add::<storage::v1::VolumeAttributesClass>,
        ],
    ),
    (
        "io.k8s.api.policy.v1",
        &[
            add::<policy::v1::Eviction>,
            add::<policy::v1::PodDisruptionBudget>,
        ],
    ),
    (
        "io.k8s.api.rbac.v1",
        &[
            add::<rbac::v1::ClusterRole>,
            add::<rbac::v1::ClusterRoleBinding>,
            add::<rbac::v1::Role>,
            add::<rbac::v1::RoleBinding>,
        ],
    ),
    (
        "io.k8s.api.authentication.v1",
        &[
            add::<authentication::v1::SelfSubjectReview>,
            add::<authentication::v1::TokenRequest>,
            add::<authentication::v1::TokenReview>,
        ],
    ),
    (
        "io.k8s.api.authorization.v1",
        &[
            add::<authorization::v1::LocalSubjectAccessReview>,
            add::<authorization::v1::SelfSubjectAccessReview>,
            add::<authorization::v1::SelfSubjectRulesReview>,
            add::<authorization::v1::SubjectAccessReview>,
        ],
    ),
    (
        "io.k8s.api.certificates.v1",
        &[add::<certificates::v1::CertificateSigningRequest>],
    ),
    (
        "io.k8s.api.scheduling.v1",
        &[add::<scheduling::v1::PriorityClass>],
    ),
    ("io.k8s.api.node.v1", &[add::<node::v1::RuntimeClass>]),
    ("io.k8s.api.events.v1", &[add::<events::v1::Event>]),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
        &[add::<apiextensions::v1::CustomResourceDefinition>],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1",
        &[
            add::<meta::v1::APIResourceList>,
            add::<meta::v1::DeleteOptions>,
            add::<meta::v1::ObjectMeta>,
            add::<meta::v1::Patch>,
            add::<meta::v1::Status>,
        ],
    ),
];

impl Descriptions {
    /// Of the kinds in these packages.
    pub(super) fn of<'a>(packages: impl Iterator<Item = &'a str>) -> Self {
        let mut generator = SchemaGenerator::default();
        for package in packages {
            for (name, roots) in ROOTS {
                if name == package {
                    for add in roots {
                        add(&mut generator);
                    }
                }
            }
        }
        Self(generator.take_definitions(false))
    }

    /// What a type is for.
    pub(super) fn of_type(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.get("description")?.as_str()
    }

    /// What a field is for.
    pub(super) fn of_field(&self, type_name: &str, field: &str) -> Option<&str> {
        self.field(type_name, field)?.get("description")?.as_str()
    }

    /// The name of the type that a field refers to.
    pub(super) fn referred(&self, type_name: &str, field: &str) -> Option<&str> {
        let field = self.field(type_name, field)?;
        let item = field
            .get("items")
            .or_else(|| field.get("additionalProperties"));
        item.unwrap_or(field)
            .get("$ref")?
            .as_str()?
            .rsplit('/')
            .next()
    }

    fn field(&self, type_name: &str, field: &str) -> Option<&Value> {
        self.0.get(type_name)?.get("properties")?.get(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_fields_have_words() {
        let descriptions = Descriptions::of(["io.k8s.api.core.v1"].into_iter());

        assert!(descriptions.of_type("io.k8s.api.core.v1.PodSpec").is_some());
        assert!(
            descriptions
                .of_field("io.k8s.api.core.v1.Container", "image")
                .unwrap()
                .contains("image")
        );
        assert_eq!(
            descriptions.referred(
                "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
                "fieldsV1"
            ),
            Some("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1")
        );
        assert_eq!(descriptions.of_type("io.k8s.api.apps.v1.Deployment"), None);
    }
}
