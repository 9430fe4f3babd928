//! Draws a report as SVG: pods over time, memory over time, how long pods took in each phase.
//!
//! Invariant: a file that stands alone, with no script, no font and no style from elsewhere.

use std::fmt::Write as _;

use crate::report::{Percentiles, Report, Sample};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 760.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 24.0;
/// Lines across a panel.
const LINES: u32 = 4;

/// A part of the picture with axes of its own.
struct Panel {
    top: f64,
    height: f64,
    /// What the right and upper ends stand for.
    most_x: f64,
    most_y: f64,
}

impl Panel {
    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.most_x * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height - value / self.most_y * self.height
    }

    /// Title, lines across, and what they stand for.
    fn frame(&self, svg: &mut String, title: &str, unit: &str) {
        text(svg, (LEFT, self.top - 10.0), "start", title);
        for step in 0..=LINES {
            let value = self.most_y * f64::from(step) / f64::from(LINES);
            let y = self.y(value);
            let end = WIDTH - RIGHT;
            let _ = writeln!(
                svg,
                r##"<line x1="{LEFT}" y1="{y:.1}" x2="{end}" y2="{y:.1}" stroke="#ddd"/>"##
            );
            let label = format!("{}{unit}", short(value));
            text(svg, (LEFT - 8.0, y + 4.0), "end", &label);
        }
    }

    fn curve(
        &self,
        svg: &mut String,
        samples: &[Sample],
        color: &str,
        read: impl Fn(&Sample) -> f64,
    ) {
        let points: Vec<String> = samples
            .iter()
            .map(|one| format!("{:.1},{:.1}", self.x(one.seconds), self.y(read(one))))
            .collect();
        let points = points.join(" ");
        let _ = writeln!(
            svg,
            r#"<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>"#
        );
    }
}

/// The picture of a report.
pub fn plot(report: &Report) -> String {
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>"##
    );
    let wishes = &report.wishes;
    let title = format!(
        "transom simulate: {} nodes ({} Windows), {} pods, seed {}",
        wishes.nodes, report.windows_nodes, wishes.pods, wishes.seed
    );
    text(&mut svg, (LEFT, 24.0), "start", &title);
    let ends = report.samples.iter().map(|sample| sample.seconds);
    let phase_ends = report.phases.iter();
    let phase_ends = phase_ends.map(|phase| phase.begun_seconds + phase.seconds);
    let most_x = ends.chain(phase_ends).fold(0.001, f64::max);
    pods(&mut svg, report, most_x);
    memory(&mut svg, report, most_x);
    latencies(&mut svg, report);
    svg.push_str("</svg>\n");
    svg
}

fn pods(svg: &mut String, report: &Report, most_x: f64) {
    let most = report.samples.iter().map(|sample| sample.pods);
    let most = most.max().unwrap_or_default().max(report.wishes.pods);
    let panel = Panel {
        top: 80.0,
        height: 240.0,
        most_x,
        most_y: round_up(float(most)),
    };
    shade(svg, report, &panel, true);
    panel.frame(svg, "pods", "");
    for (color, name, place) in [
        ("#bbb", "there", 0.0),
        ("#d9822b", "bound", 70.0),
        ("#2b6cb0", "running", 140.0),
    ] {
        let x = WIDTH - RIGHT - 210.0 + place;
        let y = panel.top - 14.0;
        let _ = writeln!(
            svg,
            r#"<rect x="{x}" y="{y}" width="10" height="3" fill="{color}"/>"#
        );
        text(svg, (x + 14.0, y + 5.0), "start", name);
        panel.curve(svg, &report.samples, color, |sample| {
            float(match name {
                "there" => sample.pods,
                "bound" => sample.bound,
                _ => sample.running,
            })
        });
    }
}

