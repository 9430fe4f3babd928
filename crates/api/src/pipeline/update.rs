//! A change of an object: what may change through which path, and what the server sets itself.

use serde_json::Value;

use super::{
    Write, admit, definition,
    part::{self, Part},
    services,
};
use crate::{
    admission::Operation,
    defaults,
    field::{FieldError, FieldErrorKind, Path},
    fields, object,
    registry::Kind,
    state::Api,
    status::ApiError,
    validation,
    verbs::{Call, change::Next},
};

/// What nobody may change; a writer that leaves it out keeps it.
const FIXED: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
    "namespace",
];

/// Makes the object that will be stored from the current one and the one that a client wants.
pub(crate) fn prepare_update(
    api: &Api,
    call: &Call,
    part: Part,
    current: &Value,
    mut wanted: Value,
    warnings: &mut Vec<String>,
) -> Result<Next, ApiError> {
    let kind = &call.kind;
    let name = object::name(current).to_owned();
    check_version(kind, current, &wanted)?;
    let uid = object::uid(&wanted);
    if !uid.is_empty() && uid != object::uid(current) {
        return Err(ApiError::conflict(
            &kind.group,
            &kind.plural,
            &name,
            &format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                object::uid(current)
            ),
        ));
    }
    for field in FIXED {
        let kept = current["metadata"].get(*field).cloned();
        object::set_metadata(&mut wanted, field, kept);
    }
    let version = object::resource_version(current).to_owned();
    object::set_metadata(&mut wanted, "resourceVersion", Some(version.into()));
    part::restrict(kind, part, current, &mut wanted, api.now());
    defaults::apply(&kind.group, &kind.version, &kind.kind, &mut wanted);
    count_generation(kind, current, &mut wanted);
    // What plugins put in belongs to nobody.
    fields::record(call, Some(current), &mut wanted, api.now());
    admit::mutate(api, call, Operation::Update, &mut wanted, Some(current))?;
    let mut write = Write {
        value: wanted,
        ..Write::default()
    };
    if kind.group.is_empty() && kind.kind == "Service" && part == Part::Main {
        services::allocate(api, Some(current), &mut write)?;
    }
    if kind.kind == "CustomResourceDefinition" && part == Part::Main {
        definition::accept(api, &mut write.value);
        warnings.extend(definition::warnings(&write.value));
    }
    check(kind, part, &call.path.subresource, current, &write.value)?;
    if part == Part::Main {
        api.guard
            .check_escalation(kind, &write.value, Some(current), &call.user)?;
    }
    let operation = Operation::Update;
    warnings.extend(admit::validate(
        api,
        call,
        operation,
        &mut write,
        Some(current),
    )?);
    fields::settle(current, &mut write.value);
    if write.value == *current {
        return Ok(Next::Keep(current.clone()));
    }
    // The last finalizer of an object that is on its way out was taken off: it goes now.
    if is_finished(&write.value) {
        return Ok(Next::Remove(write.value));
    }
    Ok(Next::Put(write))
}

/// A writer that does not say which version it has seen might undo what others did. Most kinds let it, by custom.
fn check_version(kind: &Kind, current: &Value, wanted: &Value) -> Result<(), ApiError> {
    let name = object::name(current);
    let version = object::resource_version(wanted);
    // Upstream reads it as a number, and nothing as zero.
    if !matches!(version, "" | "0") {
        return if version == object::resource_version(current) {
            Ok(())
        } else {
            Err(ApiError::modified(&kind.group, &kind.plural, name))
        };
    }
    if kind.unconditional_updates {
        return Ok(());
    }
    // Upstream shows the missing version as a number in the notation of Go, and names the resource, not the kind.
    let fault = FieldError {
        kind: FieldErrorKind::Invalid,
        path: Path::new("metadata").child("resourceVersion"),
        value: None,
        detail: "0x0: must be specified for an update".to_owned(),
    };
    Err(ApiError::invalid(&kind.group, &kind.plural, name, &[fault]))
}

fn check(
    kind: &Kind,
    part: Part,
    subresource: &str,
    current: &Value,
    wanted: &Value,
) -> Result<(), ApiError> {
    let mut faults = match part {
        Part::Main | Part::Scale => validation::update(&kind.group, &kind.kind, wanted, current),
        Part::Status => validation::status(&kind.group, &kind.kind, wanted, current),
        Part::Approval | Part::Finalize | Part::EphemeralContainers | Part::Resize => {
            validation::subresource(&kind.kind, subresource, wanted, current)
        }
    };
    faults.extend(super::custom_faults(kind, wanted));
    if faults.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        &kind.group,
        &kind.kind,
        object::name(wanted),
        &faults,
    ))
}

/// Whether nothing keeps an object that is being deleted.
pub(crate) fn is_finished(value: &Value) -> bool {
    let grace = value["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or_default();
    let kept_by_namespace_rules = value["kind"] == "Namespace"
        && value["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
    object::is_being_deleted(value)
        && object::finalizers(value).is_empty()
        && grace == 0
        && !kept_by_namespace_rules
}

/// Counts a change of what is wanted; what is observed and how it is labelled is not that.
fn count_generation(kind: &Kind, current: &Value, wanted: &mut Value) {
    if !kind.counts_generations {
        return;
    }
    let is_wanted = |field: &str| {
        !matches!(field, "metadata" | "kind" | "apiVersion")
            && (field != "status" || !kind.has_status())
    };
    if wanted_fields(current, is_wanted).eq(wanted_fields(wanted, is_wanted)) {
        return;
    }
    let generation = current["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default()
        + 1;
    object::set_metadata(wanted, "generation", Some(generation.into()));
}

fn wanted_fields(
    value: &Value,
    is_wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&String, &Value)> {
    let fields = value.as_object().into_iter().flatten();
    fields.filter(move |(field, _)| is_wanted(field))
}
