//! The files of the folder.

mod handshake;
mod signing;

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use camino::{Utf8Path, Utf8PathBuf};
use jiff::{SignedDuration, Timestamp};
use transom_host::{
    access::fake::FakeAccess,
    files::{
        Access, Files,
        fake::FakeFiles,
        fault::{Place, Plan, arm_thread},
    },
};
use transom_model::os::Os;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;

const FOLDER: &str = "/data/pki";

fn moment() -> Timestamp {
    Timestamp::now()
}

fn names() -> ServingNames {
    ServingNames::standard()
        .with("Node-1.example.")
        .with("192.0.2.7")
}

fn start(files: &FakeFiles, names: ServingNames, now: Timestamp) -> Result<Pki, PkiError> {
    let permissions = FakeAccess::default();
    permissions.add_file(FOLDER);
    let files: Arc<dyn Files> = Arc::new(files.clone());
    Pki::ensure(files, &permissions, Utf8Path::new(FOLDER), names, now)
}

fn read(files: &FakeFiles, name: &str) -> Option<Vec<u8>> {
    files.read(&path_of(name), 1 << 20).ok()
}

fn path_of(name: &str) -> Utf8PathBuf {
    // The folder is on an imaginary Linux, also where the tests run on Windows.
    format!("{FOLDER}/{name}").into()
}

fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

#[test]
fn a_second_start_changes_nothing() {
    let files = FakeFiles::new(Os::Linux);
    let first = start(&files, names(), moment()).unwrap();
    let files_after_first = ALL.map(|name| read(&files, name));
    let second = start(&files, names(), moment()).unwrap();
    assert_eq!(files_after_first, ALL.map(|name| read(&files, name)));
    assert!(files_after_first.iter().all(Option::is_some));
    assert_eq!(first.authorities_pem(), second.authorities_pem());
    for secret in SECRET {
        let mode = files.metadata(&path_of(secret)).unwrap().mode;
        assert_eq!(mode, Some(0o600), "{secret}");
    }
}

#[test]
fn a_start_that_died_at_any_point_is_completed_by_the_next() {
    let now = moment();
    for point in 1.. {
        let files = FakeFiles::new(Os::Linux);
        let died = {
            let _plan = arm_thread(Plan::Halt(Place::Nth(point)));
            start(&files, names(), now).is_err()
        };
        if !died {
            assert!(point > 20, "only {point} points: the files pass none");
            return;
        }
        files.crash();
        let authority = read(&files, folder::AUTHORITY);
        let pki = start(&files, names(), now).unwrap();
        assert!(authority.is_none() || authority == read(&files, folder::AUTHORITY));
        assert_eq!(pki.renew(now).unwrap(), Renewed::default());
        let left = files.names(Utf8Path::new(FOLDER)).unwrap();
        assert_eq!(left.len(), ALL.len(), "{left:?}");
    }
}

#[test]
fn a_damaged_authority_is_an_error_and_stays_as_it_is() {
    let files = FakeFiles::new(Os::Linux);
    start(&files, names(), moment()).unwrap();
    for file in [folder::AUTHORITY, folder::SERVICE_ACCOUNT] {
        let files = files.duplicate();
        for damage in [
            &b"\xff\xfe"[..],
            b"",
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n",
        ] {
            let path = path_of(file);
            files.write_durable(&path, damage, Access::Secret).unwrap();
            let error = start(&files, names(), moment()).unwrap_err();
            assert!(matches!(error, PkiError::Damaged { .. }), "{error:?}");
            assert_eq!(read(&files, file).unwrap(), damage);
        }
    }
}

#[test]
fn a_lost_authority_is_not_replaced_behind_everyones_back() {
    let files = FakeFiles::new(Os::Linux);
    start(&files, names(), moment()).unwrap();
    files.remove_file(&path_of(folder::AUTHORITY)).unwrap();
    let error = start(&files, names(), moment()).unwrap_err();
    assert!(
        matches!(error, PkiError::AuthorityMissing { .. }),
        "{error:?}"
    );
}

#[test]
fn an_authority_that_ended_or_has_not_begun_is_refused() {
    let files = FakeFiles::new(Os::Linux);
    let now = moment();
    start(&files, names(), now).unwrap();
    for wrong in [now + days(3651), now - days(1)] {
        let error = start(&files, names(), wrong).unwrap_err();
        assert!(
            matches!(error, PkiError::AuthorityNotValid { .. }),
            "{error:?}"
        );
    }
}

#[test]
fn a_certificate_is_renewed_in_the_last_third_of_its_life() {
    let files = FakeFiles::new(Os::Linux);
    let now = moment();
    let pki = start(&files, names(), now).unwrap();
    let both = Renewed {
        server: true,
        admin: true,
        trusted: false,
    };
    assert_eq!(pki.renew(now + days(240)).unwrap(), Renewed::default());
    assert_eq!(pki.renew(now + days(245)).unwrap(), both);
    assert_eq!(pki.renew(now + days(246)).unwrap(), Renewed::default());
    assert_eq!(pki.renew(now + days(3500)).unwrap(), both);
    let server = folder_identity(&files, folder::SERVER);
    let (_, ends) = authority::validity(server.certificate().unwrap()).unwrap();
    assert!(
        ends <= now + days(3650),
        "a certificate outlasts its issuer"
    );
}

