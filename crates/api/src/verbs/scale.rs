//! `scale`: how many replicas there should be, in the same words for all kinds that have replicas.
//!
//! A `Scale` is never stored. What is written of it is one number of the object behind it.

use serde_json::{Value, json};

use super::{Call, Reply, change};
use crate::{
    apply::check_options,
    field::{FieldError, Path},
    fields,
    http::body::{self, Decoded, WireType},
    object,
    patch::{self, PatchMedia},
    pipeline::{self, Part},
    registry::Verb,
    schema::{self, Findings, Shape},
    state::{Api, Stored},
    status::ApiError,
};

const SCALE: WireType = WireType {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
    also: None,
};

pub(super) async fn scale(api: &Api, call: &Call, verb: Verb) -> Result<Reply, ApiError> {
    if verb == Verb::Get {
        let stored = change::current(api, call)
            .await?
            .ok_or_else(|| call.not_found(&call.path.name))?;
        return Ok(Reply::other(200, scale_of(call, &stored.value)));
    }
    let mut warnings = Vec::new();
    let changed = change::change(api, call, |stored| {
        let wanted = wanted(call, verb, stored)?;
        warnings = wanted.warnings;
        check(call, stored, &wanted.value)?;
        let value = if is_apply(call, verb)? {
            let given = wanted.value["spec"].get("replicas").cloned();
            fields::apply(call, Some(&stored.value), &owned(call, given), api.now())?
        } else {
            let mut value = stored.value.clone();
            let replicas = wanted.value["spec"]["replicas"].as_i64();
            set_replicas(call, &mut value, replicas.unwrap_or_default().into());
            value
        };
        pipeline::prepare_update(api, call, Part::Scale, &stored.value, value, &mut warnings)
    })
    .await?;
    let mut reply = Reply::other(200, scale_of(call, &changed.value));
    reply.warnings = warnings;
    Ok(reply)
}

fn is_apply(call: &Call, verb: Verb) -> Result<bool, ApiError> {
    Ok(verb == Verb::Patch
        && PatchMedia::from_content_type(&call.content_type, false)? == PatchMedia::Apply)
}

/// The scale that a client wants.
fn wanted(call: &Call, verb: Verb, stored: &Stored) -> Result<Decoded, ApiError> {
    if verb != Verb::Patch {
        return body::decode_wire(call, &SCALE);
    }
    let media = PatchMedia::from_content_type(&call.content_type, false)?;
    let is_apply = media == PatchMedia::Apply;
    check_options(&call.options.field_manager, call.options.force, is_apply)?;
    let value = match media {
        PatchMedia::Apply => body::read_yaml(&call.body)?,
        PatchMedia::Change(kind) => {
            let shape = Shape::Object(SCALE.type_id()?);
            let current = scale_of(call, &stored.value);
            patch::apply(kind, schema::builtin(), &shape, &current, &call.body)?
        }
    };
    body::typed_wire(call, &SCALE, value, Findings::default())
}

/// A scale must be of the object that is there, and of no fewer than none.
fn check(call: &Call, stored: &Stored, wanted: &Value) -> Result<(), ApiError> {
    let (kind, name) = (&call.kind, &call.path.name);
    let version = object::resource_version(wanted);
    if !version.is_empty() && version != object::resource_version(&stored.value) {
        return Err(ApiError::modified(&kind.group, &kind.plural, name));
    }
    let (uid, known) = (object::uid(wanted), object::uid(&stored.value));
    if !uid.is_empty() && uid != known {
        return Err(ApiError::conflict(
            &kind.group,
            &kind.plural,
            name,
            &format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {known}"
            ),
        ));
    }
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let path = Path::new("spec").child("replicas");
        let fault = FieldError::invalid(&path, replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid("autoscaling", "Scale", name, &[fault]));
    }
    Ok(())
}

/// The part of the object behind a scale that its applier wants to own.
fn owned(call: &Call, replicas: Option<Value>) -> Value {
    let mut metadata = json!({"name": call.path.name});
    if call.kind.namespaced {
        metadata["namespace"] = call.path.namespace.as_str().into();
    }
    let mut value = json!({
        "apiVersion": call.kind.api_version(), "kind": call.kind.kind, "metadata": metadata,
    });
    if let Some(replicas) = replicas {
        set_replicas(call, &mut value, replicas);
    }
    value
}

/// Puts the number where the kind has it.
fn set_replicas(call: &Call, value: &mut Value, replicas: Value) {
    let usual = ["spec".to_owned(), "replicas".to_owned()];
    let custom = call.kind.custom.as_ref();
    let path = custom
        .and_then(|custom| custom.scale.as_ref())
        .map_or(&usual[..], |paths| &paths.replicas);
    let place = path.iter().fold(value, |value, name| {
        object::as_map(value)
            .entry(name.clone())
            .or_insert(Value::Null)
    });
    *place = replicas;
}

/// What a client sees of an object as its scale.
fn scale_of(call: &Call, value: &Value) -> Value {
    let (replicas, observed, selector) = match call
        .kind
        .custom
        .as_ref()
        .and_then(|custom| custom.scale.as_ref())
    {
        Some(paths) => {
            let find = |path: &[String]| {
                path.iter()
                    .try_fold(value, |value, name| value.get(name))
                    .cloned()
            };
            let selector = paths.selector.as_ref().and_then(|path| find(path));
            (
                find(&paths.replicas),
                find(&paths.status_replicas),
                selector,
            )
        }
        None => (
            value["spec"].get("replicas").cloned(),
            value["status"].get("replicas").cloned(),
            Some(selector_text(&value["spec"]["selector"]).into()),
        ),
    };
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(found) = value["metadata"].get(field) {
            metadata[field] = found.clone();
        }
    }
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": observed.unwrap_or_else(|| 0.into())},
    });
    if let Some(replicas) = replicas.filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = replicas;
    }
    if let Some(selector) = selector.filter(|selector| selector.as_str() != Some("")) {
        scale["status"]["selector"] = selector;
    }
    scale
}

/// A selector object in the notation of a query.
fn selector_text(selector: &Value) -> String {
    let mut parts = Vec::new();
    let labels = selector.get("matchLabels").or_else(|| {
        selector
            .get("matchExpressions")
            .is_none()
            .then_some(selector)
    });
    for (name, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parts.push(format!("{name}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let key = expression["key"].as_str().unwrap_or_default();
        let values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let values = values.join(",");
        parts.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}
