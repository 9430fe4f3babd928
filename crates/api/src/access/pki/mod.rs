//! Keys and certificates of the API server: made at the first start, renewed before they end, kept in one
//! folder that only its owner reads.
//!
//! The authority comes first and everything else is derived from it, so a process that dies between two
//! files leaves what the next start completes.

mod authority;
mod der;
mod folder;
mod identity;
mod kubeconfig;
mod kubelet;
mod names;
mod pem;
mod signing;
mod stock;
#[cfg(test)]
mod tests;
mod tls;
mod token_keys;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use rcgen::ExtendedKeyUsagePurpose;
use rustls::{ServerConfig, pki_types::CertificateDer};
use transom_host::{
    access::{Access as Permissions, AccessError},
    files::{Access, FileError, Files},
};

use authority::{Authority, LEAF_LIFE, Leaf};
use folder::Folder;
pub use identity::Identity;
pub use kubeconfig::{kubeconfig, with_server};
pub use kubelet::Expected;
pub use names::{FIRST_SERVICE_ADDRESS, ServingNames};
pub use signing::SigningFault;
pub use stock::{authorities_in, token_key_ids};
use tls::Listener;
pub use token_keys::{TokenKey, TokenKeys};

/// Who the administrator's certificate says is asking.
pub const ADMIN_NAME: &str = "transom-admin";
const ADMIN_GROUP: &str = "system:masters";

/// Why there are no keys or certificates to work with.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("`{path}` is damaged, and cannot be made again: restore it from a backup")]
    Damaged { path: Utf8PathBuf },
    #[error(
        "`{path}` is missing, but certificates made with it are there: restore it from a backup, or remove the whole folder to start with a new authority"
    )]
    AuthorityMissing { path: Utf8PathBuf },
    #[error("the certificate authority is good from {begins} until {ends} only: check the clock")]
    AuthorityNotValid { begins: Timestamp, ends: Timestamp },
    #[error("`{name}` cannot stand in a certificate")]
    Name { name: String },
    #[error("the clock shows a time that cannot stand in a certificate")]
    Clock,
    #[error("the system gave no randomness")]
    Random,
    #[error("a certificate cannot be read")]
    Certificate,
    #[error("could not make a key or a certificate")]
    Make {
        #[from]
        source: rcgen::Error,
    },
    #[error("a key or a certificate is of no use for TLS")]
    Tls { source: rustls::Error },
    #[error("could not read or write a key or a certificate")]
    File {
        #[from]
        source: FileError,
    },
    #[error("could not keep the keys private")]
    Private {
        #[from]
        source: AccessError,
    },
}

/// What a look at the certificates changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    pub server: bool,
    pub admin: bool,
    /// Another authority is trusted, or one is not any more.
    pub trusted: bool,
}

/// The keys and certificates of one server.
#[derive(Debug)]
pub struct Pki {
    folder: Folder,
    names: ServingNames,
    listener: Arc<Listener>,
    current: RwLock<Current>,
    /// Held by whoever writes files.
    writing: Mutex<()>,
}

/// What changes while the server runs.
#[derive(Debug)]
struct Current {
    authority: Arc<Authority>,
    trusted: Vec<CertificateDer<'static>>,
    admin: Identity,
    /// Shown to agents; nothing until the first of them is asked.
    kubelet_client: Option<Identity>,
    token_keys: Arc<TokenKeys>,
}

impl Pki {
    /// Reads what is in `folder`, and makes what is missing, damaged but derived, or about to end. No other
    /// process may do this at the same time: the caller holds the lock of the data folder.
    pub fn ensure(
        files: Arc<dyn Files>,
        permissions: &dyn Permissions,
        folder: &Utf8Path,
        names: ServingNames,
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let folder = Folder::prepare(files, permissions, folder)?;
        let authority = ensure_authority(&folder, now)?;
        let trusted = ensure_bundle(&folder, &authority)?;
        let token_keys = ensure_token_keys(&folder)?;
        let (server, _) = ensure_server(&folder, &authority, &names, now)?;
        let (admin, _) = ensure_admin(&folder, &authority, now)?;
        if authority::ends_soon(authority.ends(), now) {
            tracing::warn!(ends = %authority.ends(), "the certificate authority ends soon: rotate it");
        }
        Ok(Self {
            listener: Arc::new(Listener::new(&shown(server, &authority), &trusted)?),
            folder,
            names,
            current: RwLock::new(Current {
                authority: Arc::new(authority),
                trusted,
                admin,
                kubelet_client: None,
                token_keys: Arc::new(token_keys),
            }),
            writing: Mutex::new(()),
        })
    }

