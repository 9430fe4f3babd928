//! Tar streams, of every dialect.

use std::io::{Cursor, Read};

use tar::{Builder, EntryType, Header};
use transom_host::files::archive::{ExtractError, Refusal, extract_tar};
use transom_host::files::fake::FakeFiles;
use transom_host::files::{FileError, Files, Native};
use transom_model::os::Os;

use super::{Tar, job, refuses, unpack};
use crate::Machine;

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
