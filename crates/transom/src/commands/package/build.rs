//! `transom package build`: packages from their recipes. What is there already is used again, in the
//! cache first, then in a repository.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use transom_model::Os;
use transom_model::package::{PackageId, PackageName};
use transom_package::build::{
    self, Cache, Event, Fetcher, Intent, Options, Outcome, Repository, SignedRepository, intent,
};
use transom_package::hash::sha1_hex;
use transom_package::repository::{TrustedRoot, location};
use transom_package::tree::{self, LocalImages, LocalSources, Sources, Surroundings, TreePackage};

use super::source::{SourceOptions, absolute, accept};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::{Cell, Column, Row, Shown};
use crate::progress::Task;

const EXAMPLES: &str = "\
Examples:
  transom package build                       The package whose folder this is
  transom package build etcd --recursive      A package, and all that it requires
  transom package build --tree                Every package of the tree
  transom package build --tree --dry-run      What that would build, fetch and use again
  transom package build --tree --repository-url https://packages.example.com --trusted-root root.json

Archives and logs are kept in the folder `cache` beside the packages. A build script has no network:
it sees its sources, what the package requires, and a place for its result.

Exit codes: 0 all packages are there, 1 one is not, 3 another build of this tree did not end in time.";

/// How long another build of the same tree is waited for.
const LOCK_WAIT: Duration = Duration::from_hours(1);

/// What is looked for on Windows, in this order.
const POWERSHELLS: [&str; 2] = ["powershell.exe", "pwsh.exe"];

/// Build packages from their recipes
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Build {
    /// Packages by name [default: the one whose folder this is]
    #[arg(value_name = "NAME", conflicts_with = "tree")]
    names: Vec<PackageName>,

    #[command(flatten)]
    source: SourceOptions,

    /// All that these packages require, too
    #[arg(short, long)]
    recursive: bool,

    /// Every package of the tree
    #[arg(long)]
    tree: bool,

    /// After a failure go on with all that does not depend on it
    #[arg(short, long)]
    keep_going: bool,

    /// How many packages to build at once [default: one per processor]
    #[arg(short, long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// How many minutes one build script may take
    #[arg(long, value_name = "MINUTES", default_value_t = 360)]
    time_limit: u64,

    /// Where to look for packages before they are built: an address or a folder
    #[arg(long, value_name = "URL")]
    repository_url: Option<String>,

    /// The file that says whose signatures to trust there
    #[arg(long, value_name = "FILE", requires = "repository_url")]
    trusted_root: Option<Utf8PathBuf>,

    /// The same by the SHA-256 digest of that file
    #[arg(
        long,
        value_name = "DIGEST",
        requires = "repository_url",
        conflicts_with = "trusted_root"
    )]
    root_sha256: Option<String>,

    /// The PowerShell that runs build scripts on Windows [default: the one found on PATH]
    #[arg(long, value_name = "FILE")]
    powershell: Option<Utf8PathBuf>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is to be built, resolved.
struct Order {
    /// In build order, with all that is required.
    packages: Vec<TreePackage>,
    wanted: BTreeSet<PackageId>,
    tree: Option<tree::Tree>,
}

