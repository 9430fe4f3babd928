//! Containers: made, started by a keeper, watched, ended, removed.
//!
//! Invariant: what a container is in memory is never ahead of what its record says on disk.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;
use transom_host::files::{Files, Native as NativeFiles};
use transom_host::process::{Lifetime, Native, Output, Processes, Signal, Spawn, reap_orphans};
use transom_model::Os;

use super::folder::{self, ContainerRecord, Folder, Life, SETUP_FILE, container_id};
use super::keeper::protocol::{Request, Setup};
use super::program::{Surroundings, main_program};
use super::{Config, Inner, blocking, chain, discard, file_error, image_store, link, mounts};
use crate::{Container, ContainerId, ContainerSpec, ContainerState, Ended, PodId, RuntimeError};

/// How long a keeper may take to begin, also on a machine that is busy booting.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long a killed container may take to be written down as ended.
const END_LIMIT: Duration = Duration::from_mins(1);
/// How long a keeper may live on after its container has ended.
const FAREWELL: Duration = Duration::from_secs(15);
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(30);
const DEFAULT_STOP_SIGNAL: &str = "SIGTERM";

/// A container that is there.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: ContainerId,
    pub(super) record: ContainerRecord,
    pub(super) folder: Folder,
    pub(super) log_path: Utf8PathBuf,
    pub(super) life: watch::Sender<Life>,
    /// Starts and removals are one at a time.
    work: Mutex<()>,
}

impl Held {
    pub(super) fn new(
        id: ContainerId,
        record: ContainerRecord,
        folder: Folder,
        logs: &Utf8Path,
        life: Life,
    ) -> Self {
        Self {
            id,
            log_path: logs.join(&record.spec.log_path),
            record,
            folder,
            life: watch::channel(life).0,
            work: Mutex::new(()),
        }
    }

    pub(super) fn describe(&self) -> Container {
        let spec = &self.record.spec;
        let state = match self.life.borrow().clone() {
            Life::Created | Life::Starting => ContainerState::Created,
            Life::Running { started, .. } => ContainerState::Running { started },
            Life::Ended(ended) => ContainerState::Exited(ended),
        };
        Container {
            id: self.id.clone(),
            pod: self.record.pod.clone(),
            name: spec.name.clone(),
            attempt: spec.attempt,
            image: spec.image.clone(),
            image_name: spec.image_name.clone(),
            created: self.record.created,
            state,
            labels: spec.labels.clone(),
            annotations: spec.annotations.clone(),
            log_path: self.log_path.clone(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(*self.life.borrow(), Life::Running { .. })
    }

    pub(super) fn surroundings<'a>(
        &self,
        config: &'a Config,
        root: &'a Utf8Path,
    ) -> Surroundings<'a> {
        Surroundings {
            os: NativeFiles.os(),
            root,
            group: self.folder.group(),
            environment: &config.environment,
            is_file: |path| path.is_file(),
        }
    }

    /// Waits until the container has ended; says whether it has.
    async fn wait_for_end(&self, limit: Duration) -> bool {
        let mut life = self.life.subscribe();
        let ended = life.wait_for(|life| !matches!(life, Life::Running { .. } | Life::Starting));
        timeout(limit, ended).await.is_ok()
    }

    /// Everything that must be there before the keeper is: the folder with its volumes, and what to run.
    fn prepare(&self, config: &Config) -> Result<(), RuntimeError> {
        let spec = &self.record.spec;
        let root = self.folder.root();
        image_store::unpack(&config.images, &spec.image, &root)?;
        mounts::arrange(&root, &spec.mounts)?;
        let spawn = main_program(spec, &self.surroundings(config, &root))?;
        let setup = Setup {
            spawn,
            log: self.log_path.clone(),
            stop_signal: stop_signal(spec).to_owned(),
            stdin: spec.stdin,
            stdin_once: spec.stdin_once,
        };
        folder::write(&self.folder.0.join(SETUP_FILE), &setup)
    }

    /// Starts the keeper and waits until it has written down what became of the start.
    fn start_keeper(&self, config: &Config) -> Result<(), RuntimeError> {
        reap_orphans();
        let mut spawn = Spawn::new(config.keeper_program.clone());
        spawn.args.clone_from(&config.keeper_arguments);
        spawn.args.push(self.folder.0.to_string());
        spawn.env.clone_from(&config.environment);
        spawn.lifetime = Lifetime::Detached;
        spawn.group = self.folder.keeper_group();
        spawn.stdout = Output::Pipe;
        spawn.stderr = Output::Append(self.folder.keeper_log());
        let keeper = Native.spawn(&spawn).map_err(|error| {
            RuntimeError::Other(format!("its keeper cannot be started: {}", chain(&error)))
        })?;
        // Ends with the keeper at the latest.
        if let Some(mut begun) = keeper.take_stdout() {
            let read = begun.read(&mut [0]);
            read.map_err(|error| RuntimeError::io("wait for the keeper", error))?;
        }
        Ok(())
    }
}

