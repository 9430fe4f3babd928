//! Whatever an archive says, and whatever happens around it meanwhile, nothing lands outside.

use std::io::Cursor;

use camino::Utf8Path;
use proptest::prelude::*;
use tar::EntryType;
use transom_host::files::archive::{extract_tar, extract_zip};
use transom_host::files::{Files, Kind, Native};
use transom_model::os::Os;

use super::{Tar, job, unpack, unpack_zip, zip_of};
use crate::Machine;

#[cfg(target_os = "linux")]
#[test]
fn a_folder_swapped_for_a_link_while_unpacking_is_not_followed() {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// Swaps the folder `sub` for a link the moment the content of a file is read.
    struct Swapping<'a> {
        tar: Cursor<Vec<u8>>,
        machine: &'a Machine,
        read: usize,
    }

    impl Read for Swapping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let before = self.read;
            self.read += self.tar.read(buffer)?;
            // The folder's header, then the first file's: now the folder is there.
            if before == 1024 {
                let staging = Native.list(&self.machine.path("in")).expect("listed");
                let sub = staging[0].path.join("sub");
                fs_err::rename(&sub, self.machine.path("moved")).expect("moved");
                symlink(self.machine.path("outside"), &sub).expect("swapped");
            }
            Ok(self.read - before)
        }
    }

    let machine = Machine::native();
    for folder in ["in", "outside"] {
        Native.create_dir_all(&machine.path(folder)).expect("made");
    }
    let tar = Tar::new()
        .dir("sub")
        .file("first", "x")
        .file("sub/second", "x")
        .bytes();
    let mut stream = Swapping {
        tar: Cursor::new(tar),
        machine: &machine,
        read: 0,
    };
    let job = job(machine.path("in/out"), Os::Linux);
    extract_tar(&Native, &mut stream, None, &job).expect_err("the folder is gone");
    let moved = Native.list(&machine.path("moved")).expect("it was swapped");
    assert!(moved.is_empty());
    assert!(
        Native
            .list(&machine.path("outside"))
            .expect("listed")
            .is_empty()
    );
    assert!(Native.list(&machine.path("in")).expect("listed").is_empty());
}

/// Parts that hostile paths are made of.
fn hostile_path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "..", ".", "", "a", "b", "A", "link", "con", "C:", "a.", "\\", "..\\", "x:y", "outside",
    ]);
    let path = prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"));
    (path, any::<bool>())
        .prop_map(|(path, absolute)| if absolute { format!("/{path}") } else { path })
}

fn hostile_entry() -> impl Strategy<Value = (EntryType, String, String)> {
    let kind = prop::sample::select(vec![
        EntryType::Regular,
        EntryType::Directory,
        EntryType::Symlink,
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
    ]);
    (kind, hostile_path(), hostile_path())
}

/// Everything in the folder around the destination, and that links inside stay inside.
fn assert_nothing_escaped(machine: &Machine, was_unpacked: bool) {
    let around = Native.list(&machine.path("around")).expect("listed");
    let names: Vec<&str> = around.iter().map(|entry| entry.name.as_str()).collect();
    if was_unpacked {
        assert_eq!(names, ["out", "outside"]);
        assert_links_stay(&machine.path("around/out"), &machine.path("around/out"));
    } else {
        assert_eq!(names, ["outside"]);
    }
    let outside = Native
        .list(&machine.path("around/outside"))
        .expect("listed");
    assert!(outside.is_empty());
    assert_eq!(Native.list(&machine.root).expect("listed").len(), 1);
}

fn assert_links_stay(folder: &Utf8Path, top: &Utf8Path) {
    for entry in Native.list(folder).expect("listed") {
        match entry.metadata.kind {
            Kind::Dir => assert_links_stay(&entry.path, top),
            Kind::Link => {
                if let Ok(resolved) = entry.path.canonicalize_utf8() {
                    let top = top.canonicalize_utf8().expect("there");
                    assert!(resolved.starts_with(top), "{} -> {resolved}", entry.path);
                }
            }
            Kind::File => {}
            Kind::Other => panic!("{}", entry.path),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_entry_of_any_tar_lands_outside(
        entries in prop::collection::vec(hostile_entry(), 1..6),
        for_windows in any::<bool>(),
    ) {
        let machine = Machine::native();
        Native.create_dir_all(&machine.path("around/outside")).expect("made");
        let mut tar = Tar::new();
        for (kind, name, link) in &entries {
            let content: &[u8] = if *kind == EntryType::Regular { b"content" } else { b"" };
            tar = tar.entry(*kind, name, link, content);
        }
        let target = if for_windows { Os::Windows } else { Os::Linux };
        let job = job(machine.path("around/out"), target);
        let result = extract_tar(&Native, &mut &tar.bytes()[..], None, &job);
        assert_nothing_escaped(&machine, result.is_ok());
    }

    #[test]
    fn no_entry_of_any_zip_lands_outside(
        names in prop::collection::btree_set(hostile_path(), 1..6),
        for_windows in any::<bool>(),
    ) {
        let machine = Machine::native();
        Native.create_dir_all(&machine.path("around/outside")).expect("made");
        let entries: Vec<_> = names.iter().map(|name| (name.as_str(), "content", 0o644)).collect();
        let target = if for_windows { Os::Windows } else { Os::Linux };
        let job = job(machine.path("around/out"), target);
        let result = extract_zip(&Native, Cursor::new(zip_of(&entries)), &job);
        assert_nothing_escaped(&machine, result.is_ok());
    }

    #[test]
    fn a_damaged_archive_is_an_error_or_fine_but_never_a_panic(
        at in 0_usize..2048,
        byte in any::<u8>(),
        length in 0_usize..4096,
    ) {
        let mut tar = Tar::new().file("bin/a", "content").symlink("b", "bin").bytes();
        let mut zip = zip_of(&[("bin/a", "content", 0o755), ("b", "more content", 0o644)]);
        let (in_tar, in_zip) = (at % tar.len(), at % zip.len());
        tar[in_tar] = byte;
        zip[in_zip] = byte;
        tar.truncate(length.max(in_tar));
        let (result, names) = unpack(Os::Linux, &tar);
        prop_assert_eq!(names.len(), usize::from(result.is_ok()));
        let (result, files) = unpack_zip(Os::Windows, &zip);
        let names = files.list("/".into()).expect("listed");
        prop_assert_eq!(names.len(), usize::from(result.is_ok()));
    }
}
