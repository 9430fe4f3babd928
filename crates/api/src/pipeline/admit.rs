//! The chain of admission as the pipeline calls it: what plugins see, and what comes of their word.

use std::sync::Arc;

use serde_json::Value;
use transom_store::{Condition, Revision, Write as StoreWrite};

use super::{Write, names::suffix};
use crate::{
    access::authorization::{self, Resource},
    admission::{Access, Attributes, Context, Objects, Operation, QuotaChange},
    cache::Selection,
    state::{Api, cache_key},
    status::ApiError,
    verbs::Call,
};

impl Objects for Api {
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let kinds = self.registry.kinds();
        let kind = kinds
            .iter()
            .find(|found| found.group == group && found.kind == kind)?;
        let cached = self.cache_of(kind).get(&cache_key(kind, namespace, name))?;
        let mut value = cached.value();
        super::from_storage(kind, &mut value);
        Some(Arc::new(value))
    }

    fn list(&self, group: &str, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        let kinds = self.registry.kinds();
        let Some(kind) = kinds
            .iter()
            .find(|found| found.group == group && found.kind == kind)
        else {
            return Vec::new();
        };
        let selection = Selection {
            namespace: namespace.to_owned(),
            ..Selection::default()
        };
        // The newest state can always be listed.
        let Ok(listing) = self.cache_of(kind).list(&selection, None, None, None) else {
            return Vec::new();
        };
        let values = listing.items.iter().map(|item| {
            let mut value = item.value();
            super::from_storage(kind, &mut value);
            Arc::new(value)
        });
        values.collect()
    }
}

/// What the user of a call may do besides.
struct Rights<'a> {
    api: &'a Api,
    call: &'a Call,
}

impl Access for Rights<'_> {
    fn allows(&self, verb: &str, group: &str, resource: &str, name: &str) -> bool {
        let attributes = authorization::Attributes::resource(
            self.call.user.clone(),
            verb,
            Resource {
                group: group.to_owned(),
                version: "*".to_owned(),
                resource: resource.to_owned(),
                namespace: self.call.path.namespace.clone(),
                name: name.to_owned(),
                ..Resource::default()
            },
        );
        self.api.guard.decide(&attributes).is_allowed()
    }
}

fn attributes(call: &Call, operation: Operation, object: Value, old: Option<&Value>) -> Attributes {
    let kind = &call.kind;
    let name = if call.path.name.is_empty() {
        crate::object::name(&object).to_owned()
    } else {
        call.path.name.clone()
    };
    Attributes {
        operation,
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        resource: kind.plural.clone(),
        subresource: call.path.subresource.clone(),
        namespace: call.path.namespace.clone(),
        name,
        object,
        old: old.cloned().map(Arc::new),
        user: call.user.name.clone(),
        user_groups: call.user.groups.clone(),
        dry_run: call.options.dry_run,
    }
}

fn with_context<T>(api: &Api, call: &Call, run: impl FnOnce(&Context<'_>) -> T) -> T {
    let rights = Rights { api, call };
    run(&Context {
        objects: api,
        access: &rights,
        suffix: &suffix,
    })
}

/// Lets plugins complete an object.
pub(super) fn mutate(
    api: &Api,
    call: &Call,
    operation: Operation,
    value: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let mut request = attributes(call, operation, std::mem::take(value), old);
    with_context(api, call, |context| api.chain.mutate(&mut request, context))?;
    *value = request.object;
    Ok(())
}

/// Lets plugins accept an object. What they count is written together with it.
pub(super) fn validate(
    api: &Api,
    call: &Call,
    operation: Operation,
    write: &mut Write,
    old: Option<&Value>,
) -> Result<Vec<String>, ApiError> {
    let mut request = attributes(call, operation, std::mem::take(&mut write.value), old);
    let outcome = with_context(api, call, |context| api.chain.validate(&request, context))?;
    write.value = std::mem::take(&mut request.object);
    for change in &outcome.quotas {
        add_quota(api, change, write)?;
    }
    for (key, text) in &outcome.audit {
        let Attributes {
            resource,
            namespace,
            name,
            user,
            ..
        } = &request;
        tracing::info!(target: "audit", key, text, resource, namespace, name, user, "annotation");
    }
    Ok(outcome.warnings)
}

/// Lets plugins complete and accept what is asked of a subresource and never stored, like a token.
pub(crate) fn request(api: &Api, call: &Call, object: Value) -> Result<Value, ApiError> {
    let mut request = attributes(call, Operation::Create, object, None);
    with_context(api, call, |context| {
        api.chain.mutate(&mut request, context)?;
        api.chain.validate(&request, context).map(|_| ())
    })?;
    Ok(request.object)
}

/// Lets plugins forbid a deletion.
pub(crate) fn delete(api: &Api, call: &Call, old: &Value) -> Result<(), ApiError> {
    let mut request = attributes(call, Operation::Delete, Value::Null, Some(old));
    with_context(api, call, |context| {
        api.chain.mutate(&mut request, context)?;
        api.chain.validate(&request, context).map(|_| ())
    })
}

fn add_quota(api: &Api, change: &QuotaChange, write: &mut Write) -> Result<(), ApiError> {
    let kinds = api.registry.kinds();
    let kind = kinds
        .resource("", "v1", "resourcequotas")
        .ok_or_else(|| ApiError::internal("quotas are not served"))?;
    let moved = || {
        ApiError::conflict(
            "",
            "resourcequotas",
            &change.name,
            "the quota has changed; please try again",
        )
    };
    let quota = Objects::get(api, "", "ResourceQuota", &change.namespace, &change.name)
        .ok_or_else(moved)?;
    let revision: u64 = change.resource_version.parse().map_err(|_| moved())?;
    let mut quota = (*quota).clone();
    quota["status"] = change.status.clone();
    let key = kind.key(&change.namespace, &change.name);
    let value = api.encode(kind, &key, &quota)?;
    write.also.conditions.push(Condition::Unchanged {
        key: key.clone(),
        modified: Revision(revision),
    });
    write.also.writes.push(StoreWrite::Put {
        key,
        value,
        lease: None,
    });
    Ok(())
}
