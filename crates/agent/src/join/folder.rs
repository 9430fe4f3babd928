//! The keys and certificates of a node, in files that only the agent reads.
//!
//! A certificate is of no use without its key, so both are in one file that is replaced in one instant. The key of
//! a certificate that is still asked for waits beside it.

use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rcgen::{KeyPair, PublicKeyData as _};
use transom_host::files::{Access, FileError, Files};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::certificate::Purpose;

/// No file of ours is larger.
const LARGEST: u64 = 1 << 20;

/// What the agent shows to the API, or to who asks it.
#[derive(Clone)]
pub struct Credentials {
    pub node: String,
    /// The certificates that vouch for the cluster, in PEM.
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Credentials({})", self.node)
    }
}

/// Why the folder is of no use.
#[derive(Debug, thiserror::Error)]
pub enum FolderFault {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("`{path}` is damaged")]
    Damaged { path: Utf8PathBuf },
    #[error("could not make a key")]
    Key(#[from] rcgen::Error),
    #[error("the API server sent a certificate that is not for our key")]
    OtherKey,
}

/// `<folder>/{authority.crt,client.pem,serving.pem}`, and `*.next.key` while a certificate is asked for.
#[derive(Debug)]
pub struct Folder {
    files: Arc<dyn Files>,
    path: Utf8PathBuf,
}

impl Folder {
    pub fn prepare(files: Arc<dyn Files>, path: &Utf8Path) -> Result<Self, FolderFault> {
        files.create_dir_all(path)?;
        Ok(Self {
            files,
            path: path.to_owned(),
        })
    }

    fn pair(&self, purpose: Purpose) -> Utf8PathBuf {
        self.path.join(format!("{}.pem", purpose.word()))
    }

    fn waiting(&self, purpose: Purpose) -> Utf8PathBuf {
        self.path.join(format!("{}.next.key", purpose.word()))
    }

    fn authority(&self) -> Utf8PathBuf {
        self.path.join("authority.crt")
    }

    fn read(&self, path: &Utf8Path) -> Result<Option<String>, FolderFault> {
        let bytes = match self.files.read(path, LARGEST) {
            Ok(bytes) => bytes,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(fault) => return Err(fault.into()),
        };
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| FolderFault::Damaged {
                path: path.to_owned(),
            })
    }

    fn write(&self, path: &Utf8Path, text: &str) -> Result<(), FolderFault> {
        Ok(self
            .files
            .write_durable(path, text.as_bytes(), Access::Secret)?)
    }

    /// The key for the next certificate: the one that waits, or a new one, written before it is used. A crash
    /// between two steps so finds the request that it made, and no certificate ever lacks its key.
    pub fn next_key(&self, purpose: Purpose) -> Result<KeyPair, FolderFault> {
        let path = self.waiting(purpose);
        let waiting = match self.read(&path) {
            // Nothing was made with it that could be lost.
            Err(FolderFault::Damaged { .. }) => None,
            found => found?.and_then(|text| KeyPair::from_pem(&text).ok()),
        };
        // A crash after the switch leaves the key that is in use.
        let in_use = self.read(&self.pair(purpose)).ok().flatten();
        let is_in_use = |key: &KeyPair| {
            let used = in_use.as_deref().and_then(split);
            used.is_some_and(|(_, used)| {
                used.subject_public_key_info() == key.subject_public_key_info()
            })
        };
        if let Some(key) = waiting.filter(|key| !is_in_use(key)) {
            return Ok(key);
        }
        let key = KeyPair::generate()?;
        self.write(&path, &key.serialize_pem())?;
        Ok(key)
    }

    /// What an earlier join has left; `None` if it did not come to its end.
    pub fn credentials(&self, purpose: Purpose) -> Result<Option<Credentials>, FolderFault> {
        let path = self.pair(purpose);
        let pair = self.read(&path)?;
        let authority = self.read(&self.authority())?;
        let (Some(pair), Some(authority)) = (pair, authority) else {
            return Ok(None);
        };
        let damaged = || FolderFault::Damaged { path: path.clone() };
        let (certificate, key) = split(&pair).ok_or_else(damaged)?;
        let node = node_of(&certificate, &key).ok_or_else(damaged)?;
        Ok(Some(Credentials {
            node,
            authority,
            certificate,
            key: key.serialize_pem(),
        }))
    }

    /// Keeps what was signed for the next key. From one instant to the other it is what counts.
    pub fn keep(
        &self,
        purpose: Purpose,
        node: &str,
        authority: &str,
        certificate: &str,
    ) -> Result<Credentials, FolderFault> {
        let key = self.next_key(purpose)?;
        if node_of(certificate, &key).as_deref() != Some(node) {
            return Err(FolderFault::OtherKey);
        }
        let pair = format!("{}\n{}", certificate.trim_end(), key.serialize_pem());
        // In the spelling of the next reader: requests are named after the certificate that they replace.
        let (certificate, key) = split(&pair).ok_or(FolderFault::OtherKey)?;
        self.write(&self.authority(), authority)?;
        self.write(&self.pair(purpose), &pair)?;
        self.files.remove_file(&self.waiting(purpose))?;
        Ok(Credentials {
            node: node.to_owned(),
            authority: authority.to_owned(),
            certificate,
            key: key.serialize_pem(),
        })
    }
}

/// The certificates of a file, and the key after them.
fn split(pair: &str) -> Option<(String, KeyPair)> {
    let (keys, certificates): (Vec<_>, Vec<_>) = pem::parse_many(pair)
        .ok()?
        .into_iter()
        .partition(|block| block.tag().ends_with("PRIVATE KEY"));
    let [key] = &keys[..] else {
        return None;
    };
    let key = KeyPair::from_pem(&pem::encode(key)).ok()?;
    Some((pem::encode_many(&certificates), key))
}

/// The node that a certificate names, if it is one for `key`.
fn node_of(certificate: &str, key: &KeyPair) -> Option<String> {
    let block = pem::parse(certificate).ok()?;
    let (_, parsed) = X509Certificate::from_der(block.contents()).ok()?;
    if parsed.public_key().raw != key.subject_public_key_info() {
        return None;
    }
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    name.strip_prefix("system:node:").map(str::to_owned)
}
