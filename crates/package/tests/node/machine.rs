//! Machines to test on: this one, and imaginary ones of both systems. Each has a root, a folder for
//! configuration, one for state, and one for unit files.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use transom_host::account::fake::FakeAccounts;
use transom_host::files::fake::FakeFiles;
use transom_host::files::{Access, Files, path};
use transom_model::os::Os;
use transom_model::package::PackageId;
use transom_package::node::{
    NoServices, Node, NodeError, Places, Recovery, SwitchReport, Switching,
};

/// A machine with a node on it.
pub(crate) struct Machine {
    pub(crate) files: Arc<dyn Files>,
    /// The same files, where they are imaginary.
    pub(crate) fake: Option<FakeFiles>,
    pub(crate) accounts: FakeAccounts,
    pub(crate) base: Utf8PathBuf,
    pub(crate) node: Node,
    _folder: Option<tempfile::TempDir>,
}

pub(crate) fn id(text: &str) -> PackageId {
    text.parse().expect("a package id")
}

pub(crate) fn ids(texts: &[&str]) -> Vec<PackageId> {
    texts.iter().map(|text| id(text)).collect()
}

/// The places below a folder.
pub(crate) fn places(os: Os, base: &Utf8Path) -> Places {
    let below = |name: &str| path::join(os, base, name);
    Places::new(
        os,
        below("root"),
        below("conf"),
        below("state"),
        below("units"),
    )
}

impl Machine {
    /// This machine, in a folder of its own.
    pub(crate) fn native() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = Utf8Path::from_path(folder.path())
            .expect("a Unicode path")
            .to_owned();
        let files: Arc<dyn Files> = Arc::new(transom_host::files::Native);
        Self::on(files, None, base, Some(folder))
    }

    /// This machine, in a folder that somebody else looks after.
    pub(crate) fn at(base: &Utf8Path) -> Self {
        let files: Arc<dyn Files> = Arc::new(transom_host::files::Native);
        Self::on(files, None, base.to_owned(), None)
    }

    pub(crate) fn linux() -> Self {
        Self::imaginary(Os::Linux, "/test")
    }

    pub(crate) fn windows() -> Self {
        Self::imaginary(Os::Windows, r"C:\Test")
    }

    /// All of them.
    pub(crate) fn each() -> [Self; 3] {
        [Self::native(), Self::linux(), Self::windows()]
    }

    #[cfg(target_os = "linux")]
    /// Another imaginary machine with the same files.
    pub(crate) fn duplicate(&self) -> Self {
        let fake = self
            .fake
            .as_ref()
            .expect("an imaginary machine")
            .duplicate();
        Self::on(Arc::new(fake.clone()), Some(fake), self.base.clone(), None)
    }

    fn imaginary(os: Os, base: &str) -> Self {
        let fake = FakeFiles::new(os);
        Self::on(Arc::new(fake.clone()), Some(fake), base.into(), None)
    }

    fn on(
        files: Arc<dyn Files>,
        fake: Option<FakeFiles>,
        base: Utf8PathBuf,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        let accounts = FakeAccounts::default();
        let places = places(files.os(), &base);
        let node = Node::open(files.clone(), Arc::new(accounts.clone()), places)
            .expect("a node")
            .waiting(Duration::from_millis(50));
        Self {
            files,
            fake,
            accounts,
            base,
            node,
            _folder: folder,
        }
    }

    #[cfg(target_os = "linux")]
    /// The same machine with other places.
    pub(crate) fn with_places(mut self, change: impl FnOnce(&mut Places)) -> Self {
        let mut places = self.node.places().clone();
        change(&mut places);
        let accounts = Arc::new(self.accounts.clone());
        self.node = Node::open(self.files.clone(), accounts, places).expect("a node");
        self
    }

    pub(crate) fn os(&self) -> Os {
        self.files.os()
    }

    /// A path below the machine's folder, in its spelling.
    pub(crate) fn path(&self, below: &str) -> Utf8PathBuf {
        path::join(self.os(), &self.base, below)
    }

    pub(crate) fn write(&self, below: &str, content: &str) {
        self.write_as(below, content, Access::Public);
    }

    pub(crate) fn write_as(&self, below: &str, content: &str, access: Access) {
        let path = self.path(below);
        let folder = path::parent(self.os(), &path).expect("a folder");
        self.files.create_dir_all(&folder).expect("made");
        self.files
            .write_durable(&path, content.as_bytes(), access)
            .expect("written");
    }

    /// A package by its files; `pkginfo.json` is `{}` unless given.
    pub(crate) fn package(&self, id: &str, content: &[(&str, &str)]) {
        let folder = self.node.places().package(&self::id(id));
        let folder = folder
            .as_str()
            .strip_prefix(self.base.as_str())
            .expect("below the machine's folder")
            .trim_start_matches(['/', '\\'])
            .to_owned();
        if !content.iter().any(|(path, _)| *path == "pkginfo.json") {
            self.write(&format!("{folder}/pkginfo.json"), "{}");
        }
        for (path, text) in content {
            self.write(&format!("{folder}/{path}"), text);
        }
    }

    pub(crate) fn content(&self, below: &str) -> String {
        let bytes = self.files.read(&self.path(below), 1 << 20);
        String::from_utf8(bytes.expect("read")).expect("text")
    }

    pub(crate) fn is_there(&self, below: &str) -> bool {
        self.files.metadata(&self.path(below)).is_ok()
    }

    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let names = self.files.names(&self.path(below)).expect("listed");
        names.into_iter().map(|entry| entry.name).collect()
    }

    /// A path in the active generation, as the pointer says and not as a link does.
    pub(crate) fn active_path(&self, below: &str) -> String {
        let pointer = self.node.pointer().expect("read").expect("a pointer");
        let active = pointer.active.expect("something active");
        format!("root/generations/{active}/{below}")
    }

    pub(crate) fn switching() -> Switching<'static> {
        Switching {
            now: Timestamp::UNIX_EPOCH,
            services: &NoServices,
            gate: None,
            rebuild: false,
        }
    }

    pub(crate) fn activate(&self, packages: &[&str]) -> Result<SwitchReport, NodeError> {
        self.activate_with(packages, &Self::switching())
    }

    pub(crate) fn activate_with(
        &self,
        packages: &[&str],
        switching: &Switching<'_>,
    ) -> Result<SwitchReport, NodeError> {
        let (session, _) = self.node.begin(switching.services)?;
        let plan = self.node.plan_activation(&ids(packages))?;
        session.execute(&plan, switching)
    }

    pub(crate) fn recover(&self) -> Recovery {
        self.node.begin(&NoServices).expect("recovered").1
    }

    pub(crate) fn active_ids(&self) -> Vec<String> {
        let active = self.node.active().expect("read");
        let ids = active.map(|manifest| manifest.ids()).unwrap_or_default();
        ids.iter().map(ToString::to_string).collect()
    }

    /// Asserts that nothing on the node is other than the pointer says.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let deviations = self.node.check().expect("checked");
        assert_eq!(deviations, [], "on {}", self.os());
    }
}
