//! Images on disk: blobs by digest, layers unpacked once for all images that share them, and records of
//! what is here. Portable but for one part: how a layer is put on disk is an [`Unpacker`]'s.
//!
//! Invariant: an image that is listed is complete. Whatever dies in the middle leaves only what the next
//! start sweeps away or a next pull goes on with.

mod blobs;
mod build;
pub mod credentials;
mod digest;
mod document;
mod export;
mod import;
mod layer;
mod look;
mod pull;
mod record;
mod registries;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use jiff::Timestamp;
use transom_host::files::{Files, Native};

use crate::{Image, ImageSpace, RuntimeError};
use blobs::Blobs;
pub use build::{BuildFile, BuildKind};
pub use digest::Digest;
pub use document::Platform;
pub use layer::{Entry, EntryKind, Style, Tree, Unpacker};
pub use look::{Description, Seen};
pub use record::ImageSettings;
use record::{Layer, Record};
pub use registries::{Registries, RegistryHost};

/// All images of a node.
#[derive(Debug)]
pub struct Images {
    records: Utf8PathBuf,
    layers: Utf8PathBuf,
    blobs: Blobs,
    platform: Platform,
    registries: Registries,
    unpacker: Arc<dyn Unpacker>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    records: BTreeMap<Digest, Record>,
    /// How many containers use an image.
    used: BTreeMap<Digest, usize>,
    /// What a pull or an import is about to need.
    held: BTreeMap<Digest, usize>,
    /// Who pulls which image, by name, and who receives which blob, by digest.
    turns: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
}

/// An image that nobody may remove while this lives.
#[derive(Debug)]
pub struct Used {
    images: Arc<Images>,
    id: Digest,
}

impl Drop for Used {
    fn drop(&mut self) {
        release(&mut self.images.known().used, &self.id);
    }
}

/// What a container needs of its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub id: Digest,
    pub settings: ImageSettings,
    /// Folders of unpacked layers, the highest first, none twice.
    pub layers: Vec<Utf8PathBuf>,
}

