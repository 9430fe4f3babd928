//! Which crate may use which. The layers stand in `ARCHITECTURE.md`, in the block marked `layers`, and
//! are read from there: the picture people look at is the rule.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Problem;
use super::source::Tree;
use crate::run;
use crate::workspace::Workspace;

const MAP: &str = "ARCHITECTURE.md";
/// Types that every layer speaks.
const FLOOR: &str = "model";
/// The role that all others are clients of: their tests may run over the real one.
const SERVER: &str = "api";
/// What ships must not depend on what only tests and developers use.
const DEV_ONLY: &str = "dev-only";

/// One crate uses another one of ours, by their short names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    from: String,
    to: String,
    /// Only its tests do.
    in_tests: bool,
    manifest: String,
}

/// The edges between the crates of this workspace.
pub(crate) fn of_workspace(workspace: &Workspace) -> Result<Vec<Edge>> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&run::output(&mut cargo)?)?;
    let root = format!("{}/", workspace.root.display());
    edges_in(&metadata, &root).context("cargo's metadata is not as expected")
}

fn edges_in(metadata: &Value, root: &str) -> Option<Vec<Edge>> {
    let mut edges = Vec::new();
    for package in metadata["packages"].as_array()? {
        for dependency in package["dependencies"].as_array()? {
            // Ours are the ones with a path.
            if dependency["path"].is_null() {
                continue;
            }
            edges.push(Edge {
                from: short(package["name"].as_str()?),
                to: short(dependency["name"].as_str()?),
                in_tests: dependency["kind"].as_str() == Some("dev"),
                manifest: package["manifest_path"].as_str()?.replace(root, ""),
            });
        }
    }
    Some(edges)
}

fn short(package: &str) -> String {
    package
        .strip_prefix("transom-")
        .unwrap_or(package)
        .to_owned()
}

/// Layers from the top down: each crate's row, and the row's name.
type Layers = BTreeMap<String, (usize, String)>;

fn layers_in(map: &str) -> Option<Layers> {
    let block = map.split_once("```layers\n")?.1.split_once("```")?.0;
    let mut layers = Layers::new();
    for (row, line) in block.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        for word in words {
            layers.insert(word.to_owned(), (row, name.to_owned()));
        }
    }
    Some(layers)
}

pub(crate) fn check(tree: &Tree, edges: &[Edge]) -> Vec<Problem> {
    let map = tree.files.iter().find(|file| file.path == MAP);
    let Some(layers) = map.and_then(|file| layers_in(&file.text)) else {
        return vec![Problem::new(
            MAP,
            1,
            "there is no block marked `layers`",
            "list the crates of each layer in it",
        )];
    };
    edges
        .iter()
        .filter_map(|edge| check_edge(edge, &layers))
        .collect()
}

fn check_edge(edge: &Edge, layers: &Layers) -> Option<Problem> {
    let problem = |what: String, fix| Some(Problem::new(&edge.manifest, 1, what, fix));
    let place = |name: &str| layers.get(name);
    for name in [&edge.from, &edge.to] {
        if place(name).is_none() {
            return problem(
                format!("crate `{name}` is in no layer"),
                "add it to the block `layers` in ARCHITECTURE.md",
            );
        }
    }
    let ((from_row, from_layer), (to_row, to_layer)) = (place(&edge.from)?, place(&edge.to)?);
    if from_layer == DEV_ONLY || edge.to == FLOOR {
        return None;
    }
    if to_layer == DEV_ONLY {
        let what = format!(
            "`{}` ships with `{}`, which is {DEV_ONLY}",
            edge.from, edge.to
        );
        return (!edge.in_tests).then(|| problem(what, "make it a dev-dependency"))?;
    }
    if from_row < to_row || (edge.in_tests && from_row == to_row && edge.to == SERVER) {
        return None;
    }
    let direction = if from_row == to_row { "sideways" } else { "up" };
    problem(
        format!(
            "`{}` ({from_layer}) uses `{}` ({to_layer}): that points {direction}",
            edge.from, edge.to
        ),
        "move what both need into a layer below, or let the layer above join them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &str = "text\n```layers\nassembly transom\nroles api agent\nmechanisms store\n\
                          ground host model\ndev-only testkit xtask\n```\n";

    fn problems(from: &str, to: &str, in_tests: bool) -> Vec<String> {
        let edge = Edge {
            from: from.into(),
            to: to.into(),
            in_tests,
            manifest: "crates/x/Cargo.toml".into(),
        };
        let tree = Tree::made_of(&[(MAP, LAYERS)]);
        check(&tree, &[edge])
            .into_iter()
            .map(|problem| problem.what)
            .collect()
    }

    #[test]
    fn dependencies_point_down() {
        assert!(problems("transom", "api", false).is_empty());
        assert!(problems("api", "host", false).is_empty());
        assert!(problems("host", "model", false).is_empty());
        assert_eq!(
            problems("store", "api", false),
            ["`store` (mechanisms) uses `api` (roles): that points up"]
        );
        assert_eq!(
            problems("api", "agent", false),
            ["`api` (roles) uses `agent` (roles): that points sideways"]
        );
        assert_eq!(problems("model", "host", false).len(), 1);
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        assert!(problems("transom", "testkit", true).is_empty());
        assert!(problems("testkit", "host", false).is_empty());
        assert_eq!(
            problems("transom", "testkit", false),
            ["`transom` ships with `testkit`, which is dev-only"]
        );
    }

    #[test]
    fn a_crate_that_nobody_placed_is_a_problem() {
        assert_eq!(
            problems("gadget", "host", false),
            ["crate `gadget` is in no layer"]
        );
    }

    #[test]
    fn a_map_without_layers_is_a_problem() {
        assert_eq!(check(&Tree::made_of(&[(MAP, "nothing")]), &[]).len(), 1);
    }

    #[test]
    fn edges_are_read_from_cargos_metadata() {
        let metadata = serde_json::json!({"packages": [{
            "name": "transom-api",
            "manifest_path": "/c/crates/api/Cargo.toml",
            "dependencies": [
                {"name": "transom-host", "path": "/c/crates/host", "kind": null},
                {"name": "transom-testkit", "path": "/c/crates/testkit", "kind": "dev"},
                {"name": "serde", "kind": null},
            ],
        }]});
        let edges = edges_in(&metadata, "/c/").unwrap();
        assert_eq!(edges.len(), 2);
        assert_eq!(
            (edges[0].from.as_str(), edges[0].to.as_str()),
            ("api", "host")
        );
        assert_eq!(edges[0].manifest, "crates/api/Cargo.toml");
        assert!(edges[1].in_tests && !edges[0].in_tests);
    }
}
