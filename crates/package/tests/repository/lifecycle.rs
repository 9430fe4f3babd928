//! A repository from its making to its collection, and what readers see of it.

use sha2::Digest as _;
use transom_model::package::PackageId;
use transom_model::{Arch, Os};
use transom_package::repository::{
    Addition, EditError, Entry, PlainRepository, RepositoryClient, RepositoryError, TrustedRoot,
    collect, location,
};

use crate::server::Server;
use crate::site::{EXPIRY, Site, addition, id, later, now};

#[tokio::test]
async fn what_is_added_is_found_and_fetched_by_folder_and_by_server() {
    let site = Site::new().await;
    site.add_package("tool--1", Os::Linux).await;
    site.add_package("tool--1", Os::Windows).await;
    site.add_package("a@b+c--1:2", Os::Windows).await;
    let server = Server::of_folder(&site.repository()).await;
    for (number, url) in [site.url(), server.url.clone()].into_iter().enumerate() {
        let client = site
            .read(&url, &format!("{number}"), now())
            .await
            .expect("read");
        assert_eq!(client.packages().count(), 3);
        for (name, os) in [("tool--1", Os::Linux), ("a@b+c--1:2", Os::Windows)] {
            let destination = site.root.join(format!("fetched-{number}-{os}"));
            let got = client
                .fetch(&id(name), os, &destination, &|_| ())
                .await
                .expect("fetched");
            assert_eq!(
                got.sha256,
                client.find(&id(name), os).expect("found").sha256
            );
        }
    }
    assert_eq!(site.problems().await, []);
}

#[tokio::test]
async fn dcos_finds_archives_where_it_always_did() {
    let site = Site::new().await;
    let name = "etcd--0c15143d32850b279197a08ac3f306cb97fb83f4";
    let archive = site.dcos_archive(name, "bytes");
    let error = site.add(&archive).await.expect_err("nobody vouches for it");
    assert!(matches!(error, EditError::Unsigned { .. }), "{error}");
    let unsigned = Addition {
        unsigned: true,
        arch: Some(Arch::Amd64),
        ..addition(&archive)
    };
    site.add_as(&unsigned).await.expect("added");
    let client = site.reader("node").await.expect("read");
    let found = client.find(&id(name), Os::Linux).expect("found");
    assert!(found.unsigned);
    assert_eq!(found.arch, Some(Arch::Amd64));

    let server = Server::of_folder(&site.repository()).await;
    let plain = PlainRepository::unsigned(&site.downloader, &server.url);
    let destination = site.root.join("fetched");
    plain
        .fetch(&id(name), &destination, &|_| ())
        .await
        .expect("fetched");
    assert_eq!(
        server.asked()[0].path,
        format!("/packages/etcd/{name}.tar.xz")
    );
    let error = plain
        .fetch(&id("other--1"), &destination, &|_| ())
        .await
        .expect_err("missing");
    assert!(matches!(error, RepositoryError::Absent { .. }), "{error}");
}

#[tokio::test]
async fn an_archive_that_says_what_it_is_is_preferred() {
    let site = Site::new().await;
    let archive = site.dcos_archive("tool--1", "old");
    let unsigned = Addition {
        unsigned: true,
        ..addition(&archive)
    };
    site.add_as(&unsigned).await.expect("added");
    site.add_package("tool--1", Os::Linux).await;
    let client = site.reader("node").await.expect("read");
    assert!(
        !client
            .find(&id("tool--1"), Os::Linux)
            .expect("found")
            .unsigned
    );
}

#[tokio::test]
async fn adding_again_changes_nothing_and_another_content_is_refused() {
    let site = Site::new().await;
    let archive = site.archive("tool--1", Os::Linux, "one");
    assert!(!site.add(&archive).await.expect("added").already);
    let before = fs_err::read(site.metadata("timestamp.json")).expect("read");
    assert!(site.add(&archive).await.expect("added").already);
    assert_eq!(
        fs_err::read(site.metadata("timestamp.json")).expect("read"),
        before
    );
    let archive = site.archive("tool--1", Os::Linux, "two");
    let error = site.add(&archive).await.expect_err("another content");
    assert!(matches!(error, EditError::Different { .. }), "{error}");
    let archive = site.archive("Tool--2", Os::Linux, "three");
    let error = site.add(&archive).await.expect_err("not on Windows");
    assert!(matches!(error, EditError::SameButForCase { .. }), "{error}");
    assert_eq!(site.problems().await, []);
}

