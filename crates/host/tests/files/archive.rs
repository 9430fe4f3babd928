//! Archives from people who mean harm, and from people who do not.

use std::io::{Cursor, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};
use transom_host::files::archive::{
    ExtractError, Extraction, Limits, Refusal, Summary, extract_tar, extract_zip,
};
use transom_host::files::fake::FakeFiles;
use transom_host::files::{FileError, Files, Kind, Native};
use transom_model::os::Os;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::Machine;

const LIMITS: Limits = Limits {
    entries: 50,
    file_bytes: 100_000,
    total_bytes: 200_000,
    path_bytes: 400,
    ratio: 100,
};

fn job(destination: Utf8PathBuf, target: Os) -> Extraction {
    Extraction {
        destination,
        target,
        limits: LIMITS,
    }
}

/// A tar that says exactly what a test wants it to say.
struct Tar(Builder<Vec<u8>>);

impl Tar {
    fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    fn entry(mut self, kind: EntryType, name: &str, link: &str, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        let fields = header.as_old_mut();
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o4755);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.0.append(&header, content).expect("appended");
        self
    }

    fn file(self, name: &str, content: &str) -> Self {
        self.entry(EntryType::Regular, name, "", content.as_bytes())
    }

    fn dir(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name, "", b"")
    }

    fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, name, target, b"")
    }

    fn hard_link(self, name: &str, existing: &str) -> Self {
        self.entry(EntryType::Link, name, existing, b"")
    }

    fn bytes(self) -> Vec<u8> {
        self.0.into_inner().expect("complete")
    }
}

/// Unpacks on an imaginary machine, and says what became visible.
fn unpack(target: Os, tar: &[u8]) -> (Result<Summary, ExtractError>, Vec<String>) {
    let files = FakeFiles::new(Os::Linux);
    let job = job("/out".into(), target);
    let result = extract_tar(&files, &mut &tar[..], None, &job);
    let names = files.list("/".into()).expect("listed");
    (result, names.into_iter().map(|entry| entry.name).collect())
}

