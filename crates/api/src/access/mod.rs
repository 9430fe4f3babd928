//! Who is asking, and whether they may.
//!
//! Nothing here reads a request or the store: the server hands in what came, and gets a decision back.

pub mod authentication;
pub mod authorization;
pub mod encryption;
pub mod limits;
pub mod pki;

/// A list of texts as upstream's messages show one: `["a" "b"]`.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}
