//! One binary, several names. Invariant: the name alone decides, never its folder, letter case or
//! `.exe`; a name that is not listed means `transom`, so a renamed download still works.

use std::ffi::OsStr;
use std::path::Path;

use crate::commands;
use crate::failure::Exit;
use crate::invocation::Invocation;
use crate::node;

/// What a name starts.
type Entry = fn(&Invocation) -> Exit;

/// The names this binary answers to. A program that is a noun of ours under its own name, such as
/// `systemctl`, is one more line here.
const PROGRAMS: &[(&str, Entry)] = &[
    ("transom", commands::run),
    ("systemctl", commands::service::run_systemctl),
    ("pkgpanda", commands::package::run_pkgpanda),
];

/// Runs the program that the invocation names.
pub fn run(invocation: &Invocation) -> Exit {
    if let Some(exit) = node::attend(&invocation.arguments) {
        return exit;
    }
    entry_named(PROGRAMS, &invocation.program)(invocation)
}

/// The entry for `argv[0]`; the first of `programs` when none has that name.
fn entry_named(programs: &[(&str, Entry)], program: &OsStr) -> Entry {
    let name = base_name(program);
    programs
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap_or(&programs[0])
        .1
}

/// `C:\tools\SystemCTL.EXE` → `systemctl`.
fn base_name(program: &OsStr) -> String {
    let text = program.to_string_lossy();
    // A Windows path may arrive on either system: Wine and tests hand both forms on.
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let last = last.to_ascii_lowercase();
    let path = Path::new(&last);
    match path.extension() {
        Some(extension) if extension == "exe" => {
            path.with_extension("").to_string_lossy().into_owned()
        }
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_last_name_only() {
        for spelling in [
            "systemctl",
            "/usr/bin/systemctl",
            "systemctl.exe",
            r"C:\Transom\opt\bin\SystemCtl.EXE",
            "./systemctl",
        ] {
            assert_eq!(base_name(OsStr::new(spelling)), "systemctl", "{spelling}");
        }
        assert_eq!(base_name(OsStr::new("transom-0.2")), "transom-0.2");
        assert_eq!(base_name(OsStr::new("")), "");
    }

    #[test]
    fn an_unknown_name_means_the_first_program() {
        let first: Entry = |_| Exit::Success;
        let second: Entry = |_| Exit::NotFound;
        let programs = [("transom", first), ("systemctl", second)];
        let chosen = |name: &str| {
            let entry = entry_named(&programs, OsStr::new(name));
            std::ptr::fn_addr_eq(entry, second)
        };
        assert!(chosen("systemctl"));
        assert!(!chosen("transom"));
        assert!(!chosen("transom-nightly"));
        assert!(!chosen(""));
    }
}
