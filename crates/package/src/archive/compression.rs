//! What an archive is, told by its first bytes and never by its name, and how it is read. Memory for
//! decompression is bounded, whatever the archive asks for.

use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

/// The largest window of a zstd frame: 2 to this many bytes.
const ZSTD_WINDOW_LOG: u32 = 27;
/// What xz may use, in KiB. Its highest preset needs 65 MiB.
const XZ_MEMORY: u32 = 256 * 1024;
const BUFFER: usize = 256 * 1024;
/// Where a tar file says that it is one.
const TAR_MAGIC_AT: usize = 257;
const TAR_MAGIC: &[u8] = b"ustar";

/// The kinds of archives that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Tar,
    TarGzip,
    TarBzip2,
    TarXz,
    TarZstd,
    Zip,
}

/// Why an archive cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error(
        "it is neither a zip file nor a tar file, plain or compressed by gzip, bzip2, xz or zstd"
    )]
    Unknown,
    #[error("it cannot be read")]
    Read(#[source] io::Error),
}

impl Format {
    /// Tells the format of an archive, and goes back to its first byte.
    pub fn of<R: Read + Seek>(archive: &mut R) -> Result<Self, FormatError> {
        let mut start = Vec::new();
        archive
            .by_ref()
            .take(512)
            .read_to_end(&mut start)
            .and_then(|_| archive.seek(SeekFrom::Start(0)))
            .map_err(FormatError::Read)?;
        Self::of_start(&start).ok_or(FormatError::Unknown)
    }

    fn of_start(start: &[u8]) -> Option<Self> {
        const MAGIC: [(&[u8], Format); 6] = [
            (b"\x28\xb5\x2f\xfd", Format::TarZstd),
            (b"PK\x03\x04", Format::Zip),
            // An empty one.
            (b"PK\x05\x06", Format::Zip),
            (b"\xfd7zXZ\0", Format::TarXz),
            (b"\x1f\x8b", Format::TarGzip),
            (b"BZh", Format::TarBzip2),
        ];
        MAGIC
            .into_iter()
            .find(|(magic, _)| start.starts_with(magic))
            .map(|(_, format)| format)
            .or_else(|| {
                let at = start.get(TAR_MAGIC_AT..)?;
                at.starts_with(TAR_MAGIC).then_some(Self::Tar)
            })
    }

    /// What the tar file is behind its compression. A zip file has its own, so it is read as it is.
    pub(crate) fn decompress<'a, R: Read + Send + 'a>(
        self,
        archive: R,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        let archive = BufReader::with_capacity(BUFFER, archive);
        Ok(match self {
            Self::Tar | Self::Zip => Box::new(archive),
            Self::TarGzip => Box::new(MultiGzDecoder::new(archive)),
            Self::TarBzip2 => Box::new(MultiBzDecoder::new(archive)),
            Self::TarXz => Box::new(XzReader::new_mem_limit(archive, true, XZ_MEMORY)),
            Self::TarZstd => {
                let mut decoder = zstd::Decoder::with_buffer(archive)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Tar => "tar",
            Self::TarGzip => "tar.gz",
            Self::TarBzip2 => "tar.bz2",
            Self::TarXz => "tar.xz",
            Self::TarZstd => "tar.zst",
            Self::Zip => "zip",
        })
    }
}
