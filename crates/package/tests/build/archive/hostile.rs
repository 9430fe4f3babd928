//! Archives that lie, end too early, or want to do harm. Each has its own error, and none of them leaves
//! anything at the destination.

use std::io::Write;

use tar::{Builder, EntryType, Header};
use transom_host::files::archive::Limits;
use transom_model::Os;
use transom_package::archive::{MANIFEST, Unpack, UnpackError, default_limits};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{Place, chain};

const NO_FILE: &str = r#"{"version": 1, "id": "tool--1", "os": "linux", "entries": []}"#;
const ONE_FILE: &str = r#"{"version": 1, "id": "tool--1", "os": "linux", "entries": [
    {"path": "a", "kind": "file", "mode": "0644", "size": 3,
     "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}]}"#;

/// One entry of an archive, exactly as a test wants it.
type Raw<'a> = (EntryType, &'a str, &'a str, u32, &'a [u8]);

fn file<'a>(name: &'a str, content: &'a str) -> Raw<'a> {
    (EntryType::Regular, name, "", 0o644, content.as_bytes())
}

fn tar(entries: &[Raw<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, link, mode, content) in entries {
        let mut header = Header::new_gnu();
        let fields = header.as_old_mut();
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default()
            .system(zip::System::Unix)
            .unix_permissions(0o644);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn refusal(archive: &[u8], wanted: &Unpack) -> String {
    let place = Place::new();
    place.write("archive", archive);
    let error = place.unpack_as("archive", wanted).unwrap_err();
    chain(&error)
}

#[track_caller]
fn is_refused(entries: &[Raw<'_>], reason: &str) {
    let error = refusal(&zstd(&tar(entries)), &Unpack::verified());
    assert!(error.contains(reason), "{error}");
}

#[test]
fn an_archive_that_is_as_it_says_passes() {
    let place = Place::new();
    let archive = zstd(&tar(&[file(MANIFEST, ONE_FILE), file("a", "abc")]));
    place.write("archive", archive);
    let unpacked = place.unpack("archive").unwrap();
    assert_eq!(
        (unpacked.entries, unpacked.bytes),
        (2, 3 + ONE_FILE.len() as u64)
    );
}

#[test]
fn a_manifest_that_lies_is_found_out() {
    let manifest = file(MANIFEST, ONE_FILE);
    is_refused(&[manifest], "`a` is in its manifest.json only");
    is_refused(
        &[manifest, file("a", "abc"), file("b", "")],
        "`b` is not in its manifest.json",
    );
    is_refused(&[manifest, file("a", "abd")], "`a` has the SHA-256 a52d159");
    is_refused(&[manifest, file("a", "abcd")], "`a` has another size");
    is_refused(
        &[manifest, (EntryType::Regular, "a", "", 0o755, b"abc")],
        "`a` has another mode",
    );
    is_refused(
        &[manifest, (EntryType::Directory, "a", "", 0o644, b"")],
        "`a` has another kind",
    );
    is_refused(
        &[manifest, (EntryType::Symlink, "a", "b", 0o644, b"")],
        "`a` has another kind",
    );
    is_refused(
        &[manifest, file("a", "abc"), file("a", "abc")],
        "another entry has the same name",
    );
    is_refused(
        &[
            manifest,
            file("a", "abc"),
            (EntryType::Link, "b", "a", 0o644, b""),
        ],
        "`b` is not in its manifest.json",
    );
    is_refused(&[file("a", "abc"), manifest], "does not begin with");
    is_refused(&[manifest, manifest], "another entry has the same name");
    is_refused(&[file(MANIFEST, "{}")], "cannot be read");
    is_refused(&[], "does not begin with");
}

#[test]
fn a_link_must_lead_where_the_manifest_says() {
    let manifest = r#"{"version": 1, "id": "tool--1", "os": "linux", "entries": [
        {"path": "l", "kind": "link", "mode": "0777", "target": "a"}]}"#;
    is_refused(
        &[
            file(MANIFEST, manifest),
            (EntryType::Symlink, "l", "b", 0o777, b""),
        ],
        "`l` has another target",
    );
}

#[test]
fn another_package_or_system_than_the_wanted_one_is_refused() {
    let archive = zstd(&tar(&[file(MANIFEST, NO_FILE)]));
    let wanted = Unpack::of(&"tool--2".parse().unwrap());
    let error = refusal(&archive, &wanted);
    assert!(error.contains("the package `tool--1`, and `tool--2` is wanted"));
    let wanted = Unpack {
        os: Some(Os::Windows),
        ..Unpack::verified()
    };
    assert!(refusal(&archive, &wanted).contains("it is for linux"));
    // A zip file that says that it is for Linux.
    let error = refusal(&zip(&[(MANIFEST, NO_FILE)]), &Unpack::verified());
    assert!(error.contains("it is for linux"), "{error}");
}

#[test]
fn names_and_links_that_lead_out_are_refused_whatever_the_manifest_says() {
    for (path, reason) in [
        ("../a", "upwards"),
        ("/etc/passwd", "absolute"),
        ("a/../../b", "upwards"),
    ] {
        is_refused(&[file(MANIFEST, NO_FILE), file(path, "")], reason);
    }
    for (kind, target, reason) in [
        (EntryType::Symlink, "../x", "leads out"),
        (EntryType::Symlink, "/etc", "leads out"),
        (EntryType::Link, "/etc/passwd", "absolute"),
        (EntryType::Link, "../x", "upwards"),
        (EntryType::Char, "", "not content"),
    ] {
        is_refused(
            &[file(MANIFEST, NO_FILE), (kind, "l", target, 0o644, b"")],
            reason,
        );
    }
    for (path, reason) in [
        ("C:\\x", "absolute"),
        ("bin/NUL.txt", "devices"),
        ("bin/a.", "ends in a dot"),
        ("..\\x", "upwards"),
        ("\\\\server\\share\\x", "absolute"),
    ] {
        let archive = zip(&[(MANIFEST, NO_FILE), (path, "")]);
        let error = refusal(&archive, &Unpack::verified());
        assert!(error.contains(reason), "{path}: {error}");
    }
    let windows = r#"{"version": 1, "id": "tool--1", "os": "windows", "entries": [
        {"path": "a", "kind": "file", "mode": "0644", "size": 0,
         "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}"#;
    let archive = zip(&[(MANIFEST, windows), ("a", ""), ("A", "")]);
    let error = refusal(&archive, &Unpack::verified());
    assert!(error.contains("case of its letters"), "{error}");
}

#[test]
fn names_that_are_no_text_are_refused() {
    let mut archive = tar(&[file(MANIFEST, NO_FILE), file("aX", "")]);
    let at = archive.windows(2).position(|pair| pair == b"aX").unwrap();
    let header = &mut archive[at..at + 512];
    header[1] = 0xff;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let error = refusal(&zstd(&archive), &Unpack::verified());
    assert!(error.contains("not Unicode"), "{error}");
}

#[test]
fn an_archive_cut_off_anywhere_is_refused() {
    for os in [Os::Linux, Os::Windows] {
        let place = Place::new();
        place.sample("in");
        place.pack("in", os, "whole").unwrap();
        let whole = fs_err::read(place.path("whole")).unwrap();
        let step = (whole.len() / 40).max(1);
        for length in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            fs_err::write(place.path("archive"), &whole[..length]).unwrap();
            let error = place.unpack("archive").unwrap_err();
            assert!(!matches!(error, UnpackError::Open { .. }), "{length}");
        }
    }
}

#[test]
fn an_archive_with_one_altered_byte_is_refused_or_the_same() {
    for os in [Os::Linux, Os::Windows] {
        let place = Place::new();
        place.sample("in");
        let packed = place.pack("in", os, "whole").unwrap();
        let whole = fs_err::read(place.path("whole")).unwrap();
        let step = (whole.len() / 100).max(1);
        let mut refused = 0;
        for at in (0..whole.len()).step_by(step) {
            let mut altered = whole.clone();
            altered[at] ^= 0x20;
            fs_err::write(place.path("archive"), &altered).unwrap();
            match place.unpack("archive") {
                Err(_) => refused += 1,
                // Some bytes mean nothing, such as those of times.
                Ok(unpacked) => {
                    assert_eq!(unpacked.manifest.as_ref(), Some(&packed.manifest));
                    fs_err::remove_dir_all(place.path("out")).unwrap();
                }
            }
        }
        assert!(refused > 50, "{os}: {refused}");
    }
}

#[test]
fn bombs_are_stopped_at_each_limit() {
    let zeros = "\0".repeat(3 << 20);
    let many: Vec<String> = (0..50).map(|number| format!("f{number}")).collect();
    let many: Vec<Raw<'_>> = many.iter().map(|name| file(name, "")).collect();
    let deep = "d/".repeat(30);
    let limits = Limits {
        entries: 40,
        file_bytes: 4 << 20,
        total_bytes: 5 << 20,
        path_bytes: 80,
        depth: 20,
        ratio: 10_000_000,
    };
    let cases: [(&[Raw<'_>], Limits, &str); 5] = [
        (&many, limits.clone(), "more than 40 entries"),
        (
            &[file("z", &zeros), file("y", &zeros)],
            limits.clone(),
            "more than 5242880 bytes",
        ),
        (
            &[file("z", &zeros)],
            Limits {
                ratio: 10,
                ..limits.clone()
            },
            "more than 10 times its size",
        ),
        (
            &[file("z", &zeros)],
            Limits {
                file_bytes: 1 << 20,
                ..limits.clone()
            },
            "more than 1048576 bytes",
        ),
        (&[file(&deep, "")], limits.clone(), "deeper than 20 folders"),
    ];
    for (entries, limits, reason) in cases {
        let wanted = Unpack {
            unverified: true,
            limits,
            ..Unpack::verified()
        };
        let error = refusal(&zstd(&tar(entries)), &wanted);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn archives_without_a_manifest_need_to_be_allowed() {
    let bare = tar(&[file("pkginfo.json", "{}"), file("bin", "x")]);
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bare).unwrap();
        encoder.finish().unwrap()
    };
    let xz = {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        encoder.write_all(&bare).unwrap();
        encoder.finish().unwrap()
    };
    for archive in [gzip, xz, zstd(&bare), bare] {
        let error = refusal(&archive, &Unpack::verified());
        assert!(error.contains("does not begin with"), "{error}");
        let place = Place::new();
        place.write("archive", &archive);
        let wanted = Unpack {
            unverified: true,
            ..Unpack::verified()
        };
        let unpacked = place.unpack_as("archive", &wanted).unwrap();
        assert_eq!((unpacked.manifest, unpacked.entries), (None, 2));
        assert_eq!(fs_err::read(place.path("out/bin")).unwrap(), b"x");
    }
}

#[test]
fn a_manifest_is_checked_even_where_none_is_needed() {
    let wanted = Unpack {
        unverified: true,
        ..Unpack::verified()
    };
    let archive = zstd(&tar(&[file(MANIFEST, ONE_FILE), file("a", "abd")]));
    assert!(refusal(&archive, &wanted).contains("SHA-256"));
}

#[test]
fn what_is_no_archive_says_so() {
    for bytes in [&b""[..], b"hello", &[0; 2000]] {
        let error = refusal(bytes, &Unpack::verified());
        assert!(error.contains("is no archive"), "{error}");
    }
}

#[test]
fn the_usual_limits_let_honest_packages_pass() {
    let limits = default_limits();
    assert!(limits.total_bytes >= limits.file_bytes);
    let place = Place::new();
    // Ten mebibytes of zeros compress well and are no bomb by themselves.
    place.write("in/zeros", vec![0; 10 << 20]);
    place.write(
        "in/noise",
        (0..40_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect::<Vec<u8>>(),
    );
    place.pack("in", Os::Linux, "archive").unwrap();
    place.unpack("archive").unwrap();
}
