//! Building a generation where nobody sees it, complete and durable, before anything points to it.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde_json::json;
use transom_host::files::{FileError, Files, Staging, path};
use transom_model::os::Os;

use super::manifest::{Manifest, place_of};
use super::places::{
    ACTIVE_PACKAGES, BUILDINFO, MANIFEST, MERGED, Places, SERVICE_CONFIGURATION, SERVICES, WANTS,
};
use super::plan::ActivationPlan;
use super::{NodeError, environment, json};

const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// Makes the generation `number` from a plan, and returns what it consists of.
pub(super) fn stage(
    files: &dyn Files,
    places: &Places,
    plan: &ActivationPlan,
    number: u64,
    created: Timestamp,
) -> Result<Manifest, NodeError> {
    files.create_dir_all(&places.generations())?;
    let folder = places.generation(number);
    let mut stage = Stage {
        places,
        plan,
        folder: folder.clone(),
        staging: files.stage(&folder)?,
    };
    stage.folders()?;
    stage.links()?;
    stage.units()?;
    stage.packages()?;
    let manifest = Manifest::new(number, created, plan.base, plan.contents.clone());
    stage.texts(&manifest)?;
    stage.staging.commit()?;
    Ok(manifest)
}

struct Stage<'a> {
    places: &'a Places,
    plan: &'a ActivationPlan,
    folder: Utf8PathBuf,
    staging: Staging<'a>,
}

impl Stage<'_> {
    fn folders(&mut self) -> Result<(), FileError> {
        let own = [WANTS, SERVICES, ACTIVE_PACKAGES];
        for name in MERGED.into_iter().chain(own) {
            self.staging.make_dir(name.into(), FOLDER_MODE)?;
        }
        for folder in &self.plan.folders {
            self.staging.make_dir(folder.as_str().into(), FOLDER_MODE)?;
        }
        Ok(())
    }

    fn links(&self) -> Result<(), FileError> {
        for package in &self.plan.contents.packages {
            let folder = self.places.package(&package.id);
            for link in &package.links {
                let place = place_of(link);
                let target = path::join(self.places.os, &folder, link);
                match self.places.os {
                    Os::Linux => self
                        .staging
                        .symlink(target.as_str(), place.as_str().into())?,
                    Os::Windows => {
                        self.staging
                            .link_or_copy(&target, place.as_str().into(), FILE_MODE)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn units(&self) -> Result<(), FileError> {
        for (name, text) in &self.plan.units {
            let service = format!("{SERVICES}/{name}");
            let wanted = format!("{WANTS}/{name}");
            match self.places.os {
                Os::Linux => {
                    self.write(&service, text)?;
                    self.staging
                        .symlink(&format!("../{service}"), wanted.as_str().into())?;
                }
                Os::Windows => {
                    // What is not text names no path of ours either.
                    let text = match std::str::from_utf8(text) {
                        Ok(text) => {
                            environment::rewrite(text, &self.places.root, &self.folder).into_bytes()
                        }
                        Err(_) => text.clone(),
                    };
                    self.write(&service, &text)?;
                    self.write(&wanted, &text)?;
                }
            }
        }
        Ok(())
    }

    /// The folder of each package under the package's name: a link, or where there are none a file
    /// that says where.
    fn packages(&self) -> Result<(), FileError> {
        for id in self.plan.contents.ids() {
            let entry = format!("{ACTIVE_PACKAGES}/{}", id.name_str());
            let folder = self.places.package(id);
            match self.places.os {
                Os::Linux => self
                    .staging
                    .symlink(folder.as_str(), entry.as_str().into())?,
                Os::Windows => self.write(&entry, format!("{folder}\n").as_bytes())?,
            }
        }
        Ok(())
    }

    fn texts(&self, manifest: &Manifest) -> Result<(), NodeError> {
        let contents = &manifest.contents;
        for (name, text) in environment::render(contents, &self.folder) {
            self.write(name, text.as_bytes())?;
        }
        let configuration = json::render(&json!({ "sysctl": contents.sysctl }));
        self.write(SERVICE_CONFIGURATION, configuration.as_bytes())?;
        self.write(BUILDINFO, json::render(&self.plan.buildinfo).as_bytes())?;
        let text = manifest.render().map_err(|error| NodeError::Damaged {
            path: path::join(self.places.os, &self.folder, MANIFEST),
            reason: error.to_string(),
        })?;
        Ok(self.write(MANIFEST, &text)?)
    }

    fn write(&self, below: &str, bytes: &[u8]) -> Result<(), FileError> {
        let mut file = self.staging.create_file(Utf8Path::new(below), FILE_MODE)?;
        file.write_all(bytes)?;
        file.finish()
    }
}
