//! A machine that joins with the real binary, and stays a node when the certificate that it joined with ends.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::server::{LIMIT, Server};

const NODE: &str = "joined";

/// An agent that ends with the test.
struct Agent(Option<Child>);

impl Agent {
    fn start(server: &Server, token: Option<&str>) -> Self {
        let log = fs_err::File::create(server.path("agent.log")).unwrap();
        let mut command = server.transom();
        command
            .args(["agent", "--runtime=process", "--listen=127.0.0.1:0"])
            .args(["--address=127.0.0.1", "--data-dir=node"])
            .arg(format!("--server=https://{}", server.address()))
            .arg(format!("--node-name={NODE}"))
            .stdout(Stdio::null())
            .stderr(log.into_parts().0);
        if let Some(token) = token {
            command.env("TRANSOM_TOKEN", token);
        }
        Self(Some(command.spawn().unwrap()))
    }

    fn stop(&mut self) {
        let mut child = self.0.take().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        kill(Pid::from_raw(id), Signal::SIGTERM).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended already; there is nobody to tell.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn eventually(server: &Server, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        let said = fs_err::read_to_string(server.path("agent.log")).unwrap_or_default();
        assert!(
            Instant::now() < end,
            "{what} did not come; it said:\n{said}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn is_ready(server: &Server) -> bool {
    let path = "jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}'";
    let (text, code) = server.shell(&format!("kubectl get node {NODE} -o {path}"));
    code == 0 && text == "True"
}

/// Gives the node a certificate for the key that it has, with little of its life left.
fn shorten(server: &Server, left: Duration) -> PathBuf {
    let authority = fs_err::read_to_string(server.path("data/pki/authority.pem")).unwrap();
    let key = KeyPair::from_pem(&authority[authority.find("-----BEGIN PRIVATE").unwrap()..]);
    let issuer = Issuer::from_ca_cert_pem(&authority, key.unwrap()).unwrap();
    let path = server.path("node/pki/client.pem");
    let pair = fs_err::read_to_string(&path).unwrap();
    let own = &pair[pair.find("-----BEGIN PRIVATE").unwrap()..];
    let mut wanted = CertificateParams::default();
    wanted.distinguished_name = DistinguishedName::new();
    let name = &mut wanted.distinguished_name;
    name.push(DnType::OrganizationName, "system:nodes");
    name.push(DnType::CommonName, format!("system:node:{NODE}"));
    wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let now = SystemTime::now();
    // Past nine tenths of its life.
    wanted.not_before = (now - left * 10).into();
    wanted.not_after = (now + left).into();
    let signed = wanted.signed_by(&KeyPair::from_pem(own).unwrap(), &issuer);
    fs_err::write(&path, format!("{}{own}", signed.unwrap().pem())).unwrap();
    path
}

#[test]
fn an_agent_renews_its_certificate_and_stays_a_node() {
    let server = Server::start();
    let token = server.ok("transom token create");
    let mut agent = Agent::start(&server, Some(token.trim()));
    eventually(&server, "the node", || is_ready(&server));
    agent.stop();

    let left = Duration::from_secs(45);
    let path = shorten(&server, left);
    let short = fs_err::read_to_string(&path).unwrap();
    let end = Instant::now() + left;
    let _agent = Agent::start(&server, None);
    eventually(&server, "the new certificate", || {
        fs_err::read_to_string(&path).unwrap() != short
    });
    let requests = server.ok(
        "kubectl get certificatesigningrequests -o jsonpath='{range .items[*]}{.spec.username} {.status.conditions[0].message}{\"\\n\"}{end}'",
    );
    let by_itself = format!(
        "system:node:{NODE} Auto approving self kubelet client certificate after SubjectAccessReview."
    );
    assert!(requests.contains(&by_itself), "{requests}");

    // The old one is of no use any more, and the node goes on telling that it lives.
    let lease = || {
        server.ok(&format!(
            "kubectl get lease {NODE} -n kube-node-lease -o jsonpath='{{.spec.renewTime}}'"
        ))
    };
    eventually(&server, "the end of the old certificate", || {
        Instant::now() > end + Duration::from_secs(1)
    });
    let before = lease();
    eventually(&server, "a sign of life", || lease() != before);
    assert!(is_ready(&server));
}

#[test]
fn an_agent_whose_certificate_ended_says_what_to_do() {
    let server = Server::start();
    let token = server.ok("transom token create");
    let mut agent = Agent::start(&server, Some(token.trim()));
    eventually(&server, "the node", || is_ready(&server));
    agent.stop();
    shorten(&server, Duration::from_secs(1));
    std::thread::sleep(Duration::from_secs(3));

    let line = format!(
        "transom agent --runtime=process --listen=127.0.0.1:0 --address=127.0.0.1 --data-dir=node --node-name={NODE} --server=https://{}",
        server.address()
    );
    let (text, code) = server.shell(&line);
    assert_ne!(code, 0, "{text}");
    assert!(text.contains("has expired"), "{text}");
    assert!(text.contains("transom token create"), "{text}");
    // With a token it joins again.
    let short = fs_err::read_to_string(server.path("node/pki/client.pem")).unwrap();
    let _agent = Agent::start(&server, Some(token.trim()));
    eventually(&server, "the new certificate", || {
        fs_err::read_to_string(server.path("node/pki/client.pem")).unwrap() != short
    });
}
