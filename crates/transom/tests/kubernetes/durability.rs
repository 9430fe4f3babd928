//! What was acknowledged stays: over a stop, over a kill, through a backup; and secrets are not readable
//! on the disk.

use std::path::Path;

use crate::server::{Beside, Server};
use crate::transcript::assert_transcript;

#[test]
fn everything_is_there_after_a_stop_and_after_a_kill() {
    let mut server = Server::start();
    server.ok("kubectl apply -f nodes.yaml -f configmap.yaml -f deployment.yaml -f widgets.yaml");
    server.ok("kubectl wait --for=condition=Established crd/widgets.example.org --timeout=50s");
    server.ok("kubectl apply -f widget.yaml");
    // Made by a controller in every namespace, in its own time.
    for namespace in ["kube-node-lease", "kube-public", "kube-system"] {
        server.ok(&format!(
            "kubectl wait --for=create configmap/kube-root-ca.crt -n {namespace} --timeout=50s"
        ));
    }
    let all = "kubectl get nodes,configmaps,deployments,widgets,namespaces -A -o yaml --show-managed-fields";
    let before = server.ok(all);
    let status = server.stop();
    assert_eq!(status.code(), Some(0));
    server.again();
    assert_eq!(server.ok(all), before);
    server.kill();
    server.again();
    assert_eq!(server.ok(all), before);
}

#[test]
fn nothing_acknowledged_is_lost_by_a_crash_in_the_middle_of_writes() {
    let mut server = Server::start();
    let endless = "for number in $(seq 1000); do \
        kubectl create configmap item-$number --from-literal=a=1 || exit; done";
    let writes = Beside::start(server.program("sh").args(["-c", endless]));
    writes.until("item-5 created");
    server.kill();
    // What the client was told until the connection broke.
    let acknowledged: Vec<String> = std::iter::once("configmap/item-5 created".to_owned())
        .chain(writes.rest())
        .filter_map(|line| Some(line.strip_suffix(" created")?.to_owned()))
        .collect();
    server.again();
    let there = server.ok("kubectl get configmaps -o name");
    for name in &acknowledged {
        assert!(
            there.lines().any(|line| line == name),
            "{name} is not in:\n{there}"
        );
    }
    for number in 1..=5 {
        assert!(
            there.contains(&format!("configmap/item-{number}\n")),
            "{there}"
        );
    }
}

#[test]
fn an_open_watch_goes_on_after_a_restart() {
    let mut server = Server::start();
    server.ok("kubectl create -f configmap.yaml");
    // A watch of kubectl that ends by itself begins again where it was.
    let wait = "exec kubectl wait --for=jsonpath={.data.colour}=red configmap/settings --timeout=110s -v=6 2>&1";
    let waiting = Beside::start(server.program("sh").args(["-c", wait]));
    waiting.until("watch=true");
    server.stop();
    server.again();
    server.ok("kubectl patch configmap settings --type=merge -p '{\"data\":{\"colour\":\"red\"}}'");
    waiting.until("configmap/settings condition met");
}

#[test]
fn a_store_in_memory_is_empty_after_a_stop() {
    let mut server = Server::start_with("memory");
    server.ok("kubectl create -f configmap.yaml");
    server.stop();
    server.again();
    let (text, code) = server.shell("kubectl get configmap settings");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("NotFound"), "{text}");
}

#[test]
fn a_store_is_checked_backed_up_and_restored() {
    let mut server = Server::start();
    server.ok("kubectl create -f configmap.yaml");
    server.ok("kubectl create secret generic login --from-literal=password=swordfish");
    assert_transcript!(server, "
        transom server check --data-dir data
        transom server backup online --data-dir data
        kubectl get --raw /transom/backup > online && echo written
        kubectl get --raw /transom/backup --as=jane
    ", @r#"
    $ transom server check --data-dir data
    error: the store in `[folder]/data/state` is in use by another process
      hint: stop the server first; the store has one user at a time
    [exit 1]
    $ transom server backup online --data-dir data
    error: the store in `[folder]/data/state` is in use by another process
      hint: stop the server first, or back it up through its API: kubectl get --raw /transom/backup
    [exit 1]
    $ kubectl get --raw /transom/backup > online && echo written
    written
    $ kubectl get --raw /transom/backup --as=jane
    Error from server (Forbidden): forbidden: User "jane" cannot get path "/transom/backup"
    [exit 1]
    "#);
    assert_eq!(server.stop().code(), Some(0));
    assert_transcript!(server, "
        transom server check --data-dir data -o json | grep -E 'fault'
        transom server backup offline --data-dir data
        transom server backup offline --data-dir data
        transom server restore offline --data-dir data
        transom server check --data-dir nowhere
        transom server restore nothing --data-dir other
        echo nonsense > broken; transom server restore broken --data-dir other
    ", @r#"
    $ transom server check --data-dir data -o json | grep -E 'fault'
      "faults": [],
      "faultCount": 0
    $ transom server backup offline --data-dir data
    offline holds the store at revision [revision]
    $ transom server backup offline --data-dir data
    error: `offline` exists
      hint: choose another name, or move the old backup away
    [exit 1]
    $ transom server restore offline --data-dir data
    error: `data/state` is not empty
      hint: move the old store away first: it is in data/state
    [exit 1]
    $ transom server check --data-dir nowhere
    error: the store is damaged at `nowhere/state`: there is no store
    [exit 1]
    $ transom server restore nothing --data-dir other
    error: could not open `nothing`
      caused by: failed to open file `nothing`: No such file or directory (os error 2)
    [exit 1]
    $ echo nonsense > broken; transom server restore broken --data-dir other
    error: the store is damaged at `broken`: it is no backup of a store
    [exit 1]
    "#);
    for file in ["online", "offline"] {
        fs_err::rename(
            server.path("data/state"),
            server.path(format!("before-{file}")),
        )
        .unwrap();
        server.ok(&format!("transom server restore {file} --data-dir data"));
        server.ok("transom server check --data-dir data");
        server.again();
        assert_eq!(
            server.ok("kubectl get configmap settings -o jsonpath='{.data.colour}'"),
            "blue"
        );
        let secret =
            server.ok("kubectl get secret login -o jsonpath='{.data.password}' | base64 -d");
        assert_eq!(secret, "swordfish");
        server.stop();
    }
}

#[test]
fn secrets_are_not_readable_on_the_disk() {
    let mut server = Server::start();
    let plain = "correct-horse-battery-staple";
    server.ok(&format!(
        "kubectl create secret generic login --from-literal=password={plain}"
    ));
    server.ok("kubectl create configmap visible --from-literal=a=quite-visible-to-anybody");
    server.ok("kubectl get --raw /transom/backup > data/online");
    server.stop();
    let encoded = server.ok(&format!("printf %s {plain} | base64 -w0"));
    let files = files_below(&server.path("data"));
    let holders = |text: &str| {
        files
            .iter()
            .filter(|bytes| has(bytes, text.as_bytes()))
            .count()
    };
    assert!(
        holders("quite-visible-to-anybody") > 0,
        "the search finds what is there"
    );
    assert_eq!(holders(plain), 0);
    assert_eq!(holders(&encoded), 0);
}

fn files_below(folder: &Path) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(fs_err::read(&path).unwrap());
        }
    }
    files
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
