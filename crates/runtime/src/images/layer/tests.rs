//! Reading layers: what is passed on, and what is refused.

use std::io::Write;

use super::*;

#[derive(Default)]
struct Recorded(Vec<(String, EntryKind)>);

impl Tree for Recorded {
    fn add(&mut self, entry: &Entry, _content: &mut dyn Read) -> io::Result<()> {
        self.0.push((
            String::from_utf8_lossy(&entry.path).into_owned(),
            entry.kind.clone(),
        ));
        Ok(())
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

fn archive(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, kind, target) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        // Written past the library, which would not make a bad name.
        header.as_gnu_mut().expect("a header").name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_gnu_mut().expect("a header").linkname[..target.len()]
            .copy_from_slice(target.as_bytes());
        header.set_cksum();
        builder.append(&header, io::empty()).expect("an entry");
    }
    builder.into_inner().expect("an archive")
}

fn read(bytes: &[u8]) -> io::Result<Vec<(String, EntryKind)>> {
    let mut tree = Recorded::default();
    unpack(bytes, &Digest::of(bytes), &mut tree)?;
    Ok(tree.0)
}

#[test]
fn paths_are_made_plain_and_removals_are_told_apart() {
    use tar::EntryType as T;
    let bytes = archive(&[
        ("/etc//./hosts", T::Regular, ""),
        ("./a/.wh.gone", T::Regular, ""),
        ("a/.wh..wh..opq", T::Regular, ""),
        (".wh..wh..opq", T::Regular, ""),
        ("link", T::Symlink, "../../etc/shadow"),
        ("hard", T::Link, "/etc/hosts"),
        ("./", T::Directory, ""),
    ]);
    let expected = [
        ("etc/hosts", EntryKind::File),
        ("a/gone", EntryKind::Removed),
        ("a", EntryKind::Opaque),
        ("", EntryKind::Opaque),
        ("link", EntryKind::Link(b"../../etc/shadow".to_vec())),
        ("hard", EntryKind::HardLink(b"etc/hosts".to_vec())),
        ("", EntryKind::Folder),
    ];
    assert_eq!(
        read(&bytes).expect("a layer"),
        expected.map(|(path, kind)| (path.to_owned(), kind))
    );
}

#[test]
fn ways_out_of_a_layer_are_refused() {
    use tar::EntryType as T;
    for entry in [
        ("../evil", T::Regular, ""),
        ("a/../../evil", T::Directory, ""),
        ("x", T::Link, "../../etc/passwd"),
    ] {
        let error = read(&archive(&[entry])).expect_err("a way out");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{entry:?}");
    }
}

#[test]
fn a_layer_is_read_however_it_is_packed_and_only_if_it_is_the_right_one() {
    let bytes = archive(&[("file", tar::EntryType::Regular, "")]);
    let diff_id = Digest::of(&bytes);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).expect("packed");
    let packed = [
        bytes.clone(),
        gzip.finish().expect("packed"),
        zstd::encode_all(bytes.as_slice(), 1).expect("packed"),
    ];
    for blob in &packed {
        let mut tree = Recorded::default();
        unpack(blob.as_slice(), &diff_id, &mut tree).expect("a layer");
        assert_eq!(tree.0.len(), 1);
    }
    let mut tree = Recorded::default();
    let other =
        unpack(packed[1].as_slice(), &Digest::of(b"other"), &mut tree).expect_err("another layer");
    assert_eq!(other.kind(), io::ErrorKind::InvalidData);
    let torn = &packed[1][..packed[1].len() - 12];
    assert!(unpack(torn, &diff_id, &mut Recorded::default()).is_err());
}
