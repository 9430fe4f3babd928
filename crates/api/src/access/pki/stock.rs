//! Which keys a folder has, for whoever only looks. Invariant: nothing is written, so a server may run meanwhile.

use std::fmt::Write as _;

use camino::Utf8Path;
use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use sha2::{Digest as _, Sha256};
use transom_host::files::{FileError, Files, path};

use super::{PkiError, TokenKeys, authority::validity, folder};

const LONGEST_FILE: u64 = 1 << 20;
/// So many bytes of a certificate's hash tell it from others.
const SHOWN: usize = 8;

fn read(files: &dyn Files, place: &Utf8Path, name: &str) -> Result<Vec<u8>, PkiError> {
    match files.read(&path::join(files.os(), place, name), LONGEST_FILE) {
        Err(FileError::NotFound { .. }) => Ok(Vec::new()),
        other => Ok(other?),
    }
}

/// What tokens call the keys that sign them, the newest first; none if there is no such file.
pub fn token_key_ids(files: &dyn Files, place: &Utf8Path) -> Result<Vec<String>, PkiError> {
    let bytes = read(files, place, folder::SERVICE_ACCOUNT)?;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let keys = str::from_utf8(&bytes).ok().and_then(TokenKeys::of_pem);
    let keys = keys.ok_or_else(|| PkiError::Damaged {
        path: path::join(files.os(), place, folder::SERVICE_ACCOUNT),
    })?;
    Ok(keys.all().map(|key| key.id().to_owned()).collect())
}

/// The trusted authorities, the one that issues first: the start of each certificate's hash, and when it ends.
pub fn authorities_in(
    files: &dyn Files,
    place: &Utf8Path,
) -> Result<Vec<(String, Timestamp)>, PkiError> {
    let bytes = read(files, place, folder::BUNDLE)?;
    let certificates = CertificateDer::pem_slice_iter(&bytes);
    certificates
        .map(|certificate| {
            let certificate = certificate.map_err(|_| PkiError::Certificate)?;
            let hash = Sha256::digest(&certificate);
            let id = hash.iter().take(SHOWN).fold(String::new(), |mut id, byte| {
                // Writing to a string cannot fail.
                let _ = write!(id, "{byte:02x}");
                id
            });
            let (_, ends) = validity(&certificate)?;
            Ok((id, ends))
        })
        .collect()
}
