//! Making and removing pods.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;
use jiff::Timestamp;
use tokio::time::timeout;

use super::client::{ShimConnection, read_line};
use super::leftovers::{remove_file, remove_folder};
use super::protocol::Call;
use super::records::{self, PodFolder, PodRecord};
use super::runtime::{OciRuntime, PodEntry};
use crate::{ContainerState, Dns, PodId, PodNetwork, PodSpec, Resources, RuntimeError};

const LONGEST_LINE: usize = 4096;
/// A shim only makes namespaces before it is ready.
const LONGEST_START: Duration = Duration::from_secs(30);
/// Killed processes end at once, unless their disk does not answer.
const LONGEST_END: Duration = Duration::from_mins(1);

impl OciRuntime {
    pub(super) async fn make_pod(self: &Arc<Self>, spec: &PodSpec) -> Result<PodId, RuntimeError> {
        let id = records::pod_id(&spec.uid, spec.attempt);
        let _making = self.making.lock().await;
        if self.pods_lock().contains_key(&id) {
            return Ok(PodId(id));
        }
        let folder = PodFolder(self.settings.state.join("pods").join(&id));
        let made = self.try_make_pod(&id, &folder, spec).await;
        if let Err(error) = &made {
            tracing::debug!(pod = id, %error, "a pod could not be made");
            if let Err(error) = self.discard_pod(&id, &folder, Some(spec)).await {
                tracing::warn!(pod = id, %error, "what a pod had that was not made cannot be taken back");
            }
        }
        let entry = made?;
        self.pods_lock().insert(id.clone(), Arc::clone(&entry));
        self.tell(&id, None);
        Ok(PodId(id))
    }

    async fn try_make_pod(
        self: &Arc<Self>,
        id: &str,
        folder: &PodFolder,
        spec: &PodSpec,
    ) -> Result<Arc<PodEntry>, RuntimeError> {
        let mut record = PodRecord {
            spec: spec.clone(),
            created: Timestamp::now(),
            addresses: Vec::new(),
            ready: false,
            stopped: false,
            first_process: None,
        };
        prepare_folder(folder, &record)?;
        let group = self.cgroups.pod(&spec.cgroup_parent, &spec.uid);
        self.cgroups
            .ensure(&group, &spec.resources)
            .map_err(|error| RuntimeError::io(format!("make the cgroup {group}"), error))?;
        record.first_process = self.start_shim(folder).await?;
        let connection = ShimConnection::open(folder).await?;
        if spec.network == PodNetwork::Own {
            let namespace = format!("/proc/{}/ns/net", connection.peer()?);
            record.addresses = self
                .network
                .attach(id, spec, Utf8Path::new(&namespace))
                .await?;
        }
        write_shared(folder, "hosts", &render_hosts(spec, &record.addresses))?;
        record.ready = true;
        records::write(&folder.record(), &record)?;
        let entry = Arc::new(PodEntry::new(id.to_owned(), folder.clone(), record));
        self.watch(&entry, connection).await?;
        Ok(entry)
    }

