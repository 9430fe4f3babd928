//! Archives from people who mean harm, and from people who do not.

mod hostile;
mod tars;
mod zips;

use std::io::{Cursor, Write};

use camino::Utf8PathBuf;
use tar::{Builder, EntryType, Header};
use transom_host::files::Files;
use transom_host::files::archive::{
    ExtractError, Extraction, Limits, Refusal, Summary, extract_tar, extract_zip,
};
use transom_host::files::fake::FakeFiles;
use transom_model::os::Os;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const LIMITS: Limits = Limits {
    entries: 50,
    file_bytes: 100_000,
    total_bytes: 200_000,
    path_bytes: 400,
    depth: 60,
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
