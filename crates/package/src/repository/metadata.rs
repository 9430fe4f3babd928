//! Signed metadata: reading it from anywhere, checking its signatures, making it. What is written is
//! the same for the same content: keys are sorted, and there is no time but the expiry.

use std::num::NonZeroU64;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tough::schema::{self, Role, RoleType, Root, Signed, Snapshot, Targets, Timestamp};

use super::keys::KeyRing;
use super::{EditError, RepositoryError};

/// The version of TUF that the metadata follows.
pub(super) const SPECIFICATION: &str = "1.0.0";

/// How large each kind of metadata may be.
pub(super) fn limit(role: RoleType) -> u64 {
    match role {
        RoleType::Root | RoleType::Snapshot | RoleType::Timestamp => 1 << 20,
        RoleType::Targets | RoleType::DelegatedTargets => 64 << 20,
    }
}

/// A role's metadata, with the bytes it came in.
#[derive(Debug, Clone)]
pub(super) struct Held<T> {
    pub(super) signed: Signed<T>,
    pub(super) bytes: Vec<u8>,
}

impl<T: Role + DeserializeOwned> Held<T> {
    /// Reads what claims to be metadata. Nothing about it is known to be true yet.
    pub(super) fn parse(file: &str, bytes: Vec<u8>) -> Result<Self, RepositoryError> {
        let signed =
            serde_json::from_slice(&bytes).map_err(|source| RepositoryError::Malformed {
                file: file.to_owned(),
                source,
            })?;
        Ok(Self { signed, bytes })
    }
}

impl<T: Role> Held<T> {
    pub(super) fn version(&self) -> u64 {
        self.signed.signed.version().get()
    }

    pub(super) fn check_not_expired(&self, now: jiff::Timestamp) -> Result<(), RepositoryError> {
        let expires = self.signed.signed.expires();
        if expires <= now {
            return Err(RepositoryError::Expired {
                role: T::TYPE,
                expired: expires,
            });
        }
        Ok(())
    }
}

/// Reads the metadata of any role and says which one it was. For tools, and for tests that feed it
/// with anything.
pub fn parse_metadata(bytes: &[u8]) -> Result<RoleType, RepositoryError> {
    let bytes = || bytes.to_vec();
    let Err(error) = Held::<Root>::parse("metadata", bytes()) else {
        return Ok(RoleType::Root);
    };
    if let Ok(targets) = Held::<Targets>::parse("metadata", bytes()) {
        super::entry::read_all(&targets.signed.signed)?;
        return Ok(RoleType::Targets);
    }
    if Held::<Snapshot>::parse("metadata", bytes()).is_ok() {
        return Ok(RoleType::Snapshot);
    }
    if Held::<Timestamp>::parse("metadata", bytes()).is_ok() {
        return Ok(RoleType::Timestamp);
    }
    Err(error)
}

/// Checks that enough keys which `root` knows have signed.
pub(super) fn verify<T: Role>(root: &Root, signed: &Signed<T>) -> Result<(), RepositoryError> {
    root.verify_role(signed).map_err(|error| match error {
        schema::Error::SignatureThreshold {
            threshold, valid, ..
        } => RepositoryError::Signatures {
            role: T::TYPE,
            version: signed.signed.version().get(),
            needed: threshold,
            valid,
        },
        error => RepositoryError::Unverifiable {
            role: T::TYPE,
            reason: error.to_string(),
        },
    })
}

/// Signs with every key at hand that one of the roots knows for this role. Each root must be content
/// with the result.
pub(super) fn sign<T: Role>(
    role: T,
    roots: &[&Root],
    keys: &KeyRing,
) -> Result<Signed<T>, EditError> {
    let message = canonical(&role)?;
    let mut signatures = Vec::new();
    for key in keys.keys() {
        let known = roots.iter().any(|root| {
            root.roles
                .get(&T::TYPE)
                .is_some_and(|role| role.keyids.contains(key.key_id()))
        });
        if known {
            signatures.push(key.sign(&message));
        }
    }
    signatures.sort_by(|left, right| left.keyid.cmp(&right.keyid));
    let signed = Signed {
        signed: role,
        signatures,
    };
    for root in roots {
        verify(root, &signed).map_err(too_few_keys)?;
    }
    Ok(signed)
}

/// While we sign, missing signatures are missing keys.
pub(super) fn too_few_keys(error: RepositoryError) -> EditError {
    match error {
        RepositoryError::Signatures {
            role,
            needed,
            valid,
            ..
        } => EditError::TooFewKeys {
            role,
            needed,
            found: valid,
        },
        error => error.into(),
    }
}

/// What is signed of a role.
pub(super) fn canonical<T: Role>(role: &T) -> Result<Vec<u8>, EditError> {
    role.canonical_form().map_err(|error| EditError::Render {
        role: T::TYPE,
        reason: error.to_string(),
    })
}

/// The file of a signed role.
pub(super) fn render<T: Role>(signed: Signed<T>) -> Result<Held<T>, EditError>
where
    Signed<T>: Serialize,
{
    let failed = |error: serde_json::Error| EditError::Render {
        role: T::TYPE,
        reason: error.to_string(),
    };
    let value = serde_json::to_value(&signed).map_err(failed)?;
    let mut bytes = serde_json::to_vec_pretty(&sorted(value)).map_err(failed)?;
    bytes.push(b'\n');
    Ok(Held { signed, bytes })
}

/// With all keys in their order, whatever order they came in.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            let fields: Map<String, Value> = fields
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        value => value,
    }
}

/// The version after this one; the first is 1.
pub(super) fn next_version(version: u64) -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(version)
}
