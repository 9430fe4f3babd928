//! A repository in a folder of its own, with keys, archives and readers. Time stands still at `NOW`.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{SignedDuration, Timestamp};
use transom_model::Os;
use transom_model::package::PackageId;
use transom_package::download::{Downloader, Policy};
use transom_package::repository::{
    Added, Addition, EditError, Editor, Expiry, KeyRing, Keyholders, PackageListId, Problem,
    RepositoryClient, RepositoryError, RoleType, SigningKey, TrustedRoot, check, location,
};
use url::Url;

/// The time in all tests that do not say otherwise.
pub(crate) fn now() -> Timestamp {
    "2026-11-16T00:00:00Z".parse().expect("a time")
}

pub(crate) fn later(days: i64) -> Timestamp {
    now() + SignedDuration::from_hours(24 * days)
}

pub(crate) const EXPIRY: Expiry = Expiry {
    root: Duration::from_hours(24 * 100),
    others: Duration::from_hours(24 * 10),
};

pub(crate) fn downloader() -> Downloader {
    let policy = Policy {
        keep_free: 0,
        attempts: 2,
        first_pause: Duration::from_millis(1),
        ..Policy::default()
    };
    Downloader::new(policy).expect("a downloader")
}

pub(crate) fn id(text: &str) -> PackageId {
    text.parse().expect("an id")
}

/// A repository and what belongs to it, gone when the test ends.
pub(crate) struct Site {
    _temporary: Option<tempfile::TempDir>,
    pub(crate) root: Utf8PathBuf,
    pub(crate) downloader: Downloader,
}

