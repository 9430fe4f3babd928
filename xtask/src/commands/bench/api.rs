//! The API server and its store: durable writes against etcd's, a long list against nginx sending the same bytes.
//! Both sides of the list go over TLS.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{Measurement, Stage};
use crate::run;

const WRITES: usize = 12_800;
const PODS: usize = 5_000;
/// Requests in one round, so that starting curl does not count.
const LISTS: usize = 10;
const PATIENCE: Duration = Duration::from_mins(1);

/// Five times as fast as etcd is a fifth of its time.
pub(super) const WRITE: Measurement = Measurement {
    name: "12,800 durable writes of 2 KiB on disk, 64 clients",
    peer: "etcd",
    limit: Some(0.2),
    rounds: 3,
    prepare: |stage| {
        etcd_on_disk(stage)?;
        Ok(())
    },
    ours: |stage| {
        let folder = stage.fresh_on_disk("local")?;
        let mut storm = storm(stage);
        storm
            .arg("local")
            .arg(folder.join("state"))
            .arg(WRITES.to_string());
        Ok(storm)
    },
    theirs: |stage| {
        let mut storm = storm(stage);
        storm.args(["etcd", ETCD]).arg(WRITES.to_string());
        Ok(storm)
    },
};

const ETCD: &str = "http://127.0.0.1:42379";
const SERVER: &str = "127.0.0.1:46443";
const NGINX: &str = "127.0.0.1:46444";

pub(super) const LIST: Measurement = Measurement {
    name: "10 lists of 5,000 pods as JSON",
    peer: "nginx, the same bytes",
    limit: Some(2.0),
    rounds: 5,
    prepare: |stage| {
        let data = stage.fresh("server")?;
        let mut server = stage.transom();
        server
            .args([
                "server",
                "--store",
                "memory",
                "--listen",
                SERVER,
                "--data-dir",
            ])
            .arg(&data);
        stage.beside(&mut server)?;
        wait_for(&format!("https://{SERVER}/readyz"))?;
        credentials(&data)?;
        make_pods(&data)?;
        let list = run::output(kubectl(&data).args(["get", "--raw", "/api/v1/pods"]))?;
        let served = stage.fresh("served")?;
        fs_err::write(served.join("pods"), list)?;
        nginx(stage, &served, &data)
    },
    ours: |stage| {
        let data = stage.path("server");
        let mut curl = curl(
            stage,
            &format!("https://{SERVER}/api/v1/pods?round=[1-{LISTS}]"),
        );
        curl.arg("--cert")
            .arg(data.join("client.crt"))
            .arg("--key")
            .arg(data.join("client.key"));
        Ok(curl)
    },
    theirs: |stage| {
        Ok(curl(
            stage,
            &format!("https://{NGINX}/pods?round=[1-{LISTS}]"),
        ))
    },
};

/// Starts an etcd whose data is on the disk, builds what writes to it, and tells its address.
pub(super) fn etcd_on_disk(stage: &Stage<'_>) -> Result<String> {
    let mut cargo = stage.workspace.cargo();
    cargo.args(["build", "--release", "--package", "transom-store"]);
    run::quietly(cargo.args(["--example", "storm"]))?;
    let data = stage.fresh_on_disk("etcd")?;
    let mut etcd = stage.workspace.command("etcd");
    etcd.args(["--listen-client-urls", ETCD])
        .args(["--advertise-client-urls", ETCD])
        .args(["--listen-peer-urls", "http://127.0.0.1:0", "--data-dir"])
        .arg(data);
    stage.beside(&mut etcd)?;
    wait_for(&format!("{ETCD}/health"))?;
    Ok(ETCD.to_owned())
}

pub(super) fn storm(stage: &Stage<'_>) -> Command {
    stage
        .workspace
        .command(stage.workspace.target.join("release/examples/storm"))
}

fn curl(stage: &Stage<'_>, url: &str) -> Command {
    let mut curl = stage.workspace.command("curl");
    curl.args([
        "--silent",
        "--fail",
        "--insecure",
        "--output",
        "/dev/null",
        url,
    ]);
    curl
}

fn kubectl(data: &Path) -> Command {
    let mut kubectl = Command::new("kubectl");
    kubectl
        .arg("--kubeconfig")
        .arg(data.join("admin.kubeconfig"));
    kubectl
}

/// Asks until somebody answers.
fn wait_for(url: &str) -> Result<()> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--fail",
            "--insecure",
            "--output",
            "/dev/null",
            url,
        ]);
        let tried = curl.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if tried.success() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bail!("what is to be measured did not become ready")
}

/// The administrator's certificate and key as files, for curl.
fn credentials(data: &Path) -> Result<()> {
    let config = run::output(kubectl(data).args(["config", "view", "--raw", "-o", "json"]))?;
    let config: Value = serde_json::from_str(&config)?;
    let user = &config["users"][0]["user"];
    for (field, file) in [
        ("client-certificate-data", "client.crt"),
        ("client-key-data", "client.key"),
    ] {
        let text = user[field]
            .as_str()
            .context("the kubeconfig has no certificate")?;
        let encoded = data.join(format!("{file}.base64"));
        fs_err::write(&encoded, text)?;
        let mut decode = Command::new("base64");
        let plain = run::output(decode.arg("--decode").arg(&encoded))?;
        fs_err::write(data.join(file), plain)?;
    }
    Ok(())
}

fn make_pods(data: &Path) -> Result<()> {
    let containers = json!([{
        "name": "web", "image": "registry.example.org/web:1",
        "env": [{"name": "GREETING", "value": "hello"}],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }]);
    let pods: Vec<Value> = (0..PODS)
        .map(|number| {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("pod-{number}"), "labels": {"app": "web"}},
                "spec": {"containers": containers},
            })
        })
        .collect();
    let file = data.join("pods.json");
    fs_err::write(
        &file,
        json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string(),
    )?;
    run::quietly(
        kubectl(data)
            .args(["create", "--validate=false", "-f"])
            .arg(&file),
    )
}

/// nginx with the server's own certificate, so that both sides encrypt alike.
fn nginx(stage: &Stage<'_>, served: &Path, data: &Path) -> Result<()> {
    let certificate = data.join("pki/server.pem");
    let text = format!(
        "daemon off; pid {served}/pid; error_log {served}/errors; events {{}}\n\
         http {{ access_log off; default_type application/json; sendfile on;\n\
         server {{ listen {NGINX} ssl http2; root {served};\n\
         ssl_certificate {certificate}; ssl_certificate_key {certificate}; }} }}\n",
        served = served.display(),
        certificate = certificate.display(),
    );
    let file = served.join("nginx.conf");
    fs_err::write(&file, text)?;
    stage.beside(stage.workspace.command("nginx").arg("-c").arg(&file))?;
    wait_for(&format!("https://{NGINX}/pods"))
}
