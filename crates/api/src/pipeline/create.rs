//! A new object: what the server sets itself.

use serde_json::{Value, json};

use super::{Write, admit, definition, services};
use crate::{
    access::authentication::User, admission::Operation, defaults, fields, object, registry::Kind,
    state::Api, status::ApiError, validation, verbs::Call,
};

/// What clients may not choose for a new object.
const SERVERS: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
];

/// Makes the object that will be stored.
pub(crate) fn prepare_create(
    api: &Api,
    call: &Call,
    mut value: Value,
    warnings: &mut Vec<String>,
) -> Result<Write, ApiError> {
    let kind = &call.kind;
    if !object::resource_version(&value).is_empty() {
        return Err(ApiError::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    for field in SERVERS {
        object::set_metadata(&mut value, field, None);
    }
    object::set_metadata(
        &mut value,
        "uid",
        Some(uuid::Uuid::new_v4().to_string().into()),
    );
    object::set_metadata(
        &mut value,
        "creationTimestamp",
        Some(object::time(api.now())),
    );
    defaults::apply(&kind.group, &kind.version, &kind.kind, &mut value);
    if kind.group == "certificates.k8s.io" && kind.kind == "CertificateSigningRequest" {
        name_requester(&mut value, &call.user);
    }
    if kind.counts_generations {
        object::set_metadata(&mut value, "generation", Some(1.into()));
    }
    // What plugins put in belongs to nobody.
    fields::record(call, None, &mut value, api.now());
    admit::mutate(api, call, Operation::Create, &mut value, None)?;
    defaults::prepare_create(&kind.group, &kind.version, &kind.kind, &mut value);
    reset_status(kind, &mut value);
    let mut write = Write {
        value,
        ..Write::default()
    };
    if kind.group.is_empty() && kind.kind == "Service" {
        services::allocate(api, None, &mut write)?;
    }
    if kind.kind == "CustomResourceDefinition" {
        definition::accept(api, &mut write.value);
        warnings.extend(definition::warnings(&write.value));
    }
    let mut faults = validation::create(&kind.group, &kind.kind, &write.value);
    faults.extend(super::custom_faults(kind, &write.value));
    if faults.is_empty() {
        api.guard
            .check_escalation(kind, &write.value, None, &call.user)?;
        warnings.extend(admit::validate(
            api,
            call,
            Operation::Create,
            &mut write,
            None,
        )?);
        Ok(write)
    } else {
        let name = object::name(&write.value);
        Err(ApiError::invalid(&kind.group, &kind.kind, name, &faults))
    }
}

/// Who asks for a certificate is who the server knows, whatever the request claims.
fn name_requester(request: &mut Value, user: &User) {
    let Some(spec) = object::as_map(request)
        .get_mut("spec")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for claim in ["username", "uid", "groups", "extra"] {
        spec.remove(claim);
    }
    if let Value::Object(known) = user.to_value() {
        spec.extend(known);
    }
}

/// A status is what is observed: nobody has observed a new object.
fn reset_status(kind: &Kind, value: &mut Value) {
    // A machine registers itself with what it sees of itself; pods and namespaces have their first status already.
    if !kind.has_status()
        || (kind.group.is_empty() && matches!(kind.kind.as_str(), "Node" | "Pod" | "Namespace"))
    {
        return;
    }
    let status = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolume" | "PersistentVolumeClaim") => Some(json!({"phase": "Pending"})),
        ("", "Service") => Some(json!({"loadBalancer": {}})),
        ("networking.k8s.io", "Ingress") => Some(json!({"loadBalancer": {}})),
        ("apps" | "batch" | "certificates.k8s.io", _)
        | ("", "ReplicationController" | "ResourceQuota") => Some(json!({})),
        ("storage.k8s.io", "VolumeAttachment") => Some(json!({"attached": false})),
        _ => None,
    };
    let map = object::as_map(value);
    match status {
        Some(status) => map.insert("status".to_owned(), status),
        None => map.remove("status"),
    };
}