#[track_caller]
fn refuses(target: Os, tar: Tar, reason: Refusal) {
    let (result, names) = unpack(target, &tar.bytes());
    match result {
        Err(ExtractError::Refused { reason: given, .. }) => assert_eq!(given, reason),
        other => panic!("{other:?}"),
    }
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn an_ordinary_tar_is_unpacked_with_modes_and_links() {
    let machine = Machine::native();
    let destination = machine.path("out");
    let mut tar = Tar::new()
        .dir("./")
        .dir("./bin/")
        .file("./bin/tool", "run me")
        .hard_link("./bin/second", "./bin/tool")
        .file("etc/deep/config", "x=1");
    if machine.files.os() == Os::Linux {
        tar = tar
            .symlink("current", "etc/deep")
            .symlink("etc/up", "../bin");
    }
    let tar = tar.bytes();
    let job = job(destination, machine.files.os());
    let summary = extract_tar(&Native, &mut &tar[..], None, &job).expect("unpacked");
    assert_eq!(summary.bytes, 9);
    for (name, content) in [
        ("out/bin/tool", "run me"),
        ("out/bin/second", "run me"),
        ("out/etc/deep/config", "x=1"),
    ] {
        let bytes = Native.read(&machine.path(name), 100).expect("there");
        assert_eq!(bytes, content.as_bytes());
    }
    if machine.files.os() == Os::Linux {
        let tool = Native
            .metadata(&machine.path("out/bin/tool"))
            .expect("there");
        assert_eq!(tool.mode, Some(0o755), "the set-user-id bit is dropped");
        let read = Native.read(&machine.path("out/current/config"), 100);
        assert_eq!(read.expect("through the link"), b"x=1");
    }
    let again = extract_tar(&Native, &mut &tar[..], None, &job);
    assert!(
        matches!(
            &again,
            Err(ExtractError::Write {
                source: FileError::Exists { .. }
            })
        ),
        "{again:?}"
    );
}

#[test]
fn long_names_of_gnu_and_pax_are_understood() {
    let long = format!("{}/file", ["folder"; 30].join("/"));
    let mut gnu = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(3);
    header.set_mode(0o644);
    gnu.append_data(&mut header, &long, &b"gnu"[..])
        .expect("appended");

    let mut pax = Builder::new(Vec::new());
    pax.append_pax_extensions([("path", long.as_bytes())])
        .expect("appended");
    let mut header = Header::new_ustar();
    header.set_path("short").expect("fits");
    header.set_size(3);
    header.set_mode(0o644);
    header.set_cksum();
    pax.append(&header, &b"pax"[..]).expect("appended");

    for (builder, content) in [(gnu, "gnu"), (pax, "pax")] {
        let tar = builder.into_inner().expect("complete");
        let files = FakeFiles::new(Os::Linux);
        let job = job("/out".into(), Os::Linux);
        extract_tar(&files, &mut &tar[..], None, &job).expect("unpacked");
        let read = files.read(format!("/out/{long}").as_str().into(), 10);
        assert_eq!(read.expect("there"), content.as_bytes());
    }
}

#[test]
fn a_gnu_sparse_file_gets_its_holes_back() {
    let mut header = Header::new_gnu();
    header.set_path("sparse").expect("fits");
    header.set_entry_type(EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_size(4);
    let gnu = header.as_gnu_mut().expect("gnu");
    let octal = |field: &mut [u8], number: u64| {
        let text = format!("{number:0width$o}", width = field.len() - 1);
        field[..text.len()].copy_from_slice(text.as_bytes());
    };
    octal(&mut gnu.sparse[0].offset, 512);
    octal(&mut gnu.sparse[0].numbytes, 4);
    octal(&mut gnu.sparse[1].offset, 1024);
    octal(&mut gnu.sparse[1].numbytes, 0);
    octal(&mut gnu.realsize, 1024);
    header.set_cksum();
    let mut tar = Builder::new(Vec::new());
    tar.append(&header, &b"data"[..]).expect("appended");
    let tar = tar.into_inner().expect("complete");

    let files = FakeFiles::new(Os::Linux);
    let job = job("/out".into(), Os::Linux);
    extract_tar(&files, &mut &tar[..], None, &job).expect("unpacked");
    let content = files.read("/out/sparse".into(), 2000).expect("there");
    assert_eq!(content.len(), 1024);
    assert_eq!(&content[512..516], b"data");
    assert!(content[..512].iter().all(|byte| *byte == 0));
}

#[test]
fn a_sparse_file_of_another_kind_is_refused_not_garbled() {
    let mut tar = Builder::new(Vec::new());
    tar.append_pax_extensions([("GNU.sparse.major", &b"1"[..])])
        .expect("appended");
    let tar = Tar(tar).file("GNUSparseFile.0/x", "1\n0\n4\n");
    refuses(Os::Linux, tar, Refusal::SparseFormat);
}

#[test]
fn paths_that_lead_out_are_refused() {
    for target in [Os::Linux, Os::Windows] {
        for (name, reason) in [
            ("../out", Refusal::Upwards),
            ("a/../../out", Refusal::Upwards),
            ("/etc/passwd", Refusal::Absolute),
        ] {
            refuses(
                target,
                Tar::new().file("first", "x").file(name, "x"),
                reason,
            );
        }
    }
    refuses(
        Os::Windows,
        Tar::new().file(r"C:\out", "x"),
        Refusal::Absolute,
    );
    refuses(
        Os::Windows,
        Tar::new().file("aux.txt", "x"),
        Refusal::DeviceName,
    );
}

#[test]
fn links_that_lead_out_are_refused() {
    for target in ["/etc", "..", "a/../..", "x/.."] {
        refuses(
            Os::Linux,
            Tar::new().symlink("link", target),
            Refusal::LinkLeadsOut,
        );
    }
    refuses(
        Os::Windows,
        Tar::new().symlink("link", "a"),
        Refusal::LinkNotPossible,
    );
    refuses(
        Os::Linux,
        Tar::new().hard_link("link", "../../etc/passwd"),
        Refusal::Upwards,
    );
    refuses(
        Os::Linux,
        Tar::new().hard_link("link", "missing"),
        Refusal::LinkToNothing,
    );
    let to_link = Tar::new().symlink("a", "b").hard_link("link", "a");
    refuses(Os::Linux, to_link, Refusal::LinkToNothing);
}

#[test]
fn nothing_is_made_through_a_link_or_a_file() {
    let tar = || Tar::new().dir("real").symlink("link", "real");
    refuses(
        Os::Linux,
        tar().file("link/x", "x"),
        Refusal::ThroughNonFolder,
    );
    refuses(Os::Linux, tar().file("link", "x"), Refusal::Duplicate);
    refuses(
        Os::Linux,
        Tar::new().file("file", "x").file("file/x", "x"),
        Refusal::ThroughNonFolder,
    );
}

#[test]
fn a_name_given_twice_is_refused_by_the_rules_of_the_target() {
    let twice = || Tar::new().file("a", "1").file("./a", "2");
    refuses(Os::Linux, twice(), Refusal::Duplicate);
    refuses(Os::Windows, twice(), Refusal::Duplicate);
    let cased = || Tar::new().file("lib/a", "1").file("Lib/b", "2");
    refuses(Os::Windows, cased(), Refusal::DuplicateButForCase);
    let umlaut = Tar::new().file("GRÜN", "1").file("grün", "2");
    refuses(Os::Windows, umlaut, Refusal::DuplicateButForCase);
    let (result, _) = unpack(Os::Linux, &cased().bytes());
    assert_eq!(result.expect("two folders").entries, 2);
}

#[test]
fn devices_and_pipes_are_refused() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let tar = Tar::new().entry(kind, "device", "", b"");
        refuses(Os::Linux, tar, Refusal::NotContent);
    }
}

