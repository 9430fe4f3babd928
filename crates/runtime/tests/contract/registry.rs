//! A registry of one image that is made here: a shell, for the runtimes of others.

use transom_testkit::{Registry, digest};

/// What the registry serves: a kind and a content for every path.
type Content = Vec<(String, &'static str, Vec<u8>)>;

fn content() -> Content {
    const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    let layer = layer();
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let config = serde_json::json!({
        "architecture": architecture,
        "os": "linux",
        // The image of the sandbox too, which needs a program that stays.
        "config": { "Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "100000"] },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
    })
    .to_string()
    .into_bytes();
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": CONFIG, "digest": digest(&config), "size": config.len() },
        "layers": [{ "mediaType": LAYER, "digest": digest(&layer), "size": layer.len() }],
    })
    .to_string()
    .into_bytes();
    let at = "/v2/busybox";
    vec![
        (format!("{at}/manifests/1"), MANIFEST, manifest.clone()),
        (
            format!("{at}/manifests/{}", digest(&manifest)),
            MANIFEST,
            manifest,
        ),
        (format!("{at}/blobs/{}", digest(&config)), CONFIG, config),
        (format!("{at}/blobs/{}", digest(&layer)), LAYER, layer),
    ]
}

fn layer() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    let busybox = fs_err::read("/usr/bin/busybox").or_else(|_| fs_err::read("/bin/busybox"));
    let busybox = busybox.expect("busybox is installed");
    header.set_mode(0o755);
    header.set_size(busybox.len() as u64);
    archive
        .append_data(&mut header, "bin/busybox", &busybox[..])
        .unwrap();
    for tool in ["sh", "cat", "nc", "sleep"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        let name = format!("bin/{tool}");
        archive.append_link(&mut header, name, "busybox").unwrap();
    }
    archive.into_inner().unwrap()
}

/// A registry that knows one image.
pub(crate) fn serve() -> u16 {
    let registry = Registry::start().unwrap();
    for (path, kind, body) in content() {
        registry.put(path, kind, body);
    }
    registry.address().port()
}
