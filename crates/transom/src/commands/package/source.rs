//! Which source tree a command works on, and how what is wrong with one is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use transom_model::package::Variant;
use transom_package::build::Fetcher;
use transom_package::fault::Fault;
use transom_package::tree::{LocalImages, Resolved, SourceFolder, Surroundings};

use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

/// The folder below a checkout that holds packages.
const PACKAGES: &str = "packages";

/// Where what was fetched is kept, below the packages.
const CACHE: &str = "cache";

/// Options that name a source tree.
#[derive(Debug, clap::Args)]
pub(super) struct SourceOptions {
    /// The folder that holds the packages' folders [default: the one around here]
    #[arg(long, value_name = "DIR")]
    packages: Option<Utf8PathBuf>,

    /// The tree's variant
    #[arg(long, value_name = "VARIANT")]
    pub(super) variant: Option<Variant>,
}

/// A source tree, and what is asked of the machine about it.
pub(super) struct Machine {
    folder: Utf8PathBuf,
    images: LocalImages,
    /// Fetches the upstream tree where there is one.
    sources: Fetcher,
}

impl Machine {
    pub(super) fn new(source: &SourceOptions) -> anyhow::Result<Self> {
        let folder = source.folder()?;
        Ok(Self {
            images: LocalImages::default(),
            sources: Fetcher::new(&folder.join(CACHE)),
            folder,
        })
    }

    /// Reads the tree's folder.
    pub(super) fn read(&self) -> SourceFolder {
        SourceFolder::read(&self.folder, &self.sources)
    }

    pub(super) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            images: &self.images,
            sources: &self.sources,
        }
    }
}

impl SourceOptions {
    /// The tree's folder.
    pub(super) fn folder(&self) -> anyhow::Result<Utf8PathBuf> {
        Ok(match &self.packages {
            Some(folder) => absolute(folder)?,
            None => around(&absolute(Utf8Path::new("."))?),
        })
    }

    pub(super) fn variant(&self) -> Variant {
        self.variant.clone().unwrap_or_default()
    }
}

pub(super) fn absolute(path: &Utf8Path) -> anyhow::Result<Utf8PathBuf> {
    camino::absolute_utf8(path).with_context(|| format!("could not find out where {path} is"))
}

/// The folder of packages in or above `start`; `start` itself when there is none.
fn around(start: &Utf8Path) -> Utf8PathBuf {
    let holds_a_tree = |folder: &Utf8Path| {
        fs_err::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                name.to_string_lossy().ends_with("treeinfo.json")
            })
        })
    };
    for folder in start.ancestors() {
        let below = folder.join(PACKAGES);
        for candidate in [folder, &below] {
            if holds_a_tree(candidate) {
                return candidate.to_owned();
            }
        }
    }
    start.to_owned()
}

/// All that is wrong, as programs read it.
#[derive(Serialize)]
struct Report<'a> {
    faults: &'a [Fault],
}

impl Document for Report<'_> {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let mut text = String::new();
        for fault in self.faults {
            let _ = writeln!(text, "{fault}");
            if let Some(hint) = &fault.hint {
                let _ = writeln!(text, "  hint: {hint}");
            }
        }
        text
    }

    fn names(&self) -> Vec<String> {
        self.faults
            .iter()
            .map(|fault| fault.file.to_string())
            .collect()
    }
}

/// Shows warnings, then hands on what was resolved; or shows what is wrong with it.
pub(super) fn accept<T>(cx: &Context, resolved: Resolved<T>) -> anyhow::Result<Result<T, Exit>> {
    warn(cx, &resolved.warnings);
    match resolved.outcome {
        Ok(value) => Ok(Ok(value)),
        Err(faults) => refuse(cx, &faults).map(Err),
    }
}

/// Shows what is doubtful: the same in many files only once.
fn warn(cx: &Context, warnings: &[Fault]) {
    let mut files: BTreeMap<&str, Vec<&Fault>> = BTreeMap::new();
    for warning in warnings {
        files.entry(&warning.message).or_default().push(warning);
    }
    for same in files.values() {
        match same.as_slice() {
            [one] => cx.out.warn(&one.to_string()),
            [first, rest @ ..] => cx.out.warn(&format!("{first} (and {} more)", rest.len())),
            [] => {}
        }
    }
}

/// Shows what is wrong.
pub(super) fn refuse(cx: &Context, faults: &[Fault]) -> anyhow::Result<Exit> {
    cx.out.document(&Report { faults })?;
    let noun = if faults.len() == 1 {
        "mistake"
    } else {
        "mistakes"
    };
    cx.out
        .remark(&format!("{} {noun} in the source tree", faults.len()));
    Ok(Exit::Failure)
}
