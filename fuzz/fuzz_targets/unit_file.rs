//! Any bytes are a unit with problems, never a panic; what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use transom_model::os::Os;
use transom_supervisor::unit::{self, SpecifierContext, UnitName, parse::UnitSource, syntax};

fuzz_target!(|data: &[u8]| {
    for os in [Os::Linux, Os::Windows] {
        let path = camino::Utf8Path::new("fuzz.service");
        let first = syntax::parse(data, path, os);
        let second = syntax::parse(syntax::render(&first.assignments).as_bytes(), path, os);
        // Writing may go over the size that reading allows.
        if data.len() < 500_000 {
            let bare = |list: &[syntax::Assignment]| -> Vec<(String, String, String)> {
                let take = |one: &syntax::Assignment| (one.section.clone(), one.key.clone(), one.value.clone());
                list.iter().map(take).collect()
            };
            assert_eq!(bare(&first.assignments), bare(&second.assignments));
        }
        for name in ["fuzz.service", "fuzz@one.service", "fuzz.timer", "fuzz.target"] {
            let name = UnitName::new(name).expect("a valid name");
            let source = UnitSource { path: path.to_owned(), bytes: data.to_vec() };
            let unit = unit::parse::parse(&name, Some(&source), &[], &SpecifierContext::places(os));
            assert_eq!(unit.name, name);
        }
    }
});
