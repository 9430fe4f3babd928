//! `delete` and `deletecollection`: at once, after a while, or when the last finalizer is gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call, Reply, ReplyBody, change,
    change::{Changed, Next},
};
use crate::{
    field::{FieldError, Path},
    http::{
        body,
        options::{dry_run_fault, invalid_options},
    },
    object,
    pipeline::{self, Write},
    registry::Kind,
    state::{Api, Stored},
    status::ApiError,
    validation::read::Read as _,
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a client asks of a deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    grace: Option<i64>,
    policy: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    pub(super) dry_run: bool,
}

impl Wish {
    /// From the body, or where there is none from the query.
    fn read(call: &Call) -> Result<Self, ApiError> {
        let (options, _) = if call.body.is_empty() {
            Default::default()
        } else {
            body::parse(&call.content_type, &call.body)?
        };
        Self::of(call, &options)
    }

    /// From the options of a deletion; null for those that say nothing.
    pub(super) fn of(call: &Call, options: &Value) -> Result<Self, ApiError> {
        let mut wish = Self {
            grace: call.options.grace_period_seconds,
            policy: call.options.propagation_policy.clone(),
            dry_run: call.options.dry_run,
            ..Self::default()
        };
        if !options.is_null() {
            let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
            wish.grace = options["gracePeriodSeconds"].as_i64().or(wish.grace);
            wish.policy = text(&options["propagationPolicy"]).or(wish.policy);
            match options["orphanDependents"].as_bool() {
                Some(_) if wish.policy.is_some() => {
                    return Err(ApiError::bad_request(
                        "orphanDependents and propagationPolicy can't be set together",
                    ));
                }
                Some(true) => wish.policy = Some("Orphan".to_owned()),
                Some(false) => wish.policy = Some("Background".to_owned()),
                None => {}
            }
            wish.uid = text(&options["preconditions"]["uid"]);
            wish.resource_version = text(&options["preconditions"]["resourceVersion"]);
            let modes = options.items("dryRun");
            if modes.iter().any(|mode| mode != "All") {
                let fault = dry_run_fault(modes.iter().filter_map(Value::as_str));
                return Err(invalid_options("DeleteOptions", &[fault]));
            }
            wish.dry_run |= !modes.is_empty();
        }
        if let Some(policy) = &wish.policy
            && !matches!(policy.as_str(), "Orphan" | "Background" | "Foreground")
        {
            let fault = FieldError::not_supported(
                &Path::new("propagationPolicy"),
                policy.as_str(),
                &["Background", "Foreground", "Orphan"],
            );
            return Err(invalid_options("DeleteOptions", &[fault]));
        }
        Ok(wish)
    }

    /// Whether this object is the one that is meant, and may go.
    pub(super) fn admit(&self, api: &Api, call: &Call, value: &Value) -> Result<(), ApiError> {
        self.check(&call.kind, value)?;
        pipeline::admit_delete(api, call, value)
    }

    fn check(&self, kind: &Kind, value: &Value) -> Result<(), ApiError> {
        let name = object::name(value);
        let failed = |what: &str, wanted: &str, found: &str| {
            ApiError::conflict(
                &kind.group,
                &kind.plural,
                name,
                &format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been deleted and then recreated"
                ),
            )
        };
        if let Some(uid) = &self.uid
            && uid != object::uid(value)
        {
            return Err(failed("UID", uid, object::uid(value)));
        }
        if let Some(version) = &self.resource_version
            && version != object::resource_version(value)
        {
            return Err(failed(
                "ResourceVersion",
                version,
                object::resource_version(value),
            ));
        }
        Ok(())
    }
}

pub(crate) async fn delete(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let wish = Wish::read(call)?;
    let changed = delete_one(api, call, &wish).await?;
    if !changed.removed {
        return Ok(Reply::object(200, changed.value, Vec::new()));
    }
    // Pods and a few others are told as they were; for the rest a word is enough.
    if answers_with_object(&call.kind) {
        return Ok(Reply::object(200, changed.value, Vec::new()));
    }
    Ok(Reply::other(200, success(&call.kind, &changed.value)))
}

fn answers_with_object(kind: &Kind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        (
            "",
            "Pod"
                | "Service"
                | "ServiceAccount"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "PodTemplate"
                | "ResourceQuota"
        ) | (
            "storage.k8s.io",
            "StorageClass" | "VolumeAttachment" | "VolumeAttributesClass" | "CSIDriver" | "CSINode"
        )
    )
}

