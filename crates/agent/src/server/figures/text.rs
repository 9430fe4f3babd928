//! The text that Prometheus reads. Labels come from objects whose names the API has checked.

use std::fmt::Write as _;

pub(super) const PLAIN: [(http::HeaderName, &str); 1] = [(
    http::header::CONTENT_TYPE,
    "text/plain; version=0.0.4; charset=utf-8",
)];

/// One line of a family: what follows its name (`{a="b"}`, `_sum`, nothing), its value, and when that was so in
/// milliseconds.
pub(super) struct Line {
    pub(super) labels: String,
    pub(super) value: String,
    pub(super) time: Option<i64>,
}

impl Line {
    /// A line without labels that is so now.
    pub(super) fn plain(value: u64) -> Self {
        Self {
            labels: String::new(),
            value: value.to_string(),
            time: None,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are told as floating point numbers, as the format wants"
)]
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// One family of metrics: its heading, then its lines. Without lines there is no family.
pub(super) fn family(text: &mut String, name: &str, kind: &str, help: &str, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    let mut put = || {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
        lines.iter().try_for_each(|line| match line.time {
            Some(time) => writeln!(text, "{name}{} {} {time}", line.labels, line.value),
            None => writeln!(text, "{name}{} {}", line.labels, line.value),
        })
    };
    if let Err(error) = put() {
        tracing::debug!(%error, "a metric could not be written");
    }
}
