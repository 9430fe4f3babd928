//! Enabling, disabling and masking as plans: values that can be printed and executed, once or twice
//! with the same result. Plans only ever name paths below the unit folders.

mod execute;

use std::collections::BTreeSet;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::Unit;
use super::load::{Content, LinkFolder, LoadError, UnitStore};
use super::name::UnitName;

pub use execute::{ExecuteError, execute};

/// How a link is represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkStyle {
    Symbolic,
    /// A small file that holds the path.
    Pointer,
}

impl LinkStyle {
    pub fn of(os: Os) -> Self {
        match os {
            Os::Linux => Self::Symbolic,
            Os::Windows => Self::Pointer,
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallOperation {
    /// Make `link` lead to `target`, whatever it was before.
    Link {
        link: Utf8PathBuf,
        target: Utf8PathBuf,
        style: LinkStyle,
    },
    /// Make `link` a mask.
    Mask { link: Utf8PathBuf, style: LinkStyle },
    /// Remove `link`, and its folder if it was the last in it.
    Unlink { link: Utf8PathBuf },
}

impl fmt::Display for InstallOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { link, target, .. } => {
                write!(formatter, "Created symlink {link} → {target}.")
            }
            Self::Mask { link, .. } => write!(formatter, "Created symlink {link} → /dev/null."),
            Self::Unlink { link } => write!(formatter, "Removed \"{link}\"."),
        }
    }
}

/// What will be done, and what to tell besides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallPlan {
    pub operations: Vec<InstallOperation>,
    pub notices: Vec<String>,
}

/// Why a plan could not be made: nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("Unit {name} does not exist")]
    NotFound { name: UnitName },
    #[error("Unit {name} is masked")]
    Masked { name: UnitName },
    #[error("refusing to operate on alias name {name}: its unit is {target}")]
    Alias { name: UnitName, target: UnitName },
    #[error("unit {name} is a template without DefaultInstance=: name an instance")]
    NoInstance { name: UnitName },
    #[error("File {path} already exists")]
    Exists { path: Utf8PathBuf },
    #[error("alias {alias} of {name} is not of the same type")]
    AliasType { name: UnitName, alias: UnitName },
    #[error("the runtime folder is not known: there is only one unit folder")]
    NoRuntimeFolder,
    #[error("cannot read a unit file")]
    Load(#[from] LoadError),
}

const NO_INSTALL_CONFIG: &str =
    "The unit files have no installation config (WantedBy=, RequiredBy=, UpheldBy=,
Also=, or Alias= settings in the [Install] section, and DefaultInstance= for
template units). This means they are not meant to be enabled or disabled using
systemctl.";

/// Makes units start together with the units that their `[Install]` names.
pub fn plan_enable(
    store: &UnitStore,
    names: &[UnitName],
    runtime: bool,
) -> Result<InstallPlan, InstallError> {
    let folder = folder(store, runtime)?;
    let mut plan = InstallPlan::default();
    let mut carries_config = false;
    for name in with_also(store, names)? {
        let file = usable_file(store, &name)?;
        let Some(unit) = store.read_for_install(&name)? else {
            return Err(InstallError::NotFound { name });
        };
        carries_config |= !unit.install.is_empty();
        let name = instance_to_enable(name, &unit)?;
        add_links(store, folder, &name, &unit, &file, &mut plan)?;
    }
    if !carries_config {
        plan.notices.push(NO_INSTALL_CONFIG.to_owned());
    }
    Ok(plan)
}

/// Takes back everything that enabling these units made, and links made by hand the same way.
pub fn plan_disable(
    store: &UnitStore,
    names: &[UnitName],
    runtime: bool,
) -> Result<InstallPlan, InstallError> {
    let place = usize::from(runtime);
    folder(store, runtime)?;
    let mut plan = InstallPlan::default();
    for name in with_also(store, names)? {
        let is_meant = |other: &UnitName| {
            *other == name || (name.is_template() && other.template().as_ref() == Some(&name))
        };
        let links = store
            .links()
            .iter()
            .filter(|link| link.folder == place && !link.is_masked && is_meant(&link.name))
            .map(|link| link.path.clone());
        let aliases = store.alias_files(&name, place);
        let before = plan.operations.len();
        for link in links.chain(aliases) {
            push_once(&mut plan, InstallOperation::Unlink { link });
        }
        // Left-over links of a unit that is gone may be removed; a name nobody knows is a mistake.
        if plan.operations.len() == before && store.file(&name).is_none() {
            return Err(InstallError::NotFound { name });
        }
    }
    Ok(plan)
}

/// Disables, then enables.
pub fn plan_reenable(
    store: &UnitStore,
    names: &[UnitName],
    runtime: bool,
) -> Result<InstallPlan, InstallError> {
    let enable = enable_afresh(store, names, runtime)?;
    let mut plan = plan_disable(store, names, runtime)?;
    plan.operations.extend(enable.operations);
    plan.notices.extend(enable.notices);
    Ok(plan)
}

/// As `plan_enable`, but links that are there already are made again.
fn enable_afresh(
    store: &UnitStore,
    names: &[UnitName],
    runtime: bool,
) -> Result<InstallPlan, InstallError> {
    let mut blank = store.clone();
    blank.forget_links(usize::from(runtime));
    plan_enable(&blank, names, runtime)
}

