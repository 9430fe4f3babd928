//! Metadata that is old, forged, damaged or endless: each kind has its own error, and what the node
//! knew before stays as it was.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use camino::Utf8Path;
use tough::editor::RepositoryEditor;
use tough::key_source::{KeySource, LocalKeySource};
use transom_host::files::{Files as _, How, Native};
use transom_model::Os;
use transom_package::download::DownloadError;
use transom_package::repository::{RepositoryError, RoleType};

use crate::server::{Reply, Server};
use crate::site::{EXPIRY, Site, id, later, now};

/// Everything that a node knows.
fn knowledge(site: &Site) -> BTreeMap<String, Vec<u8>> {
    let folder = site.root.join("datastores").join("node");
    let entries = Native.list(&folder).expect("listed").into_iter();
    entries
        .filter(|entry| entry.name != ".lock")
        .map(|entry| (entry.name, fs_err::read(entry.path).expect("read")))
        .collect()
}

/// A site that a node has read, and what it knows since.
async fn known() -> (Site, BTreeMap<String, Vec<u8>>) {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    site.reader("node").await.expect("read");
    let known = knowledge(&site);
    (site, known)
}

fn copy(from: &Utf8Path, to: &Utf8Path) {
    Native.remove_tree(to).expect("removed");
    Native.copy_tree(from, to, How::Copy).expect("copied");
}

fn change(path: &Utf8Path, change: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(&fs_err::read(path).expect("read")).expect("JSON");
    change(&mut value);
    fs_err::write(path, value.to_string()).expect("written");
}

#[tokio::test]
async fn an_older_state_is_refused_with_both_versions() {
    let (site, _) = known().await;
    let old = site.root.join("old");
    copy(&site.repository(), &old);
    site.add_package("b--1", Os::Linux).await;
    site.reader("node").await.expect("read");
    let known = knowledge(&site);
    copy(&old, &site.repository());
    let error = site.reader("node").await.expect_err("older");
    assert!(
        matches!(
            error,
            RepositoryError::Rollback {
                role: RoleType::Timestamp,
                seen: 3,
                offered: 2
            }
        ),
        "{error}"
    );
    assert_eq!(knowledge(&site), known);
}

