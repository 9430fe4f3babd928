//! Keys of a server: new ones, and the end of old ones. Invariant: whatever happens to keys, what was stored can be
//! read, or the keys are still there.

use serde_json::Value;

use crate::server::Server;
use crate::transcript::assert_transcript;

const WORD: &str = "kubectl get secret old -o jsonpath='{.data.word}' | base64 -d";

/// The keys of one purpose, the newest first.
fn keys(server: &Server, purpose: &str) -> Vec<String> {
    let text = server.ok("transom server keys list --data-dir data -o json");
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let ids = all.iter().filter(|key| key["purpose"] == purpose);
    ids.map(|key| key["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn secrets_outlive_a_new_key_and_the_end_of_the_old_one() {
    let mut server = Server::start();
    server.ok("kubectl create secret generic old --from-literal=word=sesame");
    let first = keys(&server, "secrets");
    assert_eq!(first.len(), 1);
    assert_transcript!(server, "
        transom server keys rotate secrets --data-dir data
        transom server keys retire secrets --data-dir data
        transom server keys rotate secrets --data-dir nowhere
        transom server keys list --data-dir nowhere
    ", @"
    $ transom server keys rotate secrets --data-dir data
    error: another server uses the folder `data`
      hint: stop the server first; pods go on meanwhile
    [exit 1]
    $ transom server keys retire secrets --data-dir data
    error: another server uses the folder `data`
      hint: stop the server first; pods go on meanwhile
    [exit 1]
    $ transom server keys rotate secrets --data-dir nowhere
    error: there are no keys of a server in `nowhere`
      hint: say with --data-dir where the server keeps its things
    [exit 4]
    $ transom server keys list --data-dir nowhere
    error: there are no keys of a server in `nowhere`
      hint: say with --data-dir where the server keeps its things
    [exit 4]
    ");
    server.stop();
    assert_transcript!(server, "
        transom server keys rotate secrets --data-dir data --dry-run
        transom server keys rotate secrets --data-dir data
    ", @"
    $ transom server keys rotate secrets --data-dir data --dry-run
    a new key for secrets would be made; 1 before it would stay good
    $ transom server keys rotate secrets --data-dir data
    there is a new key for secrets
    start the server: it encrypts all secrets with it; then retire the older keys
    ");
    let both = keys(&server, "secrets");
    assert_eq!((both.len(), &both[1]), (2, &first[0]));

    server.again();
    assert_eq!(server.ok(WORD), "sesame");
    server.ok("kubectl create secret generic new --from-literal=word=abracadabra");
    server.stop();
    // A dry run names what would go, and it stays.
    let said = server.ok("transom server keys retire secrets --data-dir data --dry-run");
    assert_eq!(
        said,
        format!("{} for secrets would be forgotten\n", first[0])
    );
    assert_eq!(keys(&server, "secrets"), both);
    let said = server.ok("transom server keys retire secrets --data-dir data");
    assert!(
        said.ends_with(&format!("{} for secrets is forgotten\n", first[0])),
        "{said}"
    );
    assert_eq!(keys(&server, "secrets"), both[..1]);
    let said = server.ok("transom server keys retire secrets --data-dir data");
    assert_eq!(said, "there is one key for secrets only\n");

    server.again();
    assert_eq!(server.ok(WORD), "sesame");
    assert_eq!(
        server.ok("kubectl get secret new -o jsonpath='{.data.word}' | base64 -d"),
        "abracadabra"
    );
}

#[test]
fn a_key_is_kept_when_a_secret_cannot_be_read() {
    let mut server = Server::start();
    server.ok("kubectl create secret generic old --from-literal=word=sesame");
    server.stop();
    server.ok("transom server keys rotate secrets --data-dir data");
    // The right key is lost: what it sealed cannot be sealed anew.
    let file = server.path("data/pki/encryption.keys");
    let text = fs_err::read_to_string(&file).unwrap();
    let newest = text.lines().next().unwrap();
    let strange = format!("{newest}\n0011223344556677 {}\n", "A".repeat(43) + "=");
    fs_err::write(&file, &strange).unwrap();
    let (said, code) = server.shell("transom server keys retire secrets --data-dir data");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("which is not in the ring"), "{said}");
    assert_eq!(fs_err::read_to_string(&file).unwrap(), strange);
}

#[test]
fn tokens_and_certificates_end_with_the_key_that_signed_them() {
    let mut server = Server::start();
    server.ok("kubectl create serviceaccount robot");
    let whoami = |server: &Server, name: &str| {
        let token = fs_err::read_to_string(server.path(name)).unwrap();
        let header = format!("Authorization: Bearer {}", token.trim());
        let answer = server.fetch("/api", &["--header", &header]).stdout;
        let text = String::from_utf8(answer).unwrap();
        text.lines().last().unwrap().to_owned()
    };
    server.ok("kubectl create token robot > before");
    fs_err::copy(server.path("data/admin.kubeconfig"), server.path("admin")).unwrap();
    server.stop();
    server.ok("transom server keys rotate tokens --data-dir data");
    server.ok("transom server keys rotate authority --data-dir data");
    assert_eq!(keys(&server, "tokens").len(), 2);
    assert_eq!(keys(&server, "authority").len(), 2);
    server.again();
    server.ok("kubectl create token robot > after");
    let both = ["before", "after"].map(|name| whoami(&server, name));
    assert_eq!(both, ["200", "200"]);
    // The old certificate of the administrator is good as long as its authority is trusted.
    let old = "kubectl --kubeconfig=admin --insecure-skip-tls-verify get namespaces";
    fs_err::write(
        server.path("admin"),
        fs_err::read_to_string(server.path("admin"))
            .unwrap()
            .lines()
            .filter(|line| !line.contains("certificate-authority-data"))
            .collect::<Vec<_>>()
            .join("\n"),
    )
    .unwrap();
    server.ok(old);
    server.stop();
    server.ok("transom server keys retire tokens --data-dir data");
    server.ok("transom server keys retire authority --data-dir data");
    assert_eq!(keys(&server, "tokens").len(), 1);
    assert_eq!(keys(&server, "authority").len(), 1);
    server.again();
    let both = ["before", "after"].map(|name| whoami(&server, name));
    assert_eq!(both, ["401", "200"]);
    let (text, code) = server.shell(old);
    assert_ne!(code, 0, "{text}");
    server.ok("kubectl get namespaces");
}
