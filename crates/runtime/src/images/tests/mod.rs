//! The store of images as a whole: built, imported, pulled, shared, removed, opened again.

mod look;
mod registry;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{Credentials, Pull};
use registry::{Registry, Trouble};

/// Writes files and remembers what it was told: enough to see what the store does.
#[derive(Debug, Default)]
struct PlainUnpacker {
    begun: AtomicUsize,
}

struct PlainTree(Utf8PathBuf);

impl Unpacker for PlainUnpacker {
    fn begin(&self, folder: &Utf8Path, _style: Style) -> io::Result<Box<dyn Tree>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(PlainTree(folder.to_owned())))
    }

    fn remove(&self, folder: &Utf8Path) -> io::Result<()> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Tree for PlainTree {
    fn add(&mut self, entry: &Entry, content: &mut dyn Read) -> io::Result<()> {
        let path = self.0.join(String::from_utf8_lossy(&entry.path).as_ref());
        match entry.kind {
            EntryKind::Folder => fs::create_dir_all(&path),
            _ => io::copy(content, &mut fs::File::create(&path)?).map(drop),
        }
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

struct Store {
    folder: tempfile::TempDir,
    unpacker: Arc<PlainUnpacker>,
}

impl Store {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            unpacker: Arc::default(),
        }
    }

    fn open(&self) -> Arc<Images> {
        self.open_with(Registries::default())
    }

    fn open_with(&self, registries: Registries) -> Arc<Images> {
        let platform = Platform {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: None,
        };
        let root = Utf8Path::from_path(self.folder.path()).expect("a path");
        Images::open(
            root,
            platform,
            registries,
            Arc::clone(&self.unpacker) as Arc<dyn Unpacker>,
        )
        .expect("images")
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join(folder)).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

fn files(text: &str) -> Vec<BuildFile> {
    vec![BuildFile {
        path: "/etc/motd".to_owned(),
        kind: BuildKind::Content(text.as_bytes().to_vec()),
        mode: 0o644,
    }]
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn pull_of(reference: &str) -> Pull {
    Pull {
        reference: reference.to_owned(),
        credentials: Vec::new(),
        progress: None,
    }
}

#[test]
fn a_built_image_is_found_by_every_name_and_again_after_a_restart() {
    let store = Store::new();
    let images = store.open();
    let image = images
        .build("demo", &files("hello"), &ImageSettings::default(), now())
        .expect("an image");
    assert_eq!(image.tags, ["docker.io/library/demo:latest"]);
    for name in [
        "demo",
        "demo:latest",
        "docker.io/library/demo",
        image.id.as_str(),
    ] {
        assert_eq!(images.find(name).as_ref(), Some(&image), "{name}");
    }
    assert_eq!(images.find("other"), None);
    drop(images);
    assert_eq!(store.open().all(), [image]);
}

#[test]
fn the_same_layer_is_unpacked_once_and_stays_until_its_last_image_goes() {
    let store = Store::new();
    let images = store.open();
    let settings = ImageSettings {
        user: "web".to_owned(),
        ..ImageSettings::default()
    };
    let one = images
        .build("one", &files("hello"), &ImageSettings::default(), now())
        .expect("an image");
    let two = images
        .build("two", &files("hello"), &settings, now())
        .expect("an image");
    assert_ne!(one.id, two.id);
    assert_eq!(store.unpacker.begun.load(Ordering::Relaxed), 1);
    images.remove("one").expect("removed");
    assert_eq!(
        (
            store.names("layers").len(),
            store.names("blobs/sha256").len()
        ),
        (1, 3)
    );
    images.remove(&two.id).expect("removed");
    assert_eq!(
        (
            store.names("layers").len(),
            store.names("blobs/sha256").len()
        ),
        (0, 0)
    );
    images.remove("two").expect("it is gone already");
}

#[test]
fn an_image_in_use_is_neither_removed_nor_offered_for_removal() {
    let store = Store::new();
    let images = store.open();
    let image = images
        .build("demo", &files("hello"), &ImageSettings::default(), now())
        .expect("an image");
    let (used, contents) = images.use_image("demo", now()).expect("in use");
    assert!(contents.layers[0].join("etc/motd").is_file());
    assert!(images.remove(&image.id).is_err());
    drop(used);
    images.remove(&image.id).expect("removed");
    assert!(matches!(
        images.use_image("demo", now()),
        Err(RuntimeError::ImageMissing { .. })
    ));
}

#[test]
fn a_name_moves_to_the_newer_image() {
    let store = Store::new();
    let images = store.open();
    let old = images
        .build("demo", &files("old"), &ImageSettings::default(), now())
        .expect("an image");
    let new = images
        .build("demo", &files("new"), &ImageSettings::default(), now())
        .expect("an image");
    assert_eq!(images.find("demo").map(|image| image.id), Some(new.id));
    assert_eq!(
        images.find(&old.id).map(|image| image.tags),
        Some(Vec::new())
    );
}

#[test]
fn what_a_crash_left_is_swept_and_an_image_without_its_layers_is_not_listed() {
    let store = Store::new();
    drop(store.open());
    for leftover in ["layers/new-1", "layers/new-2/deep"] {
        fs::create_dir_all(store.folder.path().join(leftover)).expect("a leftover");
    }
    fs::write(store.folder.path().join("partial/new-3"), "half").expect("a leftover");
    fs::write(store.folder.path().join("images/broken.json"), "{").expect("a leftover");
    let images = store.open();
    assert_eq!(
        (store.names("layers").len(), store.names("partial").len()),
        (0, 0)
    );
    images
        .build("demo", &files("hello"), &ImageSettings::default(), now())
        .expect("an image");
    drop(images);
    fs::remove_dir_all(store.folder.path().join("layers")).expect("removed");
    assert_eq!(store.open().all(), []);
}

#[test]
fn half_a_blob_waits_for_its_pull_but_not_for_ever() {
    let store = Store::new();
    drop(store.open());
    let two_days = std::time::Duration::from_hours(48);
    let (young, old) = (Digest::of(b"young"), Digest::of(b"old"));
    for (digest, age) in [(&young, std::time::Duration::ZERO), (&old, two_days)] {
        let path = store.folder.path().join("partial").join(digest.hex());
        let file = fs::File::create(path).expect("half a blob");
        let modified = std::time::SystemTime::now() - age;
        file.file().set_modified(modified).expect("an age");
    }
    drop(store.open());
    assert_eq!(store.names("partial"), [young.hex()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pulled_in_parts_after_a_broken_connection_and_only_once() {
    let registry = Registry::start(&[Trouble::CutBlobsOnce]).await;
    let store = Store::new();
    let images = store.open();
    let reference = format!("{}/team/app:1", registry.address);
    let pulls: Vec<_> = (0..3)
        .map(|_| {
            let (images, pull) = (Arc::clone(&images), pull_of(&reference));
            tokio::spawn(async move { images.pull(&pull).await })
        })
        .collect();
    for pull in pulls {
        let image = pull.await.expect("a task").expect("an image");
        assert_eq!(
            (image.tags.as_slice(), image.user.as_str()),
            ([reference.clone()].as_slice(), "app")
        );
        assert_eq!(image.digests.len(), 1);
    }
    assert_eq!(
        registry.bytes_of_layers(),
        registry.layer_length(),
        "every byte came once"
    );
    let (_used, contents) = images.use_image(&reference, now()).expect("in use");
    assert_eq!(contents.layers.len(), 1);
    let by_digest = images.find(&reference).expect("an image").digests[0].clone();
    drop(registry);
    images
        .pull(&pull_of(&by_digest))
        .await
        .expect("it is here: nobody is asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_that_two_images_share_is_received_once_though_both_are_pulled_at_once() {
    let registry = Registry::start(&[]).await;
    let store = Store::new();
    let images = store.open();
    let pulls: Vec<_> = ["one", "two", "three"]
        .map(|name| {
            let pull = pull_of(&format!("{}/team/{name}:1", registry.address));
            let images = Arc::clone(&images);
            tokio::spawn(async move { images.pull(&pull).await })
        })
        .into();
    for pull in pulls {
        pull.await.expect("a task").expect("an image");
    }
    assert_eq!(registry.bytes_of_layers(), registry.layer_length());
    assert_eq!(store.names("partial"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_that_an_image_has_twice_is_received_and_stacked_once() {
    let registry = Registry::start(&[Trouble::RepeatedLayer]).await;
    let store = Store::new();
    let images = store.open();
    let reference = format!("{}/team/app:1", registry.address);
    images.pull(&pull_of(&reference)).await.expect("an image");
    assert_eq!(registry.bytes_of_layers(), registry.layer_length());
    let (_used, contents) = images.use_image(&reference, now()).expect("in use");
    assert_eq!(contents.layers.len(), 1);
}

#[tokio::test]
async fn content_that_is_not_what_it_says_is_never_kept() {
    let registry = Registry::start(&[Trouble::WrongLayer]).await;
    let store = Store::new();
    let images = store.open();
    let refused = images
        .pull(&pull_of(&format!("{}/team/app:1", registry.address)))
        .await
        .expect_err("a lie");
    assert!(matches!(refused, RuntimeError::Pull { .. }), "{refused:?}");
    assert_eq!(
        (
            images.all(),
            store.names("layers").len(),
            store.names("partial").len()
        ),
        (Vec::new(), 0, 0)
    );
}

#[tokio::test]
async fn credentials_are_tried_in_turn_and_never_told() {
    let registry = Registry::start(&[Trouble::NeedsPassword]).await;
    let store = Store::new();
    let images = store.open();
    let mut pull = pull_of(&format!("{}/team/app:1", registry.address));
    pull.credentials = vec![password("me", "secret-that-is-wrong")];
    let refused = images.pull(&pull).await.expect_err("not allowed");
    assert!(
        !refused.to_string().contains("secret-that-is-wrong"),
        "{refused}"
    );
    pull.credentials.push(password("me", "right"));
    images.pull(&pull).await.expect("an image");
}

#[tokio::test]
async fn a_mirror_is_asked_first_and_the_name_stays() {
    let registry = Registry::start(&[]).await;
    let store = Store::new();
    let image = store
        .open_with(mirrored_by("registry.example", &registry.address))
        .pull(&pull_of("registry.example/team/app:1"))
        .await
        .expect("an image");
    assert_eq!(image.tags, ["registry.example/team/app:1"]);
}

/// A registry that nobody is at.
const UNREACHABLE: &str = "localhost:1";

/// As one who knows a name and a password.
fn password(user: &str, password: &str) -> Credentials {
    Credentials::Password {
        user: user.to_owned(),
        password: password.to_owned(),
    }
}

fn mirrored_by(registry: &str, address: &str) -> Registries {
    Registries {
        mirrors: [(registry.to_owned(), vec![address.to_owned()])].into(),
        ..Registries::default()
    }
}

#[tokio::test]
async fn what_was_given_for_a_registry_is_not_sent_to_its_mirrors() {
    let mirror = Registry::start(&[Trouble::NeedsPassword]).await;
    let store = Store::new();
    let mut registries = mirrored_by(UNREACHABLE, &mirror.address);
    let known = RegistryHost {
        credentials: Some(password("of", "the registry")),
        ..RegistryHost::default()
    };
    registries.hosts.insert(UNREACHABLE.to_owned(), known);
    let mut pull = pull_of(&format!("{UNREACHABLE}/team/app:1"));
    pull.credentials = vec![password("me", "right")];
    let images = store.open_with(registries);
    images
        .pull(&pull)
        .await
        .expect_err("the mirror knows nobody");
    assert_eq!(mirror.asked_as(), [""]);
}

#[tokio::test]
async fn a_mirror_is_told_what_is_known_of_it() {
    let mirror = Registry::start(&[Trouble::NeedsPassword]).await;
    let store = Store::new();
    let mut registries = mirrored_by(UNREACHABLE, &mirror.address);
    let known = RegistryHost {
        credentials: Some(password("me", "right")),
        ..RegistryHost::default()
    };
    registries.hosts.insert(mirror.address.clone(), known);
    let images = store.open_with(registries);
    let pull = pull_of(&format!("{UNREACHABLE}/team/app:1"));
    images.pull(&pull).await.expect("an image");
}

#[test]
fn a_registry_that_is_not_named_has_the_mirrors_of_all_and_none_mirrors_itself() {
    let registries = Registries {
        mirrors: [
            ("*".to_owned(), vec!["all.example".to_owned()]),
            ("own.example".to_owned(), vec!["own.example".to_owned()]),
        ]
        .into(),
        ..Registries::default()
    };
    let mirrors = |registry: &str| registries.mirrors_of(registry).cloned().collect::<Vec<_>>();
    assert_eq!(mirrors("docker.io"), ["all.example"]);
    assert_eq!(mirrors("own.example"), Vec::<String>::new());
    assert_eq!(mirrors("all.example"), Vec::<String>::new());
}

#[tokio::test]
async fn a_bad_name_and_a_missing_platform_are_told_apart() {
    let registry = Registry::start(&[Trouble::OtherPlatform]).await;
    let store = Store::new();
    let images = store.open();
    let bad = images
        .pull(&pull_of("UPPER/case"))
        .await
        .expect_err("no reference");
    assert!(
        matches!(bad, RuntimeError::InvalidReference { .. }),
        "{bad:?}"
    );
    let missing = images
        .pull(&pull_of(&format!("{}/team/app:1", registry.address)))
        .await
        .expect_err("no platform");
    assert!(
        missing.to_string().contains("windows/amd64 10.0.20348.1"),
        "{missing}"
    );
}

#[test]
fn archives_of_both_kinds_are_imported_and_others_are_refused() {
    for archive in [registry::layout_archive(), registry::saved_archive()] {
        let store = Store::new();
        let images = store.open();
        let imported = images
            .import(archive.as_slice(), Some("given/name:2"), now())
            .expect("an archive");
        assert_eq!((imported.len(), imported[0].user.as_str()), (1, "app"));
        assert!(images.find("given/name:2").is_some());
    }
    let store = Store::new();
    assert!(
        store
            .open()
            .import(&b"not an archive at all"[..], None, now())
            .is_err()
    );
    assert!(store.open().import(&[0; 1024][..], None, now()).is_err());
}

#[test]
fn the_build_of_windows_decides_among_images() {
    let entry = |version: &str| {
        serde_json::json!({"digest": Digest::of(version.as_bytes()), "size": 1,
            "platform": {"os": "windows", "architecture": "amd64", "os.version": version}})
    };
    let versions = ["10.0.17763.1", "10.0.20348.1668", "10.0.26100.1"];
    let index = serde_json::json!({"manifests": versions.map(entry)}).to_string();
    let document::Document::Index(index) = document::parse(index.as_bytes()).expect("an index")
    else {
        panic!("it is an index");
    };
    for version in versions {
        let mut platform = Platform {
            os: "windows".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: Some(version.to_owned()),
        };
        let chosen = document::choose(&index, &platform)
            .expect("one")
            .digest
            .clone();
        assert_eq!(chosen, Digest::of(version.as_bytes()));
        // Another patch of the same build.
        platform.os_version = Some(format!(
            "{}.9",
            version.rsplit_once('.').expect("a version").0
        ));
        assert_eq!(
            document::choose(&index, &platform).expect("one").digest,
            chosen
        );
    }
}

#[test]
fn an_image_that_leaves_as_an_archive_comes_back_the_same() {
    let store = Store::new();
    let images = store.open();
    let files = [BuildFile {
        path: "bin/tool".to_owned(),
        kind: BuildKind::Content(b"tool".to_vec()),
        mode: 0o755,
    }];
    let settings = ImageSettings::default();
    let built = images.build("example/tool:1", &files, &settings, Timestamp::now());
    let mut archive = Vec::new();
    images
        .export("example/tool:1", &mut archive)
        .expect("an archive");
    assert!(images.export("example/other:1", io::sink()).is_err());
    let elsewhere = Store::new();
    let taken = elsewhere
        .open()
        .import(archive.as_slice(), None, Timestamp::now());
    let (taken, built) = (taken.expect("an image"), built.expect("an image"));
    assert_eq!(taken.len(), 1);
    assert_eq!((&taken[0].id, &taken[0].tags), (&built.id, &built.tags));
}
