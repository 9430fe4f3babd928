//! Kinds that a custom resource definition brings.
//!
//! A definition has its objects for as long as it is there, whether any of its versions is served or not.

use std::sync::Arc;

use serde_json::Value;

use super::kind::{Kind, SelectableField, Subresource, Verb, Verbs};
use crate::{schema::structural::Structural, table::CustomColumns};

const ALL: Verbs = &[
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];
const CHANGE: Verbs = &[Verb::Get, Verb::Patch, Verb::Update];

/// What only custom kinds have.
#[derive(Debug)]
pub struct CustomResource {
    /// The definition's name.
    pub definition: String,
    pub structural: Structural,
    /// `openAPIV3Schema`, as it stands there.
    pub schema: Arc<Value>,
    pub columns: CustomColumns,
    pub scale: Option<ScalePaths>,
}

/// Where a custom kind keeps what the `scale` subresource shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePaths {
    pub replicas: Vec<String>,
    pub status_replicas: Vec<String>,
    pub selector: Option<Vec<String>>,
}

/// The versions of a definition.
#[derive(Debug, Default)]
pub(super) struct Definition {
    pub(super) served: Vec<Arc<Kind>>,
    /// Clients cannot reach these, but there may be objects all the same.
    pub(super) hidden: Vec<Arc<Kind>>,
}

/// A stored definition, with its name. What was stored was checked, so what does not fit is left out.
pub(super) fn read(definition: &[u8]) -> Option<(String, Definition)> {
    let definition: Value = serde_json::from_slice(definition).ok()?;
    let name = definition["metadata"]["name"].as_str()?.to_owned();
    let is_established = definition["status"]["conditions"]
        .as_array()
        .is_some_and(|all| {
            all.iter()
                .any(|one| one["type"] == "Established" && one["status"] == "True")
        });
    let versions = definition["spec"]["versions"].as_array()?;
    let mut read = Definition::default();
    for version in versions {
        let is_served = is_established && version["served"].as_bool().unwrap_or(false);
        match kind(&definition, version) {
            Some(kind) if is_served => read.served.push(Arc::new(kind)),
            Some(kind) => read.hidden.push(Arc::new(kind)),
            None if is_served => {
                tracing::error!(name, version = %version["name"], "a version of a custom resource cannot be served");
            }
            None => {}
        }
    }
    Some((name, read))
}

fn kind(definition: &Value, version: &Value) -> Option<Kind> {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let list = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(text)
            .collect()
    };
    let group = text(&spec["group"])?;
    // One whose names were never accepted has none.
    let plural = text(&names["plural"]).filter(|plural| !plural.is_empty())?;
    let kind = text(&names["kind"])?;
    let open_schema = &version["schema"]["openAPIV3Schema"];
    let structural = Structural::parse(open_schema).ok()?;
    let (schema, type_id) = structural.to_schema(&kind);
    let mut subresources = Vec::new();
    if version["subresources"]["status"].is_object() {
        subresources.push(Subresource {
            name: "status",
            wire: None,
            verbs: CHANGE,
        });
    }
    let scale = scale_paths(&version["subresources"]["scale"]);
    if scale.is_some() {
        subresources.push(Subresource {
            name: "scale",
            wire: Some(("autoscaling", "v1", "Scale")),
            verbs: CHANGE,
        });
    }
    Some(Kind {
        version: text(&version["name"])?,
        list_kind: text(&names["listKind"]).unwrap_or_else(|| format!("{kind}List")),
        singular: text(&names["singular"]).unwrap_or_else(|| kind.to_lowercase()),
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: ALL,
        subresources,
        fields: selectable_fields(&spec["versions"], version),
        counts_generations: true,
        orphans_by_default: false,
        unconditional_updates: false,
        created_by_updates: false,
        schema: Arc::new(schema),
        type_id: Some(type_id),
        storage: (group.clone(), plural.clone()),
        conversion: None,
        ephemeral: false,
        secret: false,
        custom: Some(CustomResource {
            definition: definition["metadata"]["name"].as_str()?.to_owned(),
            schema: Arc::new(open_schema.clone()),
            structural,
            columns: columns(version),
            scale,
        }),
        group,
        kind,
        plural,
    })
}

/// The columns of a definition; it was checked when it was stored, so what cannot be read now shows the age alone.
fn columns(version: &Value) -> CustomColumns {
    let given = version["additionalPrinterColumns"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    CustomColumns::new(given)
        .or_else(|_| CustomColumns::new(&[]))
        .unwrap_or_default()
}

/// The fields that any version has, of which one version offers its own.
fn selectable_fields(versions: &Value, version: &Value) -> Vec<SelectableField> {
    let own: Vec<&str> = selectable_paths(version).collect();
    let mut fields: Vec<SelectableField> = Vec::new();
    for path in versions
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(selectable_paths)
    {
        if fields.iter().all(|known| known.name != path) {
            fields.push(SelectableField {
                name: path.to_owned(),
                path: path.split('.').map(ToOwned::to_owned).collect(),
                default: String::new(),
                offered: own.contains(&path),
            });
        }
    }
    fields
}

fn selectable_paths(version: &Value) -> impl Iterator<Item = &str> {
    version["selectableFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|field| Some(field["jsonPath"].as_str()?.trim_start_matches('.')))
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let path = |name: &str| -> Option<Vec<String>> {
        let text = scale[name].as_str()?.trim_start_matches('.');
        Some(text.split('.').map(ToOwned::to_owned).collect())
    };
    Some(ScalePaths {
        replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        selector: path("labelSelectorPath"),
    })
}
