//! The guides are run: what they promise is what happens, on both systems.

use std::path::Path;

use crate::console;

#[test]
fn every_guide_does_what_it_says() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides"));
    let mut commands = 0;
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs_err::read_to_string(&path).unwrap();
            commands += console::check(&path.display().to_string(), &text);
        }
    }
    assert!(commands > 0, "the guides show no command");
}
