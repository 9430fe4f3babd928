//! What the server tells about its resources: groups, versions, and what can be done.

use serde_json::{Value, json};

use crate::registry::{Kind, Kinds, Subresource, Verbs};

fn verbs(verbs: Verbs) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.as_str()).collect()
}

/// `/api`: the versions of the core group.
pub(crate) fn api_versions(kinds: &Kinds, address: &str) -> Value {
    let versions: Vec<&str> = versions_of(kinds, "");
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`: the groups with names.
pub(crate) fn api_groups(kinds: &Kinds) -> Value {
    let groups: Vec<Value> = kinds
        .groups()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, _)| group_entry(kinds, group))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`.
pub(crate) fn api_group(kinds: &Kinds, group: &str) -> Option<Value> {
    if versions_of(kinds, group).is_empty() {
        return None;
    }
    let mut entry = group_entry(kinds, group);
    entry["kind"] = "APIGroup".into();
    entry["apiVersion"] = "v1".into();
    Some(entry)
}

fn group_entry(kinds: &Kinds, group: &str) -> Value {
    let versions: Vec<Value> = versions_of(kinds, group)
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

fn versions_of<'a>(kinds: &'a Kinds, group: &str) -> Vec<&'a str> {
    kinds
        .groups()
        .filter(|(name, _)| *name == group)
        .flat_map(|(_, versions)| versions.iter().map(|(version, _)| version.as_str()))
        .collect()
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub(crate) fn api_resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let (_, versions) = kinds.groups().find(|(name, _)| *name == group)?;
    let (_, resources) = versions.iter().find(|(name, _)| name == version)?;
    let entries: Vec<Value> = resources
        .values()
        .flat_map(|kind| resource_entries(kind))
        .collect();
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": entries,
    }))
}

fn resource_entries(kind: &Kind) -> Vec<Value> {
    let mut entry = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind.verbs),
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        entry["categories"] = kind.categories.clone().into();
    }
    let mut entries = vec![entry];
    for subresource in &kind.subresources {
        let mut entry = json!({
            "name": format!("{}/{}", kind.plural, subresource.name),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": wire_kind(kind, subresource).2,
            "verbs": verbs(subresource.verbs),
        });
        if let Some((group, version, _)) = subresource.wire
            && (group, version) != (kind.group.as_str(), kind.version.as_str())
        {
            if !group.is_empty() {
                entry["group"] = group.into();
            }
            entry["version"] = version.into();
        }
        entries.push(entry);
    }
    entries
}

fn wire_kind<'a>(kind: &'a Kind, subresource: &'a Subresource) -> (&'a str, &'a str, &'a str) {
    subresource
        .wire
        .unwrap_or((&kind.group, &kind.version, &kind.kind))
}

/// Groups in one answer (`apidiscovery.k8s.io`), the form that kubectl asks for first.
pub(crate) fn aggregated(kinds: &Kinds, core: bool, version: &str) -> Value {
    let items: Vec<Value> = kinds
        .groups()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|(version, resources)| {
                    let resources: Vec<Value> = resources
                        .values()
                        .map(|kind| aggregated_entry(kind))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_entry(kind: &Kind) -> Value {
    let response = |(group, version, kind): (&str, &str, &str)| json!({"group": group, "version": version, "kind": kind});
    let mut entry = json!({
        "resource": kind.plural,
        "responseKind": response((&kind.group, &kind.version, &kind.kind)),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind.verbs),
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        entry["categories"] = kind.categories.clone().into();
    }
    if !kind.subresources.is_empty() {
        let subresources: Vec<Value> = kind
            .subresources
            .iter()
            .map(|subresource| {
                json!({
                    "subresource": subresource.name,
                    "responseKind": response(wire_kind(kind, subresource)),
                    "verbs": verbs(subresource.verbs),
                })
            })
            .collect();
        entry["subresources"] = subresources.into();
    }
    entry
}
