//! Zip files.

use std::io::Cursor;

use transom_host::files::archive::{ExtractError, Refusal, Summary, extract_zip};
use transom_host::files::fake::FakeFiles;
use transom_host::files::{Files, Kind, Native};
use transom_model::os::Os;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{job, unpack_zip, zip_of};
use crate::Machine;

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
