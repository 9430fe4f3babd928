//! Images of many layers, and of the same layer more than once.

use std::fmt::Write as _;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::Oci;
use crate::backend::{Backend, Role};
use crate::tool::Place;
use std::sync::Arc;

super::cases! {
    an_image_of_many_layers_with_one_of_them_twice_is_run,
}

const LAYERS: usize = 130;
const NAME: &str = "example/tall:1";

fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn pack<'a>(files: impl IntoIterator<Item = (String, &'a [u8])>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive.append_data(&mut header, path, content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// An archive of an image: each layer says its number in one file, and the first one comes again as the last.
fn archive() -> Vec<u8> {
    let mut layers: Vec<Vec<u8>> = (0..LAYERS)
        .map(|number| {
            let text = number.to_string();
            pack([("number".to_owned(), text.as_bytes())])
        })
        .collect();
    layers.push(layers[0].clone());
    let ids: Vec<String> = layers.iter().map(|layer| digest(layer)).collect();
    let configuration = serde_json::json!({
        "os": "linux",
        "architecture": "amd64",
        "rootfs": {"type": "layers", "diff_ids": ids},
    })
    .to_string();
    let names: Vec<String> = ids
        .iter()
        .map(|id| format!("{id}.tar").replace(':', "-"))
        .collect();
    let manifest = serde_json::json!([{"Config": "c.json", "RepoTags": [NAME], "Layers": names}]);
    let manifest = manifest.to_string();
    let last = LAYERS;
    let files = names[..last]
        .iter()
        .cloned()
        .zip(layers[..last].iter().map(Vec::as_slice));
    pack(files.chain([
        ("c.json".to_owned(), configuration.as_bytes()),
        ("manifest.json".to_owned(), manifest.as_bytes()),
    ]))
}

async fn an_image_of_many_layers_with_one_of_them_twice_is_run() {
    let backend = Arc::new(Oci::new());
    let images = backend.images();
    images
        .import(archive().as_slice(), None, Timestamp::now())
        .unwrap();
    drop(images);
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let mut spec = place.spec("main", &Role::Run);
    NAME.clone_into(&mut spec.image);
    spec.arguments = ["role", "read", "/number"].map(str::to_owned).to_vec();
    // The image brings no links to libraries.
    spec.mounts
        .extend(["/lib", "/lib64"].map(|path| super::mount(path, path)));
    let id = place.start(&spec).await;
    assert_eq!(place.wait_for_end(&id).await.exit_code, 0);
    assert_eq!(place.log(&id).await, "0\n");
    place.clean_up().await;
}
