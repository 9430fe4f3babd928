//! Any text is a recipe with faults, never a panic; a recipe without a fault can be hashed.
#![no_main]

use camino::Utf8Path;
use libfuzzer_sys::fuzz_target;
use transom_model::package::Variant;
use transom_package::info::PackageInfo;
use transom_package::recipe::read_recipe;

fuzz_target!(|data: &[u8]| {
    if let Ok(info) = PackageInfo::parse(data) {
        let written = info.render().expect("what was read can be written");
        assert_eq!(PackageInfo::parse(&written).expect("and read again"), info);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let name = "fuzz".parse().expect("a valid name");
    let file = Utf8Path::new("fuzz/buildinfo.json");
    let reading = read_recipe(text, file, Utf8Path::new("/fuzz"), &name, &Variant::DEFAULT);
    assert_eq!(reading.recipe.is_none(), !reading.faults.is_empty());
});
