//! The keys that metadata is signed with: Ed25519, one per file, as PKCS#8 in PEM. A private key never
//! appears in an error, a log or the repository itself.

use aws_lc_rs::signature::Ed25519KeyPair;
use camino::{Utf8Path, Utf8PathBuf};
use tough::schema::Signature;
use tough::schema::decoded::{Decoded, Hex};
use tough::schema::key::Key;
use tough::sign::Sign as _;
use transom_host::access::{self, Access as _, AccessError, Privacy, Restricted};
use transom_host::files::{Access, FileError, Files as _, Native};

/// A key of another kind may be longer, one of ours never is.
const LONGEST_KEY: u64 = 1 << 16;
const LABEL: &str = "PRIVATE KEY";

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("`{path}` is not an Ed25519 key as PKCS#8 in PEM: {reason}")]
    Format { path: Utf8PathBuf, reason: String },
    #[error("no key could be made")]
    Generate,
    #[error("there is a key at `{path}` already")]
    Exists { path: Utf8PathBuf },
    #[error("could not read or write a key")]
    File {
        #[from]
        source: FileError,
    },
    #[error("could not keep a key private")]
    Access {
        #[from]
        source: AccessError,
    },
}

/// A private key.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: Key,
    id: Decoded<Hex>,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SigningKey")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    pub fn generate() -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| KeyError::Generate)?;
        Self::of(pair).ok_or(KeyError::Generate)
    }

    fn of(pair: Ed25519KeyPair) -> Option<Self> {
        let public = pair.tuf_key();
        let id = public.key_id().ok()?;
        Some(Self { pair, public, id })
    }

    /// Makes a key and writes it to a file that only its owner can read.
    pub fn create(path: &Utf8Path) -> Result<(Self, Restricted), KeyError> {
        if Native.metadata(path).is_ok() {
            return Err(KeyError::Exists {
                path: path.to_owned(),
            });
        }
        let key = Self::generate()?;
        let der = key.pair.to_pkcs8v1().map_err(|_| KeyError::Generate)?;
        let text = pem::encode(&pem::Pem::new(LABEL, der.as_ref()));
        Native.write_durable(path, text.as_bytes(), Access::Secret)?;
        let restricted = access::Native.restrict_to_owner(path)?;
        Ok((key, restricted))
    }

    pub fn load(path: &Utf8Path) -> Result<Self, KeyError> {
        let refused = |reason: &str| KeyError::Format {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let bytes = Native.read(path, LONGEST_KEY)?;
        let pem = pem::parse(&bytes).map_err(|_| refused("it is not PEM"))?;
        if pem.tag() != LABEL {
            return Err(refused("it is something else in PEM"));
        }
        Ed25519KeyPair::from_pkcs8(pem.contents())
            .ok()
            .and_then(Self::of)
            .ok_or_else(|| refused("it is a key of another kind"))
    }

    /// Who besides the owner could read the file of a key.
    pub fn privacy(path: &Utf8Path) -> Result<Privacy, KeyError> {
        Ok(access::Native.check_private(path)?)
    }

    /// The key's id, as metadata names it.
    pub fn id(&self) -> String {
        crate::hash::hex(&self.id)
    }

    pub(super) fn key_id(&self) -> &Decoded<Hex> {
        &self.id
    }

    pub(super) fn public(&self) -> &Key {
        &self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> Signature {
        Signature {
            keyid: self.id.clone(),
            sig: self.pair.sign(message).as_ref().to_vec().into(),
        }
    }
}

/// The keys at hand.
#[derive(Debug, Default)]
pub struct KeyRing {
    keys: Vec<SigningKey>,
}

impl KeyRing {
    pub fn new(keys: Vec<SigningKey>) -> Self {
        let mut ring = Self::default();
        for key in keys {
            ring.insert(key);
        }
        ring
    }

    /// All keys in a folder (files that end in `.pem`), and those in `files`.
    pub fn load(folder: Option<&Utf8Path>, files: &[Utf8PathBuf]) -> Result<Self, KeyError> {
        let mut ring = Self::default();
        for path in key_files(folder)?.iter().chain(files) {
            ring.insert(SigningKey::load(path)?);
        }
        Ok(ring)
    }

    /// The same key from two places is one key.
    pub fn insert(&mut self, key: SigningKey) {
        if self.get(key.key_id()).is_none() {
            self.keys.push(key);
        }
    }

    pub(super) fn get(&self, id: &Decoded<Hex>) -> Option<&SigningKey> {
        self.keys.iter().find(|key| key.key_id() == id)
    }

    pub fn keys(&self) -> &[SigningKey] {
        &self.keys
    }
}

/// The files of keys in a folder; none if there is no folder.
fn key_files(folder: Option<&Utf8Path>) -> Result<Vec<Utf8PathBuf>, KeyError> {
    let Some(folder) = folder else {
        return Ok(Vec::new());
    };
    match Native.list(folder) {
        Ok(entries) => Ok(entries
            .into_iter()
            .filter(|entry| entry.path.extension() == Some("pem"))
            .map(|entry| entry.path)
            .collect()),
        Err(FileError::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
