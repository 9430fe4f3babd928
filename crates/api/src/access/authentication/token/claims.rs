//! What a token says, in the names of upstream.
//!
//! A field that is not known is ignored; one that is known and of another form is an error.

use serde::{Deserialize, Deserializer, Serialize};

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    #[serde(rename = "aud", deserialize_with = "one_or_several")]
    pub audiences: Vec<String>,
    #[serde(rename = "exp")]
    pub expires: i64,
    #[serde(rename = "iat")]
    pub issued: i64,
    #[serde(rename = "iss")]
    pub issuer: String,
    #[serde(rename = "jti", default)]
    pub id: String,
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Kubernetes,
    #[serde(rename = "nbf")]
    pub not_before: i64,
    #[serde(rename = "sub")]
    pub subject: String,
}

/// Whose token it is, and what it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubernetes {
    pub namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    #[serde(rename = "serviceaccount")]
    pub service_account: Reference,
    #[serde(rename = "warnafter", skip_serializing_if = "Option::is_none")]
    pub warn_after: Option<i64>,
}

/// One object at one time: a name can be used again, a uid cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// One audience may stand there without a list.
fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audiences {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Audiences::deserialize(from)? {
        Audiences::One(audience) => vec![audience],
        Audiences::Several(audiences) => audiences,
    })
}