#[tokio::test]
async fn an_archive_under_a_wrong_name_is_refused() {
    let site = Site::new().await;
    let archive = site.archive("tool--1", Os::Linux, "one");
    let renamed = site.root.join("other--2.tar.zst");
    fs_err::rename(archive, &renamed).expect("renamed");
    let error = site.add(&renamed).await.expect_err("mixed up");
    assert!(matches!(error, EditError::OtherName { .. }), "{error}");
    for name in [
        "notes.txt",
        "no-id.tar.xz",
        "broken--1.zip",
        "broken--1.tar.zst",
    ] {
        let path = site.root.join(name);
        fs_err::write(&path, b"anything").expect("written");
        let unsigned = Addition {
            unsigned: true,
            ..addition(&path)
        };
        let error = site.add_as(&unsigned).await.expect_err(name);
        assert!(
            matches!(error, EditError::Identity { .. }),
            "{name}: {error}"
        );
    }
    assert!(site.listed().await.is_empty());
}

#[tokio::test]
async fn several_additions_are_seen_together_or_not_at_all() {
    let site = Site::new().await;
    let good = addition(&site.archive("a--1", Os::Linux, "a"));
    let missing = addition(&site.root.join("b--1.tar.zst"));
    let mut editor = site.editor().await;
    let before = fs_err::read(site.metadata("timestamp.json")).expect("read");
    editor
        .add(&[good.clone(), missing], &site.keys(), EXPIRY, &|_| ())
        .await
        .expect_err("one is missing");
    assert_eq!(
        fs_err::read(site.metadata("timestamp.json")).expect("read"),
        before
    );
    let other = addition(&site.archive("b--1", Os::Windows, "b"));
    let added = editor
        .add(&[good, other], &site.keys(), EXPIRY, &|_| ())
        .await
        .expect("added");
    assert_eq!(added.len(), 2);
    editor.close();
    assert_eq!(site.listed().await, ["a--1 linux", "b--1 windows"]);
    assert!(site.metadata("2.targets.json").exists());
    assert!(!site.metadata("3.targets.json").exists());
}

