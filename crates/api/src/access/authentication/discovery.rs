//! What others need to verify our tokens: the `OpenID` discovery document and the public keys.
//!
//! Only public halves of keys are ever here.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::access::pki::{TokenKey, TokenKeys};

pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// The media type of the keys.
pub const KEYS_TYPE: &str = "application/jwk-set+json";

/// The document at [`CONFIGURATION_PATH`]. `server` is how clients reach us, like `https://192.0.2.1:6443`.
pub fn configuration(issuer: &str, server: &str) -> Value {
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{}{KEYS_PATH}", server.trim_end_matches('/')),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// The document at [`KEYS_PATH`].
pub fn keys(keys: &TokenKeys) -> Value {
    let all: Vec<Value> = keys.all().filter_map(public_key).collect();
    json!({"keys": all})
}

fn public_key(key: &TokenKey) -> Option<Value> {
    // An uncompressed point: a 4, and two coordinates of 32 bytes.
    let (4, coordinates) = key
        .public()
        .split_first()
        .map(|(first, rest)| (*first, rest))?
    else {
        return None;
    };
    let (x, y) = coordinates.split_at_checked(32)?;
    Some(json!({
        "use": "sig",
        "kty": "EC",
        "kid": key.id(),
        "crv": "P-256",
        "alg": "ES256",
        "x": URL_SAFE_NO_PAD.encode(x),
        "y": URL_SAFE_NO_PAD.encode(y),
    }))
}
