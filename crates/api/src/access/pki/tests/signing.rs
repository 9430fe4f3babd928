//! Requests that break a rule, and certificates for those that keep them all.

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use super::{super::signing::SigningFault, *};

const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

fn params(common_name: &str, organization: &str, names: &[SanType]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if !organization.is_empty() {
        let name = &mut params.distinguished_name;
        name.push(DnType::OrganizationName, organization);
    }
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.subject_alt_names = names.to_vec();
    params
}

fn request(params: &CertificateParams, signer: &str, usages: &[&str]) -> Value {
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({"spec": {
        "signerName": signer,
        "request": STANDARD.encode(pem),
        "usages": usages,
    }})
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn pki() -> Pki {
    start(&FakeFiles::new(Os::Linux), names(), moment()).unwrap()
}

const CLIENT: [&str; 2] = ["digital signature", "client auth"];
const SERVING: [&str; 3] = ["digital signature", "key encipherment", "server auth"];

#[test]
fn requests_that_break_a_rule_are_refused() {
    let pki = pki();
    let node = params("system:node:a", "system:nodes", &[]);
    let named = params("system:node:a", "system:nodes", &[dns("a")]);
    let mailed = params(
        "system:node:a",
        "system:nodes",
        &[dns("a"), SanType::Rfc822Name("a@b".try_into().unwrap())],
    );
    let serving = |name: SanType| params("system:node:a", "system:nodes", &[dns("a"), name]);
    let mut broken = request(&node, KUBELET_CLIENT, &CLIENT);
    let text = broken["spec"]["request"].as_str().unwrap();
    let text = String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = lines.len() - 2;
    lines[last] = lines[last].chars().rev().collect();
    broken["spec"]["request"] = STANDARD.encode(lines.join("\n")).into();
    let mut garbage = broken.clone();
    garbage["spec"]["request"] = "AAAA".into();
    let mut huge = broken.clone();
    huge["spec"]["request"] = "A".repeat(100_000).into();
    let mut reasons = Vec::new();
    for object in [
        json!({}),
        request(&node, "example.com/other", &CLIENT),
        garbage,
        huge,
        request(&node, KUBELET_CLIENT, &["client auth"]),
        request(
            &node,
            KUBELET_CLIENT,
            &["digital signature", "client auth", "server auth"],
        ),
        request(&node, API_CLIENT, &["digital signature"]),
        request(&params("bob", "system:masters", &[]), API_CLIENT, &CLIENT),
        request(&params("", "dev", &[]), API_CLIENT, &CLIENT),
        request(
            &params("system:node:a", "dev", &[]),
            KUBELET_CLIENT,
            &CLIENT,
        ),
        request(&params("a", "system:nodes", &[]), KUBELET_CLIENT, &CLIENT),
        request(
            &params("system:node:", "system:nodes", &[]),
            KUBELET_CLIENT,
            &CLIENT,
        ),
        request(&named, KUBELET_CLIENT, &CLIENT),
        request(&node, KUBELET_SERVING, &SERVING),
        request(&mailed, KUBELET_SERVING, &SERVING),
        request(
            &serving(dns("kubernetes.default.svc")),
            KUBELET_SERVING,
            &SERVING,
        ),
        request(&serving(dns("*.example")), KUBELET_SERVING, &SERVING),
        request(
            &serving(SanType::IpAddress(FIRST_SERVICE_ADDRESS)),
            KUBELET_SERVING,
            &SERVING,
        ),
        request(&named, KUBELET_SERVING, &CLIENT),
    ] {
        let fault = pki.sign_request(&object, moment()).unwrap_err();
        reasons.push(fault.to_string());
    }
    insta::assert_snapshot!(reasons.join("\n"), @r"
    the signer `` is not one of ours
    the signer `example.com/other` is not one of ours
    unable to parse csr
    the request is too long
    usages did not match the rules of the signer
    usages did not match the rules of the signer
    usages did not match the rules of the signer
    use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed
    the subject has no common name
    subject organization is not system:nodes
    subject common name does not begin with system:node:
    subject common name does not begin with system:node:
    DNS SANs are not allowed
    DNS or IP subjectAltName is required
    Email SANs are not allowed
    the names of the API server are not for nodes
    the names of the API server are not for nodes
    the names of the API server are not for nodes
    usages did not match the rules of the signer
    ");
    let fault = pki.sign_request(&broken, moment()).unwrap_err();
    assert!(matches!(fault, SigningFault::Refused { .. }), "{fault:?}");
}

#[test]
fn a_request_for_rights_that_no_signer_gives_changes_nothing() {
    let pki = pki();
    let mut wanted = params("bob", "dev", &[dns("bob.example")]);
    wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let custom = CustomExtension::from_oid_content(&[1, 2, 3], vec![5, 0]);
    wanted.custom_extensions = vec![custom];
    let object = request(&wanted, API_CLIENT, &CLIENT);
    let text = pki.sign_request(&object, moment()).unwrap();
    let der = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
    let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
    assert!(rest.is_empty());
    assert!(!certificate.is_ca());
    assert_eq!(certificate.extensions().len(), 5);
    let issuer_text = pki.authorities_pem();
    let issuer = CertificateDer::from_pem_slice(issuer_text.as_bytes()).unwrap();
    let (_, issuer) = X509Certificate::from_der(&issuer).unwrap();
    certificate
        .verify_signature(Some(issuer.public_key()))
        .unwrap();
    assert_eq!(certificate.subject().to_string(), "O=dev, CN=bob");
    let usage = certificate.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && !usage.key_encipherment() && !usage.key_cert_sign());
    let purpose = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(purpose.client_auth && !purpose.server_auth && !purpose.any);
}

#[test]
fn every_group_of_a_request_is_kept() {
    let pki = pki();
    let mut wanted = params("bob", "dev", &[]);
    // The same type by its number: a second organization beside the first.
    let organization = DnType::CustomDnType(vec![2, 5, 4, 10]);
    wanted.distinguished_name.push(organization.clone(), "ops");
    let object = request(&wanted, API_CLIENT, &CLIENT);
    let text = pki.sign_request(&object, moment()).unwrap();
    let der = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
    let user = crate::access::authentication::user_of_certificate(&der, moment()).unwrap();
    assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
    wanted
        .distinguished_name
        .push(organization, "system:masters");
    let object = request(&wanted, API_CLIENT, &CLIENT);
    pki.sign_request(&object, moment()).unwrap_err();
}

#[test]
fn a_life_is_what_was_asked_for_within_bounds() {
    let pki = pki();
    let now = Timestamp::from_second(moment().as_second()).unwrap();
    let life = |seconds: Option<i64>, now: Timestamp| {
        let node = params("system:node:a", "system:nodes", &[]);
        let mut object = request(&node, KUBELET_CLIENT, &CLIENT);
        object["spec"]["expirationSeconds"] = seconds.into();
        let text = pki.sign_request(&object, now).unwrap();
        let der = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
        let (begins, ends) = authority::validity(&der).unwrap();
        assert_eq!(begins, now - SignedDuration::from_mins(5));
        ends.duration_since(now).as_secs()
    };
    assert_eq!(life(None, now), 365 * 24 * 3600);
    assert_eq!(life(Some(3600), now), 3600);
    assert_eq!(life(Some(1), now), 600);
    assert_eq!(life(Some(-5), now), 600);
    assert_eq!(life(Some(i64::MAX), now), 365 * 24 * 3600);
    let late = now + days(3649);
    assert!(life(None, late) <= 24 * 3600, "it outlasts the authority");
}

#[tokio::test]
async fn a_signed_certificate_opens_a_connection() {
    let pki = pki();
    let key = KeyPair::generate().unwrap();
    let node = params("system:node:a", "system:nodes", &[]);
    let pem = node.serialize_request(&key).unwrap().pem().unwrap();
    let object = json!({"spec": {
        "signerName": KUBELET_CLIENT, "request": STANDARD.encode(pem), "usages": CLIENT,
    }});
    let certificate = pki.sign_request(&object, moment()).unwrap();
    let identity = Identity::of_file(&format!("{certificate}{}", key.serialize_pem())).unwrap();
    let client = handshake::client(&pki.authorities_pem(), Some(&identity));
    let server = pki.server_config().unwrap();
    let (_, seen) = handshake::handshake(server, client, "localhost")
        .await
        .unwrap();
    let user = crate::access::authentication::user_of_certificate(&seen.unwrap(), moment());
    let user = user.unwrap();
    assert_eq!(user.node_name(), Some("a"));
}
