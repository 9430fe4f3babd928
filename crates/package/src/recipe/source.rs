//! Where a package's sources come from. Invariant: a source that was read is pinned to its content.

use std::collections::BTreeMap;

use crate::fault::{Faults, Place, nearest};
use crate::json::Json;

/// The kinds that recipes know.
const KINDS: [&str; 4] = ["git", "git_local", "url", "url_extract"];

/// One source of a package, pinned to its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A commit of a git repository. A warning tells when `origin`, the branch or tag it was taken
    /// from, has moved.
    Git {
        url: String,
        commit: String,
        origin: String,
    },
    /// The committed state of a repository beside the recipe: its tracked files must be clean.
    GitLocal { path: String },
    /// A file, as it is. `file://` paths start at the package's folder.
    Url { url: String, sha1: String },
    /// An archive, unpacked without its first folder.
    UrlExtract { url: String, sha1: String },
}

/// Reads one source object. What is only doubtful goes to `warnings`.
pub(crate) fn read_source(
    place: &Place<'_>,
    json: &Json,
    faults: &mut Faults,
    warnings: &mut Faults,
) -> Option<Source> {
    let Some(fields) = json.as_object() else {
        faults.push(place.wrong_type("an object that describes a source", json));
        return None;
    };
    let kind = match fields.get("kind") {
        None => {
            let message = format!("has no `kind`; a source is one of {}", KINDS.join(", "));
            faults.push(place.fault(message));
            return None;
        }
        Some(kind) => match kind.as_text() {
            None => {
                faults.push(place.key("kind", kind).wrong_type("a text", kind));
                return None;
            }
            Some(text) if !KINDS.contains(&text) => {
                let mut fault = place.key("kind", kind).fault(format!(
                    "`{text}` is no kind of source; known are {}",
                    KINDS.join(", ")
                ));
                if let Some(near) = nearest(text, KINDS) {
                    fault = fault.hint(format!("did you mean `{near}`?"));
                }
                faults.push(fault);
                return None;
            }
            Some(text) => text,
        },
    };
    let keys: &[&str] = match kind {
        "git" => &["git", "ref", "ref_origin"],
        "git_local" => &["rel_path"],
        _ => &["url", "sha1"],
    };
    let values = texts(place, kind, fields, keys, faults)?;
    let value = |at: usize| values[at].1.to_owned();
    let at = |at: usize| place.key(keys[at], values[at].0);
    match kind {
        "git" => {
            if !is_commit(values[1].1) {
                let fault = at(1).fault("must be a commit: 40 hexadecimal digits, not all zero");
                faults.push(fault.hint("put the branch or tag into `ref_origin`"));
                return None;
            }
            Some(Source::Git {
                url: value(0),
                commit: value(1),
                origin: value(2),
            })
        }
        "git_local" => {
            if is_absolute(values[0].1) {
                let fault = at(0).fault("must be relative to the package's folder");
                faults.push(fault.hint("others who clone the tree have other absolute paths"));
                return None;
            }
            Some(Source::GitLocal { path: value(0) })
        }
        _ => {
            if !values[0].1.contains("://") {
                let fault = at(0).fault("is no URL: it has no `://`");
                faults.push(fault.hint("a file beside the recipe is `file://NAME`"));
                return None;
            }
            if !is_sha1(values[1].1) {
                // The id can be computed all the same, and was by pkgpanda.
                warnings.push(at(1).fault("is not a SHA-1: no download will ever match it"));
            }
            let (url, sha1) = (value(0), value(1));
            Some(if kind == "url" {
                Source::Url { url, sha1 }
            } else {
                Source::UrlExtract { url, sha1 }
            })
        }
    }
}

/// The texts under `keys`, which must be all that the object has besides `kind`.
fn texts<'a>(
    place: &Place<'_>,
    kind: &str,
    fields: &'a BTreeMap<String, Json>,
    keys: &[&str],
    faults: &mut Faults,
) -> Option<Vec<(&'a Json, &'a str)>> {
    let mut good = true;
    for (key, value) in fields {
        if key != "kind" && !keys.contains(&key.as_str()) {
            let message = format!(
                "a source of kind `{kind}` has {}, and nothing else",
                quoted(keys)
            );
            let mut fault = place.key(key, value).fault(message);
            if let Some(near) = nearest(key, keys.iter().copied()) {
                fault = fault.hint(format!("did you mean `{near}`?"));
            }
            faults.push(fault);
            good = false;
        }
    }
    let mut values = Vec::new();
    for key in keys {
        match fields.get(*key) {
            None => {
                let message = format!("a source of kind `{kind}` must have `{key}`");
                faults.push(place.fault(message));
                good = false;
            }
            Some(json) => match json.as_text() {
                Some(text) => values.push((json, text)),
                None => {
                    faults.push(place.key(key, json).wrong_type("a text", json));
                    good = false;
                }
            },
        }
    }
    good.then_some(values)
}

fn quoted(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}

fn is_commit(text: &str) -> bool {
    is_sha1(text) && text.bytes().any(|byte| byte != b'0')
}

fn is_sha1(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// On any system: a tree is read where it is, and built elsewhere.
pub(super) fn is_absolute(path: &str) -> bool {
    let drive = path.as_bytes().get(1) == Some(&b':');
    drive || path.starts_with(['/', '\\'])
}