#[test]
fn other_names_get_another_serving_certificate_and_nothing_else() {
    let files = FakeFiles::new(Os::Linux);
    start(&files, names(), moment()).unwrap();
    let before = ALL.map(|name| read(&files, name));
    start(&files, names().with("other.example"), moment()).unwrap();
    let after = ALL.map(|name| read(&files, name));
    let changed = (0..ALL.len()).filter(|index| before[*index] != after[*index]);
    let changed: Vec<&str> = changed.map(|index| ALL[index]).collect();
    assert_eq!(changed, [folder::SERVER]);
    let server = folder_identity(&files, folder::SERVER);
    let (_, certificate) = X509Certificate::from_der(server.certificate().unwrap()).unwrap();
    let alternatives = certificate.subject_alternative_name().unwrap().unwrap();
    let names: Vec<String> = alternatives
        .value
        .general_names
        .iter()
        .map(ToString::to_string)
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    DNSName(kubernetes)
    DNSName(kubernetes.default)
    DNSName(kubernetes.default.svc)
    DNSName(kubernetes.default.svc.cluster.local)
    DNSName(localhost)
    DNSName(node-1.example)
    DNSName(other.example)
    IPAddress(0a:2b:00:01)
    IPAddress(7f:00:00:01)
    IPAddress(c0:00:02:07)
    IPAddress(00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01)
    ");
}

#[test]
fn a_name_that_no_certificate_can_hold_is_an_error() {
    let long = "a".repeat(64);
    for name in [
        "bücher.example",
        "",
        "a b",
        "a..b",
        "*",
        "a.*.b",
        long.as_str(),
    ] {
        let error = start(&FakeFiles::new(Os::Linux), names().with(name), moment());
        assert!(matches!(error, Err(PkiError::Name { .. })), "{name}");
    }
    start(
        &FakeFiles::new(Os::Linux),
        names().with("*.a_b.example"),
        moment(),
    )
    .unwrap();
}

#[test]
fn damaged_or_foreign_certificates_are_made_again() {
    let files = FakeFiles::new(Os::Linux);
    let foreign = FakeFiles::new(Os::Linux);
    start(&files, names(), moment()).unwrap();
    start(&foreign, names(), moment()).unwrap();
    let admin = read(&files, folder::ADMIN).unwrap();
    let half = admin[..admin.len() / 2].to_vec();
    for bytes in [read(&foreign, folder::SERVER).unwrap(), half, vec![0xff; 9]] {
        let path = path_of(folder::SERVER);
        files.write_durable(&path, &bytes, Access::Secret).unwrap();
        let pki = start(&files, names(), moment()).unwrap();
        assert_ne!(read(&files, folder::SERVER).unwrap(), bytes);
        assert_eq!(pki.renew(moment()).unwrap(), Renewed::default());
    }
}

#[test]
fn no_key_is_in_debug_output() {
    let files = FakeFiles::new(Os::Linux);
    let pki = start(&files, names(), moment()).unwrap();
    let shown = format!("{pki:?} {:?} {:?}", pki.admin(), pki.token_keys());
    for line in pki
        .admin()
        .key_pem()
        .lines()
        .chain(pki.token_keys().to_pem().lines())
    {
        assert!(!shown.contains(line), "{shown}");
    }
    assert!(shown.len() < 2000, "{shown}");
}

#[test]
fn rotated_token_keys_still_verify_and_are_bounded() {
    let files = FakeFiles::new(Os::Linux);
    let pki = start(&files, names(), moment()).unwrap();
    let first = pki.token_keys().newest().id().to_owned();
    pki.rotate_token_keys().unwrap();
    assert_ne!(pki.token_keys().newest().id(), first);
    assert!(pki.token_keys().find(&first).is_some());
    let reread = start(&files, names(), moment()).unwrap();
    let ids = |pki: &Pki| -> Vec<String> {
        pki.token_keys()
            .all()
            .map(|key| key.id().to_owned())
            .collect()
    };
    assert_eq!(ids(&pki), ids(&reread));
    for _ in 0..10 {
        pki.rotate_token_keys().unwrap();
    }
    assert_eq!(ids(&pki).len(), 8);
}

#[test]
fn the_kubeconfig_has_everything_inside() {
    let pki = start(&FakeFiles::new(Os::Linux), names(), moment()).unwrap();
    let text = pki.admin_kubeconfig("https://192.0.2.7:6443", "a \"b\": c");
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["current-context"], "a \"b\": c");
    assert_eq!(
        config["clusters"][0]["cluster"]["server"],
        "https://192.0.2.7:6443"
    );
    let key = config["users"][0]["user"]["client-key-data"]
        .as_str()
        .unwrap();
    assert_eq!(
        STANDARD.decode(key).unwrap(),
        pki.admin().key_pem().as_bytes()
    );
}

const SECRET: [&str; 4] = [
    folder::AUTHORITY,
    folder::SERVER,
    folder::ADMIN,
    folder::SERVICE_ACCOUNT,
];
const ALL: [&str; 5] = [
    folder::AUTHORITY,
    folder::SERVER,
    folder::ADMIN,
    folder::SERVICE_ACCOUNT,
    folder::BUNDLE,
];

fn folder_identity(files: &FakeFiles, name: &str) -> Identity {
    Identity::of_file(&String::from_utf8(read(files, name).unwrap()).unwrap()).unwrap()
}
