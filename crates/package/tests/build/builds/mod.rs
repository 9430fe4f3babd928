//! Whole builds of small source trees.

mod declarative;
mod sources;
mod tree;

#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(windows)]
mod windows;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;
use transom_host::files::Native;
use transom_model::package::PackageId;
use transom_package::archive::{Unpack, unpack};
use transom_package::build::{Cache, Event, Fetcher, Options, Outcome, build};
use transom_package::tree::{Images, Key, SourceFolder, Surroundings, TreePackage};

/// The digest of nothing but the text `hello\n`.
pub(super) const HELLO_SHA1: &str = "f572d396fae9206628714fb2ce00f72e94f2258f";

/// A source tree in a folder of its own.
pub(super) struct SourceTree {
    pub(super) folder: Utf8PathBuf,
    _temporary: TempDir,
}

/// What a build said and what came of it.
pub(super) struct Ran {
    pub(super) packages: Vec<TreePackage>,
    pub(super) outcomes: Vec<(PackageId, Outcome)>,
    pub(super) events: Vec<(String, Event)>,
}

struct NoImages;

impl Images for NoImages {
    fn id(&self, _name: &str) -> Option<String> {
        None
    }
}

impl SourceTree {
    pub(super) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(temporary.path().canonicalize().unwrap()).unwrap();
        let folder = folder.as_str().trim_start_matches(r"\\?\").into();
        Self {
            folder,
            _temporary: temporary,
        }
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    pub(super) fn cache(&self) -> Cache {
        Cache::open(&self.folder, Duration::from_secs(10), &|_| ()).unwrap()
    }

    pub(super) fn resolve(&self, names: &[&str]) -> Vec<TreePackage> {
        let fetcher = Fetcher::new(&self.folder.join("cache"));
        let surroundings = Surroundings {
            images: &NoImages,
            sources: &fetcher,
        };
        let wanted: Vec<Key> = names
            .iter()
            .map(|name| {
                let (name, variant) = name.split_once(':').unwrap_or((name, "default"));
                (name.parse().unwrap(), variant.parse().unwrap())
            })
            .collect();
        SourceFolder::read(&self.folder, &fetcher)
            .resolve_packages(&wanted, &surroundings)
            .outcome
            .unwrap()
    }

    /// Builds packages with all that they require.
    pub(super) fn build(&self, names: &[&str]) -> Ran {
        self.build_with(names, &Options::default())
    }

    pub(super) fn build_with(&self, names: &[&str], options: &Options<'_>) -> Ran {
        let packages = self.resolve(names);
        let wanted: BTreeSet<PackageId> = packages.iter().map(|one| one.id.clone()).collect();
        let cache = self.cache();
        let fetcher = Fetcher::new(cache.folder());
        let events = Mutex::new(Vec::new());
        let listener = |id: &PackageId, event| {
            let name = id.name_str().to_owned();
            events.lock().unwrap().push((name, event));
        };
        let outcomes = build(&packages, &wanted, &cache, &fetcher, options, &listener);
        let left = fs_err::read_dir(cache.folder().join("work"))
            .unwrap()
            .count();
        assert_eq!(left, 0, "nothing is left of the work");
        let mut events = events.into_inner().unwrap();
        let warnings = fetcher.take_warnings();
        events.extend(
            warnings
                .into_iter()
                .map(|text| (String::new(), Event::Warning(text))),
        );
        Ran {
            packages,
            outcomes,
            events,
        }
    }
}

impl Ran {
    #[track_caller]
    pub(super) fn good(self) -> Self {
        for (id, outcome) in &self.outcomes {
            if let Outcome::Failed(error) = outcome {
                panic!("{id}: {}", super::archive::chain(error));
            }
            assert!(outcome.is_good(), "{id}: {outcome:?}");
        }
        self
    }

    #[track_caller]
    pub(super) fn failure(&self, name: &str) -> String {
        match self.outcome(name) {
            Outcome::Failed(error) => super::archive::chain(error),
            outcome => panic!("{name}: {outcome:?}"),
        }
    }

    pub(super) fn outcome(&self, name: &str) -> &Outcome {
        let found = self.outcomes.iter().find(|(id, _)| id.name_str() == name);
        &found.unwrap().1
    }

    pub(super) fn package(&self, name: &str) -> &TreePackage {
        let found = self.packages.iter().find(|one| one.id.name_str() == name);
        found.unwrap()
    }

    /// Where the archive of a package is.
    pub(super) fn archive(&self, tree: &SourceTree, name: &str) -> Utf8PathBuf {
        let package = self.package(name);
        tree.cache().archive(&package.id, package.recipe.os)
    }

    /// Unpacks what was built, and says where.
    pub(super) fn unpack(&self, tree: &SourceTree, name: &str) -> Utf8PathBuf {
        let id = &self.package(name).id;
        let to = tree.folder.join(format!("unpacked-{id}"));
        let archive = self.archive(tree, name);
        unpack(&Native, &archive, &to, &Unpack::of(id)).unwrap();
        to
    }
}

pub(super) fn read(path: &Utf8Path) -> String {
    fs_err::read_to_string(path).unwrap()
}