fn memory(svg: &mut String, report: &Report, most_x: f64) {
    let bytes = |sample: &Sample| {
        let mebibytes = sample.memory_bytes / (1 << 20);
        f64::from(u32::try_from(mebibytes).unwrap_or(u32::MAX))
    };
    let most = report.samples.iter().map(bytes).fold(1.0, f64::max);
    let panel = Panel {
        top: 380.0,
        height: 120.0,
        most_x,
        most_y: round_up(most),
    };
    shade(svg, report, &panel, false);
    panel.frame(svg, "memory of this process", " MiB");
    panel.curve(svg, &report.samples, "#6b46c1", bytes);
    for step in 0..=LINES {
        let seconds = most_x * f64::from(step) / f64::from(LINES);
        let place = (panel.x(seconds), panel.top + panel.height + 16.0);
        text(svg, place, "middle", &format!("{}s", short(seconds)));
    }
}

/// Every other phase is shaded, and all have their names.
fn shade(svg: &mut String, report: &Report, panel: &Panel, named: bool) {
    for (place, phase) in report.phases.iter().enumerate() {
        let from = panel.x(phase.begun_seconds);
        let width = panel.x(phase.begun_seconds + phase.seconds) - from;
        let fill = if place % 2 == 0 { "#f5f7fa" } else { "#fff" };
        let (top, height) = (panel.top, panel.height);
        let _ = writeln!(
            svg,
            r#"<rect x="{from:.1}" y="{top}" width="{width:.1}" height="{height}" fill="{fill}"/>"#
        );
        if named {
            // Names of short phases would lie over each other in one line.
            let line = if place % 2 == 0 { 44.0 } else { 56.0 };
            let middle = from + width / 2.0;
            text(svg, (middle, line), "middle", phase.name);
        }
    }
}

/// Bars for each phase: half of the pods were faster than the dark part, all but one in a hundred than the light.
fn latencies(svg: &mut String, report: &Report) {
    let measured: Vec<_> = report
        .phases
        .iter()
        .filter_map(|phase| Some((phase.name, phase.to_bound?, phase.to_running?)))
        .collect();
    let longest = measured.iter().map(|(_, _, running)| running.p99);
    let panel = Panel {
        top: 570.0,
        height: 130.0,
        most_x: 1.0,
        most_y: round_up(longest.fold(1.0, f64::max)),
    };
    let title = "from there to bound (orange) and running (blue): p50 dark, p99 light";
    panel.frame(svg, title, " ms");
    let slot = (WIDTH - LEFT - RIGHT) / float(measured.len().max(1));
    for (place, (name, bound, running)) in measured.iter().enumerate() {
        let middle = LEFT + slot * (float(place) + 0.5);
        bar(svg, &panel, middle - 34.0, bound, ("#f6c99a", "#d9822b"));
        bar(svg, &panel, middle + 4.0, running, ("#a3c4e6", "#2b6cb0"));
        let below = panel.top + panel.height + 16.0;
        text(svg, (middle, below), "middle", name);
    }
}

fn bar(svg: &mut String, panel: &Panel, x: f64, times: &Percentiles, colors: (&str, &str)) {
    for (value, color) in [(times.p99, colors.0), (times.p50, colors.1)] {
        let y = panel.y(value.min(panel.most_y));
        let height = panel.top + panel.height - y;
        let _ = writeln!(
            svg,
            r#"<rect x="{x:.1}" y="{y:.1}" width="30" height="{height:.1}" fill="{color}"/>"#
        );
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#
    );
}

/// The next number that is one digit and zeros, so that axes end at something readable.
fn round_up(value: f64) -> f64 {
    let mut unit = 1.0;
    while unit * 10.0 < value {
        unit *= 10.0;
    }
    (value / unit).ceil().max(1.0) * unit
}

fn short(value: f64) -> String {
    if value >= 100.0 || value.fract() < 0.05 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let ends = [0.0, 0.4, 1.0, 7.2, 10.0, 11.0, 1000.0, 1001.0].map(round_up);
        let wanted = [1.0, 1.0, 1.0, 8.0, 10.0, 20.0, 1000.0, 2000.0];
        assert_eq!(ends.map(f64::to_bits), wanted.map(f64::to_bits));
    }
}
