//! What each request of a client does.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Daemon, Next};
use crate::control::protocol::{
    Answer, JobOutcome, JobResult, JobVerb, ProcessLine, Request, RequestError, UnitStatus, Whom,
};
use crate::engine::{Accepted, JobId};
use crate::keeper::protocol::{Order, Report};
use crate::unit::{Signal, UnitName, UnitPattern};

/// How long a keeper may take to say what its unit uses; a status without it is better than none.
const SURVEY_LIMIT: Duration = Duration::from_millis(1500);

/// A client that waits for jobs.
pub(super) struct Waiter {
    reply: oneshot::Sender<Answer>,
    wanted: Vec<Accepted>,
    finished: BTreeMap<JobId, (JobResult, Option<String>)>,
    warnings: Vec<String>,
}

impl Waiter {
    pub(super) fn finished(&mut self, job: JobId, result: JobResult, reason: Option<&str>) {
        if self.wanted.iter().any(|accepted| accepted.job == Some(job)) {
            self.finished
                .insert(job, (result, reason.map(ToOwned::to_owned)));
        }
    }

    pub(super) fn is_done(&self) -> bool {
        let mut jobs = self.wanted.iter().filter_map(|accepted| accepted.job);
        jobs.all(|job| self.finished.contains_key(&job))
    }

    pub(super) fn reply(self) {
        let outcomes = self
            .wanted
            .iter()
            .map(|accepted| {
                let known = accepted
                    .job
                    .and_then(|job| self.finished.get(&job).cloned());
                let (result, reason) = known.unwrap_or((JobResult::Skipped, None));
                JobOutcome {
                    unit: accepted.unit.to_string(),
                    result,
                    reason,
                }
            })
            .collect();
        // A client that has gone does not need it.
        let _ = self.reply.send(Answer::Jobs {
            outcomes,
            warnings: self.warnings,
        });
    }
}

impl Daemon {
    pub(super) fn answer(&mut self, request: Request, reply: oneshot::Sender<Answer>) -> Next {
        let answer = match request {
            Request::Ping => Answer::Pong {
                version: self.config.version.clone(),
                pid: std::process::id(),
            },
            Request::Job {
                verb,
                units,
                no_block,
            } => {
                return self.start_jobs(verb, &units, no_block, reply);
            }
            Request::Kill {
                units,
                signal,
                whom,
            } => self.kill(&units, &signal, whom),
            Request::List { patterns } => {
                let names = self.matching(&patterns);
                self.inspect(names, reply);
                return Next::GoOn;
            }
            Request::Inspect { units } => match names(&units) {
                Ok(names) => {
                    let names = self.ensure_loaded(&names);
                    self.inspect(names, reply);
                    return Next::GoOn;
                }
                Err(error) => Answer::Failed { error },
            },
            Request::DaemonReload => match self.reload_files() {
                Ok(warnings) => Answer::Done { warnings },
                Err(message) => Answer::Failed {
                    error: RequestError::BadRequest { message },
                },
            },
            Request::ResetFailed { units } => match self.failed_units(&units) {
                Ok(names) => {
                    self.act(|turn| names.iter().for_each(|name| turn.reset_failed(name)));
                    Answer::Done {
                        warnings: Vec::new(),
                    }
                }
                Err(error) => Answer::Failed { error },
            },
            Request::Shutdown => {
                let _ = reply.send(Answer::Done {
                    warnings: Vec::new(),
                });
                return Next::Shutdown;
            }
        };
        // A client that has gone does not need it.
        let _ = reply.send(answer);
        Next::GoOn
    }

    fn start_jobs(
        &mut self,
        verb: JobVerb,
        units: &[String],
        no_block: bool,
        reply: oneshot::Sender<Answer>,
    ) -> Next {
        let names = match names(units) {
            Ok(names) => names,
            Err(error) => {
                let _ = reply.send(Answer::Failed { error });
                return Next::GoOn;
            }
        };
        let names = self.ensure_loaded(&names);
        let now = self.now();
        let mut turn = self.engine.turn(now);
        let accepted = turn.request(verb, &names);
        let effects = turn.finish();
        match accepted {
            Err(error) => {
                let _ = reply.send(Answer::Failed { error });
            }
            Ok((wanted, warnings)) if no_block => {
                let outcomes = wanted
                    .iter()
                    .map(|accepted| JobOutcome {
                        unit: accepted.unit.to_string(),
                        result: match accepted.job {
                            Some(_) => JobResult::Queued,
                            None => JobResult::Skipped,
                        },
                        reason: None,
                    })
                    .collect();
                let _ = reply.send(Answer::Jobs { outcomes, warnings });
            }
            Ok((wanted, warnings)) => {
                let waiter = Waiter {
                    reply,
                    wanted,
                    finished: BTreeMap::new(),
                    warnings,
                };
                if waiter.is_done() {
                    waiter.reply();
                } else {
                    self.waiters.push(waiter);
                }
            }
        }
        self.save();
        self.execute(effects);
        Next::GoOn
    }

