//! Unit files to catalog. Everything the files of this machine name is loaded, and whatever a request
//! names besides, such as an instance of a template.

use std::collections::BTreeSet;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use transom_host::access::{self, Access, AccountId};
use transom_host::files::{self, Files};
use transom_host::machine::Machine;

use super::{Config, Daemon};
use crate::control::protocol::LoadState;
use crate::engine::{Catalog, Definition};
use crate::unit::load::{LoadError, LoadOutcome, UnitStore};
use crate::unit::{SpecifierContext, Unit, UnitName};

const LARGEST_STAMP: u64 = 128;

pub(super) struct Loader {
    folders: Vec<Utf8PathBuf>,
    stamps: Utf8PathBuf,
    default_target: UnitName,
    specifiers: SpecifierContext,
    files: files::Native,
}

impl Loader {
    pub(super) fn new(config: &Config, machine: &dyn Machine) -> Self {
        Self {
            folders: config.layout.units.clone(),
            stamps: config.layout.state.join("timers"),
            default_target: config.default_target.clone(),
            specifiers: specifiers(config, machine),
            files: files::Native,
        }
    }

    /// All units of the machine, and `more`.
    pub(super) fn load_all(&self, more: &[UnitName]) -> Result<Catalog, LoadError> {
        let store = self.store()?;
        let mut wanted: BTreeSet<UnitName> = store.names();
        wanted.extend(more.iter().cloned());
        wanted.insert(self.default_target.clone());
        Ok(self.load(&store, wanted, &Catalog::default()))
    }

    /// `present`, and the named units with all they lead to. What is present is not read again.
    fn extend(&self, present: &Catalog, names: &[UnitName]) -> Catalog {
        let Ok(store) = self.store() else {
            return present.clone();
        };
        self.load(&store, names.iter().cloned().collect(), present)
    }

    fn store(&self) -> Result<UnitStore, LoadError> {
        UnitStore::load(&self.folders, self.specifiers.clone()).inspect_err(|error| {
            let error = super::keepers::chain(error);
            tracing::error!(error, "the unit files cannot be read");
        })
    }

    fn load(
        &self,
        store: &UnitStore,
        mut wanted: BTreeSet<UnitName>,
        present: &Catalog,
    ) -> Catalog {
        let mut definitions = present.definitions().clone();
        let mut aliases = present.aliases().clone();
        while let Some(name) = wanted.pop_first() {
            if definitions.contains_key(&name) || name.is_template() {
                continue;
            }
            let canonical = store.resolve(&name);
            if canonical != name {
                wanted.insert(canonical.clone());
                aliases.insert(name, canonical);
                continue;
            }
            let definition = self.definition(store, &name);
            if let Some(unit) = &definition.unit {
                wanted.extend(
                    unit.mentions()
                        .into_iter()
                        .filter(|n| !definitions.contains_key(n)),
                );
            }
            definitions.insert(name, definition);
        }
        Catalog::new(definitions).with_aliases(aliases)
    }

    fn definition(&self, store: &UnitStore, name: &UnitName) -> Definition {
        let file_state = store
            .unit_file_state(name)
            .map(|state| state.name().to_owned());
        let mut definition = Definition {
            load_state: LoadState::NotFound,
            load_error: None,
            file_state: file_state.unwrap_or_default(),
            source: store.file_of(name).map(Utf8Path::to_owned),
            problems: Vec::new(),
            last_trigger: self.stamp(name),
            unit: None,
        };
        match store.get(name) {
            LoadOutcome::NotFound => {}
            LoadOutcome::Masked => definition.load_state = LoadState::Masked,
            LoadOutcome::Bad(bad) => {
                definition.load_state = LoadState::BadSetting;
                definition.problems = bad.problems.iter().map(ToString::to_string).collect();
                let first = bad.problems.iter().find(|problem| problem.is_error());
                definition.load_error = first.map(ToString::to_string);
            }
            LoadOutcome::Loaded(mut unit) => {
                unit.rename_mentions(|name| store.resolve(name));
                definition.load_state = LoadState::Loaded;
                definition.problems = unit.problems.iter().map(ToString::to_string).collect();
                definition.unit = Some(Arc::<Unit>::from(unit));
            }
        }
        definition
    }

    /// When a persistent timer last fired, before the last boot perhaps.
    fn stamp(&self, name: &UnitName) -> Option<Timestamp> {
        let path = self.stamps.join(format!("{name}.stamp"));
        let bytes = self.files.read(&path, LARGEST_STAMP).ok()?;
        String::from_utf8(bytes).ok()?.trim().parse().ok()
    }
}

fn specifiers(config: &Config, machine: &dyn Machine) -> SpecifierContext {
    let mut specifiers = config.places();
    if let Ok(system) = machine.system() {
        specifiers.host_name = Some(system.host_name);
        specifiers.kernel_release = Some(system.kernel);
        specifiers.architecture = system
            .arch
            .map(|arch| super::conditions::systemd_name(arch).into());
    }
    specifiers.boot_id = machine.boot_id().ok();
    if let Ok(account) = access::Native.current_account() {
        let (user, group) = match &account.id {
            AccountId::Unix { uid, gid, .. } => (uid.to_string(), Some(gid.to_string())),
            AccountId::Windows { sid } => (sid.clone(), None),
        };
        specifiers.user_name = Some(account.name);
        specifiers.user_id = Some(user);
        specifiers.group_id = group;
        specifiers.home = account.home;
        specifiers.shell = account.shell;
    }
    specifiers
}

impl Daemon {
    /// Makes sure that units named in a request are known, if there are files for them, and gives
    /// their real names.
    pub(super) fn ensure_loaded(&mut self, names: &[UnitName]) -> Vec<UnitName> {
        let missing: Vec<UnitName> = names
            .iter()
            .filter(|name| {
                let catalog = self.engine.catalog();
                let known = catalog.definition(catalog.canonical(name));
                known.is_none_or(|definition| definition.load_state == LoadState::NotFound)
            })
            .cloned()
            .collect();
        if !missing.is_empty() {
            let loader = Loader::new(&self.config, &self.machine);
            let present = self.engine.catalog().without(&missing);
            let catalog = loader.extend(&present, &missing);
            self.act(|turn| turn.replace_catalog(catalog));
        }
        let catalog = self.engine.catalog();
        names
            .iter()
            .map(|name| catalog.canonical(name).clone())
            .collect()
    }

    /// Reads all unit files anew, and says what is wrong with them. If they cannot be read, what was
    /// known stays.
    pub(super) fn reload_files(&mut self) -> Result<Vec<String>, String> {
        let known: Vec<UnitName> = self.engine.known().map(|(name, _)| name.clone()).collect();
        let catalog = match Loader::new(&self.config, &self.machine).load_all(&known) {
            Ok(catalog) => catalog,
            Err(error) => return Err(super::keepers::chain(&error)),
        };
        let warnings = catalog
            .names()
            .filter_map(|name| catalog.definition(name))
            .flat_map(|definition| definition.problems.clone())
            .collect();
        self.act(|turn| turn.replace_catalog(catalog));
        Ok(warnings)
    }
}