    /// Starts the shim of a pod and waits until it is ready. Says the first process of its namespace.
    async fn start_shim(&self, folder: &PodFolder) -> Result<Option<i32>, RuntimeError> {
        let failed = |error| RuntimeError::io("start the shim of a pod", error);
        let (program, arguments) =
            self.settings.shim.split_first().ok_or_else(|| {
                RuntimeError::Invalid("no program for shims was given".to_owned())
            })?;
        let log = fs::File::create(folder.log()).map_err(failed)?;
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .args(["pod", folder.0.as_str()])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log.into_file()))
            .spawn()
            .map_err(failed)?;
        if let Some(pid) = child.id() {
            let group = self.shims_group();
            self.cgroups
                .ensure_leaf(&group)
                .and_then(|()| self.cgroups.add(&group, pid))
                .map_err(failed)?;
        }
        // It waits for this before it starts anybody.
        drop(child.stdin.take());
        let line = match child.stdout.take() {
            Some(mut output) => timeout(LONGEST_START, read_line(&mut output, LONGEST_LINE))
                .await
                .map_err(|_| {
                    RuntimeError::Other("the shim of a pod did not start in time".to_owned())
                })?
                .map_err(failed)?,
            None => String::new(),
        };
        // Reaped when it ends, as long as we live; then by the system.
        drop(child);
        match line.strip_prefix("ready ") {
            Some(first) => Ok(first.trim().parse().ok().filter(|pid| *pid > 0)),
            None => Err(RuntimeError::Other(format!(
                "the shim of a pod cannot start: {line}"
            ))),
        }
    }

    /// Ends all that runs in a pod and gives its network back.
    pub(super) async fn end_pod(&self, entry: &PodEntry) -> Result<(), RuntimeError> {
        let has_shim = entry.live().shim.is_some();
        if has_shim {
            self.ask(entry, Call::Shutdown).await?;
            timeout(LONGEST_END, entry.wait_until(|live| live.shim.is_none()))
                .await
                .map_err(|_| RuntimeError::Other(format!("the pod {} does not end", entry.id)))?;
        }
        if entry.live().record.stopped {
            return Ok(());
        }
        self.network.detach(&entry.id).await?;
        let record = entry.update(|live| {
            live.record.stopped = true;
            live.record.clone()
        });
        records::write(&entry.folder.record(), &record)?;
        self.tell(&entry.id, None);
        Ok(())
    }

    pub(super) async fn forget_pod(self: &Arc<Self>, entry: &PodEntry) -> Result<(), RuntimeError> {
        self.end_pod(entry).await?;
        let containers: Vec<String> = entry.live().containers.keys().cloned().collect();
        for id in containers {
            self.forget_container(entry, &id).await?;
        }
        let spec = entry.live().record.spec.clone();
        self.release_group(&entry.id, &spec).await?;
        let failed = |error| RuntimeError::io(format!("remove the pod {}", entry.id), error);
        // The record goes first: what is left after a crash is a pod that was never made.
        remove_file(&entry.folder.record()).map_err(failed)?;
        remove_folder(&entry.folder.0).map_err(failed)?;
        self.pods_lock().remove(&entry.id);
        self.tell(&entry.id, None);
        Ok(())
    }

    pub(super) fn change_limits_of_pod(
        &self,
        entry: &PodEntry,
        resources: &Resources,
    ) -> Result<(), RuntimeError> {
        let spec = entry.live().record.spec.clone();
        let group = self.cgroups.pod(&spec.cgroup_parent, &spec.uid);
        self.cgroups
            .change(&group, resources)
            .map_err(|error| RuntimeError::io("change the limits of a pod", error))?;
        let record = entry.update(|live| {
            live.record.spec.resources = resources.clone();
            live.record.clone()
        });
        records::write(&entry.folder.record(), &record)
    }

    pub(super) fn change_limits(
        &self,
        entry: &PodEntry,
        id: &str,
        resources: &Resources,
    ) -> Result<(), RuntimeError> {
        let found = entry
            .live()
            .containers
            .get(id)
            .map(|found| (found.record.clone(), found.state.clone()));
        let Some((mut record, state)) = found else {
            return Ok(());
        };
        if matches!(state, ContainerState::Running { .. }) {
            self.cgroups
                .limit(&record.cgroup, resources)
                .map_err(|error| RuntimeError::io("change the limits of a container", error))?;
        }
        record.spec.resources = resources.clone();
        records::write(
            &entry.folder.container(id).join(records::CONTAINER),
            &record,
        )?;
        entry.update(|live| {
            if let Some(found) = live.containers.get_mut(id) {
                found.record = record;
            }
        });
        Ok(())
    }
}

fn prepare_folder(folder: &PodFolder, record: &PodRecord) -> Result<(), RuntimeError> {
    let failed = |error| RuntimeError::io(format!("prepare {}", folder.0), error);
    let spec = &record.spec;
    fs::create_dir_all(folder.containers()).map_err(failed)?;
    fs::create_dir_all(folder.0.join(records::STATES)).map_err(failed)?;
    if spec.log_directory != "" {
        fs::create_dir_all(&spec.log_directory).map_err(failed)?;
    }
    write_shared(folder, "hostname", &format!("{}\n", hostname(spec)))?;
    write_shared(folder, "resolv.conf", &render_resolver(&spec.dns))?;
    records::write(&folder.record(), record)
}

pub(super) fn hostname(spec: &PodSpec) -> &str {
    if spec.hostname.is_empty() {
        &spec.name
    } else {
        &spec.hostname
    }
}

fn write_shared(folder: &PodFolder, name: &str, text: &str) -> Result<(), RuntimeError> {
    let path = folder.shared(name);
    fs::write(&path, text).map_err(|error| RuntimeError::io(format!("write {path}"), error))
}

fn render_hosts(spec: &PodSpec, addresses: &[IpAddr]) -> String {
    let mut text =
        String::from("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    for address in addresses {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{address}\t{}", hostname(spec));
    }
    text
}

fn render_resolver(dns: &Dns) -> String {
    let mut text = String::new();
    if !dns.searches.is_empty() {
        let _ = writeln!(text, "search {}", dns.searches.join(" "));
    }
    for server in &dns.servers {
        let _ = writeln!(text, "nameserver {server}");
    }
    if !dns.options.is_empty() {
        let _ = writeln!(text, "options {}", dns.options.join(" "));
    }
    text
}