impl Build {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.source.folder()?;
        if self.dry_run {
            let order = match self.resolve(cx, &folder, &LocalSources)? {
                Ok(order) => order,
                Err(exit) => return Ok(exit),
            };
            return self.show_intents(cx, &folder, &order);
        }
        let waiting = |holder: Option<u32>| {
            let who = holder.map_or("another build".to_owned(), |pid| format!("process {pid}"));
            cx.out
                .remark(&format!("waiting for {who}, which builds this tree"));
        };
        let cache = Cache::open(&folder, LOCK_WAIT, &waiting)
            .exit(Exit::NotRunning)
            .hint("wait until the other build has ended, or end it")?;
        let fetcher = Fetcher::new(cache.folder());
        let order = match self.resolve(cx, &folder, &fetcher)? {
            Ok(order) => order,
            Err(exit) => return Ok(exit),
        };
        let repository = self.repository(cx, &cache)?;
        let mut options = self.options(cx);
        options.repository = repository.as_ref().map(|signed| signed as &dyn Repository);
        let screen = Screen::new(cx);
        let outcomes = build::build(
            &order.packages,
            &order.wanted,
            &cache,
            &fetcher,
            &options,
            &|id, event| screen.show(id, event),
        );
        screen.finish(cx, fetcher.take_warnings());
        if outcomes.iter().all(|(_, outcome)| outcome.is_good())
            && let Some(tree) = &order.tree
        {
            let path = cache.note_complete(tree)?;
            cx.out.remark(&format!("the tree is complete: {path}"));
        }
        report(cx, &cache, &order, outcomes)
    }

    fn resolve(
        &self,
        cx: &Context,
        folder: &Utf8Path,
        sources: &dyn Sources,
    ) -> anyhow::Result<Result<Order, Exit>> {
        let images = LocalImages::default();
        let surroundings = Surroundings {
            images: &images,
            sources,
        };
        let source = tree::SourceFolder::read(folder, sources);
        let variant = self.source.variant();
        if self.tree {
            return Ok(
                accept(cx, source.resolve(&variant, &surroundings))?.map(|tree| Order {
                    wanted: tree.packages.iter().map(|one| one.id.clone()).collect(),
                    packages: tree.packages.clone(),
                    tree: Some(tree),
                }),
            );
        }
        let keys: Vec<tree::Key> = self
            .names(folder)?
            .into_iter()
            .map(|name| (name, variant.clone()))
            .collect();
        let resolved = source.resolve_packages(&keys, &surroundings);
        Ok(accept(cx, resolved)?.map(|packages| {
            let is_named = |package: &&TreePackage| {
                let recipe = &package.recipe;
                keys.contains(&(recipe.name.clone(), recipe.variant.clone()))
            };
            let wanted = packages
                .iter()
                .filter(|package| self.recursive || is_named(package))
                .map(|package| package.id.clone())
                .collect();
            Order {
                packages,
                wanted,
                tree: None,
            }
        }))
    }

    /// The packages that were named, or the one that we stand in.
    fn names(&self, folder: &Utf8Path) -> anyhow::Result<Vec<PackageName>> {
        if !self.names.is_empty() {
            return Ok(self.names.clone());
        }
        let here = absolute(Utf8Path::new("."))?;
        let name = here
            .strip_prefix(folder)
            .ok()
            .and_then(|below| below.components().next())
            .ok_or_else(|| anyhow::anyhow!("no package was named, and this is no package's folder"))
            .exit(Exit::Usage)
            .hint("name one, or build all of them with `--tree`")?;
        let name = name.as_str().parse().exit(Exit::Usage)?;
        Ok(vec![name])
    }

    fn repository(&self, cx: &Context, cache: &Cache) -> anyhow::Result<Option<SignedRepository>> {
        let Some(url) = &self.repository_url else {
            return Ok(None);
        };
        let base = location(url)
            .with_context(|| format!("`{url}` is neither an address nor a folder"))
            .exit(Exit::Usage)?;
        let root = match (&self.trusted_root, &self.root_sha256) {
            (Some(file), _) => TrustedRoot::File(absolute(file)?),
            (None, Some(digest)) => TrustedRoot::Sha256(digest.clone()),
            (None, None) => {
                return Err(anyhow::anyhow!("whose signatures to trust was not said"))
                    .exit(Exit::Usage)
                    .hint("add --trusted-root FILE or --root-sha256 DIGEST");
            }
        };
        let seen = cache
            .folder()
            .join("repositories")
            .join(sha1_hex(base.as_str().as_bytes()));
        let now = cx.out.shown().now;
        let opened = SignedRepository::open(&base, &root, &seen, now)
            .with_context(|| format!("the repository `{url}` cannot be used"))?;
        Ok(Some(opened))
    }

    fn options(&self, cx: &Context) -> Options<'static> {
        let mut options = Options {
            keep_going: self.keep_going,
            time_limit: Duration::from_secs(self.time_limit.saturating_mul(60)),
            ..Options::default()
        };
        if let Some(jobs) = self.jobs {
            options.jobs = jobs.get();
        }
        if cx.host == Os::Windows {
            options.environment = cx.environment.all();
            options.powershell = self
                .powershell
                .clone()
                .or_else(|| find_powershell(&options.environment));
        }
        options
    }

    fn show_intents(&self, cx: &Context, folder: &Utf8Path, order: &Order) -> anyhow::Result<Exit> {
        let asks = self.repository_url.is_some();
        let rows: Vec<BuildRow> = order
            .packages
            .iter()
            .filter(|package| order.wanted.contains(&package.id))
            .map(|package| {
                let result = match intent(package, folder, asks) {
                    Intent::Reuse => "would be used again",
                    Intent::FetchOrBuild => "would be fetched, or built",
                    Intent::Build => "would be built",
                };
                BuildRow::new(package, result, None)
            })
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

/// Next to our own program first, then where programs are.
fn find_powershell(environment: &BTreeMap<String, String>) -> Option<Utf8PathBuf> {
    let own = std::env::current_exe()
        .ok()
        .and_then(|path| Utf8PathBuf::from_path_buf(path).ok())
        .and_then(|path| path.parent().map(Utf8Path::to_owned));
    let path = environment
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let folders: Vec<Utf8PathBuf> = own
        .into_iter()
        .chain(
            path.split(';')
                .filter(|folder| !folder.is_empty())
                .map(Into::into),
        )
        .collect();
    POWERSHELLS.iter().find_map(|name| {
        folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|candidate| candidate.is_file())
    })
}

