//! A node's software: unpacked packages, numbered generations made of them, and one pointer file that
//! says which generation is active. Invariant: the pointer names a generation that was complete and
//! durable before, and everything else that tells what is active is derived from it.
//!
//! Reading needs no lock. Changing goes through a [`Session`], which holds the node's lock and has
//! recovered from whatever an earlier command left.

mod check;
mod checks;
mod collect;
mod derive;
mod environment;
mod error;
mod generation;
mod generations;
mod json;
mod load;
mod manifest;
mod places;
mod plan;
mod pointer;
mod recover;
pub mod services;
mod store;
mod switch;
mod uninstall;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::account::Accounts;
use transom_host::files::{FileError, FileLock, Files, Kind};
use transom_model::os::Os;
use transom_model::package::PackageId;

pub use checks::{CheckFile, CheckResult, CheckRunner, Checks, NoChecks, Verdict, list_checks};
pub use collect::{Collected, Collection, Kept};
pub use derive::{Deviation, Problem};
pub use error::NodeError;
pub use generations::{Failure, GenerationInfo};
pub use load::{Item, LoadedPackage, UnitFile};
pub use manifest::{Contents, Manifest, PackageContents, Unit};
pub use places::{MERGED, Places, SERVICE_CONFIGURATION, WANTS};
pub use plan::{
    ActivationFault, ActivationPlan, Changes, Difference, KnownAccounts, PackageChange, Situation,
    plan,
};
pub use pointer::{Pointer, Return};
pub use recover::Recovery;
pub use services::{NoServices, Services, ServicesError};
pub use store::{Added, Removed};
pub use switch::{Gate, Outcome, SwitchReport, Switching};
pub use uninstall::Uninstalled;

const ROLES: &str = "roles";
const MANUAL_ACCOUNTS: &str = "manual_host_users";
/// How long a command waits for another one, unless told otherwise.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// The software of one node.
#[derive(Debug, Clone)]
pub struct Node {
    files: Arc<dyn Files>,
    accounts: Arc<dyn Accounts>,
    places: Places,
    lock_wait: Duration,
}

/// A node that nobody else changes, and that has recovered from whatever went before.
#[derive(Debug)]
pub struct Session<'n> {
    node: &'n Node,
    files: &'n dyn Files,
    accounts: &'n dyn Accounts,
    places: &'n Places,
    lock: FileLock,
}

impl Node {
    /// A node at these places. Nothing is looked at yet.
    pub fn open(
        files: Arc<dyn Files>,
        accounts: Arc<dyn Accounts>,
        places: Places,
    ) -> Result<Self, NodeError> {
        if let Some(path) = places.relative() {
            return Err(NodeError::RelativePlace {
                path: path.to_owned(),
            });
        }
        if files.os() != places.os {
            return Err(NodeError::OtherSystem {
                places: places.os,
                files: files.os(),
            });
        }
        Ok(Self {
            files,
            accounts,
            places,
            lock_wait: LOCK_WAIT,
        })
    }

    /// Waits at most this long for another command.
    #[must_use]
    pub fn waiting(mut self, limit: Duration) -> Self {
        self.lock_wait = limit;
        self
    }

    pub fn places(&self) -> &Places {
        &self.places
    }

    pub fn files(&self) -> &dyn Files {
        self.files.as_ref()
    }

    /// What is active, and what was. `None`: nothing ever was.
    pub fn pointer(&self) -> Result<Option<Pointer>, NodeError> {
        pointer::read(self.files(), &self.places)
    }

    /// The active generation. `None`: nothing is active.
    pub fn active(&self) -> Result<Option<Manifest>, NodeError> {
        let Some(number) = self.pointer()?.and_then(|pointer| pointer.active) else {
            return Ok(None);
        };
        self.generation(number).map(Some)
    }

    /// One generation by its number.
    pub fn generation(&self, number: u64) -> Result<Manifest, NodeError> {
        manifest::read(self.files(), &self.places, number)?
            .ok_or(NodeError::NoSuchGeneration { number })
    }

    /// All generations, ascending.
    pub fn generations(&self) -> Result<Vec<GenerationInfo>, NodeError> {
        let pointer = self.pointer()?.unwrap_or_else(Pointer::never);
        generations::list(self.files(), &self.places, &pointer)
    }

    /// What changes from one generation to another.
    pub fn diff(&self, before: u64, after: u64) -> Result<Changes, NodeError> {
        let (before, after) = (self.generation(before)?, self.generation(after)?);
        Ok(Changes::between(
            Some(&before.contents),
            Some(&after.contents),
        ))
    }

    /// Everything that is not as the pointer says; a recovery puts most of it right. Nothing is
    /// changed. While another command works, its traces are reported as well.
    pub fn check(&self) -> Result<Vec<Deviation>, NodeError> {
        check::check(self.files(), &self.places)
    }

