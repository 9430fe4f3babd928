//! Writes `zip` for Windows. Names have `/` between them, the time is the first that the format knows,
//! and the header does not tell which system wrote it.

use std::io::{self, Read};

use fs_err::File;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

use super::pack::Sink;

const LEVEL: i64 = 6;
/// From here on the format needs its larger headers.
const LARGE: u64 = u32::MAX as u64;

pub(super) struct ZipPacker {
    writer: ZipWriter<io::BufWriter<File>>,
}

impl ZipPacker {
    pub(super) fn begin(file: File) -> Self {
        Self {
            writer: ZipWriter::new(io::BufWriter::new(file)),
        }
    }
}

fn options(mode: u32) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .system(System::Unix)
        .last_modified_time(DateTime::default())
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(LEVEL))
        .unix_permissions(mode)
}

fn failed(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(source) => source,
        other => io::Error::other(other),
    }
}

impl Sink for ZipPacker {
    fn dir(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let options = options(mode).compression_method(CompressionMethod::Stored);
        self.writer.add_directory(path, options).map_err(failed)
    }

    /// Packages for Windows have none; the walk refuses them.
    fn link(&mut self, _path: &str, _target: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn file(&mut self, path: &str, mode: u32, size: u64, content: &mut dyn Read) -> io::Result<()> {
        // Content that cannot be compressed grows a little.
        let options = options(mode).large_file(size >= LARGE - size / 1000 - 1024);
        self.writer.start_file(path, options).map_err(failed)?;
        io::copy(content, &mut self.writer).map(|_| ())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let buffered = self.writer.finish().map_err(failed)?;
        let file = buffered
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}
