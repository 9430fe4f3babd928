//! From an `Exec…=` line to a process description: environment, user, folders, limits, streams.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{self, Access as _, Account, AccountId};
use transom_host::files::{FileError, Files};
use transom_host::machine::Machine;
use transom_host::notify;
use transom_host::process::{Bound, Exit, GroupSpec, Input, Limits, Output, Spawn, UserSpec};
use transom_model::os::Os;

use super::Daemon;
use super::keepers::{chain, group_of};
use crate::engine::{Role, Runtime};
use crate::unit::environment_file;
use crate::unit::service::{
    Limit, MemoryLimit, Resource, StandardInput, StandardOutput, TasksLimit, WorkingPlace,
};
use crate::unit::variables::Variables;
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
        let account = account_of(service)?;
        let mut env = self.environment(unit, service, role, &runtime, account.as_ref())?;
        self.make_folders(service, account.as_ref(), &mut env)?;
        let program = self.find_program(&command.program, &env)?;
        let mut spawn = Spawn::new(program);
        spawn.args = command.expand(|name| env.get(name).map(ToOwned::to_owned));
        spawn.arg0.clone_from(&command.argv0);
        for word in &service.unset_environment {
            env.unset(word);
        }
        spawn.env = env.into_map();
        spawn.directory = self.working_directory(service, account.as_ref())?;
        if !command.full_privileges {
            become_whom(service, &mut spawn)?;
        }
        spawn.group = group_of(runtime.invocation.as_deref().unwrap_or_default());
        spawn.umask = Some(service.umask);
        spawn.nice = (service.nice != 0).then(|| i32::from(service.nice));
        spawn.limits = self.limits(service);
        spawn.out_of_memory_score = service.oom_score_adjust;
        spawn.stdin = match (&service.standard_input, self.config.os) {
            (StandardInput::File(path), _) => Input::File(path.clone()),
            // Where there are no signals, the end of its input tells a service to end.
            (StandardInput::Null, Os::Windows) if role == Role::Main => Input::Pipe,
            (StandardInput::Null, _) => Input::Null,
        };
        spawn.stdout = output(&service.standard_output, &Output::Pipe);
        spawn.stderr = output(&service.standard_error, &spawn.stdout);
        Ok(spawn)
    }

    fn environment(
        &self,
        unit: &UnitName,
        service: &Service,
        role: Role,
        runtime: &Runtime,
        account: Option<&Account>,
    ) -> Result<Variables, String> {
        let ours = &self.config.environment;
        let mut env = Variables::of_every_service(self.config.os, ours);
        if let Some(account) = account {
            env.insert("USER", account.name.clone());
            env.insert("LOGNAME", account.name.clone());
            if let Some(home) = &account.home {
                env.insert("HOME", home.to_string());
            }
            if let Some(shell) = &account.shell {
                env.insert("SHELL", shell.to_string());
            }
        }
        for name in &service.pass_environment {
            env.pass(ours, name);
        }
        for (name, value) in &service.environment {
            env.insert(name, value);
        }
        for file in &service.environment_files {
            self.read_environment_file(unit, &file.path, file.optional, &mut env)?;
        }
        if let Some(invocation) = &runtime.invocation {
            env.insert("INVOCATION_ID", invocation.clone());
            // Many programs treat an address where nobody listens as an error.
            if service.hears_notifications() {
                let folder = self.keeper_folder(invocation);
                env.insert(notify::VARIABLE, notify::address(&folder));
            }
        }
        if let Some(watchdog) = service.watchdog_sec {
            env.insert("WATCHDOG_USEC", watchdog.as_micros().to_string());
        }
        if let Some(pid) = runtime.main.as_ref().and_then(|main| main.pid) {
            env.insert("MAINPID", pid.to_string());
        }
        if matches!(role, Role::Stop | Role::StopPost) {
            env.insert("SERVICE_RESULT", runtime.result.name());
            if let Some(exit) = runtime.main_exit() {
                let (code, status) = match exit {
                    Exit::Code(code) => ("exited", code.to_string()),
                    Exit::Signal(signal) => ("killed", signal.to_string()),
                    Exit::Unknown => ("unknown", String::new()),
                };
                env.insert("EXIT_CODE", code);
                env.insert("EXIT_STATUS", status);
            }
        }
        Ok(env)
    }

    fn read_environment_file(
        &self,
        unit: &UnitName,
        path: &Utf8Path,
        optional: bool,
        env: &mut Variables,
    ) -> Result<(), String> {
        let bytes = match self.files.read(path, LARGEST_ENVIRONMENT_FILE) {
            Ok(bytes) => bytes,
            Err(error) if optional && matches!(error, FileError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(chain(&error)),
        };
        let text = String::from_utf8(bytes).map_err(|_| format!("`{path}` is not UTF-8"))?;
        let content = environment_file::parse(&text, path, self.config.os, |name| {
            env.get(name).map(ToOwned::to_owned)
        });
        for problem in content.problems {
            tracing::warn!(%unit, "{problem}");
        }
        for (name, value) in content.variables {
            env.insert(name, value);
        }
        Ok(())
    }

    /// The program by its path, or by its name along the search path of the service.
    fn find_program(&self, program: &str, env: &Variables) -> Result<Utf8PathBuf, String> {
        let os = self.config.os;
        let suffixes: &[&str] = match os {
            Os::Linux => &[""],
            Os::Windows => &["", ".exe", ".cmd", ".bat"],
        };
        let is_file =
            |path: &Utf8Path| fs_err::metadata(path).is_ok_and(|metadata| metadata.is_file());
        let candidates: Vec<Utf8PathBuf> = if crate::unit::paths::is_absolute(program, os) {
            vec![program.into()]
        } else {
            let separator = match os {
                Os::Linux => ':',
                Os::Windows => ';',
            };
            env.get("PATH")
                .unwrap_or_default()
                .split(separator)
                .filter(|folder| !folder.is_empty())
                .map(|folder| Utf8Path::new(folder).join(program))
                .collect()
        };
        candidates
            .iter()
            .flat_map(|path| {
                suffixes
                    .iter()
                    .map(move |suffix| Utf8PathBuf::from(format!("{path}{suffix}")))
            })
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
        let Some(wanted) = &service.working_directory else {
            return Ok(root);
        };
        let path = match &wanted.place {
            WorkingPlace::Path(path) => Some(path.clone()),
            WorkingPlace::Home => match account {
                Some(account) => account.home.clone(),
                None => {
                    access::Native
                        .current_account()
                        .map_err(|error| chain(&error))?
                        .home
                }
            },
        };
        match path {
            Some(path) if fs_err::metadata(&path).is_ok_and(|m| m.is_dir()) => Ok(Some(path)),
            _ if wanted.optional => Ok(root),
            Some(path) => Err(format!("its working directory `{path}` does not exist")),
            None => Err("its user has no home directory".into()),
        }
    }

    /// `RuntimeDirectory=` and its like: made before the first command for whom the service runs as,
    /// named in the environment.
    fn make_folders(
        &self,
        service: &Service,
        account: Option<&Account>,
        env: &mut Variables,
    ) -> Result<(), String> {
        let owner = owner_of(service, account)?;
        let places = self.config.places();
        let separator = match self.config.os {
            Os::Linux => ":",
            Os::Windows => ";",
        };
        for (variable, directories, base, owner) in [
            (
                "RUNTIME_DIRECTORY",
                &service.runtime_directory,
                &places.runtime_directory,
                owner.as_ref(),
            ),
            (
                "STATE_DIRECTORY",
                &service.state_directory,
                &places.state_directory,
                owner.as_ref(),
            ),
            (
                "CACHE_DIRECTORY",
                &service.cache_directory,
                &places.cache_directory,
                owner.as_ref(),
            ),
            (
                "LOGS_DIRECTORY",
                &service.logs_directory,
                &places.logs_directory,
                owner.as_ref(),
            ),
            // A service reads its configuration, and does not own it: as systemd has it.
            (
                "CONFIGURATION_DIRECTORY",
                &service.configuration_directory,
                &places.configuration_directory,
                None,
            ),
        ] {
            let mut made = Vec::new();
            for name in &directories.names {
                access::Native
                    .ensure_folder(base, name, owner, directories.mode)
                    .map_err(|error| chain(&error))?;
                made.push(base.join(name).into_string());
            }
            if !made.is_empty() {
                env.insert(variable, made.join(separator));
            }
        }
        Ok(())
    }

    /// Removes the folders of `RuntimeDirectory=` of a service that has stopped, unless
    /// `RuntimeDirectoryPreserve=` keeps them. `restarting`: it is about to start again.
    pub(super) fn remove_runtime_folders(&self, unit: &UnitName, restarting: bool) {
        let Some(definition) = self.engine.catalog().unit(unit) else {
            return;
        };
        let Some(service) = definition.service() else {
            return;
        };
        let places = self.config.places();
        for folder in service.runtime_folders_to_remove(&places.runtime_directory, restarting) {
            if let Err(error) = self.files.remove_tree(&folder) {
                tracing::warn!(%unit, %folder, error = %chain(&error), "a runtime folder is left");
            }
        }
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
            cpu_percent: service
                .cpu_quota
                .and_then(|quota| u32::try_from(quota.div_ceil(100)).ok()),
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

fn account_of(service: &Service) -> Result<Option<Account>, String> {
    let Some(user) = &service.user else {
        return Ok(None);
    };
    access::Native
        .account(user)
        .map(Some)
        .map_err(|error| chain(&error))
}

/// To whom the folders of a service belong; `None`: to ourselves.
fn owner_of(service: &Service, account: Option<&Account>) -> Result<Option<Account>, String> {
    let Some(name) = &service.group else {
        return Ok(account.cloned());
    };
    let number = access::Native.group(name).map_err(|error| chain(&error))?;
    let mut owner = match account {
        Some(account) => account.clone(),
        None => access::Native
            .current_account()
            .map_err(|error| chain(&error))?,
    };
    if let AccountId::Unix { gid, .. } = &mut owner.id {
        *gid = number;
    }
    Ok(Some(owner))
}

/// `User=`, `Group=` and `SupplementaryGroups=`.
fn become_whom(service: &Service, spawn: &mut Spawn) -> Result<(), String> {
    let group = |name: &String| name.parse::<GroupSpec>().map_err(|error| error.to_string());
    spawn.user = match &service.user {
        Some(user) => Some(
            user.parse::<UserSpec>()
                .map_err(|error| error.to_string())?,
        ),
        None => None,
    };
    spawn.user_group = service.group.as_ref().map(group).transpose()?;
    spawn.more_user_groups = service
        .supplementary_groups
        .iter()
        .map(group)
        .collect::<Result<_, _>>()?;
    Ok(())
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
