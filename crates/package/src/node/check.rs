//! Comparing a node with its pointer and its manifests. Nothing is changed, and nothing is trusted:
//! every link of the active generation is looked at.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{FileError, Files, Kind, is_temporary, path};
use transom_model::os::Os;

use super::derive::{Derivation, Deviation, Problem};
use super::manifest::Manifest;
use super::places::{ENVIRONMENT, ENVIRONMENT_EXPORT, Places, SERVICE_CONFIGURATION, SERVICES};
use super::pointer::{self, Pointer};
use super::{NodeError, is_there, recover};

/// Everything that is not as the pointer says.
pub(super) fn check(files: &dyn Files, places: &Places) -> Result<Vec<Deviation>, NodeError> {
    let found = pointer::read(files, places)?;
    let pointer = found.clone().unwrap_or_else(Pointer::never);
    let mut deviations = Vec::new();
    let mut report = |path: Utf8PathBuf, problem: Problem| {
        deviations.push(Deviation { path, problem });
    };
    if is_there(files, &places.uninstalling())? {
        report(places.uninstalling(), Problem::Debris);
    }
    if pointer.is_on_trial() {
        report(places.pointer(), Problem::Unconfirmed);
    }
    let derivation = Derivation::new(files, places, &pointer)?;
    for folder in derivation.folders() {
        for path in temporaries(files, places.os, &folder)? {
            report(path, Problem::Debris);
        }
    }
    for path in recover::orphans(files, places, &pointer)? {
        report(path, Problem::Debris);
    }
    if found.is_some() {
        for repair in derivation.repairs()? {
            // Not every Windows can make this link, and nothing depends on it.
            let is_luxury = places.os == Os::Windows
                && repair.deviation.path == places.current()
                && repair.deviation.problem == Problem::Missing;
            if !is_luxury {
                report(repair.deviation.path, repair.deviation.problem);
            }
        }
    }
    if let Some(active) = pointer.active {
        match derivation.active() {
            Some(active) => deviations.extend(damage(files, places, active)?),
            None => report(places.generation(active), Problem::Missing),
        }
    }
    Ok(deviations)
}

fn temporaries(
    files: &dyn Files,
    os: Os,
    folder: &Utf8Path,
) -> Result<Vec<Utf8PathBuf>, NodeError> {
    match files.names(folder) {
        Ok(names) => Ok(names
            .into_iter()
            .filter(|entry| is_temporary(&entry.name))
            .map(|entry| path::join(os, folder, &entry.name))
            .collect()),
        Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// What of a generation, or of the packages it links to, is not there.
pub(super) fn damage(
    files: &dyn Files,
    places: &Places,
    manifest: &Manifest,
) -> Result<Vec<Deviation>, NodeError> {
    let os = places.os;
    let folder = places.generation(manifest.generation);
    let repository = &manifest.contents.repository;
    let mut deviations = Vec::new();
    let mut report = |path: Utf8PathBuf, problem: Problem| {
        deviations.push(Deviation { path, problem });
    };
    for id in manifest.contents.ids() {
        let package = path::join(os, repository, id.as_str());
        if !is_there(files, &package)? {
            report(package, Problem::Missing);
        }
    }
    for (place, id, link) in manifest.contents.links() {
        let path = path::join(os, &folder, &place);
        let target = path::join(os, &path::join(os, repository, id.as_str()), link);
        let is_right = match (os, kind(files, &path)?) {
            (_, None) => {
                report(path, Problem::Missing);
                continue;
            }
            (Os::Linux, Some(Kind::Link)) => files.read_link(&path)? == target,
            (Os::Windows, Some(Kind::File)) => true,
            _ => false,
        };
        if !is_right {
            report(
                path,
                Problem::Damaged(format!("it does not lead to `{target}`")),
            );
        }
    }
    let units = manifest.contents.units.keys();
    let texts = units
        .map(|unit| format!("{SERVICES}/{unit}"))
        .chain([ENVIRONMENT, ENVIRONMENT_EXPORT, SERVICE_CONFIGURATION].map(str::to_owned));
    for text in texts {
        let path = path::join(os, &folder, &text);
        if kind(files, &path)? != Some(Kind::File) {
            report(path, Problem::Missing);
        }
    }
    Ok(deviations)
}

fn kind(files: &dyn Files, path: &Utf8Path) -> Result<Option<Kind>, NodeError> {
    match files.metadata(path) {
        Ok(metadata) => Ok(Some(metadata.kind)),
        Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
