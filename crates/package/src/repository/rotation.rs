//! New roots: other keys, another threshold, another expiry. A root is published when enough keys of
//! the old root and of the new one have signed it; until then it waits beside the metadata, and the
//! signatures may come from several machines, one after the other.

use std::collections::HashMap;
use std::num::NonZeroU64;

use tough::schema::key::Key;
use tough::schema::{RoleKeys, RoleType, Root, Signed};
use transom_host::files::{Access, FileError, Files as _, Native};

use super::editor::{self, Contents, Draft, Expiry};
use super::keys::{KeyRing, SigningKey};
use super::metadata::{self, Held, SPECIFICATION, next_version};
use super::names::{PENDING, PENDING_ROOT};
use super::trust::{root_name, succeed};
use super::{EditError, Editor, RepositoryError};

/// The roles that a root gives keys to.
const ROLES: [RoleType; 4] = [
    RoleType::Root,
    RoleType::Targets,
    RoleType::Snapshot,
    RoleType::Timestamp,
];

/// Who signs what.
#[derive(Debug, Clone, Default)]
pub struct Keyholders {
    roles: Vec<(RoleType, Vec<Key>, u64)>,
}

impl Keyholders {
    /// Gives a role to keys, of which `threshold` must sign.
    #[must_use]
    pub fn with(mut self, role: RoleType, keys: &[SigningKey], threshold: u64) -> Self {
        self.roles.retain(|(other, ..)| *other != role);
        let keys = keys.iter().map(|key| key.public().clone()).collect();
        self.roles.push((role, keys, threshold));
        self
    }

    /// A first root, which needs all roles.
    pub(super) fn root(
        &self,
        version: NonZeroU64,
        expires: jiff::Timestamp,
    ) -> Result<Root, EditError> {
        let mut root = Root {
            spec_version: SPECIFICATION.to_owned(),
            consistent_snapshot: true,
            version,
            expires,
            keys: HashMap::new(),
            roles: HashMap::new(),
            _extra: HashMap::new(),
        };
        self.apply(&mut root)?;
        for role in ROLES {
            if !root.roles.contains_key(&role) {
                return Err(EditError::TooFewKeys {
                    role,
                    needed: 1,
                    found: 0,
                });
            }
        }
        Ok(root)
    }

    /// Changes the roles that are named, and forgets keys that no role has any more.
    fn apply(&self, root: &mut Root) -> Result<(), EditError> {
        for (role, keys, threshold) in &self.roles {
            let impossible = || EditError::Threshold {
                threshold: *threshold,
                keys: keys.len(),
            };
            let mut keyids = Vec::new();
            for key in keys {
                let id = key.key_id().map_err(|error| EditError::Render {
                    role: RoleType::Root,
                    reason: error.to_string(),
                })?;
                if !keyids.contains(&id) {
                    root.keys.insert(id.clone(), key.clone());
                    keyids.push(id);
                }
            }
            keyids.sort();
            let threshold = NonZeroU64::new(*threshold).ok_or_else(impossible)?;
            if threshold.get() > keyids.len() as u64 {
                return Err(impossible());
            }
            let keys = RoleKeys {
                keyids,
                threshold,
                _extra: HashMap::new(),
            };
            root.roles.insert(*role, keys);
        }
        let used: Vec<_> = root
            .roles
            .values()
            .flat_map(|role| role.keyids.clone())
            .collect();
        root.keys.retain(|id, _| used.contains(id));
        Ok(())
    }
}

/// What a new root changes besides its version and expiry.
#[derive(Debug, Clone)]
pub enum RootChange {
    Nothing,
    Keys(Keyholders),
}

/// What became of a new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootOutcome {
    Published {
        version: u64,
    },
    /// It waits for more signatures.
    Waiting {
        version: u64,
        /// How many signatures of keys of the old and of the new root it has and needs.
        old: (u64, u64),
        new: (u64, u64),
    },
}

impl Editor {
    /// Makes a new root and signs it with the keys at hand. A root that was waiting is replaced.
    pub async fn change_root(
        &mut self,
        change: &RootChange,
        keys: &KeyRing,
        expiry: Expiry,
    ) -> Result<RootOutcome, EditError> {
        let mut root = self.trusted.root.signed.signed.clone();
        root.version = next_version(self.trusted.root.version());
        root.expires = expiry.at(RoleType::Root, self.now)?;
        if let RootChange::Keys(holders) = change {
            holders.apply(&mut root)?;
        }
        let signed = Signed {
            signed: root,
            signatures: Vec::new(),
        };
        self.advance(signed, keys, expiry).await
    }

    /// Adds signatures to the root that waits.
    pub async fn sign_root(
        &mut self,
        keys: &KeyRing,
        expiry: Expiry,
    ) -> Result<RootOutcome, EditError> {
        let pending = self.pending()?.ok_or(EditError::NothingPending)?;
        let before = pending.signed.signatures.len();
        let signed = self.countersign(pending.signed, keys)?;
        if signed.signatures.len() == before && !self.is_ready(&signed)? {
            return Err(EditError::UselessKeys);
        }
        self.advance(signed, keys, expiry).await
    }

    /// The root that waits for signatures, if it is still the next one.
    pub fn has_pending_root(&self) -> Result<bool, EditError> {
        Ok(self.pending()?.is_some())
    }

