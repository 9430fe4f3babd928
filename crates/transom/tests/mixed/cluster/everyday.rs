//! What people do with kubectl every day, on a node of each system and on one with containers.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use transom_model::os::Os;
use transom_testkit::eventually;

use super::{Cluster, KUBECONFIG, PORT, has_containers};
use crate::{Node, SOON, on_each};

/// How long kubectl itself waits for something: less than the lab waits for kubectl.
const PATIENCE: &str = "--timeout=110s";

#[test]
fn what_people_do_with_kubectl_works_on_both_systems_and_in_containers() {
    let hosts = [
        ("alpha", Os::Linux),
        ("beta", Os::Linux),
        ("gamma", Os::Windows),
    ];
    let cluster = Cluster::set_up("everyday", &hosts).unwrap();
    on_each(&cluster.nodes, |node| {
        let day = Day {
            cluster: &cluster,
            node,
        };
        day.run().context("run")?;
        day.copy().context("cp")?;
        day.forward().context("port-forward")?;
        day.top().context("top")?;
        day.roll_out().context("rollout")?;
        day.drain().context("drain")
    })
    .unwrap();
}

/// A day with one node.
struct Day<'a> {
    cluster: &'a Cluster,
    node: &'a Node,
}

impl Day<'_> {
    /// A name that no other node has.
    fn name(&self, name: &str) -> String {
        format!("{name}-{}", self.node.host.name())
    }

    /// The specification of a pod whose only container does this.
    fn pod(&self, container: &str, words: &[&str]) -> Value {
        let os = self.node.host.os();
        let mut command = vec![self.node.echo()];
        command.extend(words);
        let mut pod = json!({
            "os": {"name": os.as_str()},
            // Drained pods must not go to another node of the same system.
            "nodeSelector": {"kubernetes.io/hostname": self.node.host.name()},
            "hostNetwork": !has_containers(self.node),
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": container, "image": "transom.dev/host:1", "command": command}],
        });
        if os == Os::Windows {
            pod["securityContext"] = json!({"windowsOptions": {"hostProcess": true}});
        }
        pod
    }

    fn run(&self) -> Result<()> {
        let name = self.name("web");
        let port = PORT.to_string();
        let pod = self.pod(&name, &["serve", "--port", &port, "--name", &name]);
        let overrides = json!({"spec": pod}).to_string();
        self.cluster.kubectl(&[
            "run",
            &name,
            "--image=transom.dev/host:1",
            "--override-type=strategic",
            "--overrides",
            &overrides,
        ])?;
        self.cluster.wait_until_running(&name)?;
        let (_, words) = self.exec(&name, &["act", "say:one", "exit:7"])?;
        ensure!(words.contains("exit code 7"), "{words:?}");
        eventually("the log of a pod", SOON, || {
            let log = self.cluster.kubectl(&["logs", &name, "--tail=1"])?;
            ensure!(log.contains("listening on"), "{log:?}");
            Ok(())
        })
    }

    /// What a program of the node printed on both streams when kubectl ran it in a pod.
    fn exec(&self, pod: &str, words: &[&str]) -> Result<(String, String)> {
        let mut line = vec!["kubectl", "--kubeconfig", KUBECONFIG, "exec", pod, "--"];
        line.push(self.node.echo());
        line.extend(words);
        let output = self.cluster.nodes[0].host.run(line)?;
        Ok((output.stdout, output.stderr))
    }

    /// A file goes in and comes out the same.
    fn copy(&self) -> Result<()> {
        let alpha = &self.cluster.nodes[0].host;
        let text: String = (0..20_000)
            .flat_map(|number| [number.to_string(), "\r\n".to_owned()])
            .collect();
        let [there, back] = ["there", "back"].map(|name| format!("/tmp/{}", self.name(name)));
        alpha.write(&there, &text)?;
        let inside = format!("{}:/tmp/copied.txt", self.name("web"));
        self.cluster.kubectl(&["cp", &there, &inside])?;
        self.cluster.kubectl(&["cp", &inside, &back])?;
        ensure!(alpha.read_text(&back)? == text, "it is another");
        Ok(())
    }

    fn forward(&self) -> Result<()> {
        let alpha = &self.cluster.nodes[0];
        let pod = self.name("web");
        let line = ["kubectl", "--kubeconfig", KUBECONFIG, "port-forward"];
        let ports = format!(":{PORT}");
        let forward = alpha
            .host
            .spawn(line.into_iter().chain([pod.as_str(), &ports]))?;
        forward.wait_for_output("Forwarding from 127.0.0.1:", SOON)?;
        let said = forward.stdout()?;
        let port = said
            .split_once("127.0.0.1:")
            .and_then(|(_, rest)| rest.split_once(' '))
            .context("kubectl named no port")?
            .0;
        let url = format!("http://127.0.0.1:{port}/");
        for _ in 0..3 {
            let page = alpha.host.run([alpha.echo(), "get", &url])?.success()?;
            ensure!(page.stdout.trim_end() == pod, "{page:?}");
        }
        forward.kill()
    }

    /// Figures come a moment after the pod.
    fn top(&self) -> Result<()> {
        let pod = self.name("web");
        eventually("the figures of a pod and its node", SOON * 2, || {
            let line = self
                .cluster
                .kubectl(&["top", "pod", &pod, "--no-headers"])?;
            ensure!(line.starts_with(&pod) && line.contains("Mi"), "{line}");
            let name = self.node.host.name();
            let line = self
                .cluster
                .kubectl(&["top", "node", name, "--no-headers"])?;
            ensure!(line.starts_with(name) && line.contains('%'), "{line}");
            Ok(())
        })
    }

    /// A deployment comes, changes and changes back.
    fn roll_out(&self) -> Result<()> {
        let name = self.name("worker");
        let labels = json!({"app": name});
        let deployment = |word: &str| {
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": self.pod("worker", &["act", &format!("say:{word}"), "serve"]),
                    },
                },
            })
        };
        let whole = format!("deployment/{name}");
        for word in ["first", "second"] {
            self.cluster.apply(&deployment(word))?;
            self.rolled_out(&whole, word)?;
        }
        self.cluster.kubectl(&["rollout", "undo", &whole])?;
        self.rolled_out(&whole, "first")?;
        let history = self.cluster.kubectl(&["rollout", "history", &whole])?;
        ensure!(
            history.contains('3') && !history.contains("\n1"),
            "{history}"
        );
        self.cluster.kubectl(&["rollout", "restart", &whole])?;
        self.rolled_out(&whole, "first")
    }

    /// Waits until all pods of a deployment are new, and say this.
    fn rolled_out(&self, deployment: &str, word: &str) -> Result<()> {
        let line = ["kubectl", "--kubeconfig", KUBECONFIG, "rollout", "status"];
        let host = &self.cluster.nodes[0].host;
        let status = host.run(line.into_iter().chain([PATIENCE, deployment]))?;
        if let Err(error) = status.success() {
            let events = self.cluster.kubectl(&["get", "events"])?;
            return Err(error.context(events));
        }
        eventually("the pods to say it", SOON, || {
            let log = self.cluster.kubectl(&["logs", deployment])?;
            ensure!(log.contains(word), "{log:?}");
            Ok(())
        })
    }

    /// Pods leave a node that is drained, and come back afterwards; those of the other node stay.
    fn drain(&self) -> Result<()> {
        let name = self.node.host.name();
        let selector = format!("--selector=app={}", self.name("worker"));
        self.cluster
            .kubectl(&["drain", name, "--force", "--ignore-daemonsets", PATIENCE])?;
        eventually("others in place of the pods that left", SOON, || {
            let pods = self.cluster.get(&["pods", &selector])?;
            let waiting = |pod: &Value| pod["status"]["phase"] == "Pending";
            let pods = pods["items"].as_array().context("no list")?;
            ensure!(pods.len() == 2 && pods.iter().all(waiting), "{pods:#?}");
            Ok(())
        })?;
        let gone = self.cluster.kubectl(&["get", "pod", &self.name("web")]);
        ensure!(gone.is_err(), "{gone:?}");
        self.cluster.kubectl(&["uncordon", name])?;
        self.rolled_out(&format!("deployment/{}", self.name("worker")), "first")
    }
}
