//! An image as an archive that others read: an OCI layout and what `docker load` takes, in one. The same image gives
//! the same bytes.

use std::io::{self, Write};

use serde_json::json;

use super::document::MANIFEST_TYPE;
use super::{Images, digest::Digest, reference_name};
use crate::RuntimeError;

impl Images {
    /// Writes the image of a name. It keeps that name wherever it goes.
    pub fn export(&self, name: &str, target: impl Write) -> Result<(), RuntimeError> {
        let name = reference_name(name);
        let record = {
            let known = self.known();
            let mut records = known.records.values();
            records.find(|record| record.has_name(&name)).cloned()
        };
        let record = record.ok_or_else(|| RuntimeError::NotFound {
            what: "image",
            id: name.clone(),
        })?;
        let mut needed = vec![record.id.clone(), record.manifest.clone()];
        needed.extend(record.layers.iter().map(|layer| layer.blob.clone()));
        let _held = self.hold(needed);
        let failed = |error| RuntimeError::io(format!("write the archive of {name}"), error);
        let manifest = self.blobs.read_document(&record.manifest)?;
        let index = json!({
            "schemaVersion": 2,
            "manifests": [{
                "mediaType": MANIFEST_TYPE,
                "digest": record.manifest,
                "size": manifest.len(),
                "annotations": {
                    "io.containerd.image.name": name,
                    "org.opencontainers.image.ref.name": name,
                },
            }],
        });
        let layers: Vec<String> = record.layers.iter().map(|one| place(&one.blob)).collect();
        let saved = json!([{
            "Config": place(&record.id),
            "RepoTags": [name],
            "Layers": layers,
        }]);
        let mut archive = tar::Builder::new(target);
        let mut documents = vec![
            (
                "oci-layout".to_owned(),
                br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
            ),
            ("index.json".to_owned(), index.to_string().into_bytes()),
            ("manifest.json".to_owned(), saved.to_string().into_bytes()),
            (place(&record.manifest), manifest),
        ];
        documents.push((place(&record.id), self.blobs.read_document(&record.id)?));
        for (path, bytes) in documents {
            append(&mut archive, &path, bytes.len() as u64, bytes.as_slice()).map_err(failed)?;
        }
        let mut written: Vec<&Digest> = Vec::new();
        for layer in &record.layers {
            if written.contains(&&layer.blob) {
                continue;
            }
            written.push(&layer.blob);
            let file = fs_err::File::open(self.blobs.path(&layer.blob)).map_err(failed)?;
            let size = file.metadata().map_err(failed)?.len();
            append(&mut archive, &place(&layer.blob), size, file).map_err(failed)?;
        }
        archive
            .into_inner()
            .and_then(|mut end| end.flush())
            .map_err(failed)
    }
}

fn place(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    archive.append_data(&mut header, path, content)
}