impl Images {
    /// Opens the images of a folder, which only one process may do at a time.
    pub fn open(
        root: &Utf8Path,
        platform: Platform,
        registries: Registries,
        unpacker: Arc<dyn Unpacker>,
    ) -> Result<Arc<Self>, RuntimeError> {
        let failed = |error| RuntimeError::io(format!("open the images in {root}"), error);
        let images = Self {
            records: root.join("images"),
            layers: root.join("layers"),
            blobs: Blobs::open(root).map_err(failed)?,
            platform,
            registries,
            unpacker,
            known: Mutex::default(),
        };
        fs::create_dir_all(&images.records).map_err(failed)?;
        fs::create_dir_all(&images.layers).map_err(failed)?;
        images.blobs.sweep_new().map_err(failed)?;
        images.blobs.sweep(|_| false).map_err(failed)?;
        Native
            .sweep_temporaries(&images.records)
            .map_err(|error| failed(io::Error::other(error)))?;
        images.sweep_layers().map_err(failed)?;
        let records = Record::load_all(&images.records).map_err(failed)?;
        images.known().records = records
            .into_iter()
            .filter(|record| images.is_complete(record))
            .map(|record| (record.id.clone(), record))
            .collect();
        Ok(Arc::new(images))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The image of a name or an id.
    pub fn find(&self, name: &str) -> Option<Image> {
        let name = reference_name(name);
        let known = self.known();
        known
            .records
            .values()
            .find(|record| record.has_name(&name))
            .map(Record::describe)
    }

    pub fn all(&self) -> Vec<Image> {
        self.known()
            .records
            .values()
            .map(Record::describe)
            .collect()
    }

    /// Images that no container uses, the one that was used longest ago first.
    pub fn unused(&self) -> Vec<(Timestamp, Image)> {
        let known = self.known();
        let mut unused: Vec<_> = known
            .records
            .values()
            .filter(|record| !record.pinned && !known.used.contains_key(&record.id))
            .map(|record| (record.last_used, record.describe()))
            .collect();
        unused.sort_by_key(|(when, _)| *when);
        unused
    }

    /// Takes an image into use: it stays until the answer is dropped.
    pub fn use_image(
        self: &Arc<Self>,
        id: &str,
        now: Timestamp,
    ) -> Result<(Used, Contents), RuntimeError> {
        let name = reference_name(id);
        let missing = || RuntimeError::ImageMissing {
            reference: id.to_owned(),
        };
        let (record, used) = {
            let mut known = self.known();
            let found = known
                .records
                .values_mut()
                .find(|record| record.has_name(&name));
            let record = found.ok_or_else(missing)?;
            record.last_used = now;
            let record = record.clone();
            *known.used.entry(record.id.clone()).or_default() += 1;
            let used = Used {
                images: Arc::clone(self),
                id: record.id.clone(),
            };
            (record, used)
        };
        record.save(&self.records)?;
        let contents = Contents {
            id: record.id.clone(),
            settings: record.settings.clone(),
            layers: self.stack(&record.layers),
        };
        Ok((used, contents))
    }

    /// Takes an image into use whose container was there before us; without one, there is nothing to hold.
    pub fn adopt_use(self: &Arc<Self>, id: &str) -> Option<Used> {
        let id = Digest::try_from(id).ok()?;
        *self.known().used.entry(id.clone()).or_default() += 1;
        Some(Used {
            images: Arc::clone(self),
            id,
        })
    }

    /// Unpacks all layers of an image into one folder, for machines that cannot stack them.
    pub fn flatten(&self, id: &str, folder: &Utf8Path) -> Result<(), RuntimeError> {
        let found = self
            .known()
            .records
            .values()
            .find(|record| record.has_name(id))
            .cloned();
        let record = found.ok_or_else(|| RuntimeError::ImageMissing {
            reference: id.to_owned(),
        })?;
        let failed =
            |error| RuntimeError::io(format!("unpack the image {id} into {folder}"), error);
        for layer in &record.layers {
            let blob = fs::File::open(self.blobs.path(&layer.blob)).map_err(failed)?;
            let mut tree = self.unpacker.begin(folder, Style::Flat).map_err(failed)?;
            layer::unpack(blob, &layer.diff_id, tree.as_mut()).map_err(failed)?;
            tree.commit().map_err(failed)?;
        }
        Ok(())
    }

    /// Removes an image with all its names. Refuses while a container uses it.
    pub fn remove(&self, id: &str) -> Result<(), RuntimeError> {
        let name = reference_name(id);
        let mut known = self.known();
        let found = known.records.values().find(|record| record.has_name(&name));
        let Some(id) = found.map(|record| record.id.clone()) else {
            return Ok(());
        };
        if let Some(count) = known.used.get(&id) {
            return Err(RuntimeError::Invalid(format!(
                "the image {id} is used by {count} containers"
            )));
        }
        Record::forget(&self.records, &id)?;
        known.records.remove(&id);
        // Under the lock: nobody can begin to need what is being removed.
        let unneeded = self.set_unneeded_aside(&known);
        drop(known);
        for folder in unneeded? {
            self.unpacker
                .remove(&folder)
                .map_err(|error| RuntimeError::io(format!("remove {folder}"), error))?;
        }
        Ok(())
    }

    /// Removes blobs that no image needs, and gives layers that none needs names under which they are leftovers:
    /// to remove them takes long, and nobody has to wait for that.
    fn set_unneeded_aside(&self, known: &Known) -> Result<Vec<Utf8PathBuf>, RuntimeError> {
        let failed = |error| RuntimeError::io("remove what no image needs", error);
        let (mut blobs, mut layers) = (BTreeSet::new(), BTreeSet::new());
        for record in known.records.values() {
            blobs.extend([&record.id, &record.manifest]);
            blobs.extend(record.layers.iter().map(|layer| &layer.blob));
            layers.extend(record.layers.iter().map(|layer| &layer.diff_id));
        }
        for (digest, _) in self.blobs.all().map_err(failed)? {
            if !blobs.contains(&digest) && !known.held.contains_key(&digest) {
                self.blobs.remove(&digest).map_err(failed)?;
            }
        }
        self.blobs
            .sweep(|digest| known.held.contains_key(digest))
            .map_err(failed)?;
        let mut aside = Vec::new();
        for diff_id in self.unpacked_layers().map_err(failed)? {
            if !layers.contains(&diff_id) && !known.held.contains_key(&diff_id) {
                let leftover = self.leftover_name();
                fs::rename(self.layer_folder(&diff_id), &leftover).map_err(failed)?;
                aside.push(leftover);
            }
        }
        Ok(aside)
    }

    /// A name that the next start sweeps.
    fn leftover_name(&self) -> Utf8PathBuf {
        let unique = uuid::Uuid::new_v4().simple();
        self.layers.join(format!("new-{unique}"))
    }

    pub fn space(&self) -> Result<ImageSpace, RuntimeError> {
        let failed = |error| RuntimeError::io("measure the images", error);
        let space = Native
            .free_space(&self.layers)
            .map_err(|error| failed(io::Error::other(error)))?;
        // A layer takes about its packed size once more when it is unpacked.
        let packed: u64 = self
            .blobs
            .all()
            .map_err(failed)?
            .iter()
            .map(|(_, size)| size)
            .sum();
        Ok(ImageSpace {
            used_bytes: packed.saturating_mul(2),
            capacity_bytes: space.total,
            available_bytes: space.available,
        })
    }

    /// Records a complete image under some names, which other images lose.
    fn add(&self, mut record: Record) -> Result<Image, RuntimeError> {
        let mut known = self.known();
        let mut changed = Vec::new();
        for other in known
            .records
            .values_mut()
            .filter(|other| other.id != record.id)
        {
            let before = other.tags.len();
            other.tags.retain(|tag| !record.tags.contains(tag));
            if other.tags.len() != before {
                changed.push(other.clone());
            }
        }
        if let Some(before) = known.records.get(&record.id) {
            record.tags.extend(before.tags.iter().cloned());
            record.digests.extend(before.digests.iter().cloned());
            record.pinned |= before.pinned;
        }
        for names in [&mut record.tags, &mut record.digests] {
            names.sort();
            names.dedup();
        }
        record.save(&self.records)?;
        for other in changed {
            other.save(&self.records)?;
        }
        let image = record.describe();
        known.records.insert(record.id.clone(), record);
        Ok(image)
    }

    /// The folders of layers, the highest first. Of a layer that an image has twice only the higher one counts:
    /// it covers all that the lower one has, and no file system stacks a folder on itself.
    fn stack(&self, layers: &[Layer]) -> Vec<Utf8PathBuf> {
        let mut seen = BTreeSet::new();
        layers
            .iter()
            .rev()
            .filter(|layer| seen.insert(&layer.diff_id))
            .map(|layer| self.layer_folder(&layer.diff_id))
            .collect()
    }

    fn layer_folder(&self, diff_id: &Digest) -> Utf8PathBuf {
        self.layers.join(diff_id.hex())
    }

    fn is_complete(&self, record: &Record) -> bool {
        record
            .layers
            .iter()
            .all(|layer| self.layer_folder(&layer.diff_id).is_dir())
    }

    fn unpacked_layers(&self) -> io::Result<Vec<Digest>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.layers)? {
            let name = entry?.file_name();
            found.extend(
                name.to_str()
                    .and_then(|hex| Digest::try_from(format!("sha256:{hex}")).ok()),
            );
        }
        Ok(found)
    }

    /// Removes layers that somebody was unpacking when he died.
    fn sweep_layers(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.layers)? {
            let path = Utf8PathBuf::try_from(entry?.path()).map_err(io::Error::other)?;
            if path
                .file_name()
                .is_some_and(|name| name.starts_with("new-"))
            {
                self.unpacker.remove(&path)?;
            }
        }
        Ok(())
    }

    /// Puts a layer on disk, unless it is there. Two who do so at once do it twice, and one wins.
    fn unpack_layer(&self, layer: &Layer) -> Result<(), RuntimeError> {
        let failed = |error| RuntimeError::io(format!("unpack the layer {}", layer.blob), error);
        let folder = self.layer_folder(&layer.diff_id);
        if folder.is_dir() {
            return Ok(());
        }
        let temporary = self.leftover_name();
        let unpacked = (|| {
            fs::create_dir(&temporary)?;
            let blob = fs::File::open(self.blobs.path(&layer.blob))?;
            let mut tree = self.unpacker.begin(&temporary, Style::Overlay)?;
            layer::unpack(blob, &layer.diff_id, tree.as_mut())?;
            tree.commit()?;
            match fs::rename(&temporary, &folder) {
                Err(_) if folder.is_dir() => self.unpacker.remove(&temporary),
                renamed => renamed.and_then(|()| sync_folder(&self.layers)),
            }
        })();
        if unpacked.is_err()
            && let Err(error) = self.unpacker.remove(&temporary)
        {
            tracing::warn!(%temporary, %error, "could not remove a layer that is not complete, the next start will");
        }
        unpacked.map_err(failed)
    }

    /// Keeps some digests from being removed until the answer is dropped.
    fn hold(&self, digests: Vec<Digest>) -> Held<'_> {
        let mut known = self.known();
        for digest in &digests {
            *known.held.entry(digest.clone()).or_default() += 1;
        }
        drop(known);
        Held {
            images: self,
            digests,
        }
    }
}

struct Held<'a> {
    images: &'a Images,
    digests: Vec<Digest>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut known = self.images.known();
        for digest in &self.digests {
            release(&mut known.held, digest);
        }
    }
}

fn release(counts: &mut BTreeMap<Digest, usize>, digest: &Digest) {
    if let Some(count) = counts.get_mut(digest) {
        *count -= 1;
        if *count == 0 {
            counts.remove(digest);
        }
    }
}

/// A reference with all that Docker's defaults add to it; what is none (an id) stays as it is.
pub fn reference_name(name: &str) -> String {
    let is_id =
        Digest::try_from(name).is_ok() || Digest::try_from(format!("sha256:{name}")).is_ok();
    if is_id {
        return name.to_owned();
    }
    name.parse::<oci_client::Reference>()
        .map_or_else(|_| name.to_owned(), |reference| reference.whole())
}

fn sync_folder(folder: &Utf8Path) -> io::Result<()> {
    Native.sync_dir(folder).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
