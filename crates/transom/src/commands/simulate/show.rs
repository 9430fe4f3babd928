//! What a simulation found, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;
use transom_model::Os;
use transom_simulation::{Percentiles, Plan, Report};

use crate::output::{Cell, Document, Shown, render_table};

const MIB: u64 = 1 << 20;

/// The result.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Found<'a>(pub(super) &'a Report);

impl Document for Found<'_> {
    fn text(&self, _wide: bool, shown: Shown) -> String {
        let report = self.0;
        let wishes = &report.wishes;
        let mut text = format!(
            "{} nodes ({} Windows), {} pods in {} workloads, seed {}\n",
            wishes.nodes, report.windows_nodes, wishes.pods, report.workloads, wishes.seed
        );
        let settings = &report.settings;
        let _ = writeln!(
            text,
            "a node may be silent for {}s (usually 50s), its pods stay {}s longer (usually 300s)\n",
            settings.grace_seconds, settings.tolerate_seconds
        );
        let titles = [
            "PHASE",
            "TIME",
            "DONE",
            "BOUND/S",
            "BOUND P50",
            "P90",
            "P99",
            "MAX",
            "RUNNING P50",
            "P90",
            "P99",
            "MAX",
            "MEMORY",
        ];
        let rows = report.phases.iter().map(|phase| {
            let mut row = vec![
                Cell::from(phase.name),
                Cell::from(format!("{:.2}s", phase.seconds)),
                Cell::from(format!("{} {}", phase.count, phase.what)),
                Cell::from(if phase.bound == 0 {
                    "-".to_owned()
                } else {
                    format!("{:.0}", phase.bound_per_second)
                }),
            ];
            row.extend(cells(phase.to_bound));
            row.extend(cells(phase.to_running));
            row.push(Cell::from(format!("{} MiB", phase.memory_bytes / MIB)));
            row
        });
        let rows: Vec<Vec<Cell>> = rows.collect();
        text + &render_table(&titles, &rows, shown)
    }

    fn names(&self) -> Vec<String> {
        let phases = self.0.phases.iter();
        phases.map(|phase| phase.name.to_owned()).collect()
    }
}

fn cells(times: Option<Percentiles>) -> [Cell; 4] {
    let Some(times) = times else {
        return ["-"; 4].map(Cell::from);
    };
    [times.p50, times.p90, times.p99, times.max].map(|time| Cell::from(format!("{time:.0}ms")))
}

/// What would be done.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Planned<'a>(pub(super) &'a Plan);

impl Document for Planned<'_> {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let plan = self.0;
        let count = |os| plan.nodes.iter().filter(|node| node.os == os).count();
        let pods = |os| {
            let of_os = plan.workloads.iter().filter(|one| one.os == os);
            of_os.map(|one| one.pods).sum::<usize>()
        };
        let mut text = String::new();
        for os in [Os::Linux, Os::Windows] {
            let _ = writeln!(text, "{os:<8} {} nodes, {} pods", count(os), pods(os));
        }
        let lost = plan
            .lost
            .iter()
            .map(|index| plan.nodes[*index].name.clone());
        let lost: Vec<String> = lost.collect();
        let _ = writeln!(text, "lost     {} nodes: {}", lost.len(), lost.join(" "));
        text
    }

    fn names(&self) -> Vec<String> {
        self.0.nodes.iter().map(|node| node.name.clone()).collect()
    }
}
