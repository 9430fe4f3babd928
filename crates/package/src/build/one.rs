//! One package: its sources fetched, its script run or its rules applied, the result packed and given its
//! name in the cache. Whatever fails, there is no archive under that name, and the log tells why.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};

use camino::Utf8Path;
use serde_json::{Value, json};
use transom_host::files::{FileError, Files, How, Kind, Native};
use transom_host::process::Exit;
use transom_host::sandbox::{Ended, Root};
use transom_model::Os;
use transom_model::package::PackageId;

use super::cache::Cache;
use super::dependencies::{arrange, ensure_unpacked};
use super::error::BuildError;
use super::install::{InstallError, copy, list_found, plan_install};
use super::script::{Places, bash, home, powershell};
use super::sources::{Fetcher, origins};
use super::{Event, Options, image};
use crate::archive::{Description, pack};
use crate::info::PackageInfo;
use crate::tree::TreePackage;

/// Units that belong to the node itself.
const RESERVED_UNITS: [&str; 3] = ["dcos-download.service", "dcos-setup.service", "dcos.target"];
const WANTS: &str = "dcos.target.wants";
/// How much of a log an error shows.
const TAIL_BYTES: u64 = 8192;
const TAIL_LINES: usize = 20;

/// Builds packages into a cache.
pub(super) struct Builder<'a> {
    pub(super) cache: &'a Cache,
    pub(super) fetcher: &'a Fetcher,
    pub(super) options: &'a Options<'a>,
    /// Which system each package is for.
    pub(super) systems: BTreeMap<&'a PackageId, Os>,
}

impl Builder<'_> {
    pub(super) fn build(
        &self,
        package: &TreePackage,
        say: &dyn Fn(Event),
    ) -> Result<(), BuildError> {
        let work = self.cache.work(package.id.name_str())?;
        let built = self.build_in(package, &work, say);
        // Also after a failure: the log stays, and the next run sweeps what this cannot remove.
        if let Err(error) = Native.remove_tree(&work) {
            say(Event::Warning(crate::fault::sentence(&error)));
        }
        built
    }

    fn build_in(
        &self,
        package: &TreePackage,
        work: &Utf8Path,
        say: &dyn Fn(Event),
    ) -> Result<(), BuildError> {
        let recipe = &package.recipe;
        let files = Native;
        let places = self.prepare(package, work, say)?;
        if recipe.script.is_some() {
            say(Event::Step("running the script".to_owned()));
            files.create_dir_all(&places.output)?;
            self.run_script(package, &places, work, say)?;
        }
        if !recipe.install.is_empty() {
            say(Event::Step("installing files".to_owned()));
            install(package, &places, work)?;
        }
        refuse_reserved_units(&places.output)?;
        say(Event::Step("packing".to_owned()));
        let archive = work.join("archive");
        let info = PackageInfo {
            requires: recipe.requires.clone(),
            environment: recipe.environment.clone(),
            state_directory: recipe.state_directory,
            username: recipe.username.clone(),
            group: recipe.group.clone(),
            sysctl: recipe.sysctl.clone(),
        };
        let home = home(&package.id);
        let description = Description {
            id: &package.id,
            os: recipe.os,
            info: &info,
            build: &build_info(package),
            origins: &origins(recipe, &package.build_ids),
            requires: &package.requires,
            home: (recipe.os == Os::Linux).then_some(home.as_path()),
        };
        pack(&files, &places.output, &description, &archive)?;
        self.cache.keep_archive(&package.id, recipe.os, &archive)?;
        Ok(())
    }

    fn prepare(
        &self,
        package: &TreePackage,
        work: &Utf8Path,
        say: &dyn Fn(Event),
    ) -> Result<Places, BuildError> {
        let recipe = &package.recipe;
        let files = Native;
        let folder =
            camino::absolute_utf8(&recipe.folder).map_err(|source| BuildError::Folder {
                path: recipe.folder.clone(),
                source,
            })?;
        let mut places = Places {
            script: folder.join(recipe.script.as_deref().unwrap_or_default()),
            sources: work.join("src"),
            extra: folder.join("extra"),
            dependencies: work.join("dependencies"),
            unpacked: BTreeMap::new(),
            output: work.join("output"),
            workspace: work.join("root"),
            log: self.cache.new_log(&package.id)?,
        };
        for folder in [&places.sources, &places.workspace] {
            files.create_dir_all(folder)?;
        }
        if files.metadata(&places.extra).is_err() {
            places.extra = work.join("extra");
            files.create_dir_all(&places.extra)?;
        }
        self.fetcher
            .lay_out(recipe, work, &places.sources, &|step| {
                say(Event::Step(step.to_owned()));
            })?;
        // Rules need nothing of what a package requires.
        if recipe.script.is_some() {
            for id in &package.closure {
                say(Event::Step(format!("unpacking {id}")));
                let os = self.systems.get(id).copied().unwrap_or(recipe.os);
                let unpacked = self.cache.unpacked(id);
                ensure_unpacked(id, &self.cache.archive(id, os), &unpacked)?;
                places.unpacked.insert(id.clone(), unpacked);
            }
            arrange(&places.dependencies, &places.unpacked, &package.id)?;
        }
        Ok(places)
    }

    fn run_script(
        &self,
        package: &TreePackage,
        places: &Places,
        work: &Utf8Path,
        say: &dyn Fn(Event),
    ) -> Result<(), BuildError> {
        let recipe = &package.recipe;
        let host = Native.os();
        if host != recipe.os {
            return Err(BuildError::OtherSystem {
                needed: recipe.os,
                host,
            });
        }
        let options = self.options;
        let sandbox = match host {
            Os::Linux => {
                let image =
                    image::root(self.cache.folder(), work, &recipe.docker, options.runtimes)?;
                let root = image.map_or_else(
                    || {
                        // The same for many packages, so that it can be said once.
                        say(Event::Warning(format!(
                            "no runtime on this machine has the image `{}`: packages are built \
                             with the programs of this machine",
                            recipe.docker
                        )));
                        Root::Machine
                    },
                    Root::Folder,
                );
                bash(package, places, root, options.cores, options.time_limit)
            }
            Os::Windows => {
                let program = options
                    .powershell
                    .as_ref()
                    .ok_or(BuildError::NoPowerShell)?;
                powershell(
                    package,
                    places,
                    program,
                    &options.environment,
                    options.cores,
                    options.time_limit,
                )
            }
        };
        match sandbox.run()? {
            Ended::Exit(exit) if exit.is_success() => Ok(()),
            Ended::Exit(exit) => Err(BuildError::Script {
                end: describe(exit),
                log: places.log.clone(),
                tail: tail(&places.log),
            }),
            Ended::TimedOut => Err(BuildError::Script {
                end: format!("was ended after {} seconds", options.time_limit.as_secs()),
                log: places.log.clone(),
                tail: tail(&places.log),
            }),
        }
    }
}

