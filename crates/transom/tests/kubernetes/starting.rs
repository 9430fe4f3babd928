//! How a server starts, and what it says when it cannot.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::server::{Beside, LIMIT, Server};
use crate::transcript::assert_transcript;

#[test]
fn what_keeps_a_server_from_starting_is_said() {
    let server = Server::start();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    server.write(
        "taken.sh",
        &format!("transom server --data-dir other --listen 127.0.0.1:{port}"),
    );
    server.write("file", "");
    assert_transcript!(server, "
        transom server --data-dir data --listen 127.0.0.1:0
        sh taken.sh
        transom server --listen nonsense
        transom server --store nonsense
        transom server --nonsense
        transom server --data-dir file --listen 127.0.0.1:0
        transom server --etcd-cert cert.pem
        transom server --max-connections 0
        transom server --name https://api.example.org
    ", @"
    $ transom server --data-dir data --listen 127.0.0.1:[port]
    error: another server uses the folder `data`
      hint: stop the other server, or choose another --data-dir
    [exit 1]
    $ sh taken.sh
    error: could not listen on 127.0.0.1:[port]
      caused by: Address already in use (os error 98)
      hint: choose another one with --listen
    [exit 1]
    $ transom server --listen nonsense
    error: invalid value 'nonsense' for '--listen <ADDRESS>': expected an address and a port, such as 0.0.0.0:6443
      hint: try --help
    [exit 2]
    $ transom server --store nonsense
    error: invalid value 'nonsense' for '--store <STORE>': expected `local`, `memory` or etcd://HOST:PORT
      hint: try --help
    [exit 2]
    $ transom server --nonsense
    error: unexpected argument '--nonsense' found
      hint: try --help

    Usage: transom server [OPTIONS] [COMMAND]
    [exit 2]
    $ transom server --data-dir file --listen 127.0.0.1:[port]
    error: could not prepare the folder `file`
      caused by: `file` is not a folder
    [exit 1]
    $ transom server --etcd-cert cert.pem
    error: the setting server.etcd.cert (flag --etcd-cert) needs server.etcd.key
      hint: set it with --etcd-key, TRANSOM_SERVER_ETCD_KEY or server.etcd.key in the configuration file
    [exit 2]
    $ transom server --max-connections 0
    error: invalid value '0' for '--max-connections <NUMBER>': expected a number from 1 to 4294967295
      hint: try --help
    [exit 2]
    $ transom server --name https://api.example.org
    error: invalid value 'https://api.example.org' for '--name <NAME>': expected a host name or an address without a port, such as api.example.org
      hint: try --help
    [exit 2]
    ");
}

#[test]
fn the_file_and_variables_say_how_a_server_runs() {
    let server = Server::start();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    server.write(
        "taken.yaml",
        &format!("server:\n  dataDir: other\n  listen: {address}\n"),
    );
    server.write("wrong.yaml", "server:\n  listen: 6443\n");
    server.write(
        "mine.yaml",
        "server:\n  dataDir: data\n  names: [api.example.org]\n",
    );
    server.write(
        "second.yaml",
        "server:\n  dataDir: second\n  listen: 127.0.0.1:0\n  store: memory\n  names: [api.example.org]\n",
    );
    assert_transcript!(server, "
        transom server --config taken.yaml
        transom server --config wrong.yaml
        transom server --config mine.yaml --listen 127.0.0.1:0
        TRANSOM_SERVER_DATA_DIR=data transom server --listen 127.0.0.1:0
        transom server check --config mine.yaml
        transom server --config mine.yaml check
        transom server --data-dir data check
        transom --config mine.yaml kubeconfig | grep server:
        TRANSOM_SERVER_DATA_DIR=data transom kubeconfig | grep server:
        TRANSOM_SERVER_ETCD_KEY=a.key transom server
        TRANSOM_SERVER_STORE=memory transom config show --config mine.yaml | grep '^server' | tr -s ' '
    ", @r#"
    $ transom server --config taken.yaml
    error: could not listen on 127.0.0.1:[port]
      caused by: Address already in use (os error 98)
      hint: change server.listen in `taken.yaml`, or choose another one with --listen
    [exit 1]
    $ transom server --config wrong.yaml
    error: the configuration file `wrong.yaml` is wrong
      caused by: line 2, column 11: expected an address and a port, such as 0.0.0.0:6443
        1 | server:
        2 |   listen: 6443
          |           ^
    [exit 6]
    $ transom server --config mine.yaml --listen 127.0.0.1:[port]
    error: another server uses the folder `data`
      hint: stop the other server, or change server.dataDir in `mine.yaml`
    [exit 1]
    $ TRANSOM_SERVER_DATA_DIR=data transom server --listen 127.0.0.1:[port]
    error: another server uses the folder `data`
      hint: stop the other server, or change the variable TRANSOM_SERVER_DATA_DIR
    [exit 1]
    $ transom server check --config mine.yaml
    error: the store in `[folder]/data/state` is in use by another process
      hint: stop the server first; the store has one user at a time
    [exit 1]
    $ transom server --config mine.yaml check
    error: the store in `[folder]/data/state` is in use by another process
      hint: stop the server first; the store has one user at a time
    [exit 1]
    $ transom server --data-dir data check
    error: --data-dir is for the server itself, which was not asked to run
      hint: put it behind the last command, if that one has it; try --help
    [exit 2]
    $ transom --config mine.yaml kubeconfig | grep server:
        server: "https://[address]"
    $ TRANSOM_SERVER_DATA_DIR=data transom kubeconfig | grep server:
        server: "https://[address]"
    $ TRANSOM_SERVER_ETCD_KEY=a.key transom server
    error: the setting server.etcd.key (variable TRANSOM_SERVER_ETCD_KEY) needs server.etcd.cert
      hint: set it with --etcd-cert, TRANSOM_SERVER_ETCD_CERT or server.etcd.cert in the configuration file
    [exit 6]
    $ TRANSOM_SERVER_STORE=memory transom config show --config mine.yaml | grep '^server' | tr -s ' '
    server.dataDir data file mine.yaml
    server.listen 0.0.0.0:6443 default
    server.names api.example.org file mine.yaml
    server.store memory variable TRANSOM_SERVER_STORE
    server.etcd.ca default
    server.etcd.cert default
    server.etcd.key default
    server.maxConnections 10000 default
    server.registries default
    server.schedulers default
    "#);
    let mut second = server.program("sh");
    second.args(["-c", "exec \"$0\" server --config second.yaml 2>&1"]);
    let second = Beside::start(second.arg(env!("CARGO_BIN_EXE_transom")));
    second.until("kubeconfig of the administrator: second/admin.kubeconfig");
    let ready = server.ok(
        "transom kubeconfig --config second.yaml > mine && kubectl --kubeconfig mine --tls-server-name=api.example.org get --raw /readyz",
    );
    assert_eq!(ready, "ok");
}

#[test]
fn a_kubeconfig_is_printed_for_any_address() {
    let server = Server::start();
    assert_transcript!(server, "
        transom kubeconfig --data-dir nowhere
        transom kubeconfig --data-dir data | grep server:
        transom kubeconfig --data-dir data --server https://api.example.org:6443 | grep server:
        transom kubeconfig --data-dir data > mine && kubectl --kubeconfig mine get namespaces -o name
        stat -c %a data/admin.kubeconfig
    ", @r#"
    $ transom kubeconfig --data-dir nowhere
    error: there is no kubeconfig on this machine
      caused by: failed to open file `nowhere/admin.kubeconfig`: No such file or directory (os error 2)
      hint: start the server once: transom server
    [exit 1]
    $ transom kubeconfig --data-dir data | grep server:
        server: "https://[address]"
    $ transom kubeconfig --data-dir data --server https://api.example.org:6443 | grep server:
        server: https://api.example.org:6443
    $ transom kubeconfig --data-dir data > mine && kubectl --kubeconfig mine get namespaces -o name
    namespace/default
    namespace/kube-node-lease
    namespace/kube-public
    namespace/kube-system
    $ stat -c %a data/admin.kubeconfig
    600
    "#);
}

#[test]
fn a_service_manager_hears_that_the_server_is_ready_and_that_it_stops() {
    let server = Server::absent();
    let socket = UnixDatagram::bind(server.path("notify")).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let heard = |wanted: &str| {
        let mut message = [0; 4096];
        loop {
            let length = socket.recv(&mut message).unwrap();
            let text = String::from_utf8_lossy(&message[..length]);
            if text.lines().any(|line| line == wanted) {
                return;
            }
        }
    };
    let mut running = server
        .transom()
        .args(["server", "--data-dir", "data", "--store", "memory"])
        .args(["--listen", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", server.path("notify"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    heard("READY=1");
    // Whoever is told so finds it ready.
    server.ok("kubectl get namespaces");
    let id = i32::try_from(running.id()).unwrap();
    kill(Pid::from_raw(id), Signal::SIGTERM).unwrap();
    heard("STOPPING=1");
    assert!(running.wait().unwrap().success());
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let mut server = Server::start();
    server.stop();
    let format = server.path("data/state/format");
    let before = fs_err::read_to_string(&format).unwrap();
    fs_err::write(&format, "999\n").unwrap();
    assert_transcript!(server, "
        transom server --data-dir data --listen 127.0.0.1:0
        transom server check --data-dir data
        transom server backup file --data-dir data
    ", @"
    $ transom server --data-dir data --listen 127.0.0.1:[port]
    error: could not open the store
      caused by: the store in `[folder]/data/state` has format 999; this version reads up to 1
    [exit 1]
    $ transom server check --data-dir data
    error: the store in `[folder]/data/state` has format 999; this version reads up to 1
    [exit 1]
    $ transom server backup file --data-dir data
    error: the store in `[folder]/data/state` has format 999; this version reads up to 1
    [exit 1]
    ");
    fs_err::write(&format, before).unwrap();
    server.again();
    server.ok("kubectl get namespaces");
}
