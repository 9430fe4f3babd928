//! The ways in which kubectl talks to containers beside the usual ones: the older protocol, terminals, attaching,
//! containers that come for a moment, services, and a hook before the end.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use transom_model::os::Os;
use transom_testkit::{Output, eventually};

use super::{Cluster, KUBECONFIG, PORT, WITH_CONTAINERS};
use crate::{Node, SOON};

/// A shell that says what it hears, a web server, and a folder of the host into which a hook writes.
fn pod(node: &Node) -> Value {
    let shell = "echo ready; while read -r line; do echo heard $line; done; exec sleep 1000";
    let image = "transom.dev/host:1";
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "box", "labels": {"app": "box"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": WITH_CONTAINERS},
            "terminationGracePeriodSeconds": 3,
            "containers": [{
                "name": "main",
                "image": image,
                "command": ["sh", "-c", shell],
                "stdin": true,
                "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo bye > /notes/last"]}}},
                "volumeMounts": [{"name": "host", "mountPath": "/notes", "subPath": "of/box"}],
            }, {
                "name": "web",
                "image": image,
                "command": [node.echo(), "serve", "--port", PORT.to_string(), "--name", "box"],
                "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            }],
            "volumes": [{"name": "host", "hostPath": {"path": "/run/notes", "type": "DirectoryOrCreate"}}],
        },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "box"},
        "spec": {"selector": {"app": "box"}, "ports": [{"port": 80, "targetPort": PORT}]},
    })
}

#[test]
fn containers_are_talked_to_in_every_way_that_kubectl_has() {
    let hosts = [("alpha", Os::Linux), (WITH_CONTAINERS, Os::Linux)];
    let cluster = Cluster::set_up("streams", &hosts).unwrap();
    let beta = &cluster.nodes[1];
    cluster.apply(&pod(beta)).unwrap();
    cluster.apply(&service()).unwrap();
    cluster.wait_until_running("box").unwrap();
    let talk = Talk { cluster: &cluster };
    let work = || {
        for web_sockets in [true, false] {
            talk.exec(web_sockets)?;
            talk.forward(web_sockets, "pod/box", PORT)?;
        }
        talk.forward(true, "service/box", 80)?;
        talk.terminal()?;
        talk.attach()?;
        talk.debug()?;
        talk.run_and_remove()?;
        cluster.kubectl(&["delete", "pod", "box"])?;
        // The hook has run, and the host's folder is still there when all of the pod is gone.
        let last = beta.host.read_text("/run/notes/of/box/last")?;
        ensure!(last == "bye\n", "{last:?}");
        Ok(())
    };
    work().unwrap();
}

struct Talk<'a> {
    cluster: &'a Cluster,
}

impl Talk<'_> {
    /// A line of shell that reads this.
    fn shell(&self, line: &str, input: &str) -> Result<Output> {
        let command = self.cluster.desk().command(["sh", "-c", line]);
        command
            .variable("KUBECONFIG", KUBECONFIG)
            .input(input)
            .run()
    }

    fn exec(&self, web_sockets: bool) -> Result<()> {
        let way = format!(
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS={web_sockets} kubectl exec -i box -c main --"
        );
        let script = "'cat; echo err >&2; exit 7'";
        let output = self.shell(&format!("{way} sh -c {script}"), "typed\n")?;
        let code = output.status.code();
        ensure!(output.stdout == "typed\n" && code == Some(7), "{output:?}");
        ensure!(output.stderr.starts_with("err\n"), "{output:?}");
        Ok(())
    }

    fn forward(&self, web_sockets: bool, target: &str, port: u16) -> Result<()> {
        let desk = self.cluster.desk();
        let port = format!(":{port}");
        let line = [
            "kubectl",
            "--kubeconfig",
            KUBECONFIG,
            "port-forward",
            target,
            &port,
        ];
        let way = ("KUBECTL_PORT_FORWARD_WEBSOCKETS", web_sockets.to_string());
        let forward = desk.command(line).variable(way.0, way.1).spawn()?;
        forward.wait_for_output("Forwarding from 127.0.0.1:", SOON)?;
        let said = forward.stdout()?;
        let port = said
            .split_once("127.0.0.1:")
            .and_then(|(_, rest)| rest.split_once(' '))
            .context("kubectl named no port")?
            .0;
        let page = desk.http_get(&format!("http://127.0.0.1:{port}/"))?;
        ensure!(page.body == "box\n", "{page:?}");
        forward.kill()
    }

    /// `script` is what has a terminal here.
    fn terminal(&self) -> Result<()> {
        let inner = "kubectl exec -it box -c main -- tty";
        let output = self.shell(&format!("script -qec '{inner}' /dev/null"), "")?;
        ensure!(output.stdout.contains("/dev/pts/"), "{output:?}");
        Ok(())
    }

    fn attach(&self) -> Result<()> {
        let line = "(echo hello; exec sleep 600) | kubectl attach -i box -c main";
        let command = self.cluster.desk().command(["sh", "-c", line]);
        let attached = command.variable("KUBECONFIG", KUBECONFIG).spawn()?;
        attached.wait_for_output("heard hello", SOON)?;
        attached.kill()
    }

    fn debug(&self) -> Result<()> {
        self.cluster.kubectl(&[
            "debug",
            "box",
            "--image=transom.dev/host:1",
            "--container=helper",
            "--target=main",
            "--",
            "sh",
            "-c",
            "echo debugging; exec sleep 1000",
        ])?;
        eventually("what the ephemeral container says", SOON, || {
            let log = self.cluster.kubectl(&["logs", "box", "-c", "helper"])?;
            ensure!(log.contains("debugging"), "{log:?}");
            let events = self.cluster.kubectl(&["events", "--for=pod/box"])?;
            ensure!(events.contains("TargetNotSupported"), "{events}");
            Ok(())
        })
    }

    /// A pod that is gone when its program has read all and ended.
    fn run_and_remove(&self) -> Result<()> {
        let spec = json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": WITH_CONTAINERS}}});
        let line = format!(
            "kubectl run once --rm -i --restart=Never --image=transom.dev/host:1 --override-type=strategic --overrides='{spec}' --command -- cat"
        );
        let output = self.shell(&line, "typed\n")?.success()?;
        ensure!(output.stdout.contains("typed"), "{output:?}");
        let gone = self.cluster.kubectl(&["get", "pod", "once"]);
        ensure!(gone.is_err(), "{gone:?}");
        Ok(())
    }
}
