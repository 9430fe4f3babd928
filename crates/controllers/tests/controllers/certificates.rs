//! Requests for certificates, approved and signed.

use std::sync::Arc;

use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use transom_controllers::{Options, Signer, Unsigned};

use crate::cluster::{Cluster, create, when};

#[derive(Debug)]
struct Pen;

impl Signer for Pen {
    fn sign(&self, request: &Value) -> Result<String, Unsigned> {
        match request["metadata"]["name"].as_str() {
            Some("refused") => Err(Unsigned::Refused("no".to_owned())),
            _ => Ok("-----BEGIN CERTIFICATE-----\n".to_owned()),
        }
    }
}

fn request(common: &str, organization: &str) -> ByteString {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::default();
    let subject = &mut parameters.distinguished_name;
    subject.push(DnType::CommonName, common);
    subject.push(DnType::OrganizationName, organization);
    let request = parameters.serialize_request(&key).unwrap();
    ByteString(request.pem().unwrap().into_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_certificate_of_a_node_is_approved_and_signed_and_others_wait() {
    let cluster = Cluster::with(Options {
        signer: Some(Arc::new(Pen)),
        ..Options::default()
    })
    .await;
    let requests = cluster.all::<CertificateSigningRequest>();
    for (name, organization) in [
        ("other", "system:others"),
        ("node", "system:nodes"),
        ("refused", "system:nodes"),
    ] {
        let value = json!({
            "metadata": {"name": name},
            "spec": {
                "request": request("system:node:one", organization),
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "usages": ["digital signature", "client auth"],
            },
        });
        create(&requests, value).await;
    }
    let condition = |request: &CertificateSigningRequest| {
        let status = request.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let last = conditions.last();
        last.map(|each| (each.type_.clone(), each.reason.clone().unwrap_or_default()))
    };
    let signed = when(&requests, "node", |request| {
        let status = request.status.as_ref();
        status.is_some_and(|status| status.certificate.is_some())
    })
    .await;
    let approved = ("Approved".to_owned(), "AutoApproved".to_owned());
    assert_eq!(condition(&signed), Some(approved));
    let failed = ("Failed".to_owned(), "SignerValidationFailure".to_owned());
    when(&requests, "refused", |each| {
        condition(each).as_ref() == Some(&failed)
    })
    .await;
    assert_eq!(condition(&requests.get("other").await.unwrap()), None);
    cluster.stop().await;
}
