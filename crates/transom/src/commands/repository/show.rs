//! `transom repository show`: whose signatures count, until when, and what one package or list is.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use transom_package::repository::{Entry, Overview, RoleOverview};

use super::list::EntryRow;
use super::{Place, advise_read, block_on, downloader};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::{Document, Shown};

const EXAMPLES: &str = "\
Examples:
  transom repository show              Keys, versions, expiry, and the digest that nodes pin
  transom repository show web--1       A package, for each system
  transom repository show 8a…          What a package list names";

/// Show the repository, a package or a package list
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// A package or a package list; without it, the repository itself
    #[arg(value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    place: Place,
}

impl Show {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.place.folder()?;
        let overview =
            block_on(async { advise_read(Overview::read(&folder, &downloader()?).await) })?;
        let Some(id) = &self.id else {
            cx.out.document(&Whole::new(&overview))?;
            return Ok(Exit::Success);
        };
        let mut found = Vec::new();
        for entry in &overview.entries {
            match entry {
                Entry::Package(package) if package.id.as_str() == id => {
                    found.push(EntryRow::new(entry));
                }
                Entry::List(list) if list.id.as_str() == id => {
                    let packages = advise_read(overview.packages_of(&folder, list))?;
                    let packages = packages.iter().map(ToString::to_string).collect();
                    cx.out.document(&Packages {
                        id: id.clone(),
                        packages,
                    })?;
                    return Ok(Exit::Success);
                }
                _ => {}
            }
        }
        if found.is_empty() {
            return Err(anyhow::anyhow!("`{id}` is not in the repository"))
                .hint("see what there is with `transom repository list`")
                .exit(Exit::NotFound);
        }
        cx.out.list(&found)?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct Packages {
    id: String,
    packages: Vec<String>,
}

impl Document for Packages {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        self.packages.iter().flat_map(|id| [id, "\n"]).collect()
    }

    fn names(&self) -> Vec<String> {
        self.packages.clone()
    }
}

#[derive(Serialize)]
struct Whole {
    root_sha256: String,
    packages: usize,
    unsigned: usize,
    package_lists: usize,
    mirror: bool,
    root_waits_for_signatures: bool,
    roles: Vec<RoleState>,
}

#[derive(Serialize)]
struct RoleState {
    role: String,
    version: u64,
    expires: Timestamp,
    threshold: u64,
    keys: Vec<String>,
}

impl Whole {
    fn new(overview: &Overview) -> Self {
        let packages = || {
            overview.entries.iter().filter_map(|entry| match entry {
                Entry::Package(package) => Some(package),
                Entry::List(_) => None,
            })
        };
        Self {
            root_sha256: overview.root_sha256.clone(),
            packages: packages().count(),
            unsigned: packages().filter(|package| package.unsigned).count(),
            package_lists: overview.entries.len() - packages().count(),
            mirror: overview.mirror,
            root_waits_for_signatures: overview.pending_root,
            roles: overview.roles.iter().map(RoleState::new).collect(),
        }
    }
}

impl RoleState {
    fn new(role: &RoleOverview) -> Self {
        Self {
            role: role.role.to_string(),
            version: role.version,
            expires: role.expires,
            threshold: role.threshold,
            keys: role.keys.clone(),
        }
    }
}

impl Document for Whole {
    fn text(&self, wide: bool, shown: Shown) -> String {
        let mut text = format!("root digest: {}\n", self.root_sha256);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "packages: {} ({} unsigned), package lists: {}",
            self.packages, self.unsigned, self.package_lists
        );
        if self.mirror {
            text += "it is a mirror\n";
        }
        if self.root_waits_for_signatures {
            text += "a new root waits for signatures\n";
        }
        for role in &self.roles {
            let state = if role.expires <= shown.now {
                "expired"
            } else {
                "expires"
            };
            let _ = writeln!(
                text,
                "{:<9} version {}, {state} {}, {} of {} keys sign",
                role.role,
                role.version,
                role.expires,
                role.threshold,
                role.keys.len()
            );
            for key in role.keys.iter().filter(|_| wide) {
                let _ = writeln!(text, "  {key}");
            }
        }
        text
    }

    fn names(&self) -> Vec<String> {
        self.roles.iter().map(|role| role.role.clone()).collect()
    }
}
