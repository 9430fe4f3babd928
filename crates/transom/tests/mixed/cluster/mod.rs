//! A cluster of Linux and Windows machines: one server, an agent on each host. What is asserted is asserted on both
//! systems, and on Linux for pods of host processes and for pods of containers.

mod container;
mod containers;
mod everyday;
mod guide;
mod life;
mod streams;
mod windows_server;

use std::collections::BTreeMap;
use std::thread;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};
use transom_model::os::Os;
use transom_testkit::{Host, Lab, Running, eventually};

use self::containers::Groups;
use crate::{Node, SOON};

/// Where pods serve, on each host's own address.
const PORT: u16 = 8080;
/// The host whose pods are containers; those of the others are processes of their host.
const WITH_CONTAINERS: &str = "beta";
pub(crate) const KUBECONFIG: &str = "/var/lib/transom/server/admin.kubeconfig";

/// The server on the first host, and the agents of all.
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    server: Running,
    agents: BTreeMap<String, Running>,
    token: String,
    _lab: Lab,
    /// What outlives the lab otherwise.
    _groups: Groups,
}

impl Cluster {
    /// Hosts with these names, joined and ready; the first has the server, too. One of them is a Linux host.
    pub(crate) fn set_up(name: &str, hosts: &[(&str, Os)]) -> Result<Self> {
        let lab = Lab::new(name)?;
        let nodes: Vec<Node> = thread::scope(|threads| {
            let lab = &lab;
            let set_up = |&(name, os): &(&'_ str, Os)| {
                let name = name.to_owned();
                threads.spawn(move || {
                    Node::set_up(match os {
                        Os::Linux => lab.linux_host(&name)?,
                        Os::Windows => lab.windows_host(&name)?,
                    })
                })
            };
            let hosts: Vec<_> = hosts.iter().map(set_up).collect();
            let join = |host: thread::ScopedJoinHandle<'_, Result<Node>>| {
                host.join()
                    .map_err(|_| anyhow!("setting a host up panicked"))?
            };
            hosts.into_iter().map(join).collect::<Result<_>>()
        })?;
        let first = &nodes[0];
        let server = serve(first)?;
        let token = eventually("the server to give a token", SOON, || {
            let output = first.host.run([first.program(), "token", "create"])?;
            Ok(output.success()?.stdout)
        })?;
        let mut cluster = Self {
            server,
            agents: BTreeMap::new(),
            token: token.trim().to_owned(),
            nodes,
            _lab: lab,
            _groups: Groups::of(&containers::data()),
        };
        if cluster.nodes[0].host.os() == Os::Windows {
            cluster.carry_kubeconfig()?;
        }
        for index in 0..cluster.nodes.len() {
            if has_containers(&cluster.nodes[index]) {
                containers::give_image(&cluster.nodes[index])?;
            }
            cluster.start_agent(index)?;
        }
        for node in &cluster.nodes {
            cluster.wait_until_ready(node)?;
        }
        Ok(cluster)
    }

    /// Starts the server again, and waits until it answers.
    fn start_server(&mut self) -> Result<()> {
        self.server = serve(&self.nodes[0])?;
        eventually("the server to answer", SOON, || {
            self.kubectl(&["get", "--raw", "/readyz"]).map(|_| ())
        })
    }

    fn start_agent(&mut self, index: usize) -> Result<()> {
        let node = &self.nodes[index];
        let mut line = vec![
            node.program().to_owned(),
            "agent".to_owned(),
            format!("--server=https://{}:6443", self.nodes[0].host.address()),
            format!("--node-name={}", node.host.name()),
            format!("--address={}", node.host.address()),
            // The disk of the machine that runs the tests is not theirs.
            "--eviction-hard=memory.available<50Mi".to_owned(),
        ];
        if has_containers(node) {
            line.push("--runtime=oci".to_owned());
            line.push(format!("--data-dir={}", containers::data()));
        } else {
            line.push("--runtime=process".to_owned());
        }
        let agent = node
            .host
            .command(line)
            .variable("TRANSOM_TOKEN", &self.token)
            .spawn()?;
        self.agents.insert(node.host.name().to_owned(), agent);
        Ok(())
    }

    /// The host on which kubectl runs.
    pub(crate) fn desk(&self) -> &Host {
        let linux = |node: &&Node| node.host.os() == Os::Linux;
        let node = self.nodes.iter().find(linux);
        &node.expect("a Linux host").host
    }

    /// Takes the administrator's kubeconfig from the server to where kubectl is, as a person does.
    fn carry_kubeconfig(&self) -> Result<()> {
        let server = &self.nodes[0].host;
        let text = server.read_text("C:/Transom/var/lib/server/admin.kubeconfig")?;
        let text = text.replace("127.0.0.1", &server.address().to_string());
        self.desk().write(KUBECONFIG, text)
    }

    fn kubectl(&self, words: &[&str]) -> Result<String> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG];
        let line = line.iter().chain(words).copied();
        let output = self.desk().run(line)?;
        Ok(output.success().with_context(|| words.join(" "))?.stdout)
    }

    fn get(&self, words: &[&str]) -> Result<Value> {
        let mut line = vec!["get", "-o", "json"];
        line.extend(words);
        Ok(serde_json::from_str(&self.kubectl(&line)?)?)
    }

    fn apply(&self, object: &Value) -> Result<()> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG, "apply", "-f", "-"];
        self.desk()
            .command(line)
            .input(object.to_string())
            .run()?
            .success()?;
        Ok(())
    }

    fn wait_until_ready(&self, node: &Node) -> Result<()> {
        let name = node.host.name();
        let heard = || match self.agents.get(name).map(Running::stderr) {
            Some(Ok(text)) => text,
            _ => String::new(),
        };
        eventually(&format!("node {name} to be ready"), SOON * 2, || {
            let node = self.get(&["node", name])?;
            let conditions = node["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let is_ready =
                |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            ensure!(conditions.iter().any(is_ready), "{conditions:?}");
            Ok(())
        })
        .with_context(|| format!("its agent said:\n{}", heard()))
    }

    /// Waits until the pod of a host runs and all of it is ready, and returns it.
    fn wait_until_running(&self, pod: &str) -> Result<Value> {
        eventually(&format!("pod {pod} to run"), SOON * 2, || {
            let found = self.get(&["pod", pod])?;
            let status = &found["status"];
            ensure!(status["phase"] == "Running", "{status:#}");
            let containers = status["containerStatuses"].as_array();
            let is_ready = |container: &Value| container["ready"] == true;
            let are_ready = containers.is_some_and(|all| all.iter().all(is_ready));
            ensure!(are_ready, "{status:#}");
            Ok(found)
        })
    }

    /// A pod that serves its name on the network of one host.
    fn web(node: &Node) -> Value {
        let windows = match node.host.os() {
            Os::Windows => {
                json!({"windowsOptions": {"hostProcess": true}})
            }
            Os::Linux => json!({}),
        };
        let name = format!("web-{}", node.host.name());
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {
                // No node is named: the system decides.
                "os": {"name": node.host.os().as_str()},
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "kubernetes.io/hostname",
                }]}},
                "hostNetwork": true,
                "terminationGracePeriodSeconds": 2,
                "securityContext": windows,
                "containers": [{
                    "name": "web",
                    "image": "transom.dev/host:1",
                    "imagePullPolicy": "IfNotPresent",
                    "command": [node.echo(), "serve", "--port", PORT.to_string(), "--name", "$(POD)"],
                    "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                    "ports": [{"containerPort": PORT, "hostPort": PORT}],
                    "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                }],
            },
        })
    }

    fn page(from: &Node, address: &str) -> Result<String> {
        let url = format!("http://{address}:{PORT}/");
        let output = from.host.run([from.echo(), "get", &url])?.success()?;
        Ok(output.stdout.trim_end().to_owned())
    }
}

fn has_containers(node: &Node) -> bool {
    node.host.name() == WITH_CONTAINERS
}

fn serve(node: &Node) -> Result<Running> {
    let name = format!("--name={}", node.host.address());
    let line = [node.program(), "server", "--listen=0.0.0.0:6443", &name];
    node.host.spawn(line)
}
