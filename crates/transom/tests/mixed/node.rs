//! A host with Transom and the web server on it, and the same words for both systems. Everything is
//! asked through the command line, as a person on that host would.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use transom_model::os::Os;
use transom_testkit::{
    Host, Output, Process, Running, echo_program, eventually, windows_echo_program,
    windows_transom_program,
};

use crate::SOON;

/// The unit of most tests.
pub(crate) const WEB: &str = "web.service";
/// A unit that nobody touches: whatever happens to the other one must not happen to it.
pub(crate) const NEIGHBOUR: &str = "neighbour.service";

/// The same bytes on both systems. Programs are found through the search path.
const WEB_FILE: &str = "\
[Unit]
Description=Says which host it is on
After=network-online.target

[Service]
ExecStart=testkit-echo serve --port 8080 --name %H
Restart=on-failure
RestartSec=100ms

[Install]
WantedBy=multi-user.target
";

/// What is asked about a service.
const PROPERTIES: &str = "ActiveState,MainPID,NRestarts,Result";

/// A host with everything that a test needs.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) host: Host,
}

impl AsRef<Self> for Node {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// What the supervisor knows about a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) active: String,
    /// The id of its main process in the words of its system; 0 if there is none.
    pub(crate) pid: u32,
    pub(crate) restarts: u32,
}

impl Node {
    pub(crate) fn set_up(host: Host) -> Result<Self> {
        let node = Self { host };
        let (transom, echo) = match node.host.os() {
            Os::Linux => (env!("CARGO_BIN_EXE_transom").into(), echo_program()?),
            Os::Windows => (windows_transom_program()?, windows_echo_program()?),
        };
        node.host.put_file(&transom, node.program())?;
        node.host.put_file(&echo, node.echo())?;
        if node.host.os() == Os::Windows {
            // Every Windows has one; Wine has not.
            node.host.put_file(&echo, r"C:\windows\tar.exe")?;
        }
        let neighbour = WEB_FILE.replace("8080", "8081");
        for (unit, file) in [(WEB, WEB_FILE), (NEIGHBOUR, &neighbour)] {
            node.host.write(&format!("{}/{unit}", node.units()), file)?;
        }
        Ok(node)
    }

    /// Runs `transom service` with these words; it has to succeed.
    pub(crate) fn service(&self, words: &[&str]) -> Result<Output> {
        self.try_service(words)?
            .success()
            .with_context(|| format!("`transom service {}`", words.join(" ")))
    }

    pub(crate) fn try_service(&self, words: &[&str]) -> Result<Output> {
        let line = [self.program(), "service"];
        self.host.run(line.iter().chain(words).copied())
    }

    /// Starts the supervisor and waits until it answers.
    pub(crate) fn start_supervisor(&self) -> Result<Running> {
        let daemon = self.host.spawn([self.program(), "service", "daemon"])?;
        self.wait_for_supervisor()?;
        Ok(daemon)
    }

    pub(crate) fn wait_for_supervisor(&self) -> Result<()> {
        eventually("the supervisor to answer", SOON, || {
            self.service(&["list-units"]).map(|_| ())
        })
    }

    /// Ends the supervisor with all units, and waits for its end.
    pub(crate) fn shut_down(&self, daemon: &Running) -> Result<()> {
        self.service(&["shutdown"])?;
        let status = daemon.wait(SOON)?;
        let said = daemon.stderr()?;
        ensure!(
            status.success(),
            "the supervisor ended with {status}: {said}"
        );
        ensure!(
            !said.contains("panicked"),
            "a thread of the supervisor panicked: {said}"
        );
        Ok(())
    }

    pub(crate) fn state(&self, unit: &str) -> Result<Service> {
        let shown = self
            .service(&["show", "--property", PROPERTIES, unit])?
            .stdout;
        let properties: BTreeMap<&str, &str> = shown
            .lines()
            .filter_map(|line| line.split_once('='))
            .collect();
        let property = |name: &str| {
            properties
                .get(name)
                .copied()
                .with_context(|| format!("{unit} has no {name} in:\n{shown}"))
        };
        Ok(Service {
            active: property("ActiveState")?.to_owned(),
            pid: property("MainPID")?.parse()?,
            restarts: property("NRestarts")?.parse()?,
        })
    }

    /// Waits until a service runs, and says how.
    pub(crate) fn wait_until_active(&self, unit: &str) -> Result<Service> {
        eventually(&format!("{unit} to run"), SOON, || {
            let state = self.state(unit)?;
            ensure!(state.active == "active" && state.pid != 0, "{state:?}");
            Ok(state)
        })
    }

