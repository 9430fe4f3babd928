//! Changing an object that exists: read, change, and write only if nobody else wrote meanwhile.

use serde_json::Value;
use transom_store::{Condition, Outcome, Revision, Transaction, Write};

use super::Call;
use crate::{
    object,
    pipeline::{self, Write as Draft, leftovers},
    state::{Api, Stored},
    status::ApiError,
};

/// How often a change is tried again on a newer state.
const TRIES: usize = 20;

/// What a change makes of an object.
pub(crate) enum Next {
    Put(Draft),
    /// The object goes; the value is what the client is told.
    Remove(Value),
    /// All is as it should be.
    Keep(Value),
}

/// The outcome of a change.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) value: Value,
    /// Whether the object is gone now.
    pub(crate) removed: bool,
}

/// The newest state of the object that a call names.
pub(crate) async fn current(api: &Api, call: &Call) -> Result<Option<Stored>, ApiError> {
    let found = api
        .find(&call.kind, &call.path.namespace, &call.path.name)
        .await?;
    Ok(found.map(|cached| {
        let mut value = cached.value();
        pipeline::from_storage(&call.kind, &mut value);
        Stored {
            value,
            revision: cached.revision,
        }
    }))
}

/// Applies `next` to the newest state until it is stored. `next` may be called several times.
pub(crate) async fn change(
    api: &Api,
    call: &Call,
    mut next: impl FnMut(&Stored) -> Result<Next, ApiError>,
) -> Result<Changed, ApiError> {
    let kind = &call.kind;
    // An event that is written again lasts from then on.
    let lease = pipeline::lease(api, kind).await?;
    let mut stored = current(api, call)
        .await?
        .ok_or_else(|| call.not_found(&call.path.name))?;
    for _ in 0..TRIES {
        let key = kind.key(&call.path.namespace, &call.path.name);
        let unchanged = Condition::Unchanged {
            key: key.clone(),
            modified: Revision(stored.revision),
        };
        let (mut value, removed, transaction) = match next(&stored)? {
            Next::Keep(value) => {
                return Ok(Changed {
                    value,
                    removed: false,
                });
            }
            Next::Put(Draft { value, also }) => {
                let bytes = api.encode(kind, &key, &pipeline::to_storage(kind, &value))?;
                let mut transaction = Transaction {
                    conditions: vec![unchanged],
                    writes: vec![Write::Put {
                        key,
                        value: bytes,
                        lease,
                    }],
                };
                transaction.conditions.extend(also.conditions);
                transaction.writes.extend(also.writes);
                (value, false, transaction)
            }
            Next::Remove(value) => {
                let mut transaction = Transaction {
                    conditions: vec![unchanged],
                    writes: vec![Write::Delete { key }],
                };
                transaction.writes.extend(pipeline::released(kind, &value));
                (value, true, transaction)
            }
        };
        if call.options.dry_run {
            return Ok(Changed { value, removed });
        }
        match api.commit(transaction).await? {
            Outcome::Committed(revision) => {
                object::set_metadata(
                    &mut value,
                    "resourceVersion",
                    Some(revision.to_string().into()),
                );
                if removed {
                    leftovers::follow(api, kind, &value, revision).await;
                }
                return Ok(Changed { value, removed });
            }
            Outcome::Refused {
                condition: 0,
                current: Some(entry),
            } => {
                stored = api.read_entry(&entry)?;
                pipeline::from_storage(kind, &mut stored.value);
            }
            Outcome::Refused {
                condition: 0,
                current: None,
            } => {
                return Err(call.not_found(&call.path.name));
            }
            // Something beside the object changed, like a quota: look again.
            Outcome::Refused { .. } => {
                stored = current(api, call)
                    .await?
                    .ok_or_else(|| call.not_found(&call.path.name))?;
            }
        }
    }
    Err(ApiError::modified(
        &kind.group,
        &kind.plural,
        &call.path.name,
    ))
}