/// Shows what is being built.
struct Screen<'a> {
    cx: &'a Context,
    tasks: Mutex<BTreeMap<PackageId, Task>>,
    warnings: Mutex<BTreeSet<String>>,
}

impl<'a> Screen<'a> {
    fn new(cx: &'a Context) -> Self {
        Self {
            cx,
            tasks: Mutex::new(BTreeMap::new()),
            warnings: Mutex::new(BTreeSet::new()),
        }
    }

    fn show(&self, id: &PackageId, event: Event) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started => {
                tasks.insert(id.clone(), self.cx.progress.start(id.name_str()));
            }
            Event::Step(step) => {
                if let Some(task) = tasks.get(id) {
                    task.step(&step);
                }
            }
            Event::Warning(text) => {
                let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
                warnings.insert(text);
            }
            Event::Finished => drop(tasks.remove(id)),
        }
    }

    /// Nothing moves any more, so nothing is torn.
    fn finish(self, cx: &Context, more: Vec<String>) {
        let warnings = self
            .warnings
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        for warning in warnings.into_iter().chain(more) {
            cx.out.warn(&warning);
        }
    }
}

/// Prints what became of each package, and why of those that failed.
fn report(
    cx: &Context,
    cache: &Cache,
    order: &Order,
    outcomes: Vec<(PackageId, Outcome)>,
) -> anyhow::Result<Exit> {
    let by_id: BTreeMap<&PackageId, &TreePackage> =
        order.packages.iter().map(|one| (&one.id, one)).collect();
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    let total = outcomes.len();
    let mut missing = 0;
    for (id, outcome) in outcomes {
        missing += usize::from(!outcome.is_good());
        let result = match outcome {
            Outcome::Reused => "used again".to_owned(),
            Outcome::Fetched => "fetched".to_owned(),
            Outcome::Built => "built".to_owned(),
            Outcome::Skipped { because } => format!("skipped: {} failed", because.name_str()),
            Outcome::NotStarted => "not started".to_owned(),
            Outcome::Failed(error) => {
                failures.push((id.clone(), error));
                "failed".to_owned()
            }
        };
        if let Some(package) = by_id.get(&id) {
            let archive = cache.archive(&id, package.recipe.os);
            let archive = cache.has_archive(&id, package.recipe.os).then_some(archive);
            rows.push(BuildRow::new(package, &result, archive));
        }
    }
    cx.out.list(&rows)?;
    let last = failures.pop();
    for (id, error) in failures {
        let error = anyhow::Error::from(error);
        cx.out
            .remark(&format!("error: {id} was not built: {error:#}"));
    }
    match last {
        None if missing == 0 => Ok(Exit::Success),
        None => Err(anyhow::anyhow!("{missing} of {total} packages are missing")),
        Some((id, error)) => {
            let hint = match &error {
                build::BuildError::Dependency(build::DependencyError::Missing { .. }) => {
                    Some("build what it requires, too, with `--recursive`")
                }
                build::BuildError::NoPowerShell => Some("name one with `--powershell FILE`"),
                build::BuildError::OtherSystem { .. } => {
                    Some("build it on such a machine, or describe it by an `install` section")
                }
                _ => None,
            };
            let failed = Err(error).with_context(|| format!("{id} was not built"));
            match hint {
                Some(hint) => failed.hint(hint),
                None => failed,
            }
        }
    }
}

#[derive(Serialize)]
struct BuildRow {
    name: String,
    variant: String,
    id: String,
    os: String,
    result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<Utf8PathBuf>,
}

impl BuildRow {
    fn new(package: &TreePackage, result: &str, archive: Option<Utf8PathBuf>) -> Self {
        Self {
            name: package.recipe.name.to_string(),
            variant: package.recipe.variant.to_string(),
            id: package.id.to_string(),
            os: package.recipe.os.to_string(),
            result: result.to_owned(),
            archive,
        }
    }
}

impl Row for BuildRow {
    const PLURAL: &'static str = "packages";

    fn columns() -> &'static [Column] {
        const COLUMNS: &[Column] = &[
            Column::new("PACKAGE"),
            Column::new("VARIANT"),
            Column::new("OS"),
            Column::new("VERSION"),
            Column::new("RESULT"),
        ];
        COLUMNS
    }

    fn cells(&self, _shown: Shown) -> Vec<Cell> {
        let version = self.id.rsplit("--").next().unwrap_or_default();
        vec![
            Cell::new(&self.name),
            Cell::new(&self.variant),
            Cell::new(&self.os),
            Cell::new(version),
            Cell::new(&self.result),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}
