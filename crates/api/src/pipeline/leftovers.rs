//! Objects whose definition was taken away from under them, by somebody who took off its finalizer: nobody could
//! reach them, and they would come back with the next definition of that name.
//!
//! They go with the definition. What a server that died left all the same goes before a definition comes. Only
//! what is as old as a moment at which there was no definition is taken, and unchanged: it is nobody's.

use serde_json::Value;
use transom_store::{Condition, Outcome, Range, Revision, Transaction, Write};

use crate::{
    cache::store_fault,
    object,
    registry::{Kind, storage_prefix},
    state::Api,
    status::ApiError,
};

/// Takes away what a definition leaves, once it has gone with `gone`.
pub(crate) async fn follow(api: &Api, kind: &Kind, definition: &Value, gone: Revision) {
    let Some(prefix) = prefix_of(api, kind, definition) else {
        return;
    };
    let api = api.clone();
    // To the end, also if the client does not wait for it.
    let sweeping = tokio::spawn(async move { sweep(&api, &prefix, gone).await });
    let name = object::name(definition);
    match sweeping.await {
        Ok(Ok(0)) => {}
        Ok(Ok(count)) => tracing::warn!(name, count, "objects went with their definition"),
        Ok(Err(error)) => tracing::error!(name, %error, "objects are left without a definition"),
        Err(error) => tracing::error!(name, %error, "objects are left without a definition"),
    }
}

/// Takes away what is left of definitions before one that is about to come.
pub(crate) async fn clear(api: &Api, kind: &Kind, definition: &Value) -> Result<(), ApiError> {
    let Some(prefix) = prefix_of(api, kind, definition) else {
        return Ok(());
    };
    let fault = |error| store_fault(&error);
    // The moment comes first: whoever makes the definition meanwhile makes its objects later.
    let moment = api.store.revision().await.map_err(fault)?;
    let key = kind.key("", object::name(definition));
    if api.store.get(&key).await.map_err(fault)?.is_none() {
        sweep(api, &prefix, moment).await?;
    }
    Ok(())
}

/// Where the objects of a definition are stored, unless they are those of another kind: a definition whose names
/// are taken has none.
fn prefix_of(api: &Api, kind: &Kind, definition: &Value) -> Option<String> {
    if kind.kind != "CustomResourceDefinition" || kind.custom.is_some() {
        return None;
    }
    let spec = &definition["spec"];
    let prefix = storage_prefix(spec["group"].as_str()?, spec["names"]["plural"].as_str()?);
    let own = object::name(definition);
    let kinds = api.registry.kinds();
    let is_other = |kind: &Kind| match &kind.custom {
        Some(custom) => custom.definition != own,
        None => true,
    };
    let taken = kinds
        .iter()
        .any(|kind| kind.prefix() == prefix && is_other(kind));
    (!taken).then_some(prefix)
}

/// Deletes what is as old as a moment, and has not changed since.
async fn sweep(api: &Api, prefix: &str, moment: Revision) -> Result<usize, ApiError> {
    let mut count = 0;
    let mut after = None;
    loop {
        let range = Range {
            prefix: prefix.to_owned(),
            after: after.take(),
            limit: Some(Transaction::MOST),
            at: Some(moment),
        };
        let listed = api.store.list(range).await;
        let page = listed.map_err(|error| store_fault(&error))?;
        let mut transaction = Transaction::default();
        for entry in &page.entries {
            let key = entry.key.to_string();
            transaction.conditions.push(Condition::Unchanged {
                key: key.clone(),
                modified: entry.modified,
            });
            transaction.writes.push(Write::Delete { key });
        }
        count += delete_unchanged(api, transaction).await?;
        match page.entries.last() {
            Some(last) if page.more => after = Some(last.key.to_string()),
            _ => return Ok(count),
        }
    }
}

/// Makes the writes whose conditions hold; each has its own.
async fn delete_unchanged(api: &Api, mut transaction: Transaction) -> Result<usize, ApiError> {
    while !transaction.writes.is_empty() {
        match api.commit(transaction.clone()).await? {
            Outcome::Committed(_) => break,
            Outcome::Refused { condition, .. } => {
                transaction.conditions.remove(condition);
                transaction.writes.remove(condition);
            }
        }
    }
    Ok(transaction.writes.len())
}