#[tokio::test]
async fn package_lists_are_signed_too() {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    let (list, path) = site.list(&["a--1", "b--1"]);
    site.add(&path).await.expect("added");
    let client = site.reader("node").await.expect("read");
    let packages: Vec<PackageId> = client.package_list(&list).await.expect("read");
    assert_eq!(packages, [id("a--1"), id("b--1")]);
    let problems = site.problems().await;
    assert!(problems[0].message.contains("`b--1`"), "{problems:?}");

    let wrong = site
        .root
        .join(format!("{}.package_list.json", "0".repeat(40)));
    fs_err::copy(&path, &wrong).expect("copied");
    let error = site.add(&wrong).await.expect_err("another list");
    assert!(matches!(error, EditError::WrongListId { .. }), "{error}");
    let unknown = "1".repeat(40).parse().expect("an id");
    let error = client.package_list(&unknown).await.expect_err("none");
    assert!(
        matches!(error, RepositoryError::NoSuchList { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_removed_is_collected_later_unless_a_list_names_it() {
    let site = Site::new().await;
    for name in ["a--1", "b--1"] {
        site.add_package(name, Os::Linux).await;
    }
    let (_, path) = site.list(&["a--1"]);
    site.add(&path).await.expect("added");
    let mut editor = site.editor().await;
    let keys = site.keys();
    let error = editor
        .remove(&[id("a--1")], None, false, &keys, EXPIRY)
        .await
        .expect_err("needed");
    assert!(matches!(error, EditError::Needed { .. }), "{error}");
    editor
        .remove(&[id("c--1")], None, false, &keys, EXPIRY)
        .await
        .expect_err("not there");
    editor
        .remove(&[id("a--1"), id("b--1")], None, true, &keys, EXPIRY)
        .await
        .expect("removed");
    assert!(
        editor
            .entries()
            .iter()
            .all(|entry| matches!(entry, Entry::List(_)))
    );
    let file = site.repository().join("packages/b/b--1.tar.zst");
    let would = collect(&editor, true).expect("looked");
    assert!(file.exists());
    let did = collect(&editor, false).expect("collected");
    assert_eq!(would, did);
    assert!(!file.exists());
    let paths: Vec<&str> = did.iter().map(|gone| gone.path.as_str()).collect();
    assert!(paths.contains(&"packages/b/b--1.tar.zst"), "{paths:?}");
    assert!(!paths.contains(&"packages/a/a--1.tar.zst"), "{paths:?}");
    assert!(paths.contains(&"metadata/1.targets.json"), "{paths:?}");
    assert!(!site.repository().join("packages/b").exists());
    editor.close();
    site.listed().await;
}

#[tokio::test]
async fn renewing_moves_the_expiry_and_needs_only_the_keys_that_are_online() {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    let error = site
        .read(&site.url(), "late", later(11))
        .await
        .expect_err("expired");
    assert!(matches!(error, RepositoryError::Expired { .. }), "{error}");
    let mut editor = site.editor_at(later(5)).await;
    editor
        .renew(&site.some_keys(&["snapshot-1", "timestamp-1"]), EXPIRY)
        .await
        .expect("renewed");
    editor.close();
    let client = site
        .read(&site.url(), "node", later(9))
        .await
        .expect("read");
    assert_eq!(
        client.expires().1,
        later(10),
        "the targets are the old ones"
    );
    let mut editor = site.editor_at(later(20)).await;
    editor.renew(&site.keys(), EXPIRY).await.expect("renewed");
    editor
        .renew(&site.some_keys(&["snapshot-1"]), EXPIRY)
        .await
        .expect_err("the key of the timestamp is missing");
    editor.close();
    site.read(&site.url(), "node", later(29))
        .await
        .expect("read");
}

#[tokio::test]
async fn two_editors_take_turns() {
    let site = Site::new().await;
    let archives: Vec<_> = (0..4)
        .map(|number| site.archive(&format!("p{number}--1"), Os::Linux, "x"))
        .collect();
    let site = &site;
    let additions = archives.iter().map(|archive| async move {
        // Each waits for the lock in a thread of its own, as processes would.
        let path = archive.clone();
        let root = site.root.clone();
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async { Site::at(&root).add(&path).await.map(|_| ()) })
        })
        .await
        .expect("ended")
    });
    for added in futures::future::join_all(additions).await {
        added.expect("added");
    }
    assert_eq!(site.listed().await.len(), 4);
    assert!(site.metadata("5.targets.json").exists());
}

#[tokio::test]
async fn a_node_can_pin_a_digest_instead_of_a_file() {
    let site = Site::new().await;
    let server = Server::of_folder(&site.repository()).await;
    let bytes = fs_err::read(site.metadata("1.root.json")).expect("read");
    let open = |pin: String| {
        let datastore = site.root.join(format!("datastore-{}", &pin[..4]));
        let (downloader, url) = (&site.downloader, &server.url);
        async move {
            let root = TrustedRoot::Sha256(pin);
            RepositoryClient::open(downloader, url, &root, &datastore, now()).await
        }
    };
    let pin = transom_package::hash::hex(&sha2::Sha256::digest(&bytes));
    open(pin).await.expect("read");
    let error = open("ab".repeat(32)).await.expect_err("another root");
    assert!(matches!(error, RepositoryError::WrongPin { .. }), "{error}");
}

#[tokio::test]
async fn what_is_missing_is_said_with_what_is_near() {
    let site = Site::new().await;
    site.add_package("toolbox--1.2", Os::Linux).await;
    let client = site.reader("node").await.expect("read");
    let error = client
        .find(&id("toolbox--1.3"), Os::Linux)
        .expect_err("missing");
    assert!(error.to_string().contains("`toolbox--1.2`"), "{error}");
    let error = client
        .find(&id("toolbox--1.2"), Os::Windows)
        .expect_err("missing");
    assert!(
        error.to_string().contains("`toolbox--1.2 for linux`"),
        "{error}"
    );
    let error = client
        .find(&id("zebra--9"), Os::Linux)
        .expect_err("missing");
    assert!(matches!(&error, RepositoryError::NotInRepository { near, .. } if near.is_empty()));
}

#[tokio::test]
async fn where_there_is_no_repository_that_is_said() {
    let site = Site::new().await;
    let nowhere = location(site.root.join("nowhere").as_str()).expect("an address");
    let error = site.read(&nowhere, "a", now()).await.expect_err("nothing");
    assert!(
        matches!(error, RepositoryError::NoRepository { .. }),
        "{error}"
    );
    let server = Server::of_folder(&site.repository()).await;
    let url = server.url.clone();
    drop(server);
    let error = site.read(&url, "b", now()).await.expect_err("nobody");
    assert!(
        matches!(error, RepositoryError::Unreachable { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn the_metadata_is_what_other_programs_for_tuf_read() {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    let root = fs_err::read(site.metadata("1.root.json")).expect("read");
    let url = |name: &str| {
        let mut url = site.url();
        url.path_segments_mut()
            .expect("a path")
            .pop_if_empty()
            .push(name);
        url
    };
    // Its clock is the real one, which this repository may have outlived.
    let repository = tough::RepositoryLoader::new(&root, url("metadata"), url(""))
        .transport(tough::FilesystemTransport)
        .expiration_enforcement(tough::ExpirationEnforcement::Unsafe)
        .load()
        .await
        .expect("loaded");
    let names: Vec<&str> = repository
        .targets()
        .signed
        .targets
        .keys()
        .map(tough::TargetName::raw)
        .collect();
    assert_eq!(names, ["packages/a/a--1.tar.zst"]);
}
