//! Archives: what is packed comes back, the bytes are always the same, and nothing else is accepted.

mod hostile;
mod round_trip;

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use tempfile::TempDir;
use transom_host::files::{Files, Native};
use transom_model::Os;
use transom_model::package::PackageId;
use transom_package::archive::{
    Description, Origin, PackError, Packed, Pin, Unpack, UnpackError, Unpacked, pack, unpack,
};
use transom_package::info::PackageInfo;

/// A folder for one test, with the real files of this machine.
struct Place {
    files: Native,
    root: Utf8PathBuf,
    _folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        Self {
            files: Native,
            root: root.as_str().trim_start_matches(r"\\?\").into(),
            _folder: folder,
        }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        self.root.join(name)
    }

    /// Writes a file below this place, with its folders.
    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    /// A small package to be.
    fn sample(&self, folder: &str) -> Utf8PathBuf {
        self.write(&format!("{folder}/bin/tool"), "#!/bin/sh\necho tool\n");
        self.write(&format!("{folder}/lib/data.bin"), vec![7_u8; 200_000]);
        self.write(&format!("{folder}/lib/data/ä b.txt"), "");
        self.write(&format!("{folder}/{}/end", "long-name/".repeat(14)), "end");
        fs_err::create_dir_all(self.path(&format!("{folder}/empty"))).unwrap();
        self.path(folder)
    }

    fn pack(&self, folder: &str, os: Os, output: &str) -> Result<Packed, PackError> {
        pack_at(&self.files, &self.path(folder), os, &self.path(output))
    }

    fn unpack(&self, archive: &str) -> Result<Unpacked, UnpackError> {
        self.unpack_as(archive, &Unpack::verified())
    }

    fn unpack_as(&self, archive: &str, wanted: &Unpack) -> Result<Unpacked, UnpackError> {
        let result = unpack(&self.files, &self.path(archive), &self.path("out"), wanted);
        if result.is_err() {
            self.nothing_is_left();
        }
        result
    }

    /// Neither a destination nor a temporary folder beside it.
    #[track_caller]
    fn nothing_is_left(&self) {
        assert!(self.files.metadata(&self.path("out")).is_err());
        let swept = self.files.sweep_temporaries(&self.root).unwrap();
        assert!(swept.is_empty(), "{swept:?}");
    }
}

fn id() -> PackageId {
    "tool--0c15143d32850b279197a08ac3f306cb97fb83f4"
        .parse()
        .unwrap()
}

fn pack_at(
    files: &dyn Files,
    folder: &Utf8Path,
    os: Os,
    output: &Utf8Path,
) -> Result<Packed, PackError> {
    let origin = Origin {
        name: "tool".to_owned(),
        url: "https://example.com/tool.git".to_owned(),
        pin: Pin::Commit("1".repeat(40)),
    };
    let requires: BTreeSet<PackageId> = BTreeSet::from(["dep--1".parse().unwrap()]);
    let description = Description {
        id: &id(),
        os,
        info: &PackageInfo::default(),
        build: &json!({"name": "tool"}),
        origins: &[origin],
        requires: &requires,
        home: Some("/opt/mesosphere/packages/tool".into()),
    };
    pack(files, folder, &description, output)
}

/// The whole chain of an error, as people see it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
