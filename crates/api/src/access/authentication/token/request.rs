//! `POST …/serviceaccounts/{name}/token`: a token for a service account.
//!
//! Reading the request comes first and says which objects are needed; then the token is made from them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{super::service_account_name, Claims, Kubernetes, Reference, Tokens};
use crate::{
    access::pki::TokenKeys,
    field::{FieldError, Path},
    status::ApiError,
};

const DEFAULT_LIFE: i64 = 3600;
const SHORTEST_LIFE: i64 = 600;
const LONGEST_LIFE: i64 = 1 << 32;
/// What kubelets ask for on behalf of pods that may not renew. Such a token lives longer than was asked for,
/// as upstream has it by default, and whoever uses it late is told.
const EXTENDED_WHEN: i64 = 3607;
const EXTENDED_LIFE: i64 = 365 * 24 * 3600;

/// What a token is bound to: it ends when that goes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub kind: BoundKind,
    pub name: String,
    /// Empty if any uid will do.
    pub uid: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundKind {
    Pod,
    Secret,
    Node,
}

/// The objects that a request is about.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub account: &'a Value,
    /// The object of [`TokenRequest::bound`].
    pub bound: Option<&'a Value>,
    /// The one that a bound pod runs on, if it is known.
    pub node: Option<&'a Value>,
}

/// A request whose fields are in order.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    namespace: String,
    account: String,
    audiences: Vec<String>,
    seconds: i64,
    bound: Option<Bound>,
    request: Value,
}

impl TokenRequest {
    /// Reads a request that came for this service account.
    pub fn read(request: Value, namespace: &str, account: &str) -> Result<Self, ApiError> {
        let spec = &request["spec"];
        let name = request["metadata"]["name"].as_str().unwrap_or_default();
        if !name.is_empty() && name != account {
            return Err(ApiError::bad_request(format!(
                "service account name must match the name on the URL: {name:?}"
            )));
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_LIFE);
        let faults = validate(seconds, spec);
        if !faults.is_empty() {
            return Err(ApiError::invalid(
                "authentication.k8s.io",
                "TokenRequest",
                "",
                &faults,
            ));
        }
        let audiences = spec["audiences"].as_array().into_iter().flatten();
        Ok(Self {
            namespace: namespace.to_owned(),
            account: account.to_owned(),
            audiences: audiences
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            seconds,
            bound: bound_of(&spec["boundObjectRef"])?,
            request,
        })
    }

    /// The object that must be there.
    pub fn bound(&self) -> Option<&Bound> {
        self.bound.as_ref()
    }

    /// Makes the token; `id` is a new random uuid.
    pub fn issue(
        self,
        tokens: &Tokens,
        keys: &TokenKeys,
        found: &Found<'_>,
        id: String,
        now: Timestamp,
    ) -> Result<Value, ApiError> {
        let mut about = Kubernetes {
            namespace: self.namespace.clone(),
            service_account: reference(found.account),
            ..Kubernetes::default()
        };
        if let Some(wanted) = &self.bound {
            self.bind(&mut about, wanted, found)?;
        }
        let audiences = if self.audiences.is_empty() {
            tokens.audiences().to_vec()
        } else {
            self.audiences.clone()
        };
        let issued = now.as_second();
        let mut life = self.seconds;
        let for_us = audiences
            .iter()
            .all(|audience| tokens.audiences().contains(audience));
        if about.pod.is_some() && life == EXTENDED_WHEN && for_us {
            about.warn_after = Some(issued.saturating_add(life));
            life = EXTENDED_LIFE;
        }
        let claims = Claims {
            expires: issued.saturating_add(life),
            issued,
            not_before: issued,
            issuer: tokens.issuer().to_owned(),
            subject: service_account_name(&self.namespace, &self.account),
            audiences: audiences.clone(),
            kubernetes: about,
            id,
        };
        let token = tokens
            .sign(keys, &claims)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        self.answer(&audiences, &token, now)
    }

