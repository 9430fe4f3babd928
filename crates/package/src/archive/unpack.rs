//! Unpacking an archive that was checked, to its last byte, against its own manifest. The destination
//! appears when all of it was right, or not at all.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::File;
use transom_host::files::Files;
use transom_host::files::archive::{
    ExtractError, Extraction, Limits, extract_tar_watched, extract_zip_watched,
};
use transom_model::Os;
use transom_model::package::PackageId;

use super::verifier::{Expected, LARGEST_MANIFEST, Verifier, VerifyError};
use super::walk::LONGEST_PATH;
use super::{Format, FormatError, MANIFEST, Manifest};

const BLOCK: usize = 512 * 1024;
/// How many blocks may be decompressed in advance.
const QUEUE: usize = 4;

/// What to unpack, and what it must be.
#[derive(Debug, Clone)]
pub struct Unpack {
    /// The package that it must be, when that is known.
    pub id: Option<PackageId>,
    /// The system that it must be for. Without it a zip file is for Windows and a tar file for Linux.
    pub os: Option<Os>,
    /// Whether an archive without a manifest is accepted, as DC/OS made them. Nothing in it is checked
    /// then but that it can be unpacked without harm.
    pub unverified: bool,
    pub limits: Limits,
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// Missing only for what was not verified.
    pub manifest: Option<Manifest>,
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Why an archive was not unpacked. Nothing is at the destination then.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("the archive `{path}` cannot be opened")]
    Open {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("`{path}` is no archive")]
    Format {
        path: Utf8PathBuf,
        source: FormatError,
    },
    #[error("the archive `{path}` is not what it should be")]
    Verify {
        path: Utf8PathBuf,
        source: Box<VerifyError>,
    },
    #[error("the archive `{path}` cannot be unpacked")]
    Extract {
        path: Utf8PathBuf,
        source: Box<ExtractError>,
    },
}

impl Unpack {
    /// A package that must have a manifest, within the usual limits.
    pub fn verified() -> Self {
        Self {
            id: None,
            os: None,
            unverified: false,
            limits: default_limits(),
        }
    }

    /// The same, and it must be this one.
    pub fn of(id: &PackageId) -> Self {
        Self {
            id: Some(id.clone()),
            ..Self::verified()
        }
    }
}

/// What no honest package exceeds.
pub fn default_limits() -> Limits {
    Limits {
        entries: 1_000_000,
        file_bytes: 16 << 30,
        total_bytes: 64 << 30,
        path_bytes: LONGEST_PATH,
        depth: 64,
        ratio: 1000,
    }
}

/// Unpacks `archive` to `destination`, which must be free.
pub fn unpack(
    files: &dyn Files,
    archive: &Utf8Path,
    destination: &Utf8Path,
    wanted: &Unpack,
) -> Result<Unpacked, UnpackError> {
    let (file, format) = open(archive)?;
    let os = wanted.os.unwrap_or(match format {
        Format::Zip => Os::Windows,
        _ => Os::Linux,
    });
    let mut verifier = Verifier::new(Expected {
        id: wanted.id.clone(),
        os,
        unverified: wanted.unverified,
    });
    let job = Extraction {
        destination: destination.to_owned(),
        target: os,
        limits: wanted.limits.clone(),
    };
    let summary = if format == Format::Zip {
        extract_zip_watched(files, io::BufReader::new(file), &job, &mut verifier)
    } else {
        let size = file.metadata().map_err(opening(archive))?.len();
        ahead(file, format, |stream| {
            extract_tar_watched(files, stream, Some(size), &job, &mut verifier)
        })
    };
    match summary {
        Ok(summary) => Ok(Unpacked {
            manifest: verifier.into_manifest(),
            entries: summary.entries,
            bytes: summary.bytes,
        }),
        Err(error) => Err(sort(archive, error)),
    }
}