fn success(kind: &Kind, value: &Value) -> Value {
    let mut details =
        json!({"name": object::name(value), "kind": kind.plural, "uid": object::uid(value)});
    if !kind.group.is_empty() {
        details["group"] = kind.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

async fn delete_one(api: &Api, call: &Call, wish: &Wish) -> Result<Changed, ApiError> {
    delete_marked(api, call, wish, |value| Ok(value.clone())).await
}

/// Deletes an object. `mark` may say no to the state that is found, or write into it why the object goes.
pub(super) async fn delete_marked(
    api: &Api,
    call: &Call,
    wish: &Wish,
    mark: impl Fn(&Value) -> Result<Value, ApiError>,
) -> Result<Changed, ApiError> {
    let mut call = call.clone();
    call.options.dry_run |= wish.dry_run;
    let now = api.now();
    let call = &call;
    change::change(api, call, |stored| {
        wish.admit(api, call, &stored.value)?;
        Ok(plan(&call.kind, stored, mark(&stored.value)?, wish, now))
    })
    .await
}

/// Decides what a deletion does to an object.
fn plan(
    kind: &Arc<Kind>,
    stored: &Stored,
    mut value: Value,
    wish: &Wish,
    now: jiff::Timestamp,
) -> Next {
    let grace = grace(kind, &value, wish);
    adjust_finalizers(kind, &mut value, wish);
    let is_kept = !object::finalizers(&value).is_empty() || kept_namespace(kind, &value);
    if !is_kept && grace == 0 {
        return Next::Remove(value);
    }
    let shorter = value["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .is_none_or(|old| grace < old);
    if !object::is_being_deleted(&value) || shorter {
        let wait = jiff::SignedDuration::from_secs(grace);
        let until = now.checked_add(wait).unwrap_or(now);
        object::set_metadata(&mut value, "deletionTimestamp", Some(object::time(until)));
        object::set_metadata(&mut value, "deletionGracePeriodSeconds", Some(grace.into()));
        if kind.counts_generations && !object::is_being_deleted(&stored.value) {
            let generation = value["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            object::set_metadata(&mut value, "generation", Some(generation.into()));
        }
    }
    if kind.group.is_empty() && kind.kind == "Namespace" {
        value["status"]["phase"] = "Terminating".into();
    }
    if value == stored.value {
        Next::Keep(value)
    } else {
        Next::Put(Write {
            value,
            ..Write::default()
        })
    }
}

/// A namespace goes when everything in it is gone.
fn kept_namespace(kind: &Kind, value: &Value) -> bool {
    kind.group.is_empty()
        && kind.kind == "Namespace"
        && value["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
}

/// Seconds that the object still has. Only pods that run somewhere need time.
fn grace(kind: &Kind, value: &Value, wish: &Wish) -> i64 {
    if !(kind.group.is_empty() && kind.kind == "Pod") {
        return 0;
    }
    let is_placed = !value["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .is_empty();
    let is_over = matches!(
        value["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if !is_placed || is_over {
        return 0;
    }
    let own = value["spec"]["terminationGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(30);
    match wish.grace {
        Some(seconds) if seconds < 0 => 1,
        Some(seconds) => seconds,
        None => own.max(0),
    }
}

/// Says by finalizers what is to happen to dependants; the garbage collector acts on them.
fn adjust_finalizers(kind: &Kind, value: &mut Value, wish: &Wish) {
    let default = if kind.orphans_by_default {
        "Orphan"
    } else {
        ""
    };
    let policy = wish.policy.as_deref().unwrap_or(default);
    let mut finalizers: Vec<String> = object::finalizers(value)
        .into_iter()
        .map(ToOwned::to_owned)
        .collect();
    let before = finalizers.clone();
    if !policy.is_empty() {
        finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
        match policy {
            "Orphan" => finalizers.push(ORPHAN.to_owned()),
            "Foreground" => finalizers.push(FOREGROUND.to_owned()),
            _ => {}
        }
    }
    if finalizers != before {
        let list = (!finalizers.is_empty()).then(|| finalizers.into());
        object::set_metadata(value, "finalizers", list);
    }
}

/// Deletes everything that is selected; what is gone meanwhile is no fault.
pub(crate) async fn delete_collection(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let wish = Wish::read(call)?;
    let Reply {
        body: ReplyBody::List(listing, _),
        ..
    } = super::read::list(api, call).await?
    else {
        return Err(ApiError::internal("a list was expected"));
    };
    for item in &listing.items {
        let mut one = call.clone();
        item.name().clone_into(&mut one.path.name);
        item.namespace().clone_into(&mut one.path.namespace);
        match delete_one(api, &one, &wish).await {
            Ok(_) => {}
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Reply {
        code: 200,
        body: ReplyBody::List(listing, None),
        warnings: Vec::new(),
    })
}