fn stop_signal(spec: &ContainerSpec) -> &str {
    spec.stop_signal.as_deref().unwrap_or(DEFAULT_STOP_SIGNAL)
}

impl Inner {
    pub(super) async fn create(
        &self,
        pod: &PodId,
        spec: &ContainerSpec,
    ) -> Result<ContainerId, RuntimeError> {
        let logs = self.open_pod(pod)?;
        check(spec, NativeFiles.os())?;
        let id = container_id(pod, spec);
        if self.held(&id).is_ok() {
            return Ok(id);
        }
        image_store::check(&self.config.images, &spec.image)?;
        let folder = Folder::new(&self.config.folder, pod, &id);
        let record = ContainerRecord {
            pod: pod.clone(),
            spec: spec.clone(),
            created: Timestamp::now(),
        };
        let held = Held::new(
            id.clone(),
            record.clone(),
            folder.clone(),
            &logs,
            Life::Created,
        );
        blocking(move || {
            NativeFiles.create_dir_all(&folder.0).map_err(file_error)?;
            folder.write_container(&record)
        })
        .await?;
        self.state()
            .containers
            .entry(id.clone())
            .or_insert_with(|| Arc::new(held));
        self.tell(pod, Some(&id));
        Ok(id)
    }

    pub(super) async fn start(self: &Arc<Self>, id: &ContainerId) -> Result<(), RuntimeError> {
        let held = self.held(id)?;
        let _turn = held.work.lock().await;
        if *held.life.borrow() != Life::Created {
            return Ok(());
        }
        self.open_pod(&held.record.pod)?;
        let begun = {
            let (inner, held) = (Arc::clone(self), Arc::clone(&held));
            blocking(move || held.prepare(&inner.config)).await
        };
        if let Err(error) = begun {
            return self.refuse(&held, error).await;
        }
        let starting = {
            let (inner, held) = (Arc::clone(self), Arc::clone(&held));
            blocking(move || held.start_keeper(&inner.config))
        };
        match timeout(START_LIMIT, starting).await {
            Ok(started) => started?,
            Err(_) => {
                self.kill_all(&held).await?;
                let text = format!("its keeper did not begin within {START_LIMIT:?}");
                return Err(RuntimeError::Other(text));
            }
        }
        self.take_over(&held).await
    }

    /// Reads what the keeper has written about the start, and watches it from then on.
    async fn take_over(self: &Arc<Self>, held: &Arc<Held>) -> Result<(), RuntimeError> {
        let folder = held.folder.clone();
        let record = blocking(move || folder.read_record()).await?;
        let Some(record) = record else {
            let said = fs_err::read_to_string(held.folder.keeper_log()).unwrap_or_default();
            let said = said.lines().last().unwrap_or("it said nothing").to_owned();
            return Err(RuntimeError::Other(format!("its keeper ended: {said}")));
        };
        for remark in &record.remarks {
            tracing::warn!(container = %held.id, remark, "a limit does not hold");
        }
        let never_ran = match &record.life {
            Life::Ended(ended) if ended.started.is_none() => Some(ended.message.clone()),
            _ => None,
        };
        held.life.send_replace(record.life);
        self.tell(&held.record.pod, Some(&held.id));
        if let Some(cause) = never_ran {
            return Err(if record.not_supported {
                RuntimeError::NotSupported(cause)
            } else {
                RuntimeError::CannotRun {
                    program: program_of(&held.record.spec),
                    cause,
                }
            });
        }
        self.watch(held);
        Ok(())
    }

    /// Writes down that a container cannot run here, if that is what the error says.
    async fn refuse(&self, held: &Held, error: RuntimeError) -> Result<(), RuntimeError> {
        let for_ever = matches!(
            error,
            RuntimeError::CannotRun { .. }
                | RuntimeError::NotSupported(_)
                | RuntimeError::Invalid(_)
        );
        if for_ever {
            let message = match &error {
                RuntimeError::CannotRun { cause, .. } => cause.clone(),
                other => other.to_string(),
            };
            let ended = Ended {
                started: None,
                finished: Timestamp::now(),
                exit_code: 128,
                reason: "ContainerCannotRun".to_owned(),
                message,
            };
            self.write_end(held, ended).await?;
        }
        Err(error)
    }

    /// Writes an end that no keeper will write, and tells it.
    pub(super) async fn write_end(&self, held: &Held, ended: Ended) -> Result<(), RuntimeError> {
        let life = Life::Ended(ended);
        let record = folder::Record {
            keeper: Native.current(),
            life: life.clone(),
            not_supported: false,
            remarks: Vec::new(),
        };
        let folder = held.folder.clone();
        blocking(move || folder.write_record(&record)).await?;
        held.life.send_replace(life);
        self.tell(&held.record.pod, Some(&held.id));
        Ok(())
    }

