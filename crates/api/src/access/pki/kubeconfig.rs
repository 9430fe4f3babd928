//! The file that tells kubectl where a cluster is and who is asking.
//!
//! Everything is inside: the file works wherever it is copied, and is as secret as the key in it.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::Identity;

/// A kubeconfig with one cluster, one user and one context, all called `name`.
pub fn kubeconfig(server: &str, authorities_pem: &str, user: &Identity, name: &str) -> String {
    // A JSON string is a YAML string, whatever is in it.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (server, name) = (quoted(server), quoted(name));
    let authorities = STANDARD.encode(authorities_pem);
    let certificate = STANDARD.encode(user.certificate_pem());
    let key = STANDARD.encode(user.key_pem());
    let mut text = String::new();
    for line in [
        "apiVersion: v1",
        "kind: Config",
        "clusters:",
        &format!("- name: {name}"),
        "  cluster:",
        &format!("    server: {server}"),
        &format!("    certificate-authority-data: {authorities}"),
        "users:",
        &format!("- name: {name}"),
        "  user:",
        &format!("    client-certificate-data: {certificate}"),
        &format!("    client-key-data: {key}"),
        "contexts:",
        &format!("- name: {name}"),
        "  context:",
        &format!("    cluster: {name}"),
        &format!("    user: {name}"),
        &format!("current-context: {name}"),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The same kubeconfig for another address of the server.
pub fn with_server(kubeconfig: &str, server: &str) -> String {
    kubeconfig
        .lines()
        .map(|line| match line.split_once("server: ") {
            Some((indent, _)) if indent.trim().is_empty() => format!("{indent}server: {server}\n"),
            _ => format!("{line}\n"),
        })
        .collect()
}
