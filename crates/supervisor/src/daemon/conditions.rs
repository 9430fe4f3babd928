//! `Condition…=` and `Assert…=` against this machine.

use std::collections::BTreeMap;

use camino::Utf8Path;
use transom_host::access::{self, Access, AccountId};
use transom_host::machine::{self, Machine};
use transom_model::Arch;

use super::Daemon;
use crate::engine::Verdict;
use crate::unit::condition::{ConditionOutcome, evaluate};
use crate::unit::name::glob_matches;
use crate::unit::{Condition, ConditionFacts, UnitName};

impl Daemon {
    pub(super) fn check_conditions(&self, unit: &UnitName) -> Verdict {
        let Some(definition) = self.engine.catalog().unit(unit) else {
            return Verdict::Go;
        };
        let facts = Facts {
            machine: &self.machine,
            environment: &self.config.environment,
        };
        let written = |prefix: &str, condition: &Condition| {
            let mark = if condition.negate { "!" } else { "" };
            format!(
                "{prefix}{}={mark}{}",
                condition.kind.name(),
                condition.argument
            )
        };
        if let ConditionOutcome::NotMet(condition) = evaluate(&definition.conditions, &facts) {
            return Verdict::Skip(written("Condition", &condition));
        }
        if let ConditionOutcome::NotMet(condition) = evaluate(&definition.asserts, &facts) {
            return Verdict::Refuse(written("Assert", &condition));
        }
        Verdict::Go
    }
}

/// systemd's name for an architecture.
pub(super) fn systemd_name(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86-64",
        Arch::Arm64 => "arm64",
    }
}

struct Facts<'a> {
    machine: &'a machine::Native,
    environment: &'a BTreeMap<String, String>,
}

impl ConditionFacts for Facts<'_> {
    fn path_exists(&self, path: &str) -> bool {
        fs_err::metadata(path).is_ok()
    }

    fn glob_exists(&self, pattern: &str) -> bool {
        // The pattern may be in the last part only, as people write it.
        let pattern = Utf8Path::new(pattern);
        let (Some(folder), Some(last)) = (pattern.parent(), pattern.file_name()) else {
            return false;
        };
        fs_err::read_dir(folder).is_ok_and(|entries| {
            entries
                .flatten()
                .any(|entry| glob_matches(last, &entry.file_name().to_string_lossy()))
        })
    }

    fn is_directory(&self, path: &str) -> bool {
        fs_err::metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    fn is_symbolic_link(&self, path: &str) -> bool {
        fs_err::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
    }

    fn is_mount_point(&self, path: &str) -> Option<bool> {
        let path = Utf8Path::new(path);
        self.machine
            .disks()
            .ok()
            .map(|disks| disks.iter().any(|disk| disk.mount_point == path))
    }

    fn is_writable_place(&self, path: &str) -> Option<bool> {
        let path = Utf8Path::new(path);
        let disks = self.machine.disks().ok()?;
        let holding = disks
            .iter()
            .filter(|disk| path.starts_with(&disk.mount_point))
            .max_by_key(|disk| disk.mount_point.as_str().len())?;
        Some(!holding.read_only)
    }

    fn directory_not_empty(&self, path: &str) -> bool {
        fs_err::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
    }

    fn file_not_empty(&self, path: &str) -> bool {
        fs_err::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
    }

    fn file_is_executable(&self, path: &str) -> bool {
        let Ok(metadata) =
            transom_host::files::Files::metadata(&transom_host::files::Native, Utf8Path::new(path))
        else {
            return false;
        };
        let by_suffix = [".exe", ".cmd", ".bat"]
            .iter()
            .any(|end| path.to_lowercase().ends_with(end));
        metadata.kind == transom_host::files::Kind::File
            && metadata.mode.map_or(by_suffix, |mode| mode & 0o111 != 0)
    }

    fn environment(&self, name: &str) -> Option<String> {
        self.environment.get(name).cloned()
    }

    fn host_name(&self) -> Option<String> {
        self.machine.system().ok().map(|system| system.host_name)
    }

    fn machine_id(&self) -> Option<String> {
        let text = fs_err::read_to_string("/etc/machine-id").ok()?;
        Some(text.trim().to_owned())
    }

    fn user(&self) -> Option<(String, String)> {
        let account = access::Native.current_account().ok()?;
        let id = match account.id {
            AccountId::Unix { uid, .. } => uid.to_string(),
            AccountId::Windows { sid } => sid,
        };
        Some((account.name, id))
    }

    fn is_system_user(&self) -> bool {
        const FIRST_PERSON: u32 = 1000;
        match access::Native.current_account().map(|account| account.id) {
            Ok(AccountId::Unix { uid, .. }) => uid < FIRST_PERSON,
            // Accounts of people are below S-1-5-21.
            Ok(AccountId::Windows { sid }) => !sid.starts_with("S-1-5-21-"),
            Err(_) => false,
        }
    }

    fn is_in_group(&self, group: &str) -> Option<bool> {
        match access::Native.current_account().ok()?.id {
            AccountId::Unix { groups, .. } => Some(
                group
                    .parse()
                    .is_ok_and(|group: u32| groups.contains(&group)),
            ),
            AccountId::Windows { .. } => None,
        }
    }

    fn kernel_release(&self) -> Option<String> {
        self.machine.system().ok().map(|system| system.kernel)
    }

    fn kernel_command_line(&self) -> Option<String> {
        fs_err::read_to_string("/proc/cmdline").ok()
    }

    fn architecture(&self) -> Option<String> {
        self.machine
            .system()
            .ok()?
            .arch
            .map(|arch| systemd_name(arch).to_owned())
    }

    fn virtualization(&self) -> Option<(String, String)> {
        let around = self.machine.surroundings().ok()?;
        Some(match (around.container, around.hypervisor) {
            (Some(container), _) => ("container".into(), container),
            (None, Some(hypervisor)) => ("vm".into(), hypervisor.to_lowercase()),
            (None, None) => ("none".into(), "none".into()),
        })
    }

    fn has_capability(&self, _capability: &str) -> Option<bool> {
        None
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.machine.memory().ok().map(|memory| memory.total)
    }

    fn cpus(&self) -> Option<u64> {
        self.machine
            .processors()
            .ok()
            .and_then(|count| u64::try_from(count.allowed).ok())
    }

    fn os_release(&self, field: &str) -> Option<String> {
        let text = fs_err::read_to_string("/etc/os-release").ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix('='))?;
        Some(line.trim_matches('"').to_owned())
    }

    fn is_first_boot(&self) -> Option<bool> {
        None
    }
}
