//! Any bytes are metadata of a repository, an offline bundle or a manifest, or refused: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transom_package::archive::Manifest;
use transom_package::repository::{parse_metadata, read_bundle};

fuzz_target!(|data: &[u8]| {
    let _ = parse_metadata(data);
    let _ = read_bundle(data);
    if let Ok(manifest) = Manifest::parse(data) {
        let written = manifest.render().expect("what was read can be written");
        assert_eq!(Manifest::parse(&written).expect("and read again"), manifest);
    }
});
