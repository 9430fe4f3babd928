//! Coming up: for the first time since boot, or after an earlier daemon that was killed.

use transom_host::files::Files;

use super::Daemon;
use super::keepers::group_of;
use crate::control::protocol::JobVerb;
use crate::keeper::protocol::{RECORD_FILE, Record};
use crate::unit::UnitName;

const LARGEST_RECORD: u64 = 16 << 20;

impl Daemon {
    pub(super) fn resume_or_boot(&mut self) {
        let fresh = self.engine.known().next().is_none();
        let kept: Vec<(UnitName, String)> = self
            .engine
            .known()
            .filter(|(_, runtime)| runtime.kept)
            .filter_map(|(unit, runtime)| Some((unit.clone(), runtime.invocation.clone()?)))
            .collect();
        self.sweep_keepers(&kept);
        for (unit, invocation) in &kept {
            self.meet_again(unit, invocation);
        }
        self.act(|turn| {
            turn.resume_jobs();
        });
        self.processes.sweep();
        if fresh {
            self.boot_units();
        }
    }

    /// Ends keepers of which the memory knows nothing: their daemon died before it could close them, or
    /// the memory is gone.
    fn sweep_keepers(&self, kept: &[(UnitName, String)]) {
        let folder = self.config.run_folder().join("keepers");
        let entries = self.files.list(&folder).unwrap_or_else(|error| {
            tracing::warn!(error = %error, "the keepers' folder cannot be read");
            Vec::new()
        });
        for entry in entries {
            if kept.iter().all(|(_, invocation)| *invocation != entry.name) {
                tracing::info!(
                    invocation = entry.name,
                    "ending what an earlier supervisor left"
                );
                let remains = self.remains(&entry.name);
                tokio::task::spawn_blocking(move || remains.end());
            }
        }
    }

    /// Finds the keeper of a unit that was running when the last daemon died.
    fn meet_again(&mut self, unit: &UnitName, invocation: &str) {
        let Some(record) = self.read_record(invocation) else {
            // Asked for, but it never came up: ask again. Its commands follow when it answers.
            self.remains(invocation).end();
            if let Err(reason) = self.open_keeper(unit, invocation) {
                let effects = self.lose(unit, reason);
                self.execute(effects);
            }
            return;
        };
        let alive = matches!(
            self.processes.adopt(&record.keeper, &group_of(invocation)),
            Ok(Some(_))
        );
        if alive {
            tracing::info!(%unit, "taking over from an earlier supervisor");
            self.converse_with(unit, invocation);
            return;
        }
        for numbered in record.events {
            self.act(|turn| turn.keeper_event(unit, numbered.event));
        }
        let reason = "its keeper ended while no supervisor was there".to_owned();
        self.bury(unit, invocation, reason);
    }

    fn read_record(&self, invocation: &str) -> Option<Record> {
        let path = self.keeper_folder(invocation).join(RECORD_FILE);
        let bytes = self.files.read(&path, LARGEST_RECORD).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The first start after boot: brings up the default target.
    fn boot_units(&mut self) {
        let target = self
            .engine
            .catalog()
            .canonical(&self.config.default_target)
            .clone();
        if self.engine.catalog().unit(&target).is_none() {
            return;
        }
        match self.act(|turn| turn.request(JobVerb::Start, std::slice::from_ref(&target))) {
            Ok((_, warnings)) => {
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
            }
            Err(error) => tracing::error!(%target, error = %error, "cannot be reached"),
        }
    }
}
