//! What a machine and its pods use is told, by a real node: `kubectl top`, the autoscaler, the agent's own metrics.

use std::time::Instant;

use crate::guide::ELSEWHERE;
use crate::server::{LIMIT, Server};

/// One pod that works as much as it may, as a process of this machine.
const BUSY: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  replicas: 1
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      containers:
      - name: loop
        image: transom.dev/host:1
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "while :; do :; done"]
        resources: {requests: {cpu: 50m, memory: 1Mi}}
      - name: idle
        image: transom.dev/host:1
        imagePullPolicy: IfNotPresent
        command: [sleep, "1000000"]
        resources: {requests: {cpu: 50m, memory: 1Mi}}
"#;

/// Takes the cluster away, also of a test that failed.
struct End<'a>(&'a Server);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.shell("transom down");
    }
}

/// Asks until the answer is one, and panics with the last otherwise.
#[track_caller]
fn until<T>(server: &Server, line: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        let (text, _) = server.shell(&format!("{}{line}", kubeconfig(server)));
        if let Some(found) = wanted(&text) {
            return found;
        }
        assert!(Instant::now() < end, "`{line}` said:\n{text}");
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}

fn kubeconfig(server: &Server) -> String {
    let path = server.path("var/lib/transom/up/server/admin.kubeconfig");
    format!("export KUBECONFIG={}\n", path.display())
}

/// The number in a column of the row that has all these words.
fn cell(text: &str, words: &[&str], column: usize, unit: &str) -> Option<u64> {
    let row = text
        .lines()
        .find(|line| words.iter().all(|word| line.contains(word)))?;
    let cell = row.split_whitespace().nth(column)?;
    cell.strip_suffix(unit)?.parse().ok()
}

#[test]
fn a_busy_pod_is_seen_by_top_and_by_the_autoscaler() {
    let server = Server::absent();
    let _end = End(&server);
    server.ok(&format!("transom up --no-demo{ELSEWHERE}"));
    server.write("busy.yaml", BUSY);
    until(&server, "kubectl apply -f busy.yaml", |text| {
        text.contains("deployment.apps/busy").then_some(())
    });

    let top = "kubectl top pods --containers --no-headers";
    // The first figures may be of a time in which the loop had hardly begun.
    until(&server, top, |text| {
        let used = cell(text, &["busy-", " loop "], 2, "m")?;
        let idle = cell(text, &["busy-", " idle "], 2, "m")?;
        (used > 50 && idle < 20).then_some(())
    });
    until(&server, "kubectl top nodes --no-headers", |text| {
        let cores = cell(text, &["%"], 1, "m")?;
        let memory = cell(text, &["%"], 3, "Mi")?;
        (cores > 50 && memory > 1).then_some(())
    });
    let raw = "kubectl get --raw /apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
    until(&server, raw, |text| {
        let list: serde_json::Value = serde_json::from_str(text).ok()?;
        let one = &list["items"][0];
        let taken: jiff::Timestamp = one["timestamp"].as_str()?.parse().ok()?;
        let age = jiff::Timestamp::now().duration_since(taken).as_secs();
        let window = one["window"]
            .as_str()?
            .strip_suffix('s')?
            .parse::<f64>()
            .ok()?;
        assert!((-1..60).contains(&age), "{text}");
        assert!(window > 0.1 && window < 60.0, "{text}");
        Some(())
    });

    let scale = "kubectl autoscale deployment busy --min=1 --max=2 --cpu-percent=20";
    until(&server, scale, |text| {
        text.contains("autoscaled").then_some(())
    });
    let replicas = "kubectl get deployment busy -o jsonpath='{.spec.replicas}'";
    until(&server, replicas, |text| (text == "2").then_some(()));

    let summary = "kubectl get --raw /api/v1/nodes/$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')/proxy";
    until(&server, &format!("{summary}/metrics/resource"), |text| {
        text.contains("container_cpu_usage_seconds_total{container=\"loop\"")
            .then_some(())
    });
    until(&server, &format!("{summary}/metrics"), |text| {
        (text.contains("kubelet_running_pods 2")
            && text.contains("kubelet_runtime_operations_total{"))
        .then_some(())
    });
}
