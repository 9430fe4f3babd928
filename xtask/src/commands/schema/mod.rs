//! The table of built-in Kubernetes types that `crates/api` reads, joined from three places: the protobuf
//! messages of `k8s-pb`, the `OpenAPI` definitions of `k8s-openapi`, and `go.txt` for what neither knows.
//!
//! Facts only: no description of any type or field gets into the table.

mod definitions;
mod go;
mod messages;
mod table;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::run;
use crate::workspace::Workspace;

/// Where the table is kept.
pub(crate) const PATH: &str = "crates/api/src/schema/types.txt";

const DEFINITIONS: &str = "src/v1_36";

/// The text of the table.
pub(crate) fn table(workspace: &Workspace) -> Result<String> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&run::output(&mut cargo)?)?;
    let messages = messages::read(&sources(&metadata, "k8s-pb")?.join("src"))?;
    let definitions = definitions::read(&sources(&metadata, "k8s-openapi")?.join(DEFINITIONS))?;
    table::join(&messages, &definitions, &go::read()?)
}

fn sources(metadata: &Value, name: &str) -> Result<PathBuf> {
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .and_then(|manifest| PathBuf::from(manifest).parent().map(PathBuf::from))
        .with_context(|| format!("`{name}` is not a dependency"))
}

/// How names are compared: protobuf, `OpenAPI` and Go write the same one as `pod_cid_rs`, `podCIDRs`, `$ref`.
fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect()
}

/// The name of a package in `OpenAPI`, from the folders of a crate's modules.
fn package<'a>(folders: impl Iterator<Item = &'a str>) -> String {
    let mut name = "io.k8s".to_owned();
    for folder in folders {
        name.push('.');
        name.push_str(&folder.replace('_', "-"));
    }
    name
}
