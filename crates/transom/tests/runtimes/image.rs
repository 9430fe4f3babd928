//! The image of the tests: busybox and nothing else, made by our own builder.

use std::path::Path;
use std::sync::Arc;

use camino::Utf8Path;
use jiff::Timestamp;
use transom_runtime::images::{BuildFile, BuildKind, ImageSettings, Images, Platform, Registries};
use transom_runtime::oci::LinuxUnpacker;

pub(crate) const NAME: &str = "transom.dev/box:1";

/// Writes the archive of the image.
pub(crate) fn write(archive: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let platform = Platform {
        os: "linux".to_owned(),
        architecture: match std::env::consts::ARCH {
            "aarch64" => "arm64".to_owned(),
            _ => "amd64".to_owned(),
        },
        os_version: None,
    };
    let root = Utf8Path::from_path(folder.path()).unwrap();
    let unpacker = Arc::new(LinuxUnpacker);
    let images = Images::open(root, platform, Registries::default(), unpacker).unwrap();
    let busybox = ["/usr/bin/busybox", "/bin/busybox"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .expect("busybox is installed (`cargo xtask tools`)");
    let mut files = vec![BuildFile {
        path: "bin/busybox".to_owned(),
        kind: BuildKind::File(busybox.into()),
        mode: 0o755,
    }];
    for tool in ["sh", "sleep", "cat", "nc"] {
        files.push(BuildFile {
            path: format!("bin/{tool}"),
            kind: BuildKind::Link("busybox".to_owned()),
            mode: 0o777,
        });
    }
    let settings = ImageSettings {
        environment: vec!["PATH=/bin".to_owned()],
        // The image of containerd's sandboxes too, which needs a program that stays.
        arguments: vec!["/bin/sleep".to_owned(), "100000".to_owned()],
        ..ImageSettings::default()
    };
    images
        .build(NAME, &files, &settings, Timestamp::now())
        .unwrap();
    images
        .export(NAME, fs_err::File::create(archive).unwrap())
        .unwrap();
}