fn describe(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("failed with exit code {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
        Exit::Unknown => "ended in an unknown way".to_owned(),
    }
}

/// Applies the rules of a recipe, besides what its script made.
fn install(package: &TreePackage, places: &Places, work: &Utf8Path) -> Result<(), BuildError> {
    let files = Native;
    let recipe = &package.recipe;
    let found = list_found(
        &files,
        &[("src", &places.sources), ("extra", &places.extra)],
    )?;
    let copies = plan_install(&recipe.install, &found, recipe.os)?;
    let place = |path: &str| match path.split_once('/') {
        Some(("extra", rest)) => places.extra.join(rest),
        Some((_, rest)) => places.sources.join(rest),
        None => places.sources.join(path),
    };
    if recipe.script.is_none() {
        return Ok(copy(&files, &copies, &place, &places.output)?);
    }
    let installed = work.join("installed");
    copy(&files, &copies, &place, &installed)?;
    Ok(merge(&installed, &places.output)?)
}

/// Moves what is in one folder into another, where nothing of it may be yet.
fn merge(from: &Utf8Path, to: &Utf8Path) -> Result<(), InstallError> {
    let files = Native;
    for entry in files.list(from)? {
        let target = to.join(&entry.name);
        match (entry.metadata.kind, files.metadata(&target)) {
            (Kind::Dir, Ok(found)) if found.kind == Kind::Dir => merge(&entry.path, &target)?,
            (_, Ok(_)) => return Err(FileError::Exists { path: target }.into()),
            (Kind::Dir, Err(_)) => files.copy_tree(&entry.path, &target, How::HardLink)?,
            (_, Err(_)) => files.replace(&entry.path, &target)?,
        }
    }
    Ok(())
}

/// No package may bring units that belong to the node.
fn refuse_reserved_units(output: &Utf8Path) -> Result<(), BuildError> {
    let files = Native;
    for folder in files.list(output)? {
        let is_wants = folder
            .name
            .strip_prefix(WANTS)
            .is_some_and(|role| role.is_empty() || role.starts_with('_'));
        if !is_wants || folder.metadata.kind != Kind::Dir {
            continue;
        }
        for unit in files.list(&folder.path)? {
            if RESERVED_UNITS.contains(&unit.name.as_str()) {
                return Err(BuildError::ReservedUnit {
                    path: format!("{}/{}", folder.name, unit.name),
                });
            }
        }
    }
    Ok(())
}

/// The content of `buildinfo.full.json`.
fn build_info(package: &TreePackage) -> Value {
    let mut info = json!({
        "name": package.recipe.name,
        "variant": package.recipe.variant.as_str(),
        "package_version": package.id.version_str(),
        "sources": package.build_ids["sources"],
        "build_ids": package.build_ids,
    });
    if let Some(hash) = &package.extra_source {
        info["extra_source"] = json!(hash);
    }
    info
}

/// The last lines of a log.
fn tail(log: &Utf8Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs_err::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_else(|error| error.to_string().into_bytes());
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(TAIL_LINES);
    lines[start..].join("\n")
}
