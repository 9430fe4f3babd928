//! Who is answered by the agent's server, over real connections.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use reqwest::{Certificate, Client, ClientBuilder, Identity, StatusCode};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use transom_agent::Listen;
use transom_model::Os;
use transom_runtime::fake::Plan;

use crate::cluster::{Cluster, PATIENCE, phase, when};

struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut wishes = CertificateParams::new(Vec::new()).unwrap();
        wishes.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = wishes.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(wishes, key),
        }
    }

    /// A certificate and its key.
    fn issue(
        &self,
        name: &str,
        organization: &str,
        purpose: ExtendedKeyUsagePurpose,
    ) -> (rcgen::Certificate, KeyPair) {
        let mut wishes = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        wishes.distinguished_name = DistinguishedName::new();
        wishes.distinguished_name.push(DnType::CommonName, name);
        wishes
            .distinguished_name
            .push(DnType::OrganizationName, organization);
        wishes.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        (wishes.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn server(&self) -> ServerConfig {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .unwrap();
        let (certificate, key) =
            self.issue("node", "system:nodes", ExtendedKeyUsagePurpose::ServerAuth);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }

    fn client(&self) -> ClientBuilder {
        let root = Certificate::from_pem(self.certificate.pem().as_bytes()).unwrap();
        Client::builder().tls_certs_only([root]).no_proxy()
    }

    fn client_of(&self, name: &str, organization: &str) -> Client {
        let (certificate, key) =
            self.issue(name, organization, ExtendedKeyUsagePurpose::ClientAuth);
        let both = certificate.pem() + &key.serialize_pem();
        self.client()
            .identity(Identity::from_pem(both.as_bytes()).unwrap())
            .build()
            .unwrap()
    }
}

async fn ready(client: &Client, address: SocketAddr) {
    let up = async {
        while client
            .get(format!("https://{address}/healthz"))
            .send()
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, up).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_the_cluster_knows_and_allows_are_answered() {
    let authority = Authority::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut cluster = Cluster::new(Os::Linux, |_, _| Plan::default()).await;
    cluster.listen = Some(Listen {
        address,
        tls: Arc::new(authority.server()),
    });
    cluster.start();
    cluster
        .pod(
            "web",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;

    let anonymous = authority.client().build().unwrap();
    let master = authority.client_of("kube-apiserver-kubelet-client", "system:masters");
    let stranger = authority.client_of("somebody", "nobodies");
    ready(&anonymous, address).await;
    let code = async |client: &Client, path: &str| {
        client
            .get(format!("https://{address}{path}"))
            .send()
            .await
            .unwrap()
            .status()
    };
    assert_eq!(code(&anonymous, "/healthz").await, StatusCode::OK);
    for path in [
        "/pods",
        "/metrics",
        "/stats/summary",
        "/exec/default/web/main?command=x&output=1",
        "/nothing",
    ] {
        assert_eq!(
            code(&anonymous, path).await,
            StatusCode::UNAUTHORIZED,
            "{path}"
        );
        assert_eq!(code(&stranger, path).await, StatusCode::FORBIDDEN, "{path}");
    }
    let other = Authority::new().client_of("fake", "system:masters");
    assert!(
        other
            .get(format!("https://{address}/pods"))
            .send()
            .await
            .is_err()
    );

    let bytes = master
        .get(format!("https://{address}/pods"))
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let pods: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(pods["items"][0]["metadata"]["name"], "web");
    let text = async |path: &str| {
        let answer = master.get(format!("https://{address}{path}")).send().await;
        answer.unwrap().text().await.unwrap()
    };
    let measured = async {
        loop {
            let summary: Value = serde_json::from_str(&text("/stats/summary").await).unwrap();
            let used = &summary["pods"][0]["containers"][0]["cpu"];
            if used["usageNanoCores"].is_number() {
                return summary;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let summary = tokio::time::timeout(PATIENCE, measured).await.unwrap();
    assert_eq!(summary["pods"][0]["podRef"]["name"], "web");
    assert_eq!(summary["node"]["memory"]["availableBytes"], 3_u64 << 30);
    let resources = text("/metrics/resource").await;
    let wanted = "pod_memory_working_set_bytes{namespace=\"default\",pod=\"web\"} 16777216 ";
    assert!(resources.contains(wanted), "{resources}");
    assert!(text("/metrics").await.contains("kubelet_desired_pods 1\n"));
    assert_eq!(
        code(&master, "/exec/default/web/main?output=1").await,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        code(&master, "/exec/default/web/main?command=x").await,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        code(&master, "/exec/default/none/main?command=x&output=1").await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        code(&master, "/containerLogs/default/web/none").await,
        StatusCode::BAD_REQUEST
    );
}
