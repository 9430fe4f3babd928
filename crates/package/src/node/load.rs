//! Reading an unpacked package: what it asks of the node, and which of its files a generation would
//! take. Each folder is listed once and no file is looked at by itself.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use transom_host::files::{FileError, Files, Kind, path};
use transom_model::os::Os;
use transom_model::package::PackageId;

use super::places::{MERGED, Places, WANTS};
use super::plan::ActivationFault;
use crate::info::{self, PackageInfo};

const LONGEST_INFO: u64 = 4 << 20;
const LONGEST_BUILDINFO: u64 = 64 << 20;
const LONGEST_UNIT: u64 = 1 << 20;
/// Deep enough for any package, shallow enough for the stack.
const DEEPEST: usize = 128;

/// A package on this node.
#[derive(Debug, Clone)]
pub struct LoadedPackage {
    pub id: PackageId,
    pub folder: Utf8PathBuf,
    pub info: PackageInfo,
    /// `sysctl` of its `pkginfo.json` as it stands there: numbers stay numbers.
    pub sysctl: BTreeMap<String, Map<String, Value>>,
    /// Its `buildinfo.full.json`, or null.
    pub buildinfo: Value,
    /// What is in the folders that a generation takes.
    pub items: Vec<Item>,
    /// Its unit files.
    pub units: Vec<UnitFile>,
    /// The names of all services it has a unit file for, anywhere in it. Looked for only if it has
    /// kernel settings.
    pub services: BTreeSet<String>,
}

/// One entry of a package, by its path in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub path: String,
    pub kind: Kind,
}

/// One unit file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFile {
    pub name: String,
    /// Its path in the package.
    pub path: String,
    pub content: Vec<u8>,
}

/// Reads a package for a node with these roles.
pub(super) fn load(
    files: &dyn Files,
    places: &Places,
    id: &PackageId,
    roles: &[String],
) -> Result<LoadedPackage, Vec<ActivationFault>> {
    let folder = places.package(id);
    let reader = Reader {
        files,
        os: places.os,
        id,
        folder: &folder,
    };
    let (info, sysctl) = reader.info().map_err(|fault| vec![fault])?;
    let mut package = LoadedPackage {
        id: id.clone(),
        folder: folder.clone(),
        info,
        sysctl,
        buildinfo: Value::Null,
        items: Vec::new(),
        units: Vec::new(),
        services: BTreeSet::new(),
    };
    let mut faults = Vec::new();
    match reader.buildinfo() {
        Ok(buildinfo) => package.buildinfo = buildinfo,
        Err(fault) => faults.push(fault),
    }
    if let Err(fault) = reader.list(&mut package, roles) {
        faults.push(fault);
    }
    if faults.is_empty() {
        Ok(package)
    } else {
        Err(faults)
    }
}

/// What a package asks of the node, without its files.
pub(super) fn load_info(
    files: &dyn Files,
    places: &Places,
    id: &PackageId,
) -> Result<PackageInfo, ActivationFault> {
    let folder = places.package(id);
    let reader = Reader {
        files,
        os: places.os,
        id,
        folder: &folder,
    };
    reader.info().map(|(info, _)| info)
}

struct Reader<'a> {
    files: &'a dyn Files,
    os: Os,
    id: &'a PackageId,
    folder: &'a Utf8Path,
}

type Settings = BTreeMap<String, Map<String, Value>>;

