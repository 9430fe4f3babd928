//! From an `Exec…=` line to a process description: environment, user, folders, limits, streams.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{self, Access as _, Account};
use transom_host::files::{FileError, Files, Kind};
use transom_host::machine::Machine;
use transom_host::notify;
use transom_host::process::{Bound, Exit, Input, Limits, Output, Spawn, UserSpec};
use transom_model::os::Os;

use super::Daemon;
use super::keepers::{chain, group_of, hears_notifications};
use crate::engine::{Role, Runtime};
use crate::unit::environment_file;
use crate::unit::service::{
    Limit, MemoryLimit, Resource, ServiceDirectories, StandardOutput, TasksLimit, WorkingPlace,
};
use crate::unit::{ExecCommand, Service, UnitName};

const LARGEST_ENVIRONMENT_FILE: u64 = 1 << 20;

impl Daemon {
    /// Everything that the keeper needs to run `command`; an error is for people.
    pub(super) fn prepare(
        &self,
        unit: &UnitName,
        role: Role,
        command: &ExecCommand,
    ) -> Result<Spawn, String> {
        let definition = self.engine.catalog().unit(unit).cloned();
        let definition = definition.ok_or("its unit file is gone")?;
        let service = definition.service().ok_or("it is not a service")?;
        let runtime = self.engine.runtime(unit).cloned().unwrap_or_default();
        let account = self.account_of(service)?;
        let mut env = self.environment(unit, service, role, &runtime, account.as_ref())?;
        self.make_folders(service, &mut env)?;
        let program = self.find_program(&command.program, &env)?;
        let mut spawn = Spawn::new(program);
        spawn.args = command.expand(|name| env.get(name).cloned());
        spawn.arg0.clone_from(&command.argv0);
        for word in &service.unset_environment {
            match word.split_once('=') {
                Some((name, value)) if env.get(name).is_some_and(|present| present == value) => {
                    env.remove(name);
                }
                Some(_) => {}
                None => {
                    env.remove(word);
                }
            }
        }
        spawn.env = env;
        spawn.directory = self.working_directory(service, account.as_ref())?;
        spawn.user = match (&service.user, command.full_privileges) {
            (Some(user), false) => Some(user.parse::<UserSpec>().map_err(|e| e.to_string())?),
            _ => None,
        };
        spawn.group = group_of(runtime.invocation.as_deref().unwrap_or_default());
        spawn.umask = Some(service.umask);
        spawn.nice = (service.nice != 0).then(|| i32::from(service.nice));
        spawn.limits = self.limits(service);
        // Where there are no signals, the end of its input tells a service to end.
        spawn.stdin = match self.config.os {
            Os::Windows if role == Role::Main => Input::Pipe,
            _ => Input::Null,
        };
        spawn.stdout = output(&service.standard_output, &Output::Pipe);
        spawn.stderr = output(&service.standard_error, &spawn.stdout);
        Ok(spawn)
    }

    fn account_of(&self, service: &Service) -> Result<Option<Account>, String> {
        let Some(user) = &service.user else { return Ok(None) };
        access::Native::default().account(user).map(Some).map_err(|error| chain(&error))
    }