    fn pending(&self) -> Result<Option<Held<Root>>, EditError> {
        let path = self.folder.join(PENDING).join(PENDING_ROOT);
        let bytes = match Native.read(&path, metadata::limit(RoleType::Root)) {
            Ok(bytes) => bytes,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let pending = Held::<Root>::parse(PENDING_ROOT, bytes)?;
        // One that was published already is what a crash left.
        let is_next = pending.version() == self.trusted.root.version() + 1;
        Ok(is_next.then_some(pending))
    }

    /// Adds the signatures of all keys that the old or the new root gives the role of root.
    fn countersign(
        &self,
        mut signed: Signed<Root>,
        keys: &KeyRing,
    ) -> Result<Signed<Root>, EditError> {
        let message = metadata::canonical(&signed.signed)?;
        for key in keys.keys() {
            let known = [&self.trusted.root.signed.signed, &signed.signed]
                .iter()
                .filter_map(|root| root.roles.get(&RoleType::Root))
                .any(|role| role.keyids.contains(key.key_id()));
            let there = signed
                .signatures
                .iter()
                .any(|signature| signature.keyid == *key.key_id());
            if known && !there {
                signed.signatures.push(key.sign(&message));
            }
        }
        signed
            .signatures
            .sort_by(|left, right| left.keyid.cmp(&right.keyid));
        Ok(signed)
    }

    fn is_ready(&self, signed: &Signed<Root>) -> Result<bool, EditError> {
        let next = metadata::render(signed.clone())?;
        Ok(succeed(&self.trusted.root, &next).is_ok())
    }

    /// Signs, and publishes if that was enough; else keeps it for the next who signs.
    async fn advance(
        &mut self,
        signed: Signed<Root>,
        keys: &KeyRing,
        expiry: Expiry,
    ) -> Result<RootOutcome, EditError> {
        let next = metadata::render(self.countersign(signed, keys)?)?;
        let version = next.version();
        let folder = self.folder.join(PENDING);
        if succeed(&self.trusted.root, &next).is_err() {
            Native.create_dir_all(&folder)?;
            let path = folder.join(PENDING_ROOT);
            Native.write_durable(&path, &next.bytes, Access::Public)?;
            return Ok(RootOutcome::Waiting {
                version,
                old: count(&self.trusted.root.signed.signed, &next.signed)?,
                new: count(&next.signed.signed, &next.signed)?,
            });
        }
        self.publish_root(&next, keys, expiry)?;
        Native.remove_file(&folder.join(PENDING_ROOT))?;
        self.reload().await?;
        Ok(RootOutcome::Published { version })
    }

    /// Publishes a root. When it takes other keys for the rest of the metadata, that is first signed by
    /// the old and the new ones together, so that a reader is content before and after.
    fn publish_root(
        &self,
        next: &Held<Root>,
        keys: &KeyRing,
        expiry: Expiry,
    ) -> Result<(), EditError> {
        let (old, new) = (&self.trusted.root.signed.signed, &next.signed.signed);
        let differs = |role| old.roles.get(&role) != new.roles.get(&role);
        let write_root = || editor::write(&self.folder, &root_name(next.version()), &next.bytes);
        if !ROLES[1..].iter().any(|role| differs(*role)) {
            return Ok(write_root()?);
        }
        let contents = || {
            if differs(RoleType::Targets) {
                Contents::Renew
            } else {
                Contents::Keep
            }
        };
        let publish = |roots: &[&Root]| {
            let draft = Draft {
                roots,
                keys,
                expiry,
                now: self.now,
            };
            draft.publish(&self.folder, Some(&self.trusted), contents())
        };
        match publish(&[old, new]) {
            Ok(()) => Ok(write_root()?),
            // The old keys may be lost. Then readers see an error until all is written.
            Err(EditError::TooFewKeys { .. }) => {
                self.check_signable(new, keys, expiry)?;
                write_root()?;
                publish(&[new])
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the keys at hand are enough for what a root demands, before anything is written.
    fn check_signable(&self, new: &Root, keys: &KeyRing, expiry: Expiry) -> Result<(), EditError> {
        expiry.at(RoleType::Timestamp, self.now)?;
        for role in &ROLES[1..] {
            let Some(wanted) = new.roles.get(role) else {
                continue;
            };
            let unchanged = self.trusted.root.signed.signed.roles.get(role) == Some(wanted);
            if *role == RoleType::Targets && unchanged {
                continue;
            }
            let found = wanted.keyids.iter().filter(|id| keys.get(id).is_some());
            let found = found.count() as u64;
            if found < wanted.threshold.get() {
                return Err(EditError::TooFewKeys {
                    role: *role,
                    needed: wanted.threshold.get(),
                    found,
                });
            }
        }
        Ok(())
    }
}

/// How many valid signatures of keys that `root` knows there are, and how many it wants.
fn count(root: &Root, signed: &Signed<Root>) -> Result<(u64, u64), EditError> {
    match metadata::verify(root, signed) {
        Ok(()) => {
            let needed = root
                .roles
                .get(&RoleType::Root)
                .map_or(0, |role| role.threshold.get());
            Ok((needed, needed))
        }
        Err(RepositoryError::Signatures { valid, needed, .. }) => Ok((valid, needed)),
        Err(error) => Err(error.into()),
    }
}
