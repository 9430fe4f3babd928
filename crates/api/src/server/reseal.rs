//! After a new key: secrets that are plain, or sealed with an older key, are sealed with the newest one.

use transom_store::{Condition, Range, Transaction, Write};

use crate::{Api, cache::store_fault, registry::storage_prefix, status::ApiError};

const PAGE: usize = 500;

/// Goes over all secrets. One that changes meanwhile is sealed with the newest key by that change.
pub(super) async fn run(api: &Api) -> Result<usize, ApiError> {
    let kinds = api.registry.kinds();
    let mut rewritten = 0;
    for kind in kinds.iter().filter(|kind| kind.secret) {
        let mut after = None;
        loop {
            let range = Range {
                prefix: storage_prefix(&kind.storage.0, &kind.storage.1),
                after: after.take(),
                limit: Some(PAGE),
                at: None,
            };
            let page = api
                .store
                .list(range)
                .await
                .map_err(|error| store_fault(&error))?;
            for entry in &page.entries {
                if !api.codec.needs_rewrite(&entry.value) {
                    continue;
                }
                let stored = api.read_entry(entry)?;
                let key = entry.key.to_string();
                let value = api.encode(kind, &key, &stored.value)?;
                let condition = Condition::Unchanged {
                    key: key.clone(),
                    modified: entry.modified,
                };
                let write = Write::Put {
                    key,
                    value,
                    lease: entry.lease,
                };
                api.commit(Transaction {
                    conditions: vec![condition],
                    writes: vec![write],
                })
                .await?;
                rewritten += 1;
            }
            match page.entries.last() {
                Some(last) if page.more => after = Some(last.key.to_string()),
                _ => break,
            }
        }
    }
    Ok(rewritten)
}
