//! A run of named steps with a time table at the end. The table is printed however the run ends, and
//! the first failure decides the exit code.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::console;

enum Outcome {
    Passed,
    /// Passed, but something was left out.
    Partly(String),
    Failed,
    Skipped(&'static str),
}

struct Row {
    name: &'static str,
    time: Duration,
    outcome: Outcome,
}

/// The steps that ran so far.
pub(crate) struct Steps {
    started: Instant,
    rows: Vec<Row>,
    first_failure: Option<anyhow::Error>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            rows: Vec::new(),
            first_failure: None,
        }
    }

    /// Runs a step whatever happened before. What it returns is a remark for the table.
    pub(crate) fn always(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<Option<String>>,
    ) {
        console::heading(name);
        let started = Instant::now();
        let outcome = match step() {
            Ok(None) => Outcome::Passed,
            Ok(Some(remark)) => Outcome::Partly(remark),
            Err(error) => {
                console::line(&format!("  failed: {error:#}"));
                self.first_failure.get_or_insert(error);
                Outcome::Failed
            }
        };
        self.rows.push(Row {
            name,
            time: started.elapsed(),
            outcome,
        });
    }

    /// Runs an expensive step only if everything before it passed.
    pub(crate) fn unless_failed(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<Option<String>>,
    ) {
        if self.first_failure.is_none() {
            self.always(name, step);
        } else {
            let outcome = Outcome::Skipped("an earlier step failed");
            self.rows.push(Row {
                name,
                time: Duration::ZERO,
                outcome,
            });
        }
    }

    /// Prints the table and hands back the first failure.
    pub(crate) fn finish(self) -> Result<()> {
        console::heading("time per step");
        let mut rows: Vec<Vec<String>> = self.rows.iter().map(Row::cells).collect();
        rows.push(vec![
            "total".into(),
            console::duration(self.started.elapsed()),
            String::new(),
        ]);
        console::table(&["step", "time", "result"], &rows);
        self.first_failure.map_or(Ok(()), Err)
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let result = match &self.outcome {
            Outcome::Passed => "ok".to_owned(),
            Outcome::Partly(remark) => format!("ok ({remark})"),
            Outcome::Failed => "FAILED".to_owned(),
            Outcome::Skipped(why) => format!("skipped: {why}"),
        };
        vec![self.name.to_owned(), console::duration(self.time), result]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_steps_go_on_after_a_failure_and_expensive_ones_do_not() {
        let mut steps = Steps::new();
        let (mut cheap, mut expensive) = (false, false);
        steps.always("one", || anyhow::bail!("first"));
        steps.always("two", || {
            cheap = true;
            anyhow::bail!("second")
        });
        steps.unless_failed("three", || {
            expensive = true;
            Ok(None)
        });
        assert_eq!(steps.rows[2].cells()[2], "skipped: an earlier step failed");
        assert_eq!(steps.finish().unwrap_err().to_string(), "first");
        assert!(cheap && !expensive);
    }

    #[test]
    fn a_remark_shows_in_the_table() {
        let mut steps = Steps::new();
        steps.unless_failed("one", || Ok(Some("no advisories".into())));
        assert_eq!(steps.rows[0].cells()[2], "ok (no advisories)");
        assert!(steps.finish().is_ok());
    }
}
