//! The keys in a server's data folder: which there are, new ones, and the end of old ones. Invariant: a key to
//! secrets is forgotten only when nothing that is stored needs it any more.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use transom_host::files::{FileLock, Files};
use transom_store::StoreError;

use super::{Options, StartError, StoreChoice, certificates, lock, open, reseal};
use crate::{
    Api, Guard, Settings,
    access::{
        encryption::{KeyRing, RingError, Sealer},
        pki::{self, Pki, PkiError},
    },
    status::ApiError,
    storage::Codec,
};

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPurpose {
    /// Encrypts secrets in the store.
    Secrets,
    /// Signs the tokens of service accounts.
    Tokens,
    /// Signs certificates.
    Authority,
}

/// A key that there is. Nothing of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    pub purpose: KeyPurpose,
    pub id: String,
    /// Whether it is the one that new things are made with; others only read what they made.
    pub is_newest: bool,
    /// When an authority ends by itself.
    pub ends: Option<Timestamp>,
}

/// What became of the end of old keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retirement {
    /// The keys that are gone.
    pub ids: Vec<String>,
    /// How many secrets were encrypted anew first.
    pub sealed: usize,
}

/// Why keys could not be looked at or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("there are no keys of a server in `{folder}`")]
    Absent { folder: Utf8PathBuf },
    #[error("there is no store in `{folder}`, so nobody knows which keys are needed")]
    NoStore { folder: Utf8PathBuf },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("could not read or change the keys of secrets")]
    Ring(#[from] RingError),
    #[error("could not read or change the keys of certificates or tokens")]
    Pki(#[from] PkiError),
    #[error("could not open the store")]
    Store(#[from] StoreError),
    #[error("could not encrypt all secrets with the newest key, so the others are still needed")]
    Seal { source: ApiError },
}

fn ring_file(data: &Utf8Path) -> Utf8PathBuf {
    data.join("pki").join("encryption.keys")
}

/// All keys of a data folder, each purpose with its newest first. Also while a server runs there.
pub fn list_keys(data: &Utf8Path) -> Result<Vec<KeyEntry>, KeysError> {
    let files = transom_host::files::Native;
    let mut found = Vec::new();
    let mut add = |purpose, keys: Vec<(String, Option<Timestamp>)>| {
        let entries = keys.into_iter().enumerate();
        found.extend(entries.map(|(index, (id, ends))| KeyEntry {
            purpose,
            id,
            is_newest: index == 0,
            ends,
        }));
    };
    let plain = |ids: Vec<String>| ids.into_iter().map(|id| (id, None)).collect();
    let ring = KeyRing::read(&files, &ring_file(data))?;
    add(
        KeyPurpose::Secrets,
        plain(ring.iter().flat_map(KeyRing::ids).collect()),
    );
    let folder = data.join("pki");
    let tokens = pki::token_key_ids(&files, &folder)?;
    add(KeyPurpose::Tokens, plain(tokens));
    let authorities = pki::authorities_in(&files, &folder)?;
    let authorities = authorities.into_iter().map(|(id, ends)| (id, Some(ends)));
    add(KeyPurpose::Authority, authorities.collect());
    if found.is_empty() {
        return Err(KeysError::Absent {
            folder: data.to_owned(),
        });
    }
    Ok(found)
}

/// The keys of a server that does not run, and does not start while this is held.
#[derive(Debug)]
pub struct KeyCare<'a> {
    options: &'a Options,
    files: Arc<dyn Files>,
    _lock: FileLock,
}

impl<'a> KeyCare<'a> {
    /// Takes the folder of a server; there must be one.
    pub fn open(options: &'a Options) -> Result<Self, KeysError> {
        list_keys(&options.data)?;
        let files: Arc<dyn Files> = Arc::new(transom_host::files::Native);
        let lock = lock(&*files, &options.data)?;
        Ok(Self {
            options,
            files,
            _lock: lock,
        })
    }

    fn ring(&self) -> Result<KeyRing, KeysError> {
        let file = ring_file(&self.options.data);
        KeyRing::read(&*self.files, &file)?.ok_or_else(|| KeysError::Absent {
            folder: self.options.data.clone(),
        })
    }

    fn pki(&self) -> Result<Pki, KeysError> {
        Ok(certificates(&self.files, self.options)?)
    }

    /// Makes a new key, which is used from the next start on; the older ones stay good.
    pub fn rotate(&self, purpose: KeyPurpose) -> Result<(), KeysError> {
        match purpose {
            KeyPurpose::Secrets => {
                let file = ring_file(&self.options.data);
                self.ring()?.rotate(&*self.files, &file)?;
            }
            KeyPurpose::Tokens => self.pki()?.rotate_token_keys()?,
            KeyPurpose::Authority => self.pki()?.rotate_authority(Timestamp::now())?,
        }
        Ok(())
    }

    /// Which keys [`KeyCare::retire`] would forget.
    pub fn older(&self, purpose: KeyPurpose) -> Result<Vec<String>, KeysError> {
        let keys = list_keys(&self.options.data)?.into_iter();
        let older = keys.filter(|key| key.purpose == purpose && !key.is_newest);
        Ok(older.map(|key| key.id).collect())
    }

    /// Forgets all keys but the newest. Secrets are encrypted with that one first.
    pub async fn retire(&self, purpose: KeyPurpose) -> Result<Retirement, KeysError> {
        let ids = self.older(purpose)?;
        let mut sealed = 0;
        if ids.is_empty() {
            return Ok(Retirement { ids, sealed });
        }
        match purpose {
            KeyPurpose::Secrets => {
                sealed = self.seal_all().await?;
                let file = ring_file(&self.options.data);
                self.ring()?.retire(&*self.files, &file)?;
            }
            KeyPurpose::Tokens => self.pki()?.retire_token_keys()?,
            KeyPurpose::Authority => self.pki()?.retire_authorities(Timestamp::now())?,
        }
        Ok(Retirement { ids, sealed })
    }

    /// Encrypts every secret with the newest key, and forgets what they were before.
    async fn seal_all(&self) -> Result<usize, KeysError> {
        let state = self.options.data.join("state");
        if matches!(self.options.store, StoreChoice::Local) && !state.exists() {
            // Opening a store makes one where there is none, and then no key would seem to be needed.
            return Err(KeysError::NoStore { folder: state });
        }
        let store = open(&self.options.store, &self.options.data).await?;
        let (api, _feed) = Api::open(
            Arc::clone(&store),
            Arc::new(Codec::new(Sealer::new(self.ring()?))),
            Settings::default(),
            Arc::new(Timestamp::now),
            Arc::new(Guard::default()),
        )
        .await?;
        let sealed = reseal::run(&api)
            .await
            .map_err(|source| KeysError::Seal { source })?;
        // What was is kept for watches that were interrupted; it would need the old keys.
        store.compact(store.revision().await?).await?;
        Ok(sealed)
    }
}