#[test]
fn every_limit_holds() {
    let large = "x".repeat(60_000);
    let mut many = Tar::new();
    for number in 0..51 {
        many = many.file(&format!("f{number}"), "");
    }
    let zeros = "0".repeat(100_001);
    for (tar, message) in [
        (many, "the archive has more than 50 entries"),
        (
            Tar::new().file("a", &zeros),
            "the entry `a` has more than 100000 bytes",
        ),
        (
            Tar::new()
                .file("a", &large)
                .file("b", &large)
                .file("c", &large)
                .file("d", &large),
            "the archive unpacks to more than 200000 bytes",
        ),
    ] {
        let (result, names) = unpack(Os::Linux, &tar.bytes());
        assert_eq!(result.expect_err("refused").to_string(), message);
        assert!(names.is_empty());
    }
}

#[test]
fn content_far_larger_than_its_archive_is_refused() {
    let tar = Tar::new().file("a", &"0".repeat(2 << 20)).bytes();
    let files = FakeFiles::new(Os::Linux);
    let mut job = job("/out".into(), Os::Linux);
    job.limits.file_bytes = 1 << 30;
    job.limits.total_bytes = 1 << 30;
    let result = extract_tar(&files, &mut &tar[..], Some(2000), &job);
    assert!(matches!(
        result,
        Err(ExtractError::RatioTooLarge { limit: 100 })
    ));
    extract_tar(&files, &mut &tar[..], Some(200_000), &job).expect("a fair ratio");
}

#[test]
fn a_header_that_never_ends_does_not_fill_the_memory() {
    let mut header = Header::new_gnu();
    header.set_path("././@LongLink").expect("fits");
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 40);
    header.set_cksum();
    let mut stream = Cursor::new(header.as_bytes().to_vec()).chain(std::io::repeat(b'a'));
    let files = FakeFiles::new(Os::Linux);
    let job = job("/out".into(), Os::Linux);
    let result = extract_tar(&files, &mut stream, None, &job);
    assert!(
        matches!(result, Err(ExtractError::Damaged { .. })),
        "{result:?}"
    );
}

#[test]
fn a_cut_off_archive_is_noticed_wherever_it_was_cut() {
    let tar = Tar::new().file("a", "content").file("b", "content").bytes();
    // Two entries of two blocks each; what follows is padding.
    for length in 0..=2048 {
        let (result, names) = unpack(Os::Linux, &tar[..length]);
        assert!(result.is_err(), "cut off at {length}");
        assert!(names.is_empty());
    }
    let (result, names) = unpack(Os::Linux, &tar);
    assert_eq!(result.expect("whole").entries, 2);
    assert_eq!(names, ["out"]);
}

#[test]
fn an_unpacked_archive_survives_a_crash() {
    let files = FakeFiles::new(Os::Windows);
    let tar = Tar::new().file("bin/tool.exe", "run me").bytes();
    let job = job(r"C:\out".into(), Os::Windows);
    extract_tar(&files, &mut &tar[..], None, &job).expect("unpacked");
    files.crash();
    let read = files.read(r"C:\out\bin\tool.exe".into(), 100);
    assert_eq!(read.expect("still there"), b"run me");
}

