//! The body of a request: bytes in one of three forms become a checked object.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    object, protobuf,
    registry::{CustomResource, Kind},
    schema::{self, Findings, Schema, TypeId, decode, json},
    status::ApiError,
    verbs::Call,
};

/// An object that has the fields of its type and no others.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    pub(crate) warnings: Vec<String>,
}

/// Reads the body as an object of `kind`.
pub(crate) fn decode(call: &Call, kind: &Arc<Kind>) -> Result<Decoded, ApiError> {
    // What a definition does not know is found when the object is shaped.
    let typed_by = kind
        .type_id
        .filter(|_| kind.custom.is_none())
        .map(|id| (&*kind.schema, id));
    let (value, findings) = read(&call.content_type, &call.body, typed_by)?;
    typed(call, kind, value, findings)
}

/// A built-in type that goes over the wire at a path below an object, like a `Scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireType {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    /// A version that has the same fields, for clients that are older.
    pub(crate) also: Option<&'static str>,
}

impl WireType {
    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn type_id(&self) -> Result<TypeId, ApiError> {
        schema::builtin()
            .find(&schema::builtin_name(self.group, self.version, self.kind))
            .ok_or_else(|| ApiError::internal(format!("there is no type {}", self.kind)))
    }
}

/// Reads the body as an object of a type that is no resource of its own.
pub(crate) fn decode_wire(call: &Call, wire: &WireType) -> Result<Decoded, ApiError> {
    let typed_by = Some((&**schema::builtin(), wire.type_id()?));
    let (value, findings) = read(&call.content_type, &call.body, typed_by)?;
    typed_wire(call, wire, value, findings)
}

/// The same for a value that is not from the wire. An object that names another place than the path is refused.
pub(crate) fn typed_wire(
    call: &Call,
    wire: &WireType,
    mut value: Value,
    findings: Findings,
) -> Result<Decoded, ApiError> {
    let api_version = wire.api_version();
    if wire.also.is_some() && value["apiVersion"].as_str() == wire.also {
        value["apiVersion"] = api_version.as_str().into();
    }
    check_type(&api_version, wire.version, wire.kind, &mut value)?;
    let (value, warnings) = decode::decode(
        schema::builtin(),
        wire.type_id()?,
        value,
        findings,
        call.options.field_validation,
    )?;
    let (name, namespace) = (object::name(&value), object::namespace(&value));
    if !name.is_empty() && name != call.path.name {
        return Err(ApiError::bad_request(format!(
            "name in URL does not match name in {} object",
            wire.kind
        )));
    }
    if !namespace.is_empty() && namespace != call.path.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(Decoded { value, warnings })
}

/// Checks a value that is not from the wire, like the result of a patch.
pub(crate) fn typed(
    call: &Call,
    kind: &Arc<Kind>,
    mut value: Value,
    findings: Findings,
) -> Result<Decoded, ApiError> {
    check_type(&kind.api_version(), &kind.version, &kind.kind, &mut value)?;
    if let Some(custom) = &kind.custom {
        return shaped(call, kind, custom, value, findings);
    }
    let Some(type_id) = kind.type_id else {
        return Ok(Decoded {
            value,
            warnings: Vec::new(),
        });
    };
    let (value, warnings) = decode::decode(
        &kind.schema,
        type_id,
        value,
        findings,
        call.options.field_validation,
    )?;
    Ok(Decoded { value, warnings })
}

/// Makes an object what its definition says: fields that it does not have go, defaults come. Values are judged
/// later, with everything else that can be wrong.
fn shaped(
    call: &Call,
    kind: &Kind,
    custom: &CustomResource,
    mut value: Value,
    mut findings: Findings,
) -> Result<Decoded, ApiError> {
    let metadata = schema::builtin_name("meta.k8s.io", "v1", "ObjectMeta");
    if let (Some(id), Some(given)) = (schema::builtin().find(&metadata), value.get("metadata")) {
        let (checked, _) = decode::convert(schema::builtin(), id, given.clone())
            .map_err(|why| schema::cannot_be_handled(&kind.kind, &kind.version, &why))?;
        value["metadata"] = checked;
    }
    findings.extend(custom.structural.prune(&mut value));
    custom.structural.apply_defaults(&mut value);
    let warnings = findings.judge(call.options.field_validation, &kind.kind, &kind.version)?;
    Ok(Decoded { value, warnings })
}

/// Reads a body that is no object of a registered kind, like the options of a deletion.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<(Value, Findings), ApiError> {
    read(content_type, body, None)
}

fn read(
    content_type: &str,
    body: &[u8],
    typed_by: Option<(&Schema, TypeId)>,
) -> Result<(Value, Findings), ApiError> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => json::read(body, typed_by).map_err(|error| {
            ApiError::bad_request(format!("the body of the request is not JSON: {error}"))
        }),
        "application/yaml" | "application/x-yaml" | "text/yaml" => {
            Ok((read_yaml(body)?, Findings::default()))
        }
        "application/vnd.kubernetes.protobuf" => {
            let (_, _, value) = protobuf::decode(schema::builtin(), body)?;
            Ok((value, Findings::default()))
        }
        _ => Err(ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// Reads YAML as Kubernetes does: a JSON document in another notation.
pub(crate) fn read_yaml(body: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| ApiError::bad_request("the body of the request is not UTF-8"))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error converting YAML to JSON: {error}")))
}

/// The object must say that it is what the path is about; what it does not say follows from the path.
fn check_type(
    expected: &str,
    version: &str,
    kind: &str,
    value: &mut Value,
) -> Result<(), ApiError> {
    let refuse = |given: &str, why: String| {
        ApiError::bad_request(format!(
            "{given} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    };
    if !value.is_object() {
        return Err(refuse(kind, "the body is not an object".to_owned()));
    }
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    if !api_version.is_empty() && api_version != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    let given = value["kind"].as_str().unwrap_or_default();
    if !given.is_empty() && given != kind {
        let why = format!("no kind {given:?} is registered for version {expected:?} in scheme");
        return Err(refuse(given, why));
    }
    let map = object::as_map(value);
    map.insert("apiVersion".to_owned(), expected.into());
    map.insert("kind".to_owned(), kind.into());
    Ok(())
}
