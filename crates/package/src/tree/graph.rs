//! The graph of requirements, as data, as DOT and as a picture. Invariant: the same tree gives the same
//! bytes, so a graph can be kept beside the tree and compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use transom_model::package::PackageId;

use super::TreePackage;

/// Who requires whom, among some packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Graph {
    /// In build order.
    pub packages: Vec<PackageId>,
    pub edges: Vec<Edge>,
}

/// `from` requires `to`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: PackageId,
    pub to: PackageId,
}

/// The measures of the picture, in pixels.
mod measure {
    pub(super) const BOX_HEIGHT: usize = 28;
    pub(super) const LETTER: usize = 8;
    pub(super) const PADDING: usize = 12;
    pub(super) const COLUMN_GAP: usize = 60;
    pub(super) const ROW_GAP: usize = 14;
    pub(super) const MARGIN: usize = 20;
}

impl Graph {
    pub fn of(packages: &[TreePackage]) -> Self {
        let edges = packages
            .iter()
            .flat_map(|package| {
                package.requires.iter().map(|required| Edge {
                    from: package.id.clone(),
                    to: required.clone(),
                })
            })
            .collect();
        Self {
            packages: packages.iter().map(|package| package.id.clone()).collect(),
            edges,
        }
    }

    /// For Graphviz.
    pub fn render_dot(&self) -> String {
        let mut text = String::from("digraph packages {\n  rankdir=LR;\n  node [shape=box];\n");
        for id in &self.packages {
            // Names and ids hold no quotes and no backslashes.
            let _ = writeln!(text, "  \"{}\" [tooltip=\"{id}\"];", id.name_str());
        }
        for edge in &self.edges {
            let _ = writeln!(
                text,
                "  \"{}\" -> \"{}\";",
                edge.from.name_str(),
                edge.to.name_str()
            );
        }
        text.push_str("}\n");
        text
    }

    /// As lines: a package, and below it what it requires.
    pub fn render_text(&self) -> String {
        let mut text = String::new();
        for id in &self.packages {
            let _ = writeln!(text, "{id}");
            for edge in self.edges.iter().filter(|edge| edge.from == *id) {
                let _ = writeln!(text, "  requires {}", edge.to);
            }
        }
        text
    }

    /// A picture: what requires nothing stands on the left, and each package to the right of all that
    /// it requires.
    pub fn render_svg(&self) -> String {
        let columns = self.columns();
        let mut places: BTreeMap<&PackageId, (usize, usize, usize)> = BTreeMap::new();
        let mut left = measure::MARGIN;
        let mut height = 0;
        for column in &columns {
            let width = column.iter().map(|id| box_width(id)).max().unwrap_or(0);
            for (row, id) in column.iter().enumerate() {
                let top = measure::MARGIN + row * (measure::BOX_HEIGHT + measure::ROW_GAP);
                places.insert(id, (left, top, width));
                height = height.max(top + measure::BOX_HEIGHT);
            }
            left += width + measure::COLUMN_GAP;
        }
        let width = left.saturating_sub(measure::COLUMN_GAP) + measure::MARGIN;
        let height = height + measure::MARGIN;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        for edge in &self.edges {
            let (Some(from), Some(to)) = (places.get(&edge.from), places.get(&edge.to)) else {
                continue;
            };
            let half = measure::BOX_HEIGHT / 2;
            let (start, end) = ((to.0 + to.2, to.1 + half), (from.0, from.1 + half));
            let middle = usize::midpoint(start.0, end.0);
            let _ = writeln!(
                text,
                "<path d=\"M{} {} C{middle} {} {middle} {} {} {}\" fill=\"none\" stroke=\"#99a\"/>",
                start.0, start.1, start.1, end.1, end.0, end.1
            );
        }
        for (id, (x, y, width)) in &places {
            let _ = writeln!(
                text,
                "<g><title>{id}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" \
                 rx=\"4\" fill=\"#eef3fb\" stroke=\"#446\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
                measure::BOX_HEIGHT,
                x + measure::PADDING,
                y + measure::BOX_HEIGHT / 2 + 5,
                id.name_str()
            );
        }
        text.push_str("</svg>\n");
        text
    }

    /// Packages by the length of their longest chain of requirements.
    fn columns(&self) -> Vec<Vec<&PackageId>> {
        let mut requires: BTreeMap<&PackageId, Vec<&PackageId>> = BTreeMap::new();
        for edge in &self.edges {
            requires.entry(&edge.from).or_default().push(&edge.to);
        }
        let mut depths: BTreeMap<&PackageId, usize> = BTreeMap::new();
        let mut columns: Vec<Vec<&PackageId>> = Vec::new();
        // The build order has requirements first.
        for id in &self.packages {
            let below = requires.get(id).map(Vec::as_slice).unwrap_or_default();
            let depth = below
                .iter()
                .filter_map(|required| depths.get(required))
                .max()
                .map_or(0, |depth| depth + 1);
            depths.insert(id, depth);
            if columns.len() <= depth {
                columns.resize(depth + 1, Vec::new());
            }
            columns[depth].push(id);
        }
        columns
    }
}

fn box_width(id: &PackageId) -> usize {
    id.name_str().len() * measure::LETTER + 2 * measure::PADDING
}