/// Reads only the manifest of an archive. It says what the archive claims to be; unpacking proves it.
pub fn read_manifest(archive: &Utf8Path) -> Result<Manifest, UnpackError> {
    let (file, format) = open(archive)?;
    let damaged = |source| UnpackError::Extract {
        path: archive.to_owned(),
        source: Box::new(ExtractError::Damaged { source }),
    };
    let verify = |source| UnpackError::Verify {
        path: archive.to_owned(),
        source: Box::new(source),
    };
    let bytes = if format == Format::Zip {
        let mut zip = zip::ZipArchive::new(io::BufReader::new(file))
            .map_err(|error| damaged(io::Error::other(error)))?;
        let entry = match zip.by_index(0) {
            Ok(entry) if entry.name_raw() == MANIFEST.as_bytes() => entry,
            _ => return Err(verify(VerifyError::NoManifest)),
        };
        capped(entry).map_err(damaged)?
    } else {
        let stream = format.decompress(file).map_err(damaged)?;
        let mut tar = tar::Archive::new(stream);
        // Only the first entry counts, and reading it cannot take more than it says.
        let first = tar.entries().map_err(damaged)?.next();
        let entry = match first.transpose().map_err(damaged)? {
            Some(entry) if *entry.path_bytes() == *MANIFEST.as_bytes() => entry,
            _ => return Err(verify(VerifyError::NoManifest)),
        };
        capped(entry).map_err(damaged)?
    };
    let bytes = bytes.ok_or_else(|| verify(VerifyError::ManifestTooLarge))?;
    Manifest::parse(&bytes).map_err(|error| verify(error.into()))
}

fn capped(reader: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(LARGEST_MANIFEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST_MANIFEST).then_some(bytes))
}

fn open(archive: &Utf8Path) -> Result<(File, Format), UnpackError> {
    let mut file = File::open(archive).map_err(opening(archive))?;
    let format = Format::of(&mut file).map_err(|source| UnpackError::Format {
        path: archive.to_owned(),
        source,
    })?;
    Ok((file, format))
}

fn opening(archive: &Utf8Path) -> impl Fn(io::Error) -> UnpackError {
    move |source| UnpackError::Open {
        path: archive.to_owned(),
        source,
    }
}

/// What the verifier said comes back boxed.
fn sort(archive: &Utf8Path, error: ExtractError) -> UnpackError {
    let path = archive.to_owned();
    match error {
        ExtractError::Objected { source } => match source.downcast::<VerifyError>() {
            Ok(source) => UnpackError::Verify { path, source },
            Err(source) => UnpackError::Extract {
                path,
                source: Box::new(ExtractError::Objected { source }),
            },
        },
        source => UnpackError::Extract {
            path,
            source: Box::new(source),
        },
    }
}

/// Runs `read` on the content of a compressed tar file, which another thread decompresses ahead of it.
pub(crate) fn ahead<T>(file: File, format: Format, read: impl FnOnce(&mut dyn Read) -> T) -> T {
    std::thread::scope(|scope| {
        let (blocks, incoming) = mpsc::sync_channel(QUEUE);
        let (used, free) = mpsc::channel();
        scope.spawn(move || decompress(file, format, &blocks, &free));
        // Dropped at the end, and with it the other thread's reason to go on.
        let mut stream = Blocks {
            incoming,
            used,
            block: Vec::new(),
            length: 0,
            position: 0,
        };
        read(&mut stream)
    })
}

/// Bytes, or the error that ends them.
type Block = io::Result<(Vec<u8>, usize)>;

fn decompress(file: File, format: Format, blocks: &SyncSender<Block>, free: &Receiver<Vec<u8>>) {
    let mut stream = match format.decompress(file) {
        Ok(stream) => stream,
        Err(error) => {
            // If nobody listens any more, nobody needs to know.
            let _ = blocks.send(Err(error));
            return;
        }
    };
    loop {
        let mut block = free.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let filled = fill(&mut stream, &mut block);
        let is_last = !matches!(filled, Ok(BLOCK));
        if blocks.send(filled.map(|length| (block, length))).is_err() || is_last {
            return;
        }
    }
}

/// Fills a buffer as far as there are bytes.
fn fill(stream: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < block.len() {
        match stream.read(&mut block[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// What the other thread decompressed, as one stream.
struct Blocks {
    incoming: Receiver<Block>,
    used: Sender<Vec<u8>>,
    block: Vec<u8>,
    length: usize,
    position: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.length {
            // The sender is gone: that was all.
            let Ok(block) = self.incoming.recv() else {
                return Ok(0);
            };
            let (block, length) = block?;
            let old = std::mem::replace(&mut self.block, block);
            (self.length, self.position) = (length, 0);
            // Nobody needs it back when all is decompressed.
            let _ = self.used.send(old);
        }
        let count = buffer.len().min(self.length - self.position);
        buffer[..count].copy_from_slice(&self.block[self.position..][..count]);
        self.position += count;
        Ok(count)
    }
}
