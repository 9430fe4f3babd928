//! Findings as a report. Invariant: says the same with and without colours, with and without signs
//! beyond ASCII: the state is always also a sign or a word.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use transom_host::machine::features::{Finding, State};
use transom_host::machine::{Machine, MachineError, Memory, Processors, System};

use crate::failure::{Advice as _, Exit};
use crate::output::{Document, Shown};
use crate::suggestion;

/// What was found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    machine: Summary,
    findings: Vec<Finding>,
    counts: Counts,
}

/// The machine in one line; what could not be read is absent.
#[derive(Debug, Serialize)]
struct Summary {
    system: Option<System>,
    memory: Option<Memory>,
    processors: Option<Processors>,
}

/// How many findings there are of each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Counts {
    ok: usize,
    warning: usize,
    missing: usize,
    unknown: usize,
}

impl Report {
    pub(super) fn new(machine: &dyn Machine, findings: Vec<Finding>) -> Self {
        let counts = Counts::of(&findings);
        Self {
            machine: Summary {
                system: known(machine.system()),
                memory: known(machine.memory()),
                processors: known(machine.processors()),
            },
            findings,
            counts,
        }
    }

    /// The same report with the named areas only; all of them when none is named.
    pub(super) fn limited_to(mut self, areas: &[String]) -> anyhow::Result<Self> {
        if areas.is_empty() {
            return Ok(self);
        }
        let known = self.areas();
        if let Some(unknown) = areas.iter().find(|area| !known.contains(area)) {
            return Err(anyhow::anyhow!("there is no area `{unknown}`"))
                .hint(suggestion::hint(unknown, known.iter().map(String::as_str)))
                .exit(Exit::Usage);
        }
        self.findings
            .retain(|finding| areas.contains(&word(finding.area)));
        self.counts = Counts::of(&self.findings);
        Ok(self)
    }

    pub(super) fn exit(&self, strict: bool) -> Exit {
        if strict && self.counts.warning + self.counts.missing > 0 {
            Exit::Failure
        } else {
            Exit::Success
        }
    }

    /// In the order in which they were looked at.
    fn areas(&self) -> Vec<String> {
        let mut areas: Vec<String> = Vec::new();
        for finding in &self.findings {
            let area = word(finding.area);
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        areas
    }
}

impl Counts {
    fn of(findings: &[Finding]) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            *match finding.state {
                State::Ok => &mut counts.ok,
                State::Warning => &mut counts.warning,
                State::Missing => &mut counts.missing,
                State::Unknown => &mut counts.unknown,
            } += 1;
        }
        counts
    }
}

impl Document for Report {
    fn text(&self, wide: bool, shown: Shown) -> String {
        const TITLE: Style = Style::new().bold().underline();
        let mut text = self.machine.line();
        for area in self.areas() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{TITLE}{}{TITLE:#}", title(&area));
            let findings = self.findings.iter();
            for finding in findings.filter(|finding| word(finding.area) == area) {
                text += &render_finding(finding, wide, shown);
            }
        }
        let _ = writeln!(text, "\n{}", self.counts.line());
        text
    }

    fn names(&self) -> Vec<String> {
        let names = self.findings.iter().map(|finding| finding.id.clone());
        names.collect()
    }
}

fn render_finding(finding: &Finding, wide: bool, shown: Shown) -> String {
    let (sign, style) = sign(finding.state, shown.unicode);
    let blank = " ".repeat(sign.chars().count() + 3);
    let mut text = format!("  {style}{sign}{style:#} {}", finding.what);
    if !finding.detail.is_empty() {
        let _ = write!(text, ": {}", finding.detail);
    }
    text.push('\n');
    if wide {
        let _ = writeln!(text, "{blank}id: {}", finding.id);
    }
    if wide || finding.state != State::Ok {
        let purposes: Vec<String> = finding.needed_for.iter().map(word).collect();
        if !purposes.is_empty() {
            let _ = writeln!(text, "{blank}needed for: {}", purposes.join(", "));
        }
        if let Some(way) = &finding.way_forward {
            let _ = writeln!(text, "{blank}way forward: {way}");
        }
    }
    text
}

/// The fact, if it could be read. A doctor does not give up because one instrument fails.
fn known<Fact>(fact: Result<Fact, MachineError>) -> Option<Fact> {
    fact.inspect_err(|error| {
        let cause = std::error::Error::source(error).map(tracing::field::display);
        tracing::warn!(%error, cause, "a fact of this machine is not known");
    })
    .ok()
}

/// The sign of a state, and its colour.
fn sign(state: State, unicode: bool) -> (&'static str, Style) {
    let (unicode_sign, plain_sign, style) = match state {
        State::Ok => ("✓", "[ok]", AnsiColor::Green.on_default()),
        State::Warning => ("!", "[!!]", AnsiColor::Yellow.on_default().bold()),
        State::Missing => ("✗", "[--]", AnsiColor::Red.on_default().bold()),
        State::Unknown => ("?", "[??]", AnsiColor::Cyan.on_default()),
    };
    (if unicode { unicode_sign } else { plain_sign }, style)
}

/// The word for a choice, the same that JSON has: people and scripts then speak of the same thing.
fn word(choice: impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("a choice without fields is a word, not {other:?}"),
    }
}

/// `network` → `Network`.
fn title(area: &str) -> String {
    let mut letters = area.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

impl Summary {
    fn line(&self) -> String {
        let mut parts = Vec::new();
        if let Some(system) = &self.system {
            parts.push(format!("{}: {}", system.host_name, system.pretty_name));
            parts.push(system.kernel.clone());
            parts.extend(system.arch.map(|arch| arch.to_string()));
        }
        if let Some(processors) = &self.processors {
            parts.push(format!("{} processors", processors.allowed));
        }
        if let Some(memory) = &self.memory {
            parts.push(format!("{} MiB memory", memory.total >> 20));
        }
        parts.join(", ") + "\n"
    }
}

impl Counts {
    fn line(self) -> String {
        let all_well = self.warning + self.missing + self.unknown == 0;
        let Self {
            ok,
            warning,
            missing,
            unknown,
        } = self;
        if all_well {
            format!("All is well: {ok} ok")
        } else {
            format!("{ok} ok, {warning} to look at, {missing} missing, {unknown} unknown")
        }
    }
}
