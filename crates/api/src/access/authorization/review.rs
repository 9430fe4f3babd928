//! Reviews: objects that ask whether somebody may do something. They are answered and never stored.
//!
//! What a review of one's own says is exactly what would happen to a request.

use serde_json::{Map, Value, json};

use super::{Attributes, Decision, Resource, Rule, Verdict, rbac::aggregate};
use crate::{
    access::authentication::User,
    field::{FieldError, Path},
    selector::raw_terms,
    status::ApiError,
};

const GROUP: &str = "authorization.k8s.io";

/// Answers a `SubjectAccessReview`.
pub fn subject_access_review(
    mut review: Value,
    authorize: impl FnOnce(&Attributes) -> Verdict,
) -> Result<Value, ApiError> {
    let mut faults = validate_spec(&review["spec"], true);
    faults.extend(validate_metadata(&review, false));
    refuse("SubjectAccessReview", &faults)?;
    let attributes = attributes_of(&review["spec"], subject_of(&review["spec"]));
    review["status"] = status_of(&authorize(&attributes));
    Ok(review)
}

/// Answers a `SelfSubjectAccessReview` of `user`.
pub fn self_subject_access_review(
    mut review: Value,
    user: &User,
    authorize: impl FnOnce(&Attributes) -> Verdict,
) -> Result<Value, ApiError> {
    let mut faults = validate_spec(&review["spec"], false);
    faults.extend(validate_metadata(&review, false));
    refuse("SelfSubjectAccessReview", &faults)?;
    let attributes = attributes_of(&review["spec"], user.clone());
    review["status"] = status_of(&authorize(&attributes));
    Ok(review)
}

/// Answers a `LocalSubjectAccessReview` that came for `namespace`.
pub fn local_subject_access_review(
    mut review: Value,
    namespace: &str,
    authorize: impl FnOnce(&Attributes) -> Verdict,
) -> Result<Value, ApiError> {
    if review["metadata"]["namespace"].is_null() {
        review["metadata"]["namespace"] = namespace.into();
    }
    let mut faults = validate_spec(&review["spec"], true);
    faults.extend(validate_metadata(&review, true));
    let here = &review["metadata"]["namespace"];
    let resource = &review["spec"]["resourceAttributes"];
    let wanted = resource["namespace"].as_str().unwrap_or_default();
    if resource.is_object() && Some(wanted) != here.as_str() {
        let path = Path::new("spec.resourceAttributes.namespace");
        faults.push(FieldError::invalid(
            &path,
            wanted,
            "must match metadata.namespace",
        ));
    }
    let path_attributes = &review["spec"]["nonResourceAttributes"];
    if path_attributes.is_object() {
        let path = Path::new("spec.nonResourceAttributes");
        let text = "disallowed on this kind of request";
        faults.push(FieldError::invalid(&path, path_attributes.clone(), text));
    }
    refuse("LocalSubjectAccessReview", &faults)?;
    if here.as_str() != Some(namespace) {
        return Err(ApiError::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    let attributes = attributes_of(&review["spec"], subject_of(&review["spec"]));
    review["status"] = status_of(&authorize(&attributes));
    Ok(review)
}

/// Answers a `SelfSubjectRulesReview` with the rules of a user, and what could not be resolved.
pub fn self_subject_rules_review(
    mut review: Value,
    user: &User,
    rules_for: impl FnOnce(&User, &str) -> (Vec<Rule>, Vec<String>),
) -> Result<Value, ApiError> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let (rules, mut faults) = rules_for(user, namespace);
    if user.node_name().is_some() {
        faults.insert(
            0,
            "node authorizer does not support user rule resolution".to_owned(),
        );
    }
    let pick = |is_wanted: fn(&Rule) -> bool| -> Vec<Value> {
        let picked = rules.iter().filter(|rule| is_wanted(rule));
        picked.map(Rule::to_value).collect()
    };
    let mut status = json!({
        "resourceRules": pick(|rule| !rule.resources.is_empty()),
        "nonResourceRules": pick(|rule| !rule.paths.is_empty()),
        "incomplete": !faults.is_empty(),
    });
    if !faults.is_empty() {
        status["evaluationError"] = aggregate(&faults).into();
    }
    review["status"] = status;
    Ok(review)
}

fn status_of(verdict: &Verdict) -> Value {
    let mut status = Map::new();
    let allowed = verdict.decision == Decision::Allow;
    status.insert("allowed".to_owned(), allowed.into());
    if verdict.decision == Decision::Deny {
        status.insert("denied".to_owned(), true.into());
    }
    if !verdict.reason.is_empty() {
        status.insert("reason".to_owned(), verdict.reason.clone().into());
    }
    status.into()
}

fn refuse(kind: &str, faults: &[FieldError]) -> Result<(), ApiError> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(GROUP, kind, "", faults))
    }
}

