//! Offline bundles: what goes in comes out elsewhere, signed by the same keys, or nothing does.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use transom_model::Os;
use transom_package::repository::{
    BundleError, Entry, Imported, RepositoryError, Selection, TrustedRoot, check, export, import,
    location,
};

use crate::site::{EXPIRY, Site, later, now};

impl Site {
    pub(crate) async fn export(&self, name: &str, selection: &Selection) -> Utf8PathBuf {
        let path = self.root.join(name);
        let editor = self.editor().await;
        export(&editor, selection, &path, &|_| ()).expect("exported");
        editor.close();
        path
    }

    pub(crate) fn mirror(&self) -> Utf8PathBuf {
        self.root.join("mirror")
    }

    pub(crate) async fn import(
        &self,
        bundle: &Utf8Path,
        root: Option<&TrustedRoot>,
        now: Timestamp,
    ) -> Result<Imported, BundleError> {
        import(bundle, &self.mirror(), &self.downloader, root, now, &|_| ()).await
    }

    pub(crate) async fn mirrored(&self) -> Vec<String> {
        let url = location(self.mirror().as_str()).expect("an address");
        let name = uuid::Uuid::new_v4().to_string();
        let client = self.read(&url, &name, now()).await.expect("read");
        client
            .packages()
            .map(|package| package.id.to_string())
            .collect()
    }
}

async fn filled() -> Site {
    let site = Site::new().await;
    for (name, os) in [
        ("a--1", Os::Linux),
        ("a--1", Os::Windows),
        ("b--1", Os::Linux),
    ] {
        site.add_package(name, os).await;
    }
    let (_, path) = site.list(&["a--1"]);
    site.add(&path).await.expect("added");
    site
}

#[tokio::test]
async fn a_bundle_carries_a_repository_to_where_there_is_no_network() {
    let site = filled().await;
    let bundle = site.export("bundle", &Selection::default()).await;
    let imported = site
        .import(&bundle, Some(&site.pin()), now())
        .await
        .expect("imported");
    assert_eq!((imported.entries.len(), imported.already), (4, 0));
    assert_eq!(site.mirrored().await, ["a--1", "a--1", "b--1"]);
    let report = check(&site.mirror(), &site.downloader, now(), &|_| ())
        .await
        .expect("looked at");
    assert_eq!((report.problems.len(), report.absent), (0, 0));
    // Once more, and later with something new: the mirror knows by itself whom to trust.
    let again = site.import(&bundle, None, now()).await.expect("imported");
    assert_eq!(again.already, 4);
    site.add_package("c--1", Os::Windows).await;
    let bundle = site.export("bundle", &Selection::default()).await;
    let more = site.import(&bundle, None, now()).await.expect("imported");
    assert_eq!((more.entries.len(), more.already), (5, 4));
    assert_eq!(site.mirrored().await.len(), 4);
}

#[tokio::test]
async fn the_same_repository_makes_the_same_bundle() {
    let site = filled().await;
    let first = site.export("first", &Selection::default()).await;
    let second = site.export("second", &Selection::default()).await;
    let (first, second) = (fs_err::read(first), fs_err::read(second));
    assert!(first.expect("read") == second.expect("read"));
}

#[tokio::test]
async fn a_bundle_can_hold_a_part() {
    let site = filled().await;
    let (list, _) = site.list(&["a--1"]);
    let selection = Selection {
        systems: vec![Os::Windows],
        lists: vec![list],
    };
    let bundle = site.export("bundle", &selection).await;
    let imported = site
        .import(&bundle, Some(&site.pin()), now())
        .await
        .expect("imported");
    let paths: Vec<String> = imported.entries.iter().map(Entry::path).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(
        paths.contains(&"packages/a/a--1.zip".to_owned()),
        "{paths:?}"
    );
    let report = check(&site.mirror(), &site.downloader, now(), &|_| ())
        .await
        .expect("looked at");
    assert_eq!((report.problems.len(), report.absent), (0, 2));
    let url = location(site.mirror().as_str()).expect("an address");
    let client = site.read(&url, "part", now()).await.expect("read");
    let error = client
        .fetch(
            &crate::site::id("b--1"),
            Os::Linux,
            &site.root.join("x"),
            &|_| (),
        )
        .await
        .expect_err("not in the bundle");
    assert!(matches!(error, RepositoryError::Absent { .. }), "{error}");
}

#[tokio::test]
async fn a_bundle_of_somebody_else_changes_nothing() {
    let (site, other) = (filled().await, filled().await);
    let bundle = other.export("bundle", &Selection::default()).await;
    let error = site
        .import(&bundle, Some(&site.pin()), now())
        .await
        .expect_err("other keys");
    let BundleError::Repository { source } = error else {
        panic!("{error}");
    };
    assert!(
        matches!(*source, RepositoryError::Signatures { .. }),
        "{source}"
    );
    let error = site.import(&bundle, None, now()).await.expect_err("no pin");
    assert!(matches!(error, BundleError::NoRoot { .. }), "{error}");
    let pin = TrustedRoot::Sha256("ab".repeat(32));
    site.import(&bundle, Some(&pin), now())
        .await
        .expect_err("another pin");
    assert!(!site.mirror().exists());
}

