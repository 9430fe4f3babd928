//! Writes `tar.zst`. Only what the content says goes into the bytes: times and owners are zero, names
//! of users are empty, and one thread compresses, because several would cut the stream by their number.

use std::io::{self, Read, Write as _};

use fs_err::File;
use tar::{Builder, EntryType, Header};
use zstd::Encoder;

use super::pack::Sink;

/// A good deal smaller than the default at a speed that a build does not notice.
const LEVEL: i32 = 6;
/// What a header has room for; the last byte of a name field need not be zero.
const NAME_FIELD: usize = 100;
const LONG_NAME: &str = "././@LongLink";
const BUFFER: usize = 256 * 1024;

pub(super) struct TarWriter {
    builder: Builder<Encoder<'static, io::BufWriter<File>>>,
}

impl TarWriter {
    pub(super) fn begin(file: File) -> io::Result<Self> {
        let mut encoder = Encoder::new(io::BufWriter::with_capacity(BUFFER, file), LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self {
            builder: Builder::new(encoder),
        })
    }

    fn append(
        &mut self,
        kind: EntryType,
        path: &str,
        link: &str,
        mode: u32,
        size: u64,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        self.long_name(EntryType::GNULongName, path)?;
        self.long_name(EntryType::GNULongLink, link)?;
        let mut header = Header::new_gnu();
        let fields = header.as_old_mut();
        copy(path, &mut fields.name);
        copy(link, &mut fields.linkname);
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(size);
        header.set_cksum();
        self.builder.append(&header, content)
    }

    /// A name that has no room in a header goes before it, as an entry of its own.
    fn long_name(&mut self, kind: EntryType, name: &str) -> io::Result<()> {
        if name.len() <= NAME_FIELD {
            return Ok(());
        }
        let content = [name.as_bytes(), b"\0"].concat();
        let mut header = Header::new_gnu();
        copy(LONG_NAME, &mut header.as_old_mut().name);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.builder.append(&header, content.as_slice())
    }
}

fn copy(name: &str, field: &mut [u8; NAME_FIELD]) {
    let bytes = &name.as_bytes()[..name.len().min(NAME_FIELD)];
    field[..bytes.len()].copy_from_slice(bytes);
}

impl Sink for TarWriter {
    fn dir(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let path = format!("{path}/");
        self.append(EntryType::Directory, &path, "", mode, 0, &mut io::empty())
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.append(EntryType::Symlink, path, target, 0o777, 0, &mut io::empty())
    }

    fn file(&mut self, path: &str, mode: u32, size: u64, content: &mut dyn Read) -> io::Result<()> {
        self.append(EntryType::Regular, path, "", mode, size, content)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut buffered = self.builder.into_inner()?.finish()?;
        buffered.flush()?;
        buffered.get_ref().sync_all()
    }
}