impl Reader<'_> {
    fn place(&self, below: &str) -> Utf8PathBuf {
        path::join(self.os, self.folder, below)
    }

    fn unreadable(&self, source: FileError) -> ActivationFault {
        ActivationFault::Unreadable {
            id: self.id.clone(),
            source,
        }
    }

    fn info(&self) -> Result<(PackageInfo, Settings), ActivationFault> {
        let bytes = match self.files.read(&self.place(info::FILE_NAME), LONGEST_INFO) {
            Ok(bytes) => bytes,
            Err(FileError::NotFound { .. }) if self.files.metadata(self.folder).is_err() => {
                return Err(ActivationFault::UnknownPackage {
                    id: self.id.clone(),
                });
            }
            Err(source) => {
                return Err(ActivationFault::NoInfo {
                    id: self.id.clone(),
                    source,
                });
            }
        };
        let invalid = |source| ActivationFault::InvalidInfo {
            id: self.id.clone(),
            source,
        };
        let info = PackageInfo::parse(&bytes).map_err(invalid)?;
        // Parsed above, so this cannot fail; and where it did, there would be no settings.
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let settings = value.get("sysctl").and_then(Value::as_object);
        let settings = settings.into_iter().flatten().filter_map(|(service, of)| {
            let of = of.as_object()?;
            Some((service.clone(), of.clone()))
        });
        Ok((info, settings.collect()))
    }

    fn buildinfo(&self) -> Result<Value, ActivationFault> {
        let file = self.place("buildinfo.full.json");
        match self.files.read(&file, LONGEST_BUILDINFO) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|source| ActivationFault::InvalidBuildinfo {
                    id: self.id.clone(),
                    source,
                })
            }
            Err(FileError::NotFound { .. }) => Ok(Value::Null),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn list(&self, package: &mut LoadedPackage, roles: &[String]) -> Result<(), ActivationFault> {
        let names = self.files.names(self.folder);
        let names = names.map_err(|error| self.unreadable(error))?;
        let is_there = |top: &str| {
            names
                .iter()
                .any(|entry| entry.name == top && matches!(entry.kind, Kind::Dir | Kind::Link))
        };
        let with_roles = |top: &str| {
            let of_roles = roles.iter().map(|role| format!("{top}_{role}"));
            let all: Vec<String> = [top.to_owned()].into_iter().chain(of_roles).collect();
            all
        };
        for top in MERGED.into_iter().flat_map(with_roles) {
            if is_there(&top) {
                self.walk(&top, 0, &mut |item| package.items.push(item))?;
            }
        }
        for top in with_roles(WANTS) {
            if is_there(&top) {
                self.units(&top, package)?;
            }
        }
        if !package.sysctl.is_empty() {
            for entry in names {
                match entry.kind {
                    Kind::Dir => self.walk(&entry.name, 0, &mut |item| {
                        note_service(&mut package.services, &item);
                    })?,
                    kind => note_service(
                        &mut package.services,
                        &Item {
                            path: entry.name,
                            kind,
                        },
                    ),
                }
            }
        }
        Ok(())
    }

    fn units(&self, top: &str, package: &mut LoadedPackage) -> Result<(), ActivationFault> {
        let mut found = Vec::new();
        self.walk(top, 0, &mut |item| found.push(item))?;
        for item in found {
            let name = item.path[top.len() + 1..].to_owned();
            let content = match item.kind {
                Kind::Dir => {
                    return Err(ActivationFault::UnitFolder {
                        id: self.id.clone(),
                        path: item.path,
                    });
                }
                _ => self.files.read(&self.place(&item.path), LONGEST_UNIT),
            };
            package.units.push(UnitFile {
                name,
                path: item.path,
                content: content.map_err(|error| self.unreadable(error))?,
            });
        }
        Ok(())
    }

    /// Visits all below a folder of the package. A link is named, and not followed, but for the folder
    /// the walk begins with: `lib` may lead to `lib64`.
    fn walk(
        &self,
        below: &str,
        depth: usize,
        visit: &mut impl FnMut(Item),
    ) -> Result<(), ActivationFault> {
        if depth > DEEPEST {
            return Err(ActivationFault::TooDeep {
                id: self.id.clone(),
                path: below.to_owned(),
            });
        }
        let names = match self.files.names(&self.place(below)) {
            Ok(names) => names,
            // A link to a file, or to nothing.
            Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) if depth == 0 => {
                return Ok(());
            }
            Err(error) => return Err(self.unreadable(error)),
        };
        for entry in names {
            let path = format!("{below}/{}", entry.name);
            if entry.kind == Kind::Dir {
                visit(Item {
                    path: path.clone(),
                    kind: entry.kind,
                });
                self.walk(&path, depth + 1, visit)?;
            } else {
                visit(Item {
                    path,
                    kind: entry.kind,
                });
            }
        }
        Ok(())
    }
}

fn note_service(services: &mut BTreeSet<String>, item: &Item) {
    let name = item.path.rsplit('/').next().unwrap_or(&item.path);
    if item.kind != Kind::Dir
        && let Some(service) = name.strip_suffix(".service")
    {
        services.insert(service.to_owned());
    }
}
