//! Who dies and who does not: agents, shims, networks.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use camino::Utf8Path;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_runtime::oci::{Bridge, Network};
use transom_runtime::{ContainerState, PodNetwork, PodState, PortMap, Protocol};

use super::Oci;
use super::containers::shell;
use super::machine::{members, own_memory, wait_for_members};
use crate::backend::{Backend, Role};
use crate::harness::block_on;
use crate::tool::{PATIENCE, Place, is_running, pod_spec};

super::cases! {
    containers_survive_an_agent_that_is_killed,
    a_pod_whose_shim_is_killed_is_not_ready_and_leaves_no_process,
    a_pod_on_a_bridge_has_an_address_and_its_port_leads_into_it,
    a_shim_is_small,
}

/// What the agent that is killed does: it starts a pod and says so.
pub(crate) fn play_agent(words: &[String]) -> std::process::ExitCode {
    let [folder, cgroup] = words else {
        panic!("an agent needs a folder and a cgroup");
    };
    block_on(async {
        let backend = Arc::new(Oci::sharing(Utf8Path::new(folder), cgroup));
        let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
        println!("made");
        place.start_ready("main", &Role::Polite).await;
        println!("started");
        tokio::time::sleep(PATIENCE).await;
    });
    std::process::ExitCode::SUCCESS
}

/// An agent of its own process, and what it says.
pub(super) fn start_agent(backend: &Oci) -> (Child, BufReader<ChildStdout>) {
    drop(backend.images());
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["oci-agent", backend.folder().as_str(), backend.cgroup()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(agent.stdout.take().unwrap());
    (agent, output)
}

pub(super) fn hear(output: &mut BufReader<ChildStdout>, expected: &str) {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, expected);
}

/// Gives back what it is told, on all addresses.
pub(crate) fn serve(port: &str) -> std::process::ExitCode {
    let listener = std::net::TcpListener::bind(format!("0.0.0.0:{port}")).unwrap();
    println!("ready");
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut copy = stream.try_clone().unwrap();
        // Whoever hung up hears no more.
        drop(std::io::copy(&mut stream, &mut copy));
    }
    std::process::ExitCode::SUCCESS
}

async fn containers_survive_an_agent_that_is_killed() {
    let backend = Arc::new(Oci::new());
    let (mut agent, mut output) = start_agent(&backend);
    hear(&mut output, "made\n");
    hear(&mut output, "started\n");
    agent.kill().unwrap();
    agent.wait().unwrap();
    let place = Place::new(backend).await;
    let container = place.pod().await.containers.remove(0);
    assert!(is_running(&container), "{container:?}");
    assert_eq!(place.log(&container.id).await, "ready\n");
    place
        .runtime
        .stop_container(&container.id, PATIENCE)
        .await
        .unwrap();
    assert_eq!(place.wait_for_end(&container.id).await.exit_code, 7);
    place.clean_up().await;
}

async fn a_pod_whose_shim_is_killed_is_not_ready_and_leaves_no_process() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let id = place.start_ready("main", &Role::Stubborn).await;
    let shims = format!("{}/shims", backend.cgroup());
    // The one who started the container is there for a moment longer.
    wait_for_members(&shims, 1);
    for shim in members(&shims) {
        kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();
    }
    let ended = place.wait_for_end(&id).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "Error"));
    assert_eq!(place.pod().await.state, PodState::NotReady);
    let place = place.reopen().await;
    assert_eq!(place.pod().await.state, PodState::NotReady);
    assert!(matches!(
        place.container(&id).await.state,
        ContainerState::Exited(_)
    ));
    place.clean_up().await;
    assert_eq!(members(backend.cgroup()), Vec::<i32>::new());
}

/// A bridge that goes with the test.
struct OwnBridge(Arc<Bridge>, String);

impl Drop for OwnBridge {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["link", "del", &self.1])
            .stderr(Stdio::null())
            .status();
        let _ = Command::new("nft")
            .args(["delete", "table", "ip", &format!("transom_{}", self.1)])
            .stderr(Stdio::null())
            .status();
    }
}

fn own_bridge(folder: &tempfile::TempDir) -> OwnBridge {
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let name = format!("tt{}", &unique[..6]);
    let third = u8::from_str_radix(&unique[6..8], 16).unwrap();
    let file = Utf8Path::from_path(folder.path())
        .unwrap()
        .join("leases.json");
    let bridge = Bridge::new(&name, &format!("10.213.{third}.0/24"), &file).unwrap();
    OwnBridge(Arc::new(bridge), name)
}

async fn a_pod_on_a_bridge_has_an_address_and_its_port_leads_into_it() {
    let folder = tempfile::tempdir().unwrap();
    let own = own_bridge(&folder);
    let network: Arc<dyn Network> = Arc::clone(&own.0) as Arc<dyn Network>;
    let backend = Arc::new(Oci::with_network(network));
    let runtime = backend.open().await;
    let mut spec = pod_spec(&*backend, "one");
    spec.network = PodNetwork::Own;
    spec.ports = vec![PortMap {
        protocol: Protocol::Tcp,
        container_port: 8080,
        host_port: 18_213,
        host_address: None,
    }];
    let pod = runtime.start_pod(&spec).await.unwrap();
    let place = Place {
        backend,
        runtime,
        pod,
    };
    let address = place.pod().await.addresses[0];
    let mut spec = place.spec("main", &Role::Run);
    spec.arguments = vec!["oci-serve".to_owned(), "8080".to_owned()];
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "ready\n").await;
    for target in [
        format!("{address}:8080"),
        format!("{}:18213", own_address()),
    ] {
        let connect = tokio::net::TcpStream::connect(&target);
        let mut stream = tokio::time::timeout(PATIENCE, connect)
            .await
            .unwrap()
            .unwrap_or_else(|error| panic!("{target}: {error}"));
        stream.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"ping");
    }
    let (hosts, _) = shell(
        &place,
        &id,
        "cat /etc/hosts; ip -4 addr show eth0 2>/dev/null",
    )
    .await;
    assert!(hosts.contains(&format!("{address}\tpod")), "{hosts}");
    let stats = place.runtime.stats().await.unwrap();
    assert!(
        stats[0]
            .network
            .is_some_and(|(received, sent)| received > 0 && sent > 0),
        "{stats:?}"
    );
    place.clean_up().await;
    let links = Command::new("ip")
        .args(["-o", "link", "show", "master", &own.1])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&links.stdout),
        "",
        "the pod's link stayed"
    );
}

/// An address of this machine that is not loopback.
fn own_address() -> std::net::IpAddr {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

async fn a_shim_is_small() {
    let backend = Arc::new(Oci::new());
    let runtime = backend.open().await;
    for number in 0..8 {
        let mut spec = pod_spec(&*backend, &format!("pod{number}"));
        spec.network = PodNetwork::Own;
        let pod = runtime.start_pod(&spec).await.unwrap();
        let id = runtime
            .create_container(&pod, &backend.container("main", &Role::Run))
            .await
            .unwrap();
        runtime.start_container(&id).await.unwrap();
    }
    let shims = format!("{}/shims", backend.cgroup());
    // The one who started the last container is there for a moment longer.
    wait_for_members(&shims, 8);
    let sizes: Vec<u64> = members(&shims).into_iter().map(own_memory).collect();
    eprintln!("own memory of shims in KiB: {sizes:?}");
    assert!(
        sizes.len() == 8 && sizes.iter().all(|size| *size < 8 << 10),
        "{sizes:?}"
    );
    for pod in runtime.pods().await.unwrap() {
        runtime.remove_pod(&pod.id).await.unwrap();
    }
}