    fn environment(
        &self,
        unit: &UnitName,
        service: &Service,
        role: Role,
        runtime: &Runtime,
        account: Option<&Account>,
    ) -> Result<BTreeMap<String, String>, String> {
        let ours = &self.config.environment;
        let mut env = base_environment(self.config.os, ours);
        if let Some(account) = account {
            env.insert("USER".into(), account.name.clone());
            env.insert("LOGNAME".into(), account.name.clone());
            if let Some(home) = &account.home {
                env.insert("HOME".into(), home.to_string());
            }
            if let Some(shell) = &account.shell {
                env.insert("SHELL".into(), shell.to_string());
            }
        }
        for name in &service.pass_environment {
            if let Some(value) = ours.get(name) {
                env.insert(name.clone(), value.clone());
            }
        }
        env.extend(service.environment.iter().cloned());
        for file in &service.environment_files {
            self.read_environment_file(unit, &file.path, file.optional, &mut env)?;
        }
        if let Some(invocation) = &runtime.invocation {
            env.insert("INVOCATION_ID".into(), invocation.clone());
            if hears_notifications(service) {
                let folder = self.keeper_folder(invocation);
                env.insert(notify::VARIABLE.into(), notify::address(&folder));
            }
        }
        if let Some(watchdog) = service.watchdog_sec {
            env.insert("WATCHDOG_USEC".into(), watchdog.as_micros().to_string());
        }
        if let Some(pid) = runtime.main.as_ref().and_then(|main| main.pid) {
            env.insert("MAINPID".into(), pid.to_string());
        }
        if matches!(role, Role::Stop | Role::StopPost) {
            env.insert("SERVICE_RESULT".into(), runtime.result.name().into());
            if let Some(exit) = runtime.main_exit() {
                let (code, status) = match exit {
                    Exit::Code(code) => ("exited", code.to_string()),
                    Exit::Signal(signal) => ("killed", signal.to_string()),
                    Exit::Unknown => ("unknown", String::new()),
                };
                env.insert("EXIT_CODE".into(), code.into());
                env.insert("EXIT_STATUS".into(), status);
            }
        }
        Ok(env)
    }