    /// The roles of this node: the names of the files in `roles`.
    pub fn roles(&self) -> Result<Vec<String>, NodeError> {
        let folder = self.config(ROLES);
        match self.files.names(&folder) {
            Ok(names) => Ok(names.into_iter().map(|entry| entry.name).collect()),
            Err(FileError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Plans to make exactly these packages active. Nothing is changed.
    pub fn plan_activation(&self, ids: &[PackageId]) -> Result<ActivationPlan, NodeError> {
        let roles = self.roles()?;
        let mut packages = Vec::with_capacity(ids.len());
        let mut faults = Vec::new();
        for id in ids {
            match load::load(self.files(), &self.places, id, &roles) {
                Ok(package) => packages.push(package),
                Err(found) => faults.extend(found),
            }
        }
        let active = self.active()?;
        let situation = Situation {
            places: &self.places,
            roles: &roles,
            accounts: self.known_accounts(&packages, &mut faults)?,
            foreign_units: self.foreign_units(&packages, active.as_ref())?,
            occupied: self.occupied()?,
            active: active.as_ref(),
            packages,
        };
        plan(situation, faults).map_err(NodeError::Faults)
    }

    /// Plans to replace the active package that has the same name. Nothing is changed.
    pub fn plan_swap(&self, id: &PackageId) -> Result<ActivationPlan, NodeError> {
        let active = self.active()?.ok_or(NodeError::NothingActive)?;
        let mut ids = active.ids();
        let same = ids
            .iter_mut()
            .find(|other| other.name_str() == id.name_str())
            .ok_or_else(|| NodeError::NameNotActive { name: id.name() })?;
        *same = id.clone();
        self.plan_activation(&ids)
    }

    /// Begins to change the node: takes its lock and recovers from what went before.
    pub fn begin(&self, services: &dyn Services) -> Result<(Session<'_>, Recovery), NodeError> {
        self.files.create_dir_all(&self.places.root)?;
        let lock = self
            .files
            .lock(&self.places.lock(), self.lock_wait)
            .map_err(|error| match error {
                source @ FileError::Locked { .. } => NodeError::Busy { source },
                error => error.into(),
            })?;
        let session = Session {
            node: self,
            files: self.files(),
            accounts: self.accounts.as_ref(),
            places: &self.places,
            lock,
        };
        let recovery = session.recover(services)?;
        Ok((session, recovery))
    }

    fn config(&self, below: &str) -> Utf8PathBuf {
        transom_host::files::path::join(self.places.os, &self.places.config_dir, below)
    }

    fn known_accounts(
        &self,
        packages: &[LoadedPackage],
        faults: &mut Vec<ActivationFault>,
    ) -> Result<KnownAccounts, NodeError> {
        let mut known = KnownAccounts::default();
        if self.places.os == Os::Windows {
            return Ok(known);
        }
        known.are_manual = is_there(self.files(), &self.config(MANUAL_ACCOUNTS))?;
        for package in packages {
            let Some(user) = &package.info.username else {
                continue;
            };
            let group = match &package.info.group {
                Some(group) => self.accounts.find_group(group.as_str()).map(|found| {
                    if let Some(number) = found {
                        known.groups.insert(group.clone(), number);
                    }
                }),
                None => Ok(()),
            };
            match group.and_then(|()| self.accounts.find(user.as_str())) {
                Ok(Some(account)) => {
                    known.users.insert(user.clone(), account);
                }
                Ok(None) => {}
                Err(source) => faults.push(ActivationFault::UserLookUp {
                    user: user.clone(),
                    source,
                }),
            }
        }
        Ok(known)
    }

    /// Units of these packages whose place has a file that is not ours: neither that of the active
    /// generation, nor one with the text it is to have.
    fn foreign_units(
        &self,
        packages: &[LoadedPackage],
        active: Option<&Manifest>,
    ) -> Result<BTreeMap<String, Utf8PathBuf>, NodeError> {
        let mut foreign = BTreeMap::new();
        for unit in packages.iter().flat_map(|package| &package.units) {
            let is_active = active.is_some_and(|active| {
                active.contents.units.contains_key(&unit.name)
                    && active.contents.unit_dir == self.places.unit_dir
            });
            let path = self.places.unit(&unit.name);
            if is_active || !is_there(self.files(), &path)? {
                continue;
            }
            let longest = unit.content.len() as u64;
            let has_same = self
                .files
                .read(&path, longest)
                .is_ok_and(|found| found == unit.content);
            if !has_same {
                foreign.insert(unit.name.clone(), path);
            }
        }
        Ok(foreign)
    }

    /// Places for links of ours where something else is.
    fn occupied(&self) -> Result<Vec<Utf8PathBuf>, NodeError> {
        let familiar = match self.places.os {
            Os::Linux => places::FAMILIAR.as_slice(),
            Os::Windows => &[],
        };
        let mut occupied = Vec::new();
        for name in ["current"].iter().chain(familiar) {
            let path = self.places.in_root(name);
            match self.files.metadata(&path) {
                Ok(metadata) if metadata.kind != Kind::Link => occupied.push(path),
                Ok(_) | Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(occupied)
    }
}

impl Session<'_> {
    /// The node, for everything that only reads.
    pub fn node(&self) -> &Node {
        self.node
    }

    fn pointer(&self) -> Result<Option<Pointer>, NodeError> {
        self.node.pointer()
    }

    fn active(&self) -> Result<Option<Manifest>, NodeError> {
        self.node.active()
    }

    /// Keeps a generation whatever else is collected.
    pub fn pin(&self, number: u64) -> Result<(), NodeError> {
        self.node.generation(number)?;
        generations::pin(self.files, self.places, number)
    }

    /// Lets a generation be collected again. One that is not pinned is fine.
    pub fn unpin(&self, number: u64) -> Result<(), NodeError> {
        self.node.generation(number)?;
        generations::remove_note(self.files, self.places, number, generations::Note::Pinned)
    }
}

fn is_there(files: &dyn Files, path: &Utf8Path) -> Result<bool, NodeError> {
    match files.metadata(path) {
        Ok(_) => Ok(true),
        Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
