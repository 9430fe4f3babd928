//! The services of this machine, for a switch of generations: systemd's where it runs, our supervisor's
//! elsewhere. Invariant: whatever is asked has an end, because both answer with how each job ended.

use std::time::{Duration, Instant};

use transom_model::layout::Layout;
use transom_package::node::{NoServices, Services, ServicesError};
use transom_supervisor::control::client::{self, AskError};
use transom_supervisor::control::protocol::{
    ActiveState, Answer, JobResult, JobVerb, Request, UnitStatus,
};

use crate::commands::service::systemd;
use crate::context::Context;

/// Between two looks at services that are coming up.
const LOOK: Duration = Duration::from_millis(200);

/// A service that has run this long without falling over counts as healthy.
const SETTLED: Duration = Duration::from_secs(1);

/// Who looks after services here. `none`: nobody should be asked.
pub(super) fn of_machine(cx: &Context, none: bool, no_block: bool) -> Box<dyn Services> {
    if none {
        Box::new(NoServices)
    } else if systemd::runs(cx) {
        Box::new(Systemd { no_block })
    } else {
        Box::new(Supervisor {
            layout: cx.layout.clone(),
            no_block,
        })
    }
}

fn failed(
    action: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ServicesError {
    ServicesError {
        action,
        source: source.into(),
    }
}

/// systemd itself.
#[derive(Debug)]
struct Systemd {
    no_block: bool,
}

impl Systemd {
    fn run(&self, action: &'static str, verb: &str, words: &[String]) -> Result<(), ServicesError> {
        let mut flags = Vec::new();
        if self.no_block && matches!(verb, "start" | "stop") {
            flags.push("--no-block");
        }
        match systemd::systemctl(verb, &flags, words) {
            // 5: one of the units is not known, as before the very first start.
            Ok(exit) if exit.code() == 0 || (verb == "stop" && exit.code() == 5) => Ok(()),
            Ok(exit) => Err(failed(
                action,
                format!("systemctl ended with {}", exit.code()),
            )),
            Err(error) => Err(failed(action, error.to_string())),
        }
    }
}

impl Services for Systemd {
    fn stop(&self, units: &[String]) -> Result<(), ServicesError> {
        for unit in units {
            self.run("stop", "stop", std::slice::from_ref(unit))?;
        }
        Ok(())
    }

    fn reload(&self) -> Result<(), ServicesError> {
        self.run("reload", "daemon-reload", &[])
    }

    fn start(&self, units: &[String]) -> Result<(), ServicesError> {
        if units.is_empty() {
            return Ok(());
        }
        self.run("start", "start", units)
    }

    fn wait_healthy(
        &self,
        units: &[String],
        limit: Duration,
    ) -> Result<Vec<String>, ServicesError> {
        let states = || {
            let mut waiting = Vec::new();
            let mut broken = Vec::new();
            for unit in units {
                match systemd::active_state(unit)
                    .map_err(|error| failed("watch", error.to_string()))?
                {
                    state if state == "active" => {}
                    state if state == "failed" => broken.push(format!("{unit} failed")),
                    state => waiting.push(format!("{unit} is {state}")),
                }
            }
            Ok((waiting, broken))
        };
        settle(limit, states)
    }
}

/// Our own supervisor.
#[derive(Debug)]
struct Supervisor {
    layout: Layout,
    no_block: bool,
}

impl Supervisor {
    fn ask(&self, action: &'static str, request: &Request) -> Result<Answer, ServicesError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(action, error))?;
        match runtime.block_on(client::ask(&self.layout, request)) {
            Ok(Answer::Failed { error }) => Err(failed(action, error)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(failed(action, error)),
        }
    }

    fn is_absent(&self) -> bool {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        else {
            return false;
        };
        matches!(
            runtime.block_on(client::ask(&self.layout, &Request::Ping)),
            Err(AskError::NotRunning(_))
        )
    }

    fn job(
        &self,
        action: &'static str,
        verb: JobVerb,
        units: &[String],
    ) -> Result<(), ServicesError> {
        let request = Request::Job {
            verb,
            units: units.to_vec(),
            no_block: self.no_block,
        };
        let Answer::Jobs { outcomes, .. } = self.ask(action, &request)? else {
            return Err(failed(action, "the supervisor answered something else"));
        };
        let bad: Vec<String> = outcomes
            .into_iter()
            .filter(|outcome| {
                !matches!(
                    outcome.result,
                    JobResult::Done | JobResult::Queued | JobResult::Skipped
                )
            })
            .map(|outcome| match outcome.reason {
                Some(reason) => format!("{}: {reason}", outcome.unit),
                None => outcome.unit,
            })
            .collect();
        if bad.is_empty() {
            Ok(())
        } else {
            Err(failed(action, bad.join("; ")))
        }
    }

    fn states(&self, units: &[String]) -> Result<Vec<UnitStatus>, ServicesError> {
        let request = Request::Inspect {
            units: units.to_vec(),
        };
        match self.ask("watch", &request)? {
            Answer::Units { units } => Ok(units),
            _ => Err(failed("watch", "the supervisor answered something else")),
        }
    }
}

impl Services for Supervisor {
    fn stop(&self, units: &[String]) -> Result<(), ServicesError> {
        // Services that nobody supervises do not run.
        if units.is_empty() || self.is_absent() {
            return Ok(());
        }
        let known: Vec<String> = self
            .states(units)?
            .into_iter()
            .filter(|unit| {
                !matches!(
                    unit.active_state,
                    ActiveState::Inactive | ActiveState::Failed
                )
            })
            .map(|unit| unit.name)
            .collect();
        for unit in &known {
            self.job("stop", JobVerb::Stop, std::slice::from_ref(unit))?;
        }
        Ok(())
    }

    fn reload(&self) -> Result<(), ServicesError> {
        if self.is_absent() {
            return Ok(());
        }
        self.ask("reload", &Request::DaemonReload).map(drop)
    }

    fn start(&self, units: &[String]) -> Result<(), ServicesError> {
        if units.is_empty() {
            return Ok(());
        }
        self.job("start", JobVerb::Start, units)
    }

    fn wait_healthy(
        &self,
        units: &[String],
        limit: Duration,
    ) -> Result<Vec<String>, ServicesError> {
        if units.is_empty() {
            return Ok(Vec::new());
        }
        settle(limit, || {
            let mut waiting = Vec::new();
            let mut broken = Vec::new();
            for unit in self.states(units)? {
                let said = format!("{} is {}", unit.name, unit.active_state.name());
                match unit.active_state {
                    ActiveState::Active => {}
                    ActiveState::Failed => broken.push(said),
                    _ => waiting.push(said),
                }
            }
            Ok((waiting, broken))
        })
    }
}

/// Looks until nothing is waited for any more, and has stayed so for a moment. What is broken ends the
/// wait at once.
fn settle(
    limit: Duration,
    look: impl Fn() -> Result<(Vec<String>, Vec<String>), ServicesError>,
) -> Result<Vec<String>, ServicesError> {
    let deadline = Instant::now() + limit;
    let mut healthy_since: Option<Instant> = None;
    loop {
        let (waiting, broken) = look()?;
        if !broken.is_empty() {
            return Ok(broken);
        }
        let now = Instant::now();
        if waiting.is_empty() {
            let since = *healthy_since.get_or_insert(now);
            if now.duration_since(since) >= SETTLED || now >= deadline {
                return Ok(Vec::new());
            }
        } else {
            healthy_since = None;
            if now >= deadline {
                return Ok(waiting);
            }
        }
        std::thread::sleep(LOOK);
    }
}
