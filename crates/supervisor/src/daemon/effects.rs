//! Doing what the engine decided. Some effects answer at once, which makes for more effects.

use std::collections::VecDeque;

use transom_host::files::{Access, Files};

use super::Daemon;
use crate::engine::{Effect, JobKind, KeeperEvent, State};
use crate::keeper::protocol::Order;
use crate::logs::Stream;

impl Daemon {
    pub(super) fn execute(&mut self, effects: Vec<Effect>) {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            queue.extend(self.execute_one(effect));
        }
    }

    fn execute_one(&mut self, effect: Effect) -> Vec<Effect> {
        match effect {
            Effect::Check { unit } => {
                let verdict = self.check_conditions(&unit);
                return self.decide(|turn| turn.checked(&unit, verdict));
            }
            Effect::Open { unit, invocation } => {
                if let Err(reason) = self.open_keeper(&unit, &invocation) {
                    return self.lose(&unit, reason);
                }
            }
            Effect::Run {
                unit,
                run,
                role,
                command,
            } => match self.prepare(&unit, role, &command) {
                Ok(spawn) => {
                    let order = Order::Run {
                        run,
                        role,
                        spawn: Box::new(spawn),
                    };
                    self.order(&unit, order);
                }
                Err(error) => {
                    let event = KeeperEvent::SpawnFailed { run, error };
                    return self.decide(|turn| turn.keeper_event(&unit, event));
                }
            },
            Effect::Signal {
                unit,
                signal,
                whom,
                until_empty,
            } => {
                self.order(
                    &unit,
                    Order::Signal {
                        signal,
                        whom,
                        until_empty,
                    },
                );
            }
            Effect::Close { unit } => {
                self.order(&unit, Order::Close);
                self.keepers.remove(&unit);
                let state = self.engine.runtime(&unit).map(|runtime| runtime.state);
                let comes_back = state == Some(State::AutoRestart)
                    || self
                        .engine
                        .job(&unit)
                        .is_some_and(|job| job.kind == JobKind::Start);
                self.remove_runtime_folders(&unit, comes_back);
            }
            Effect::JobFinished {
                job,
                unit,
                result,
                reason,
            } => {
                self.job_finished(job, &unit, result, reason.as_deref());
            }
            Effect::Stamp { unit } => {
                let path = self
                    .config
                    .layout
                    .state
                    .join("timers")
                    .join(format!("{unit}.stamp"));
                let now = self.now().wall.to_string();
                if let Err(error) = self.write_stamp(&path, &now) {
                    tracing::warn!(%unit, error = %error, "a missed run may be made up twice");
                }
            }
            Effect::Note { unit, message } => {
                tracing::info!(%unit, "{message}");
                if self.keepers.contains_key(&unit) {
                    self.order(&unit, Order::Note { message });
                } else {
                    self.own_log(&unit)
                        .write(Stream::Supervisor, None, &message);
                }
            }
        }
        Vec::new()
    }

    /// A step within a step: memory is saved before its effects are executed, like everywhere.
    pub(super) fn decide(
        &mut self,
        decide: impl FnOnce(&mut crate::engine::Turn<'_>),
    ) -> Vec<Effect> {
        let now = self.now();
        let mut turn = self.engine.turn(now);
        decide(&mut turn);
        let effects = turn.finish();
        self.save();
        effects
    }

    pub(super) fn lose(&mut self, unit: &crate::unit::UnitName, reason: String) -> Vec<Effect> {
        self.decide(|turn| turn.keeper_event(unit, KeeperEvent::Lost { reason }))
    }

    fn write_stamp(
        &self,
        path: &camino::Utf8Path,
        text: &str,
    ) -> Result<(), transom_host::files::FileError> {
        if let Some(folder) = path.parent() {
            self.files.create_dir_all(folder)?;
        }
        self.files
            .write_durable(path, text.as_bytes(), Access::Public)
    }
}