fn validate_spec(spec: &Value, names_a_subject: bool) -> Vec<FieldError> {
    let path = Path::new("spec");
    let mut faults = Vec::new();
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    match (resource.is_object(), other.is_object()) {
        (true, true) => {
            let text = "cannot be specified in combination with resourceAttributes";
            let path = path.child("nonResourceAttributes");
            faults.push(FieldError::invalid(&path, other.clone(), text));
        }
        (false, false) => {
            let text =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let path = path.child("resourceAttributes");
            faults.push(FieldError::invalid(&path, Value::Null, text));
        }
        _ => {}
    }
    if names_a_subject {
        let no_user = spec["user"].as_str().unwrap_or_default().is_empty();
        let no_groups = spec["groups"].as_array().is_none_or(Vec::is_empty);
        if no_user && no_groups {
            let text = "at least one of user or group must be specified";
            faults.push(FieldError::invalid(&path.child("user"), "", text));
        }
    }
    faults
}

/// A review is not an object that could be found again, so it has no metadata.
fn validate_metadata(review: &Value, may_have_namespace: bool) -> Option<FieldError> {
    let metadata = review["metadata"].as_object()?;
    let is_empty = metadata.iter().all(|(key, value)| {
        value.is_null()
            || key == "managedFields"
            || key == "creationTimestamp"
            || (may_have_namespace && key == "namespace")
    });
    let text = if may_have_namespace {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };
    (!is_empty)
        .then(|| FieldError::invalid(&Path::new("metadata"), review["metadata"].clone(), text))
}

/// The user that a review is about. Its groups are what the review says, no more.
fn subject_of(spec: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, value)| (key.clone(), texts(value)))
            .collect(),
    }
}

fn attributes_of(spec: &Value, user: User) -> Attributes {
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    if !resource.is_object() {
        return Attributes::path(user, text(other, "verb"), text(other, "path"));
    }
    let about = Resource {
        group: text(resource, "group"),
        version: text(resource, "version"),
        resource: text(resource, "resource"),
        subresource: text(resource, "subresource"),
        namespace: text(resource, "namespace"),
        name: text(resource, "name"),
        fields: fields_of(&resource["fieldSelector"]),
    };
    Attributes::resource(user, text(resource, "verb"), about)
}

/// What a selector narrows a list to. Only "is" narrows for sure; everything else is as if it were not there.
fn fields_of(selector: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for requirement in selector["requirements"].as_array().into_iter().flatten() {
        let key = requirement["key"].as_str().unwrap_or_default();
        if let (Some("In"), Some([Value::String(value)])) = (
            requirement["operator"].as_str(),
            requirement["values"].as_array().map(Vec::as_slice),
        ) {
            fields.push((key.to_owned(), value.clone()));
        }
    }
    fields.extend(narrowed_fields(
        selector["rawSelector"].as_str().unwrap_or_default(),
    ));
    fields
}

/// The parts `key=value` of a field selector as it stands in a query. One that cannot be read narrows nothing.
pub fn narrowed_fields(selector: &str) -> Vec<(String, String)> {
    let terms = raw_terms(selector).unwrap_or_default().into_iter();
    terms
        .filter(|term| term.equal)
        .map(|term| (term.name, term.value))
        .collect()
}