#[test]
fn a_full_disk_leaves_nothing_of_an_archive() {
    let files = FakeFiles::new(Os::Linux);
    files.fill_up_to(10);
    let tar = Tar::new().file("a", "more than ten bytes").bytes();
    let job = job("/out".into(), Os::Linux);
    let result = extract_tar(&files, &mut &tar[..], None, &job);
    assert!(
        matches!(
            &result,
            Err(ExtractError::Write {
                source: FileError::DiskFull { .. }
            })
        ),
        "{result:?}"
    );
    assert!(files.list("/".into()).expect("listed").is_empty());
}

fn zip_of(entries: &[(&str, &str, u32)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content, mode) in entries {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        zip.start_file(*name, options).expect("started");
        zip.write_all(content.as_bytes()).expect("written");
    }
    zip.finish().expect("complete").into_inner()
}

fn unpack_zip(target: Os, zip: &[u8]) -> (Result<Summary, ExtractError>, FakeFiles) {
    let files = FakeFiles::new(Os::Linux);
    let job = job("/out".into(), target);
    (extract_zip(&files, Cursor::new(zip), &job), files)
}

#[test]
fn an_ordinary_zip_is_unpacked() {
    let machine = Machine::native();
    let zip = zip_of(&[
        ("bin/tool.exe", "run me", 0o755),
        (r"etc\config", "x=1", 0o644),
    ]);
    let job = job(machine.path("out"), Os::Windows);
    let summary = extract_zip(&Native, Cursor::new(zip), &job).expect("unpacked");
    assert_eq!(
        summary,
        Summary {
            entries: 2,
            bytes: 9
        }
    );
    for (name, content) in [("out/bin/tool.exe", "run me"), ("out/etc/config", "x=1")] {
        let bytes = Native.read(&machine.path(name), 100).expect("there");
        assert_eq!(bytes, content.as_bytes());
    }
}

#[test]
fn harmful_zips_are_refused() {
    for (name, reason) in [
        ("../out", Refusal::Upwards),
        ("/etc/passwd", Refusal::Absolute),
        (r"..\out", Refusal::Upwards),
        ("C:/out", Refusal::Absolute),
        ("x:stream", Refusal::Absolute),
        ("file:stream", Refusal::ForbiddenCharacter),
        ("nul", Refusal::DeviceName),
    ] {
        let (result, files) = unpack_zip(Os::Windows, &zip_of(&[(name, "x", 0o644)]));
        match result {
            Err(ExtractError::Refused { reason: given, .. }) => assert_eq!(given, reason, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        assert!(files.list("/".into()).expect("listed").is_empty());
    }
    let same = zip_of(&[("A", "1", 0o644), ("a", "2", 0o644)]);
    let (result, _) = unpack_zip(Os::Windows, &same);
    assert!(matches!(
        result,
        Err(ExtractError::Refused {
            reason: Refusal::DuplicateButForCase,
            ..
        })
    ));
}

#[test]
fn a_link_in_a_zip_stays_inside_or_is_refused() {
    for (target, is_fine) in [("a", true), ("../a", false), ("/etc", false)] {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.add_symlink("link", target, SimpleFileOptions::default())
            .expect("added");
        let zip = zip.finish().expect("complete").into_inner();
        let (result, files) = unpack_zip(Os::Linux, &zip);
        assert_eq!(result.is_ok(), is_fine, "{target}");
        if is_fine {
            let link = files.metadata("/out/link".into()).expect("there");
            assert_eq!(link.kind, Kind::Link);
        }
    }
}

#[test]
fn a_zip_bomb_is_refused() {
    let zeros = "0".repeat(5 << 20);
    let zip = zip_of(&[("zeros", &zeros, 0o644)]);
    let files = FakeFiles::new(Os::Linux);
    let mut job = job("/out".into(), Os::Linux);
    job.limits.file_bytes = 1 << 30;
    job.limits.total_bytes = 1 << 30;
    let result = extract_zip(&files, Cursor::new(zip), &job);
    assert!(
        matches!(result, Err(ExtractError::RatioTooLarge { .. })),
        "{result:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_swapped_for_a_link_while_unpacking_is_not_followed() {
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
