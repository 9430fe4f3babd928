//! The annotation of client-side `kubectl apply`, for those who go over to applying at the server.
//!
//! Only the manager `kubectl` is treated so; another name opts out.

use serde_json::{Map, Value};

use super::{
    Request, compare::compare, conflict::Conflict, extract::extract_known, place::Place,
    set::FieldSet,
};

const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// The conflicts that are left when `kubectl` may take what it applied from the client before.
pub(super) fn allow(request: &Request, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    if request.manager != MANAGER {
        return conflicts;
    }
    let Some(allowed) = owned_by_annotation(request, live) else {
        return conflicts;
    };
    conflicts
        .into_iter()
        .map(|conflict| Conflict {
            fields: conflict.fields.difference(&allowed),
            ..conflict
        })
        .filter(|conflict| !conflict.fields.is_empty())
        .collect()
}

/// What the annotation says that is still so.
fn owned_by_annotation(request: &Request, live: &Value) -> Option<FieldSet> {
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if applied.get("apiVersion")?.as_str()? != request.api_version {
        return None;
    }
    let place = Place::root(request.schema, request.shape);
    let changes = compare(place, Some(&applied), Some(live)).ok()?;
    let owned = extract_known(place, &applied)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    Some(owned)
}

/// Keeps the annotation, where there is one, in step with what is applied at the server.
pub(super) fn follow(request: &Request, object: &mut Value, applied: &Value) {
    if request.manager != MANAGER || annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    // The newline is what upstream's encoder ends with.
    let text = format!("{applied}\n");
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        let annotations: &mut Map<String, Value> = annotations;
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
}
