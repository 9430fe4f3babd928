//! The tag of an image reference, which decides how eagerly an image is pulled.

use std::sync::LazyLock;

use regex::Regex;

/// A normalised name, without its tag and digest.
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let part = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
    let host = "(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?";
    Regex::new(&format!("^(?:{host}/)?{part}(?:/{part})*$")).ok()
});

/// The policy for a container whose policy nobody chose.
///
/// A reference that is no valid one counts as having a fixed tag: another rule complains about it.
pub(super) fn pull_policy(reference: &str) -> &'static str {
    if tag(reference) == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    }
}

fn tag(reference: &str) -> Option<&str> {
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let last_part = name.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match name[last_part..].rfind(':') {
        Some(colon) => (
            &name[..last_part + colon],
            Some(&name[last_part + colon + 1..]),
        ),
        None => (name, None),
    };
    if !NAME.as_ref().is_some_and(|pattern| pattern.is_match(name)) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_latest_or_has_no_tag_is_always_pulled() {
        for always in [
            "nginx",
            "nginx:latest",
            "registry.example:5000/a/b",
            "registry.example:5000/a/b:latest",
            "docker.io/library/nginx",
        ] {
            assert_eq!(pull_policy(always), "Always", "{always}");
        }
        for once in [
            "",
            "nginx:1.27",
            "nginx@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "nginx:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "registry.example:5000/a/b:v1",
            "Not A Reference",
            ":",
            "@",
            "/:",
        ] {
            assert_eq!(pull_policy(once), "IfNotPresent", "{once}");
        }
    }
}
