//! One machine with a server, an agent and the program that runs its containers. All of it is gone with this value.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Duration;
use transom_testkit::{Host, Lab, Running, eventually};

/// How long something may take that takes no time on an idle machine; CI's is often busy.
pub(crate) const SOON: Duration = Duration::from_mins(2);
const PROGRAM: &str = "/usr/local/bin/transom";
const KUBECONFIG: &str = "/var/lib/transom/server/admin.kubeconfig";
/// The name of the node.
pub(crate) const NODE: &str = "alpha";

pub(crate) struct Machine {
    pub(crate) host: Host,
    _server: Running,
    token: String,
    _lab: Lab,
}

impl Machine {
    pub(crate) fn set_up(name: &str) -> Result<Self> {
        let lab = Lab::new(name)?;
        let host = lab.linux_host(NODE)?;
        host.put_file(env!("CARGO_BIN_EXE_transom").as_ref(), PROGRAM)?;
        // A disk that overlays can be on top of.
        host.run(["mkdir", "-p", "/srv/data"])?.success()?;
        host.run(["mount", "-t", "tmpfs", "data", "/srv/data"])?
            .success()?;
        let address = host.address().to_string();
        let server = host.spawn([
            PROGRAM,
            "server",
            "--listen=0.0.0.0:6443",
            &format!("--name={address}"),
        ])?;
        let token = eventually("the server to give a token", SOON, || {
            Ok(host.run([PROGRAM, "token", "create"])?.success()?.stdout)
        })?;
        Ok(Self {
            host,
            _server: server,
            token: token.trim().to_owned(),
            _lab: lab,
        })
    }

    /// Starts an agent with a runtime.
    pub(crate) fn start_agent(&self, runtime: &str) -> Result<Running> {
        let address = self.host.address();
        self.host
            .command([
                PROGRAM.to_owned(),
                "agent".to_owned(),
                format!("--server=https://{address}:6443"),
                format!("--node-name={NODE}"),
                format!("--address={address}"),
                format!("--runtime={runtime}"),
            ])
            .variable("TRANSOM_TOKEN", &self.token)
            .spawn()
    }

    pub(crate) fn kubectl(&self, words: &[&str]) -> Result<String> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG];
        let output = self.host.run(line.iter().chain(words).copied())?;
        Ok(output.success().with_context(|| words.join(" "))?.stdout)
    }

    /// Starts a kubectl that stays.
    pub(crate) fn start_kubectl(&self, words: &[&str]) -> Result<Running> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG];
        self.host.spawn(line.iter().chain(words).copied())
    }

    pub(crate) fn get(&self, words: &[&str]) -> Result<Value> {
        let mut line = vec!["get", "-o", "json"];
        line.extend(words);
        Ok(serde_json::from_str(&self.kubectl(&line)?)?)
    }

    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG, "apply", "-f", "-"];
        let apply = self.host.command(line).input(object.to_string());
        apply.run()?.success()?;
        Ok(())
    }

    pub(crate) fn wait_until_ready(&self, agent: &Running) -> Result<Value> {
        eventually("the node to be ready", SOON, || {
            let node = self.get(&["node", NODE])?;
            let conditions = node["status"]["conditions"].as_array().cloned();
            let is_ready =
                |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            let ready = conditions.iter().flatten().any(is_ready);
            ensure!(ready, "{conditions:?}");
            Ok(node)
        })
        .with_context(|| format!("its agent said:\n{}", agent.stderr().unwrap_or_default()))
    }

    /// Waits until a pod runs and is ready, and returns it.
    pub(crate) fn wait_until_running(&self, pod: &str) -> Result<Value> {
        eventually(&format!("pod {pod} to run"), SOON, || {
            let found = self.get(&["pod", pod])?;
            let status = &found["status"];
            ensure!(status["phase"] == "Running", "{status:#}");
            let ready = &status["containerStatuses"][0]["ready"];
            ensure!(ready == true, "{status:#}");
            Ok(found)
        })
        .with_context(|| self.kubectl(&["get", "events"]).unwrap_or_default())
    }
}