    pub(super) async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), RuntimeError> {
        let Ok(held) = self.held(id) else {
            return Ok(());
        };
        // One that is about to start is waited for.
        drop(held.work.lock().await);
        if !held.is_running() {
            return Ok(());
        }
        if !grace.is_zero() {
            match link::ask(&held.folder, &Request::Stop).await {
                Ok(()) => {
                    if held.wait_for_end(grace).await {
                        return Ok(());
                    }
                }
                Err(error) => tracing::warn!(container = %id, %error, "it cannot be asked to end"),
            }
        }
        self.kill(&held).await
    }

    /// Ends a container by all means, and returns when its end is known.
    pub(super) async fn kill(&self, held: &Arc<Held>) -> Result<(), RuntimeError> {
        if !held.is_running() {
            return Ok(());
        }
        let asked = link::ask(&held.folder, &Request::Kill).await;
        if let Err(error) = asked {
            // It has just ended, or its keeper has; either way the group must go.
            tracing::debug!(container = %held.id, %error, "the keeper was not reached");
            let held = Arc::clone(held);
            blocking(move || kill_group(&held.folder.group())).await?;
        }
        if held.wait_for_end(END_LIMIT).await {
            return Ok(());
        }
        self.kill_all(held).await?;
        let text = format!("the end of container {} was not written down", held.id);
        Err(RuntimeError::Other(text))
    }

    /// Kills the keeper and all it kept.
    pub(super) async fn kill_all(&self, held: &Arc<Held>) -> Result<(), RuntimeError> {
        let held = Arc::clone(held);
        blocking(move || {
            // The keeper goes first, or it would write about the others.
            kill_group(&held.folder.keeper_group())?;
            kill_group(&held.folder.group())
        })
        .await
    }

    pub(super) async fn remove(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        let Ok(held) = self.held(id) else {
            return Ok(());
        };
        let _turn = held.work.lock().await;
        self.kill(&held).await?;
        let gone = Arc::clone(&held);
        blocking(move || {
            await_keeper(&gone.folder)?;
            // At once, so that no half of a container is found after a crash.
            discard(&gone.folder.0)
        })
        .await?;
        self.state().containers.remove(id);
        self.tell(&held.record.pod, Some(id));
        Ok(())
    }
}

fn program_of(spec: &ContainerSpec) -> String {
    spec.command
        .first()
        .or(spec.arguments.first())
        .cloned()
        .unwrap_or_default()
}

/// Refuses what can never run, before anything is made.
fn check(spec: &ContainerSpec, os: Os) -> Result<(), RuntimeError> {
    // Linux has no word for it in a pod: there the image says that a program of the node is meant.
    if os == Os::Windows && !spec.security.host_process {
        let text = "a container of its own: this node runs host processes only, which have \
                    securityContext.windowsOptions.hostProcess";
        return Err(RuntimeError::NotSupported(text.to_owned()));
    }
    if spec.terminal {
        let text = "a terminal: host processes have none on this runtime, leave out tty";
        return Err(RuntimeError::NotSupported(text.to_owned()));
    }
    let signal = stop_signal(spec).parse::<Signal>();
    signal.map_err(|error| RuntimeError::Invalid(error.to_string()))?;
    if spec.log_path.is_absolute()
        || spec
            .log_path
            .as_str()
            .split(['/', '\\'])
            .any(|name| name == "..")
    {
        return Err(RuntimeError::Invalid(
            "the log lies outside the pod's folder".to_owned(),
        ));
    }
    Ok(())
}

pub(super) fn kill_group(group: &transom_host::process::GroupId) -> Result<(), RuntimeError> {
    let killed = Native.kill_group(group, KILL_LIMIT);
    killed.map_err(|error| RuntimeError::Other(chain(&error)))
}

/// Waits until the keeper of an ended container has gone too; it holds files of the folder.
fn await_keeper(folder: &Folder) -> Result<(), RuntimeError> {
    let failed = |error: &dyn std::error::Error| RuntimeError::Other(chain(error));
    if let Some(record) = folder.read_record()?
        && record.keeper != Native.current()
    {
        let keeper = Native.adopt(&record.keeper, &folder.keeper_group());
        if let Some(keeper) = keeper.map_err(|error| failed(&error))? {
            keeper
                .wait(Some(FAREWELL))
                .map_err(|error| failed(&error))?;
        }
    }
    kill_group(&folder.keeper_group())?;
    kill_group(&folder.group())?;
    reap_orphans();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Security;

    #[test]
    fn on_windows_only_host_processes_are_run() {
        let mut spec = ContainerSpec::default();
        let refused = check(&spec, Os::Windows).unwrap_err().to_string();
        assert!(refused.contains("hostProcess"), "{refused}");
        check(&spec, Os::Linux).unwrap();
        spec.security = Security {
            host_process: true,
            ..Security::default()
        };
        check(&spec, Os::Windows).unwrap();
    }
}