impl Site {
    /// Without a repository yet.
    pub(crate) fn empty() -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(temporary.path()).expect("text");
        Self {
            root: root.to_owned(),
            _temporary: Some(temporary),
            downloader: downloader(),
        }
    }

    /// In a folder that belongs to somebody else.
    pub(crate) fn at(root: &Utf8Path) -> Self {
        Self {
            _temporary: None,
            root: root.to_owned(),
            downloader: downloader(),
        }
    }

    /// With an empty repository: two keys of which two must sign for root and targets.
    pub(crate) async fn new() -> Self {
        let site = Self::empty();
        let keys = |role: &str, count| site.make_keys(role, count);
        let holders = Keyholders::default()
            .with(RoleType::Root, &keys("root", 2), 2)
            .with(RoleType::Targets, &keys("targets", 2), 2)
            .with(RoleType::Snapshot, &keys("snapshot", 1), 1)
            .with(RoleType::Timestamp, &keys("timestamp", 1), 1);
        Editor::create(
            &site.repository(),
            &site.downloader,
            now(),
            &holders,
            &site.keys(),
            EXPIRY,
        )
        .await
        .expect("created")
        .close();
        site
    }

    pub(crate) fn repository(&self) -> Utf8PathBuf {
        self.root.join("repository")
    }

    pub(crate) fn metadata(&self, name: &str) -> Utf8PathBuf {
        self.repository().join("metadata").join(name)
    }

    pub(crate) fn key_folder(&self) -> Utf8PathBuf {
        self.root.join("keys")
    }

    pub(crate) fn make_keys(&self, role: &str, count: usize) -> Vec<SigningKey> {
        fs_err::create_dir_all(self.key_folder()).expect("made");
        (1..=count)
            .map(|number| {
                let path = self.key_folder().join(format!("{role}-{number}.pem"));
                SigningKey::create(&path).expect("a key").0
            })
            .collect()
    }

    /// All keys of the folder.
    pub(crate) fn keys(&self) -> KeyRing {
        KeyRing::load(Some(&self.key_folder()), &[]).expect("keys")
    }

    /// Only some keys.
    pub(crate) fn some_keys(&self, names: &[&str]) -> KeyRing {
        let files: Vec<Utf8PathBuf> = names
            .iter()
            .map(|name| self.key_folder().join(format!("{name}.pem")))
            .collect();
        KeyRing::load(None, &files).expect("keys")
    }

    pub(crate) async fn editor(&self) -> Editor {
        self.editor_at(now()).await
    }

    pub(crate) async fn editor_at(&self, now: Timestamp) -> Editor {
        Editor::open(&self.repository(), &self.downloader, now)
            .await
            .expect("opened")
    }

    /// Makes an archive with a manifest and a content.
    pub(crate) fn archive(&self, id: &str, os: Os, content: &str) -> Utf8PathBuf {
        let manifest = format!(r#"{{"version":1,"id":"{id}","os":"{os}","entries":[]}}"#);
        let file_name = id.replace(':', "!3a");
        let files = [("manifest.json", manifest.as_str()), ("content", content)];
        match os {
            Os::Linux => {
                let path = self.root.join(format!("{file_name}.tar.zst"));
                let tar = tar(&files);
                let bytes = zstd::encode_all(tar.as_slice(), 3).expect("compressed");
                fs_err::write(&path, bytes).expect("written");
                path
            }
            Os::Windows => {
                let path = self.root.join(format!("{file_name}.zip"));
                fs_err::write(&path, zip(&files)).expect("written");
                path
            }
        }
    }

    /// What DC/OS would have made: nothing in it says what it is.
    pub(crate) fn dcos_archive(&self, id: &str, content: &str) -> Utf8PathBuf {
        let path = self.root.join(format!("{id}.tar.xz"));
        fs_err::write(&path, format!("\u{fd}7zXZ {content}")).expect("written");
        path
    }

    pub(crate) fn list(&self, ids: &[&str]) -> (PackageListId, Utf8PathBuf) {
        let ids: Vec<PackageId> = ids.iter().map(|text| id(text)).collect();
        let list = PackageListId::of(&ids);
        let path = self.root.join(format!("{list}.package_list.json"));
        let text = serde_json::to_string(&ids).expect("a text");
        fs_err::write(&path, text).expect("written");
        (list, path)
    }

    pub(crate) async fn add(&self, path: &Utf8Path) -> Result<Added, EditError> {
        self.add_as(&addition(path)).await
    }

    pub(crate) async fn add_as(&self, addition: &Addition) -> Result<Added, EditError> {
        let mut editor = self.editor().await;
        let added = editor
            .add(
                std::slice::from_ref(addition),
                &self.keys(),
                EXPIRY,
                &|_| (),
            )
            .await;
        editor.close();
        Ok(added?.remove(0))
    }

    /// Adds a small package.
    pub(crate) async fn add_package(&self, id: &str, os: Os) {
        let path = self.archive(id, os, &format!("{id} for {os}"));
        self.add(&path).await.expect("added");
    }

    pub(crate) fn url(&self) -> Url {
        location(self.repository().as_str()).expect("an address")
    }

    /// The first root, as an administrator would give it to a node.
    pub(crate) fn pin(&self) -> TrustedRoot {
        let path = self.root.join("trusted.json");
        if !path.exists() {
            fs_err::copy(self.metadata("1.root.json"), &path).expect("copied");
        }
        TrustedRoot::File(path)
    }

    /// A reader that has seen what earlier readers of the same name saw.
    pub(crate) async fn reader(&self, name: &str) -> Result<RepositoryClient, RepositoryError> {
        self.read(&self.url(), name, now()).await
    }

    pub(crate) async fn read(
        &self,
        url: &Url,
        name: &str,
        now: Timestamp,
    ) -> Result<RepositoryClient, RepositoryError> {
        let datastore = self.root.join("datastores").join(name);
        RepositoryClient::open(&self.downloader, url, &self.pin(), &datastore, now).await
    }

    /// What a new reader finds, as sorted texts.
    pub(crate) async fn listed(&self) -> Vec<String> {
        let name = uuid::Uuid::new_v4().to_string();
        let client = self.reader(&name).await.expect("readable");
        let packages = client.packages();
        packages
            .map(|package| format!("{} {}", package.id, package.os))
            .chain(client.lists().map(|list| list.id.to_string()))
            .collect()
    }

    pub(crate) async fn problems(&self) -> Vec<Problem> {
        check(&self.repository(), &self.downloader, now(), &|_| ())
            .await
            .expect("looked at")
            .problems
    }
}

pub(crate) fn addition(path: &Utf8Path) -> Addition {
    Addition {
        path: path.to_owned(),
        unsigned: false,
        os: None,
        arch: None,
    }
}

fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, name, content.as_bytes())
            .expect("appended");
    }
    builder.into_inner().expect("finished")
}

fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    use std::io::Write as _;
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("started");
        writer.write_all(content.as_bytes()).expect("written");
    }
    writer.finish().expect("finished").into_inner()
}
