//! Bytes between two lines of dashes.
//!
//! Lines have 64 characters, as every reader of such files expects.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// One section of a PEM file.
pub(super) fn section(label: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let mut text = format!("-----BEGIN {label}-----\n");
    for (index, character) in body.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text + &format!("\n-----END {label}-----\n")
}