/// Makes units impossible to start.
pub fn plan_mask(
    store: &UnitStore,
    names: &[UnitName],
    runtime: bool,
) -> Result<InstallPlan, InstallError> {
    let folder = folder(store, runtime)?;
    let mut plan = InstallPlan::default();
    for name in names {
        let link = folder.join(name.file_name(store.os()));
        match store.content_in(name, usize::from(runtime)) {
            Some(Content::Masked) => continue,
            Some(Content::Unit) => return Err(InstallError::Exists { path: link }),
            Some(Content::Alias(_) | Content::Linked) | None => {}
        }
        if store.file(name).is_none() {
            plan.notices
                .push(format!("Unit {name} does not exist, proceeding anyway."));
        }
        push_once(
            &mut plan,
            InstallOperation::Mask {
                link,
                style: LinkStyle::of(store.os()),
            },
        );
    }
    Ok(plan)
}

/// Takes masks back.
pub fn plan_unmask(
    store: &UnitStore,
    names: &[UnitName],
    runtime: bool,
) -> Result<InstallPlan, InstallError> {
    let folder = folder(store, runtime)?;
    let mut plan = InstallPlan::default();
    for name in names {
        if store.content_in(name, usize::from(runtime)) == Some(&Content::Masked) {
            let link = folder.join(name.file_name(store.os()));
            push_once(&mut plan, InstallOperation::Unlink { link });
        }
    }
    Ok(plan)
}

fn folder(store: &UnitStore, runtime: bool) -> Result<&Utf8Path, InstallError> {
    store
        .folders()
        .get(usize::from(runtime))
        .map(Utf8PathBuf::as_path)
        .ok_or(InstallError::NoRuntimeFolder)
}

fn push_once(plan: &mut InstallPlan, operation: InstallOperation) {
    if !plan.operations.contains(&operation) {
        plan.operations.push(operation);
    }
}

/// The names and, transitively, what their `Also=` names.
fn with_also(store: &UnitStore, names: &[UnitName]) -> Result<Vec<UnitName>, InstallError> {
    let mut seen: BTreeSet<UnitName> = BTreeSet::new();
    let mut ordered = Vec::new();
    let mut waiting: Vec<UnitName> = names.iter().rev().cloned().collect();
    while let Some(name) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let is_readable = matches!(
            store.file(&name).map(|file| &file.content),
            Some(Content::Unit | Content::Linked)
        );
        if is_readable && let Some(unit) = store.read_for_install(&name)? {
            waiting.extend(unit.install.also.into_iter().rev());
        }
        ordered.push(name);
    }
    Ok(ordered)
}

/// The path that links should lead to.
fn usable_file(store: &UnitStore, name: &UnitName) -> Result<Utf8PathBuf, InstallError> {
    let Some(file) = store.file(name) else {
        return Err(InstallError::NotFound { name: name.clone() });
    };
    match &file.content {
        Content::Masked => Err(InstallError::Masked { name: name.clone() }),
        Content::Alias(target) => Err(InstallError::Alias {
            name: name.clone(),
            target: target.clone(),
        }),
        Content::Unit | Content::Linked => Ok(file.path.clone()),
    }
}

/// A template stands for its default instance.
fn instance_to_enable(name: UnitName, unit: &Unit) -> Result<UnitName, InstallError> {
    if !name.is_template() {
        return Ok(name);
    }
    let needs_instance = !(unit.install.wanted_by.is_empty()
        && unit.install.required_by.is_empty()
        && unit.install.upheld_by.is_empty());
    match &unit.install.default_instance {
        Some(instance) => name
            .with_instance(instance)
            .map_err(|_| InstallError::NoInstance { name: name.clone() }),
        None if needs_instance => Err(InstallError::NoInstance { name }),
        None => Ok(name),
    }
}

fn add_links(
    store: &UnitStore,
    folder: &Utf8Path,
    name: &UnitName,
    unit: &Unit,
    file: &Utf8Path,
    plan: &mut InstallPlan,
) -> Result<(), InstallError> {
    let os = store.os();
    let style = LinkStyle::of(os);
    let groups = [
        (&unit.install.wanted_by, LinkFolder::Wants),
        (&unit.install.required_by, LinkFolder::Requires),
        (&unit.install.upheld_by, LinkFolder::Upholds),
    ];
    for (owners, kind) in groups {
        for owner in owners {
            let owner =
                match name.instance() {
                    Some(instance) if owner.is_template() => owner
                        .with_instance(instance)
                        .map_err(|_| InstallError::NoInstance {
                            name: owner.clone(),
                        })?,
                    _ => owner.clone(),
                };
            let link = folder
                .join(format!("{}.{}", owner.file_name(os), kind.suffix()))
                .join(name.file_name(os));
            let is_there = store
                .links()
                .iter()
                .any(|known| known.path == link && !known.is_masked);
            if !is_there {
                push_once(
                    plan,
                    InstallOperation::Link {
                        link,
                        target: file.to_owned(),
                        style,
                    },
                );
            }
        }
    }
    for alias in &unit.install.alias {
        if alias.unit_type() != name.unit_type() {
            return Err(InstallError::AliasType {
                name: name.clone(),
                alias: alias.clone(),
            });
        }
        let link = folder.join(alias.file_name(os));
        let place = usize::from(store.folders().first().map(Utf8PathBuf::as_path) != Some(folder));
        match store.content_in(alias, place) {
            Some(Content::Alias(target)) if target == name => {}
            Some(Content::Unit | Content::Masked) => {
                return Err(InstallError::Exists { path: link });
            }
            _ => push_once(
                plan,
                InstallOperation::Link {
                    link,
                    target: file.to_owned(),
                    style,
                },
            ),
        }
    }
    Ok(())
}

impl UnitStore {
    /// What `name` is in one folder alone.
    fn content_in(&self, name: &UnitName, place: usize) -> Option<&Content> {
        self.files_of(name)
            .iter()
            .find(|file| file.folder == place)
            .map(|file| &file.content)
    }
}