    /// Renews what needs it, and trusts what is in `trusted.pem` now. Connections stay; new ones see the new
    /// certificate. Call it every hour or so.
    pub fn renew(&self, now: Timestamp) -> Result<Renewed, PkiError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.renew_alone(now)
    }

    fn renew_alone(&self, now: Timestamp) -> Result<Renewed, PkiError> {
        let authority = self.authority();
        let (server, server_is_new) = ensure_server(&self.folder, &authority, &self.names, now)?;
        let (admin, admin_is_new) = ensure_admin(&self.folder, &authority, now)?;
        let trusted = ensure_bundle(&self.folder, &authority)?;
        let is_other = self.read(|current| current.trusted != trusted);
        self.listener.show(&shown(server, &authority))?;
        self.listener.trust(&trusted)?;
        self.change(|current| {
            current.admin = admin;
            current.trusted = trusted;
        });
        Ok(Renewed {
            server: server_is_new,
            admin: admin_is_new,
            trusted: is_other,
        })
    }

    /// Makes a new authority and issues with it. Certificates of the one before stay good until its
    /// certificate is taken out of `trusted.pem`.
    pub fn rotate_authority(&self, now: Timestamp) -> Result<(), PkiError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.authority();
        let authority = Authority::create(now)?;
        // The old one is trusted in its own right before it stops to be the one that issues.
        let mut others = self.folder.read(folder::TRUSTED)?.unwrap_or_default();
        if !others.is_empty() && !others.ends_with('\n') {
            others.push('\n');
        }
        others.push_str(old.identity().certificate_pem());
        self.folder
            .write(folder::TRUSTED, &others, Access::Secret)?;
        let text = authority.identity().to_file();
        self.folder
            .write(folder::AUTHORITY, &text, Access::Secret)?;
        self.change(|current| current.authority = Arc::new(authority));
        self.renew_alone(now).map(|_| ())
    }

    /// Makes a new key for the tokens of service accounts. Tokens of the ones before stay good.
    pub fn rotate_token_keys(&self) -> Result<(), PkiError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = self.token_keys().rotated()?;
        self.keep_token_keys(keys)
    }

    /// Forgets all keys for tokens but the newest: tokens that another one signed are good no more.
    pub fn retire_token_keys(&self) -> Result<(), PkiError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = self.token_keys().retired();
        self.keep_token_keys(keys)
    }

    fn keep_token_keys(&self, keys: TokenKeys) -> Result<(), PkiError> {
        let text = keys.to_pem();
        self.folder
            .write(folder::SERVICE_ACCOUNT, &text, Access::Secret)?;
        self.change(|current| current.token_keys = Arc::new(keys));
        Ok(())
    }

    /// Trusts no authority any more but the one that issues.
    pub fn retire_authorities(&self, now: Timestamp) -> Result<(), PkiError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.folder.write(folder::TRUSTED, "", Access::Secret)?;
        self.renew_alone(now).map(|_| ())
    }

    /// For the listener. Make it once: renewal and rotation take effect in it.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, PkiError> {
        Ok(Arc::new(self.listener.config()?))
    }

    /// The certificates of all trusted authorities, as clients get them.
    pub fn authorities_pem(&self) -> String {
        self.read(|current| pem_of(&current.trusted))
    }

    /// The administrator's certificate and key.
    pub fn admin(&self) -> Identity {
        self.read(|current| current.admin.clone())
    }

    /// The administrator's kubeconfig for a server at this address.
    pub fn admin_kubeconfig(&self, server: &str, context: &str) -> String {
        kubeconfig(server, &self.authorities_pem(), &self.admin(), context)
    }

    fn authority(&self) -> Arc<Authority> {
        self.read(|current| Arc::clone(&current.authority))
    }

    pub fn token_keys(&self) -> Arc<TokenKeys> {
        self.read(|current| Arc::clone(&current.token_keys))
    }

    fn read<T>(&self, look: impl FnOnce(&Current) -> T) -> T {
        look(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Current)) {
        change(&mut self.current.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What the listener shows.
fn shown(server: Identity, authority: &Authority) -> Identity {
    server.with_issuer(authority.certificate())
}

fn ensure_authority(folder: &Folder, now: Timestamp) -> Result<Authority, PkiError> {
    if let Some(identity) = folder.precious_identity(folder::AUTHORITY)? {
        return Authority::of_identity(identity, now);
    }
    // The authority is written first: whatever else is there came from one that is lost.
    for derived in [folder::SERVER, folder::ADMIN] {
        if folder.read(derived)?.is_some() {
            return Err(PkiError::AuthorityMissing {
                path: folder.path_of(folder::AUTHORITY),
            });
        }
    }
    let authority = Authority::create(now)?;
    let text = authority.identity().to_file();
    folder.write(folder::AUTHORITY, &text, Access::Secret)?;
    Ok(authority)
}

/// All trusted authorities, the one that issues first; also in a file for clients.
fn ensure_bundle(
    folder: &Folder,
    authority: &Authority,
) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let mut trusted = vec![authority.certificate().clone()];
    for other in folder.certificates(folder::TRUSTED)? {
        if !trusted.contains(&other) {
            trusted.push(other);
        }
    }
    let text = pem_of(&trusted);
    let written = match folder.read(folder::BUNDLE) {
        Err(PkiError::Damaged { .. }) => None,
        other => other?,
    };
    if written.as_deref() != Some(text.as_str()) {
        folder.write(folder::BUNDLE, &text, Access::Public)?;
    }
    Ok(trusted)
}

fn ensure_token_keys(folder: &Folder) -> Result<TokenKeys, PkiError> {
    if let Some(text) = folder.read(folder::SERVICE_ACCOUNT)? {
        return TokenKeys::of_pem(&text).ok_or_else(|| PkiError::Damaged {
            path: folder.path_of(folder::SERVICE_ACCOUNT),
        });
    }
    let keys = TokenKeys::generate()?;
    folder.write(folder::SERVICE_ACCOUNT, &keys.to_pem(), Access::Secret)?;
    Ok(keys)
}

fn ensure_server(
    folder: &Folder,
    authority: &Authority,
    names: &ServingNames,
    now: Timestamp,
) -> Result<(Identity, bool), PkiError> {
    let leaf = Leaf {
        common_name: "transom-server",
        organization: None,
        names: Some(names),
        usage: ExtendedKeyUsagePurpose::ServerAuth,
        life: LEAF_LIFE,
    };
    ensure_leaf(folder, folder::SERVER, authority, &leaf, now)
}

fn ensure_admin(
    folder: &Folder,
    authority: &Authority,
    now: Timestamp,
) -> Result<(Identity, bool), PkiError> {
    let leaf = Leaf {
        common_name: ADMIN_NAME,
        organization: Some(ADMIN_GROUP),
        names: None,
        usage: ExtendedKeyUsagePurpose::ClientAuth,
        life: LEAF_LIFE,
    };
    ensure_leaf(folder, folder::ADMIN, authority, &leaf, now)
}

/// The pair in a file, and whether it is new.
fn ensure_leaf(
    folder: &Folder,
    file: &str,
    authority: &Authority,
    leaf: &Leaf<'_>,
    now: Timestamp,
) -> Result<(Identity, bool), PkiError> {
    if let Some(identity) = folder.derived_identity(file)?
        && identity.is_fresh(authority.certificate(), leaf.names, now)
    {
        return Ok((identity, false));
    }
    let identity = authority.issue(leaf, now)?;
    folder.write(file, &identity.to_file(), Access::Secret)?;
    tracing::info!(file, name = leaf.common_name, "issued a certificate");
    Ok((identity, true))
}

/// Certificates as PEM.
fn pem_of(certificates: &[CertificateDer<'_>]) -> String {
    let sections = certificates
        .iter()
        .map(|certificate| pem::section("CERTIFICATE", certificate));
    sections.collect()
}