    fn bind(
        &self,
        about: &mut Kubernetes,
        wanted: &Bound,
        objects: &Found<'_>,
    ) -> Result<(), ApiError> {
        let (plural, kind) = wanted.kind.words();
        let missing = || ApiError::not_found("", plural, &wanted.name);
        let object = objects.bound.ok_or_else(missing)?;
        let found = reference(object);
        match wanted.kind {
            BoundKind::Pod => {
                let runs_as = object["spec"]["serviceAccountName"]
                    .as_str()
                    .unwrap_or_default();
                if runs_as != self.account {
                    return Err(ApiError::bad_request(format!(
                        "cannot bind token for serviceaccount {:?} to pod running with serviceaccount {runs_as:?}",
                        self.account
                    )));
                }
                let runs_on = object["spec"]["nodeName"].as_str().unwrap_or_default();
                if !runs_on.is_empty() {
                    about.node = Some(objects.node.map_or_else(
                        || Reference {
                            name: runs_on.to_owned(),
                            uid: String::new(),
                        },
                        reference,
                    ));
                }
                about.pod = Some(found.clone());
            }
            BoundKind::Secret => about.secret = Some(found.clone()),
            BoundKind::Node => about.node = Some(found.clone()),
        }
        if wanted.uid.is_empty() || wanted.uid == found.uid {
            return Ok(());
        }
        Err(ApiError::conflict(
            "",
            kind,
            &wanted.name,
            &format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
                wanted.uid
            ),
        ))
    }

    fn answer(self, audiences: &[String], token: &str, now: Timestamp) -> Result<Value, ApiError> {
        let life = SignedDuration::from_secs(self.seconds);
        let ends = now
            .checked_add(life)
            .ok()
            .and_then(|ends| Timestamp::from_second(ends.as_second()).ok())
            .ok_or_else(|| ApiError::internal("the token would end after all time"))?;
        let mut answer = self.request;
        answer["kind"] = "TokenRequest".into();
        answer["apiVersion"] = "authentication.k8s.io/v1".into();
        answer["metadata"]["name"] = self.account.into();
        answer["metadata"]["namespace"] = self.namespace.into();
        answer["metadata"]["creationTimestamp"] = seconds_of(now).into();
        answer["spec"]["audiences"] = json!(audiences);
        answer["spec"]["expirationSeconds"] = self.seconds.into();
        answer["status"] = json!({"token": token, "expirationTimestamp": ends.to_string()});
        Ok(answer)
    }
}

impl BoundKind {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pod => ("pods", "Pod"),
            Self::Secret => ("secrets", "Secret"),
            Self::Node => ("nodes", "Node"),
        }
    }
}

fn seconds_of(now: Timestamp) -> String {
    let whole = Timestamp::from_second(now.as_second());
    whole.unwrap_or(now).to_string()
}

fn validate(seconds: i64, spec: &Value) -> Vec<FieldError> {
    let path = Path::new("spec").child("expirationSeconds");
    let mut faults = Vec::new();
    if seconds < SHORTEST_LIFE {
        let text = "may not specify a duration less than 10 minutes";
        faults.push(FieldError::invalid(&path, seconds, text));
    }
    if seconds > LONGEST_LIFE {
        let text = "may not specify a duration larger than 2^32 seconds";
        faults.push(FieldError::invalid(&path, seconds, text));
    }
    let audiences = &spec["audiences"];
    let are_texts = audiences
        .as_array()
        .is_none_or(|list| list.iter().all(Value::is_string));
    if !are_texts {
        let path = Path::new("spec").child("audiences");
        let text = "must be a list of strings";
        faults.push(FieldError::type_invalid(&path, audiences.clone(), text));
    }
    faults
}

fn bound_of(reference: &Value) -> Result<Option<Bound>, ApiError> {
    if reference.is_null() {
        return Ok(None);
    }
    let text = |key: &str| reference[key].as_str().unwrap_or_default().to_owned();
    let kind = match (text("apiVersion").as_str(), text("kind").as_str()) {
        ("v1", "Pod") => BoundKind::Pod,
        ("v1", "Secret") => BoundKind::Secret,
        ("v1", "Node") => BoundKind::Node,
        (version, kind) => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {}, Kind={kind}",
                if version.contains('/') {
                    version.to_owned()
                } else {
                    format!("/{version}")
                }
            )));
        }
    };
    Ok(Some(Bound {
        kind,
        name: text("name"),
        uid: text("uid"),
    }))
}

fn reference(object: &Value) -> Reference {
    let text = |key: &str| {
        let value = object["metadata"][key].as_str();
        value.unwrap_or_default().to_owned()
    };
    Reference {
        name: text("name"),
        uid: text("uid"),
    }
}