#[tokio::test]
async fn old_targets_under_a_new_timestamp_are_refused() {
    let (site, _) = known().await;
    let old = site.root.join("old");
    copy(&site.repository(), &old);
    site.add_package("b--1", Os::Linux).await;
    site.reader("node").await.expect("read");
    copy(&old, &site.repository());
    // Whoever has stolen the keys that are online can renew, and cannot turn the targets back.
    let mut editor = site.editor().await;
    for _ in 0..2 {
        let stolen = site.some_keys(&["snapshot-1", "timestamp-1"]);
        editor.renew(&stolen, EXPIRY).await.expect("renewed");
    }
    editor.close();
    let error = site.reader("node").await.expect_err("older");
    assert!(
        matches!(
            error,
            RepositoryError::Rollback {
                role: RoleType::Targets,
                seen: 3,
                offered: 2
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn expired_metadata_says_which_and_when() {
    let (site, known) = known().await;
    let error = site
        .read(&site.url(), "node", later(10))
        .await
        .expect_err("expired");
    let RepositoryError::Expired { role, expired } = error else {
        panic!("{error}");
    };
    assert_eq!((role, expired), (RoleType::Timestamp, later(10)));
    let error = site
        .read(&site.url(), "node", later(100))
        .await
        .expect_err("expired");
    assert!(
        matches!(
            error,
            RepositoryError::Expired {
                role: RoleType::Root,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(knowledge(&site), known);
}

#[tokio::test]
async fn metadata_of_other_keys_is_refused() {
    let (site, known) = known().await;
    let other = Site::new().await;
    for _ in 0..3 {
        let mut editor = other.editor().await;
        editor.renew(&other.keys(), EXPIRY).await.expect("renewed");
        editor.close();
    }
    copy(&other.repository(), &site.repository());
    let error = site.reader("node").await.expect_err("forged");
    assert!(
        matches!(
            error,
            RepositoryError::Signatures {
                role: RoleType::Timestamp,
                needed: 1,
                valid: 0,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(knowledge(&site), known);
}

#[tokio::test]
async fn a_root_with_too_few_signatures_is_refused() {
    use transom_package::repository::RootChange;
    let (site, known) = known().await;
    let mut editor = site.editor().await;
    editor
        .change_root(&RootChange::Nothing, &site.keys(), EXPIRY)
        .await
        .expect("changed");
    editor.close();
    let path = site.metadata("2.root.json");
    change(&path, |root| {
        root["signatures"].as_array_mut().expect("signatures").pop();
    });
    let error = site.reader("node").await.expect_err("too few");
    assert!(
        matches!(
            error,
            RepositoryError::Signatures {
                role: RoleType::Root,
                needed: 2,
                valid: 1,
                ..
            }
        ),
        "{error}"
    );
    // The same signature twice is still one.
    change(&path, |root| {
        let signatures = root["signatures"].as_array_mut().expect("signatures");
        let twice = signatures[0].clone();
        signatures.push(twice);
    });
    site.reader("node").await.expect_err("twice the same");
    assert_eq!(knowledge(&site), known);
}

#[tokio::test]
async fn a_change_to_any_file_is_noticed() {
    let (site, known) = known().await;
    for (name, expected) in [
        ("timestamp.json", "signatures"),
        ("2.snapshot.json", "digest"),
        ("2.targets.json", "digest"),
    ] {
        let path = site.metadata(name);
        let good = fs_err::read(&path).expect("read");
        change(&path, |value| value["signed"]["version"] = 9.into());
        let mut bytes = fs_err::read(&path).expect("read");
        bytes.resize(good.len().min(bytes.len()), b' ');
        fs_err::write(&path, bytes).expect("written");
        let error = site.reader("node").await.expect_err(name);
        assert!(error.to_string().contains(expected), "{name}: {error}");
        fs_err::write(&path, good).expect("written");
    }
    site.reader("node").await.expect("mended");
    assert_eq!(knowledge(&site), known);
}

#[tokio::test]
async fn an_altered_archive_is_not_fetched() {
    let (site, _) = known().await;
    let path = site.repository().join("packages/a/a--1.tar.zst");
    let mut bytes = fs_err::read(&path).expect("read");
    bytes[10] ^= 1;
    fs_err::write(&path, bytes).expect("written");
    let client = site.reader("node").await.expect("read");
    let destination = site.root.join("fetched");
    let error = client
        .fetch(&id("a--1"), Os::Linux, &destination, &|_| ())
        .await
        .expect_err("altered");
    assert!(
        matches!(error, RepositoryError::WrongHash { .. }),
        "{error}"
    );
    assert!(!destination.exists());
    let problems = site.problems().await;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, "packages/a/a--1.tar.zst");
}

#[tokio::test]
async fn all_problems_of_a_repository_are_reported() {
    let (site, _) = known().await;
    site.add_package("b--1", Os::Windows).await;
    fs_err::remove_file(site.repository().join("packages/a/a--1.tar.zst")).expect("removed");
    fs_err::write(site.repository().join("packages/b/b--1.zip"), b"x").expect("written");
    fs_err::write(site.repository().join("packages/b/stray"), b"x").expect("written");
    fs_err::write(site.metadata("99.targets.json"), b"x").expect("written");
    let report = transom_package::repository::check(
        &site.repository(),
        &site.downloader,
        later(50),
        &|_| (),
    )
    .await
    .expect("looked at");
    let text: Vec<String> = report
        .problems
        .iter()
        .map(|problem| format!("{}: {}", problem.path, problem.message))
        .collect();
    assert_eq!(text.len(), 7, "{text:#?}");
    for expected in [
        "a--1.tar.zst: it is missing",
        "b--1.zip: it has the digest",
        "packages/b/stray: nothing names",
        "metadata/99.targets.json: nothing names",
        "the timestamp metadata expired",
        "the snapshot metadata expired",
        "the targets metadata expired",
    ] {
        assert!(
            text.iter().any(|line| line.contains(expected)),
            "{expected}: {text:#?}"
        );
    }
}

#[tokio::test]
async fn endless_and_deep_metadata_is_refused() {
    let (site, known) = known().await;
    let root = fs_err::read(site.metadata("1.root.json")).expect("read");
    let server = Server::start(move |_, asked| match asked.path.as_str() {
        "/metadata/1.root.json" => Reply::content(asked, &root, "\"a\""),
        "/metadata/2.root.json" => Reply::new("404 Not Found", &[], b""),
        "/metadata/timestamp.json" => Reply::raw("200 OK", &[], &vec![b'['; 1 << 22]),
        _ => Reply::new("200 OK", &[], "[".repeat(1 << 19).as_bytes()),
    })
    .await;
    let error = site
        .read(&server.url, "node", now())
        .await
        .expect_err("endless");
    let RepositoryError::Unreachable { source, .. } = error else {
        panic!("{error}");
    };
    assert!(
        matches!(*source, DownloadError::TooLarge { .. }),
        "{source}"
    );
    assert_eq!(knowledge(&site), known);
    fs_err::write(site.metadata("timestamp.json"), "[".repeat(1 << 19)).expect("written");
    let error = site.reader("node").await.expect_err("deep");
    assert!(
        matches!(error, RepositoryError::Malformed { .. }),
        "{error}"
    );
    assert_eq!(knowledge(&site), known);
}

/// Signs targets that our own editor would never make.
async fn forge(site: &Site, name: &str, custom: serde_json::Value) {
    let root = site.metadata("1.root.json");
    let folder = |name: &str| {
        url::Url::from_directory_path(site.repository().join(name)).expect("an address")
    };
    let bytes = fs_err::read(&root).expect("read");
    let repository = tough::RepositoryLoader::new(&bytes, folder("metadata"), folder("."))
        .transport(tough::FilesystemTransport)
        .expiration_enforcement(tough::ExpirationEnforcement::Unsafe)
        .load()
        .await
        .expect("loaded");
    let mut editor = RepositoryEditor::from_repo(&root, repository)
        .await
        .expect("an editor");
    let mut target = tough::schema::Target::from_path(&root)
        .await
        .expect("a target");
    target.custom = custom
        .as_object()
        .expect("an object")
        .clone()
        .into_iter()
        .collect();
    let version = NonZeroU64::new(9).expect("a number");
    editor
        .add_target(name, target)
        .expect("added")
        .targets_version(version)
        .expect("set")
        .targets_expires(later(9))
        .expect("set")
        .snapshot_version(version)
        .snapshot_expires(later(9))
        .timestamp_version(version)
        .timestamp_expires(later(9));
    let keys: Vec<Box<dyn KeySource>> = ["targets-1", "targets-2", "snapshot-1", "timestamp-1"]
        .iter()
        .map(|key| {
            // It reads keys of this kind without the PEM around them.
            let text = fs_err::read(site.key_folder().join(format!("{key}.pem"))).expect("read");
            let path = site.root.join(format!("{key}.der")).into_std_path_buf();
            fs_err::write(&path, pem::parse(text).expect("PEM").contents()).expect("written");
            Box::new(LocalKeySource { path }) as Box<dyn KeySource>
        })
        .collect();
    let signed = editor.sign(&keys).await.expect("signed");
    signed
        .write(site.repository().join("metadata"))
        .await
        .expect("written");
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused_even_if_they_are_signed() {
    let package = |id: &str| serde_json::json!({"kind": "package", "id": id, "os": "linux"});
    for (name, custom) in [
        ("packages/../../evil--1.zip", package("evil--1")),
        ("/etc/evil--1.zip", package("evil--1")),
        ("packages/other/evil--1.zip", package("evil--1")),
        ("packages/evil/evil--1.zip", package("../evil")),
        ("packages/evil/evil--1.exe", package("evil--1")),
        (
            "packages/evil/evil--1.zip",
            serde_json::json!({"kind": "package", "id": "evil--1", "os": "beos"}),
        ),
        (
            "package_lists/evil.package_list.json",
            serde_json::json!({"kind": "package-list", "id": "evil"}),
        ),
    ] {
        let (site, _) = known().await;
        forge(&site, name, custom).await;
        let error = site.reader("node").await.expect_err(name);
        assert!(
            matches!(error, RepositoryError::BadTarget { .. }),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn what_other_programs_for_tuf_sign_is_read() {
    let (site, _) = known().await;
    let custom = serde_json::json!({"kind": "package", "id": "b--1", "os": "windows"});
    forge(&site, "packages/b/b--1.zip", custom).await;
    forge(&site, "notes/readme.txt", serde_json::json!({})).await;
    let client = site.reader("node").await.expect("read");
    client.find(&id("b--1"), Os::Windows).expect("found");
    assert_eq!(client.packages().count(), 2);
    // And what is not ours stays when we change the rest.
    site.add_package("c--1", Os::Linux).await;
    let text = fs_err::read_to_string(site.metadata("10.targets.json")).expect("read");
    assert!(text.contains("notes/readme.txt"), "{text}");
}