    fn read_environment_file(
        &self,
        unit: &UnitName,
        path: &Utf8Path,
        optional: bool,
        env: &mut BTreeMap<String, String>,
    ) -> Result<(), String> {
        let bytes = match self.files.read(path, LARGEST_ENVIRONMENT_FILE) {
            Ok(bytes) => bytes,
            Err(error) if optional && matches!(error, FileError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(chain(&error)),
        };
        let text = String::from_utf8(bytes).map_err(|_| format!("`{path}` is not UTF-8"))?;
        let content =
            environment_file::parse(&text, path, self.config.os, |name| env.get(name).cloned());
        for problem in content.problems {
            tracing::warn!(%unit, "{problem}");
        }
        env.extend(content.variables);
        Ok(())
    }

    /// The program by its path, or by its name along the search path of the service.
    fn find_program(
        &self,
        program: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Utf8PathBuf, String> {
        let os = self.config.os;
        let suffixes: &[&str] = match os {
            Os::Linux => &[""],
            Os::Windows => &["", ".exe", ".cmd", ".bat"],
        };
        let is_file = |path: &Utf8Path| {
            fs_err::metadata(path).is_ok_and(|metadata| metadata.is_file())
        };
        let candidates: Vec<Utf8PathBuf> = if crate::unit::paths::is_absolute(program, os) {
            vec![program.into()]
        } else {
            let separator = match os {
                Os::Linux => ':',
                Os::Windows => ';',
            };
            let path = env.get("PATH").or_else(|| env.get("Path")).cloned().unwrap_or_default();
            path.split(separator)
                .filter(|folder| !folder.is_empty())
                .map(|folder| Utf8Path::new(folder).join(program))
                .collect()
        };
        candidates
            .iter()
            .flat_map(|path| suffixes.iter().map(move |suffix| Utf8PathBuf::from(format!("{path}{suffix}"))))
            .find(|path| is_file(path))
            .ok_or_else(|| format!("there is no program `{program}`"))
    }

    fn working_directory(
        &self,
        service: &Service,
        account: Option<&Account>,
    ) -> Result<Option<Utf8PathBuf>, String> {
        let root = match self.config.os {
            Os::Linux => Some(Utf8PathBuf::from("/")),
            Os::Windows => None,
        };
        let Some(wanted) = &service.working_directory else { return Ok(root) };
        let path = match &wanted.place {
            WorkingPlace::Path(path) => Some(path.clone()),
            WorkingPlace::Home => match account {
                Some(account) => account.home.clone(),
                None => access::Native::default()
                    .current_account()
                    .map_err(|error| chain(&error))?
                    .home,
            },
        };
        match path {
            Some(path) if fs_err::metadata(&path).is_ok_and(|m| m.is_dir()) => Ok(Some(path)),
            _ if wanted.optional => Ok(root),
            Some(path) => Err(format!("its working directory `{path}` does not exist")),
            None => Err("its user has no home directory".into()),
        }
    }

    /// `RuntimeDirectory=` and its like: made before the first command, named in the environment.
    fn make_folders(
        &self,
        service: &Service,
        env: &mut BTreeMap<String, String>,
    ) -> Result<(), String> {
        let places = self.config.places();
        let all: [(&str, &ServiceDirectories, &Utf8Path); 5] = [
            ("RUNTIME_DIRECTORY", &service.runtime_directory, &places.runtime_directory),
            ("STATE_DIRECTORY", &service.state_directory, &places.state_directory),
            ("CACHE_DIRECTORY", &service.cache_directory, &places.cache_directory),
            ("LOGS_DIRECTORY", &service.logs_directory, &places.logs_directory),
            (
                "CONFIGURATION_DIRECTORY",
                &service.configuration_directory,
                &places.configuration_directory,
            ),
        ];
        for (variable, directories, base) in all {
            let mut made = Vec::new();
            for name in &directories.names {
                let path = base.join(name);
                self.files.create_dir_all(&path).map_err(|error| chain(&error))?;
                let exists = self.files.metadata(&path).map_err(|error| chain(&error))?;
                if exists.kind != Kind::Dir {
                    return Err(format!("`{path}` is in the way of {variable}"));
                }
                made.push(path.to_string());
            }
            if !made.is_empty() {
                env.insert(variable.into(), made.join(":"));
            }
        }
        Ok(())
    }

    fn limits(&self, service: &Service) -> Limits {
        let of = |resource: Resource| {
            service.limits.get(&resource).map(|limit: &Limit| Bound {
                soft: limit.soft.unwrap_or(Bound::UNLIMITED),
                hard: limit.hard.unwrap_or(Bound::UNLIMITED),
            })
        };
        Limits {
            memory_bytes: service.memory_max.and_then(|limit| match limit {
                MemoryLimit::Bytes(bytes) => Some(bytes),
                MemoryLimit::Share(share) => {
                    let total = self.machine.memory().ok()?.total;
                    u64::try_from(u128::from(total) * u128::from(share) / 10_000).ok()
                }
            }),
            cpu_percent: service.cpu_quota.and_then(|quota| u32::try_from(quota.div_ceil(100)).ok()),
            processes: service.tasks_max.and_then(|limit| match limit {
                TasksLimit::Count(count) => u32::try_from(count).ok(),
                TasksLimit::Share(share) => u32::try_from(MOST_TASKS * share / 10_000).ok(),
            }),
            open_files: of(Resource::OpenFiles),
            core_bytes: of(Resource::Core),
            stack_bytes: of(Resource::Stack),
            user_processes: of(Resource::Processes),
            file_bytes: of(Resource::FileSize),
            cpu_seconds: of(Resource::CpuTime),
            locked_bytes: of(Resource::LockedMemory),
            address_space_bytes: of(Resource::AddressSpace),
        }
    }
}

/// What a share of `TasksMax=` is a share of: the usual highest number of processes.
const MOST_TASKS: u64 = 32_768;

/// What every service finds in its environment.
fn base_environment(os: Os, ours: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    match os {
        Os::Linux => {
            let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
            let mut env = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
            if let Some(language) = ours.get("LANG") {
                env.insert("LANG".into(), language.clone());
            }
            env
        }
        // Windows programs rely on the machine's own variables; there is no user's log-in to add to
        // them. Those that are meant for the supervisor alone stay with it.
        Os::Windows => ours
            .iter()
            .filter(|(name, _)| {
                let name = name.to_ascii_uppercase();
                !name.starts_with("TRANSOM_") && name != notify::VARIABLE
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }
}

fn output(wanted: &StandardOutput, inherited: &Output) -> Output {
    match wanted {
        StandardOutput::Inherit => inherited.clone(),
        StandardOutput::Null => Output::Null,
        StandardOutput::Journal => Output::Pipe,
        StandardOutput::File(path) | StandardOutput::Append(path) => Output::Append(path.clone()),
        StandardOutput::Truncate(path) => Output::Truncate(path.clone()),
    }
}
