//! Any bytes are unpacked into the folder that was named, or refused: never a panic, and nothing beside it.
#![no_main]

use camino::Utf8Path;
use libfuzzer_sys::fuzz_target;
use transom_host::files::Native;
use transom_host::files::archive::Limits;
use transom_package::archive::{Unpack, unpack};

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let path = Utf8Path::from_path(folder.path()).expect("a path in UTF-8");
    let archive = path.join("archive");
    fs_err::write(&archive, data).expect("room for the archive");
    let wanted = Unpack {
        id: None,
        os: None,
        unverified: true,
        limits: Limits {
            entries: 64,
            file_bytes: 1 << 16,
            total_bytes: 1 << 18,
            path_bytes: 256,
            depth: 8,
            ratio: 1000,
        },
    };
    let destination = path.join("out");
    let outcome = unpack(&Native, &archive, &destination, &wanted);
    assert_eq!(outcome.is_ok(), destination.exists());
    let names = fs_err::read_dir(path).expect("the folder").count();
    assert_eq!(names, 1 + usize::from(outcome.is_ok()), "something is beside it");
});