    fn kill(&mut self, units: &[String], signal: &str, whom: Whom) -> Answer {
        let signal = match Signal::parse(signal) {
            Ok(signal) => signal,
            Err(error) => {
                let error = RequestError::BadRequest {
                    message: error.to_string(),
                };
                return Answer::Failed { error };
            }
        };
        let names = match names(units) {
            Ok(names) => names,
            Err(error) => return Answer::Failed { error },
        };
        let names: Vec<UnitName> = names
            .iter()
            .map(|name| self.engine.catalog().canonical(name).clone())
            .collect();
        if let Some(idle) = names.iter().find(|name| !self.keepers.contains_key(name)) {
            let error = RequestError::NotRunning {
                unit: idle.to_string(),
            };
            return Answer::Failed { error };
        }
        for name in &names {
            self.order(
                name,
                Order::Signal {
                    signal,
                    whom,
                    until_empty: false,
                },
            );
        }
        Answer::Done {
            warnings: Vec::new(),
        }
    }

    /// Units to list: those that are loaded, and those that live on without a file.
    fn matching(&self, patterns: &[String]) -> Vec<UnitName> {
        let patterns: Vec<UnitPattern> =
            patterns.iter().map(|text| UnitPattern::new(text)).collect();
        let mut all: Vec<UnitName> = self.engine.catalog().names().cloned().collect();
        all.extend(self.engine.known().map(|(name, _)| name.clone()));
        all.sort();
        all.dedup();
        all.retain(|name| {
            !name.is_template()
                && (patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name)))
        });
        all
    }

    fn failed_units(&self, units: &[String]) -> Result<Vec<UnitName>, RequestError> {
        if units.is_empty() {
            return Ok(self.engine.known().map(|(name, _)| name.clone()).collect());
        }
        let names: Vec<UnitName> = names(units)?
            .iter()
            .map(|name| self.engine.catalog().canonical(name).clone())
            .collect();
        let unknown = names.iter().find(|name| {
            self.engine.catalog().unit(name).is_none() && self.engine.runtime(name).is_none()
        });
        match unknown {
            Some(unit) => Err(RequestError::NotFound {
                unit: unit.to_string(),
            }),
            None => Ok(names),
        }
    }

    /// Asks a keeper what its unit uses. One question at a time: its answer is for all who asked.
    fn ask_keeper(&mut self, unit: &UnitName) -> oneshot::Receiver<Report> {
        let (sender, survey) = oneshot::channel();
        let waiting = self.surveys.entry(unit.clone()).or_default();
        waiting.retain(|waiting| !waiting.is_closed());
        let first = waiting.is_empty();
        waiting.push(sender);
        if first {
            self.order(unit, Order::Survey);
        }
        survey
    }

    /// Answers with the status of `names`, asking their keepers without holding up anyone else.
    fn inspect(&mut self, names: Vec<UnitName>, reply: oneshot::Sender<Answer>) {
        let mut pending = Vec::new();
        for name in names {
            let mut status = self.engine.status(&name);
            status.log_path = Some(crate::logs::log_path(&self.config.log_folder(), &name));
            let survey = if self.keepers.contains_key(&name) {
                Some(self.ask_keeper(&name))
            } else {
                None
            };
            pending.push((status, survey));
        }
        tokio::spawn(async move {
            let deadline = tokio::time::Instant::now() + SURVEY_LIMIT;
            let mut units = Vec::new();
            for (mut status, survey) in pending {
                if let Some(survey) = survey {
                    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
                    if let Ok(Ok(report)) = timeout(left, survey).await {
                        add_survey(&mut status, report);
                    }
                }
                units.push(status);
            }
            // A client that has gone does not need it.
            let _ = reply.send(Answer::Units { units });
        });
    }
}

fn add_survey(status: &mut UnitStatus, report: Report) {
    let Report::Survey { members, stats } = report else {
        return;
    };
    status.processes = members
        .into_iter()
        .map(|member| ProcessLine {
            pid: member.identity.pid,
            command: member.command,
        })
        .collect();
    status.memory_bytes = stats.memory_bytes;
    status.cpu_nanoseconds = stats.cpu.and_then(|cpu| u64::try_from(cpu.as_nanos()).ok());
    let absent = || "[not set]".to_owned();
    let number = |value: Option<u64>| value.map_or_else(absent, |value| value.to_string());
    status
        .properties
        .insert("MemoryCurrent".into(), number(status.memory_bytes));
    status
        .properties
        .insert("CPUUsageNSec".into(), number(status.cpu_nanoseconds));
    status.properties.insert(
        "TasksCurrent".into(),
        number(stats.processes.map(u64::from)),
    );
}

fn names(units: &[String]) -> Result<Vec<UnitName>, RequestError> {
    units
        .iter()
        .map(|text| {
            UnitName::from_command_line(text).map_err(|error| RequestError::BadRequest {
                message: error.to_string(),
            })
        })
        .collect()
}
