//! `create`: a new object, from what a client sent to what is stored.

use std::sync::Arc;

use serde_json::Value;
use transom_store::{Outcome, Transaction, Write};

use super::{Call, Reply};
use crate::{
    guard,
    http::body,
    object,
    pipeline::{self, Write as Draft, leftovers},
    registry::{Kind, Verb},
    state::Api,
    status::ApiError,
};

/// How often a name, or something else that must be free, may be taken already.
const TRIES: usize = 8;

pub(crate) async fn create(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let decoded = body::decode(call, &call.kind)?;
    let (value, warnings) = create_value(api, call, decoded).await?;
    Ok(Reply::object(201, value, warnings))
}

/// Creates what an update or an apply did not find. Who asks was permitted to change objects only, so the right to
/// make one is asked for here.
pub(crate) async fn create_absent(
    api: &Api,
    call: &Call,
    decoded: body::Decoded,
) -> Result<(Value, Vec<String>), ApiError> {
    let attributes = guard::attributes(call.user.clone(), &call.kind, &call.path, Verb::Create, "");
    api.guard.require(&attributes)?;
    create_value(api, call, decoded).await
}

/// Creates an object from a decoded body.
pub(crate) async fn create_value(
    api: &Api,
    call: &Call,
    decoded: body::Decoded,
) -> Result<(Value, Vec<String>), ApiError> {
    let body::Decoded {
        mut value,
        mut warnings,
    } = decoded;
    let kind = &call.kind;
    // What admission and allocation look at must be as new as the request.
    api.catch_up().await?;
    pipeline::place(kind, &call.path, &mut value)?;
    let generate = object::metadata_text(&value, "generateName").to_owned();
    let has_name = !object::name(&value).is_empty();
    for _ in 0..TRIES {
        let mut candidate = value.clone();
        if !has_name && !generate.is_empty() {
            let name = pipeline::generated_name(&generate);
            object::set_metadata(&mut candidate, "name", Some(name.into()));
        }
        let draft = pipeline::prepare_create(api, call, candidate, &mut warnings)?;
        match store_new(api, kind, call, draft).await? {
            Made::Stored(value) => return Ok((value, warnings)),
            Made::NameTaken if !has_name => {}
            Made::NameTaken => {
                let name = object::name(&value);
                return Err(ApiError::already_exists(&kind.group, &kind.plural, name));
            }
            // A quota or an address was taken by another; the cache will show it.
            Made::OtherTaken => api.catch_up().await?,
        }
    }
    Err(ApiError::conflict(
        &kind.group,
        &kind.plural,
        object::name(&value),
        "what it depends on changes too fast; please try again",
    ))
}

enum Made {
    Stored(Value),
    NameTaken,
    OtherTaken,
}

async fn store_new(
    api: &Api,
    kind: &Arc<Kind>,
    call: &Call,
    draft: Draft,
) -> Result<Made, ApiError> {
    let Draft { mut value, also } = draft;
    let name = object::name(&value).to_owned();
    let key = kind.key(&call.path.namespace, &name);
    let stored = pipeline::to_storage(kind, &value);
    let bytes = api.encode(kind, &key, &stored)?;
    if call.options.dry_run {
        let taken = api.find(kind, &call.path.namespace, &name).await?.is_some();
        return Ok(if taken {
            Made::NameTaken
        } else {
            Made::Stored(value)
        });
    }
    leftovers::clear(api, kind, &value).await?;
    let mut transaction = Transaction::create(key, bytes);
    if let Some(lease) = pipeline::lease(api, kind).await? {
        for write in &mut transaction.writes {
            if let Write::Put { lease: slot, .. } = write {
                *slot = Some(lease);
            }
        }
    }
    transaction.conditions.extend(also.conditions);
    transaction.writes.extend(also.writes);
    match api.commit(transaction).await? {
        Outcome::Committed(revision) => {
            object::set_metadata(
                &mut value,
                "resourceVersion",
                Some(revision.to_string().into()),
            );
            Ok(Made::Stored(value))
        }
        Outcome::Refused { condition: 0, .. } => Ok(Made::NameTaken),
        Outcome::Refused { .. } => Ok(Made::OtherTaken),
    }
}