    /// Ends a process of this host at once, with what its system has for that.
    pub(crate) fn kill(&self, pid: u32) -> Result<()> {
        let pid = pid.to_string();
        match self.host.os() {
            Os::Linux => self.host.run(["kill", "-KILL", &pid])?.success()?,
            Os::Windows => self.host.run(["taskkill", "/F", "/PID", &pid])?.success()?,
        };
        Ok(())
    }

    /// Gets the page of the web server on `server` with a program of this host.
    pub(crate) fn page_of(&self, server: &Self) -> Result<String> {
        let url = format!("http://{}:8080/", server.host.address());
        let output = self.host.run([self.echo(), "get", &url])?.success()?;
        Ok(output.stdout.trim_end().to_owned())
    }

    /// Waits until `server` answers a program of this host with its own name.
    pub(crate) fn wait_for_page_of(&self, server: &Self) -> Result<()> {
        let name = server.host.name();
        eventually(&format!("the page of host `{name}`"), SOON, || {
            let page = self.page_of(server)?;
            ensure!(page == name, "it says `{page}`");
            Ok(())
        })
    }

    /// Whether the web server on `server` answers this host within `patience`.
    pub(crate) fn reaches(&self, server: &Self, patience: Duration) -> Result<bool> {
        let url = format!("http://{}:8080/", server.host.address());
        let get = self.host.command([self.echo(), "get", &url]).spawn()?;
        match get.wait(patience) {
            Ok(status) => Ok(status.success()),
            Err(_) => get.kill().map(|()| false),
        }
    }

    /// What a unit printed, and what was done with it.
    pub(crate) fn logs(&self, unit: &str) -> Result<String> {
        Ok(self.service(&["logs", unit])?.stdout)
    }

    /// What all units of the test printed, for the message of a test that failed.
    pub(crate) fn all_logs(&self) -> String {
        match self.service(&["logs", WEB, NEIGHBOUR]) {
            Ok(output) => output.stdout,
            Err(error) => format!("nothing: {error:#}"),
        }
    }

    /// Waits until the host runs no other processes than these, and no service is held.
    pub(crate) fn wait_until_only(&self, before: &[Process]) -> Result<()> {
        eventually("nothing to be left", SOON, || {
            let left: Vec<String> = self
                .host
                .processes()?
                .iter()
                .filter(|process| before.iter().all(|it| it.id != process.id))
                .map(ToString::to_string)
                .collect();
            ensure!(left.is_empty(), "these processes are left: {left:#?}");
            Ok(())
        })?;
        let keepers = self.keepers()?;
        ensure!(keepers.is_empty(), "these keepers are left: {keepers:?}");
        Ok(())
    }

    /// The folders of the processes that hold services for the supervisor.
    pub(crate) fn keepers(&self) -> Result<Vec<String>> {
        let folder = self.host.path(&format!("{}/keepers", self.run_folder()))?;
        fs_err::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    /// The memory of the supervisor, and the boot that it is of.
    pub(crate) fn memory(&self) -> Result<(Vec<u8>, String)> {
        let bytes = self.host.read(&self.memory_file())?;
        let memory: serde_json::Value = serde_json::from_slice(&bytes)?;
        match memory["boot"].as_str() {
            Some(boot) => Ok((bytes.clone(), boot.to_owned())),
            None => bail!("the memory of the supervisor names no boot: {memory}"),
        }
    }

    pub(crate) fn memory_file(&self) -> String {
        format!("{}/memory.json", self.run_folder())
    }

    fn run_folder(&self) -> &'static str {
        match self.host.os() {
            Os::Linux => "/run/transom/supervisor",
            Os::Windows => "C:/Transom/run/supervisor",
        }
    }

    fn units(&self) -> &'static str {
        match self.host.os() {
            Os::Linux => "/etc/systemd/system",
            Os::Windows => "C:/Transom/etc/systemd/system",
        }
    }

    pub(crate) fn program(&self) -> &'static str {
        match self.host.os() {
            Os::Linux => "/usr/local/bin/transom",
            Os::Windows => r"C:\Transom\transom.exe",
        }
    }

    pub(crate) fn echo(&self) -> &'static str {
        match self.host.os() {
            Os::Linux => "/usr/local/bin/testkit-echo",
            Os::Windows => r"C:\windows\testkit-echo.exe",
        }
    }

    /// Whether the unit files of both nodes are the same, byte for byte.
    pub(crate) fn has_same_file(&self, other: &Self, unit: &str) -> Result<bool> {
        let read = |node: &Self| node.host.read(&format!("{}/{unit}", node.units()));
        Ok(read(self)? == read(other)?)
    }
}
