//! Building: what is there is reused, what a repository has is fetched, the rest is built where it can
//! reach nothing but its sources and what it requires. Invariant: an archive in the cache is complete,
//! and is what its id says.

mod cache;
mod dependencies;
mod error;
mod image;
mod install;
mod one;
mod repository;
mod schedule;
mod script;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Files, Native};
use transom_model::Os;
use transom_model::package::PackageId;

pub use cache::Cache;
pub use dependencies::DependencyError;
pub use error::BuildError;
pub use image::ImageError;
pub use install::InstallError;
pub use repository::{Repository, SignedRepository};
pub use schedule::Outcome;
pub use sources::{Fetcher, SourceError};

use crate::archive::{Unpack, unpack};
use crate::tree::TreePackage;
use one::Builder;
use schedule::Job;

/// How packages are built.
pub struct Options<'a> {
    /// How many packages at once.
    pub jobs: usize,
    /// Whether packages that depend on nothing failed go on after a failure.
    pub keep_going: bool,
    /// What is asked before something is built.
    pub repository: Option<&'a dyn Repository>,
    /// How long one script may run.
    pub time_limit: Duration,
    /// What a script is told about this machine.
    pub cores: usize,
    /// The runtimes that are asked for images.
    pub runtimes: &'a [&'a str],
    /// An absolute path, on Windows.
    pub powershell: Option<Utf8PathBuf>,
    /// What scripts on Windows see besides their own variables.
    pub environment: BTreeMap<String, String>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            jobs: cores,
            keep_going: false,
            repository: None,
            time_limit: Duration::from_hours(6),
            cores,
            runtimes: &image::RUNTIMES,
            powershell: None,
            environment: BTreeMap::new(),
        }
    }
}

/// What happens to a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Work on it begins.
    Started,
    Step(String),
    Warning(String),
    /// It is over, well or not.
    Finished,
}

/// Called with each event, from several threads.
pub type Listener<'a> = &'a (dyn Fn(&PackageId, Event) + Sync);

/// What would be done with a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// The cache has it.
    Reuse,
    /// The repository is asked, and if it does not have it, it is built.
    FetchOrBuild,
    Build,
}

/// What would be done with a package of the source tree at `folder`. Changes nothing.
pub fn intent(package: &TreePackage, folder: &Utf8Path, asks_repository: bool) -> Intent {
    let cache = cache::folder_of(folder);
    let archive = cache::archive(&cache, &package.id, package.recipe.os);
    if Native.metadata(&archive).is_ok() {
        Intent::Reuse
    } else if asks_repository {
        Intent::FetchOrBuild
    } else {
        Intent::Build
    }
}

/// Builds `wanted`, in the order of `packages`, which are all that may be required. What is not wanted
/// and required all the same must be in the cache.
pub fn build(
    packages: &[TreePackage],
    wanted: &BTreeSet<PackageId>,
    cache: &Cache,
    fetcher: &Fetcher,
    options: &Options<'_>,
    listener: Listener<'_>,
) -> Vec<(PackageId, Outcome)> {
    let by_id: BTreeMap<&PackageId, &TreePackage> = packages
        .iter()
        .map(|package| (&package.id, package))
        .collect();
    let systems: BTreeMap<&PackageId, Os> = packages
        .iter()
        .map(|package| (&package.id, package.recipe.os))
        .collect();
    let builder = Builder {
        cache,
        fetcher,
        options,
        systems,
    };
    let jobs = packages
        .iter()
        .filter(|package| wanted.contains(&package.id))
        .map(|package| Job {
            id: package.id.clone(),
            requires: package.closure.intersection(wanted).cloned().collect(),
        })
        .collect();
    let work = |id: &PackageId| {
        listener(id, Event::Started);
        let outcome = match by_id.get(id) {
            Some(package) => provide(&builder, package, &|event| listener(id, event)),
            None => Outcome::NotStarted,
        };
        listener(id, Event::Finished);
        outcome
    };
    let skipped = |id: &PackageId, _: &PackageId| listener(id, Event::Finished);
    let mut outcomes = schedule::run(jobs, options.jobs, options.keep_going, &work, &skipped);
    packages
        .iter()
        .filter_map(|package| outcomes.remove_entry(&package.id))
        .collect()
}

fn provide(builder: &Builder<'_>, package: &TreePackage, say: &dyn Fn(Event)) -> Outcome {
    let attempt = || -> Result<Outcome, BuildError> {
        let (id, recipe) = (&package.id, &package.recipe);
        let outcome = if builder.cache.has_archive(id, recipe.os) {
            Outcome::Reused
        } else if fetch(builder, package, say)? {
            Outcome::Fetched
        } else {
            builder.build(package, say)?;
            Outcome::Built
        };
        builder.cache.note_latest(id, &recipe.variant)?;
        Ok(outcome)
    };
    attempt().unwrap_or_else(Outcome::Failed)
}

/// Takes a package from the repository, if that has it.
fn fetch(
    builder: &Builder<'_>,
    package: &TreePackage,
    say: &dyn Fn(Event),
) -> Result<bool, BuildError> {
    let Some(repository) = builder.options.repository else {
        return Ok(false);
    };
    let (id, os) = (&package.id, package.recipe.os);
    say(Event::Step("asking the repository".to_owned()));
    let work = builder.cache.work(id.name_str())?;
    let archive = work.join("archive");
    let attempt = || -> Result<bool, BuildError> {
        let has = repository
            .fetch(id, os, &archive)
            .map_err(BuildError::Repository)?;
        if !has {
            return Ok(false);
        }
        let wanted = Unpack {
            os: Some(os),
            ..Unpack::of(id)
        };
        unpack(&Native, &archive, &work.join("unpacked"), &wanted)
            .map_err(|error| BuildError::Unpack(Box::new(error)))?;
        builder.cache.keep_archive(id, os, &archive)?;
        Ok(true)
    };
    let fetched = attempt();
    Native.remove_tree(&work)?;
    fetched
}