#[tokio::test]
async fn an_older_or_expired_bundle_changes_nothing() {
    let site = filled().await;
    let old = site.export("old", &Selection::default()).await;
    let error = site
        .import(&old, Some(&site.pin()), later(11))
        .await
        .expect_err("expired");
    assert!(matches!(error, BundleError::Repository { .. }), "{error}");
    assert!(!site.mirror().exists());
    site.add_package("c--1", Os::Linux).await;
    let new = site.export("new", &Selection::default()).await;
    site.import(&new, Some(&site.pin()), now())
        .await
        .expect("imported");
    for root in [None, Some(&site.pin())] {
        let error = site.import(&old, root, now()).await.expect_err("older");
        let BundleError::Repository { source } = error else {
            panic!("{error}");
        };
        assert!(
            matches!(*source, RepositoryError::Rollback { .. }),
            "{source}"
        );
    }
    assert_eq!(site.mirrored().await.len(), 4);
}

#[tokio::test]
async fn a_bundle_with_a_change_anywhere_is_refused_and_changes_nothing() {
    let site = filled().await;
    let bundle = site.export("bundle", &Selection::default()).await;
    let good = fs_err::read(&bundle).expect("read");
    let changed = site.root.join("changed");
    let mut refused = 0;
    for at in (0..good.len()).step_by(211) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        fs_err::write(&changed, &bytes).expect("written");
        match site.import(&changed, Some(&site.pin()), now()).await {
            Err(_) => {
                refused += 1;
                assert!(!site.mirror().exists(), "at byte {at}");
            }
            // Padding between entries means nothing.
            Ok(_) => fs_err::remove_dir_all(site.mirror()).expect("removed"),
        }
    }
    assert!(refused > 10, "{refused}");
    for length in (0..good.len() - 1024).step_by(499) {
        fs_err::write(&changed, &good[..length]).expect("written");
        site.import(&changed, Some(&site.pin()), now())
            .await
            .expect_err("cut off");
    }
    assert!(!site.mirror().exists());
}

#[tokio::test]
async fn what_nobody_signed_is_refused_even_in_a_whole_bundle() {
    let site = filled().await;
    let bundle = site.export("bundle", &Selection::default()).await;
    let smuggled = site.root.join("smuggled");
    for (name, content) in [
        ("blobs/../../evil", "evil"),
        ("packages/evil", "evil"),
        ("metadata/../../evil.json", "evil"),
        ("metadata/99.root.json", "{}"),
    ] {
        smuggle(&bundle, &smuggled, name, content);
        let error = site
            .import(&smuggled, Some(&site.pin()), now())
            .await
            .expect_err(name);
        assert!(
            matches!(error, BundleError::Refused { .. }),
            "{name}: {error}"
        );
    }
    assert!(!site.mirror().exists());
}

/// Copies a bundle with one more file in it.
fn smuggle(bundle: &Utf8Path, to: &Utf8Path, name: &str, content: &str) {
    let file = fs_err::File::open(bundle).expect("opened");
    let mut builder = tar::Builder::new(fs_err::File::create(to).expect("created"));
    for entry in tar::Archive::new(file).entries().expect("entries") {
        let entry = entry.expect("an entry");
        let header = entry.header().clone();
        builder.append(&header, entry).expect("appended");
    }
    let mut header = tar::Header::new_ustar();
    header.as_ustar_mut().expect("ustar").name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(content.len() as u64);
    header.set_cksum();
    builder
        .append(&header, content.as_bytes())
        .expect("appended");
    builder.into_inner().expect("finished");
}

#[tokio::test]
async fn a_damaged_repository_makes_no_bundle() {
    let site = filled().await;
    let archive = site.repository().join("packages/b/b--1.tar.zst");
    let mut bytes = fs_err::read(&archive).expect("read");
    bytes[20] ^= 1;
    fs_err::write(&archive, bytes).expect("written");
    let editor = site.editor().await;
    let path = site.root.join("bundle");
    let error = export(&editor, &Selection::default(), &path, &|_| ()).expect_err("damaged");
    assert!(matches!(error, BundleError::WrongHash { .. }), "{error}");
    let unknown = Selection {
        lists: vec!["0".repeat(40).parse().expect("an id")],
        ..Selection::default()
    };
    export(&editor, &unknown, &path, &|_| ()).expect_err("no such list");
    editor.close();
    let left: Vec<_> = fs_err::read_dir(&site.root)
        .expect("listed")
        .filter_map(|entry| entry.expect("read").file_name().into_string().ok())
        .filter(|name| name.starts_with("bundle"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_mirror_follows_new_keys() {
    use transom_package::repository::{Keyholders, RoleType, RootChange};
    let site = filled().await;
    let bundle = site.export("bundle", &Selection::default()).await;
    site.import(&bundle, Some(&site.pin()), now())
        .await
        .expect("imported");
    let holders =
        Keyholders::default().with(RoleType::Timestamp, &site.make_keys("timestamp-new", 1), 1);
    let mut editor = site.editor().await;
    editor
        .change_root(&RootChange::Keys(holders), &site.keys(), EXPIRY)
        .await
        .expect("changed");
    editor.renew(&site.keys(), EXPIRY).await.expect("renewed");
    editor.close();
    let bundle = site.export("bundle", &Selection::default()).await;
    site.import(&bundle, None, now()).await.expect("imported");
    assert_eq!(site.mirrored().await.len(), 3);
}
