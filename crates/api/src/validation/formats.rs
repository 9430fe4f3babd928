//! The forms that names and other texts must have, with upstream's sentences about what is wrong.
//!
//! Each function returns one sentence per fault; no sentence means that the text is fine.

use std::net::IpAddr;

use crate::field::{FieldError, Path};

pub(crate) type Messages = Vec<String>;

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const UNDERSCORE_PATTERN: &str =
    "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const UNDERSCORE_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
const OLD_LABEL_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const OLD_LABEL_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const WILDCARD_PATTERN: &str =
    "\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const WILDCARD_RULE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
const QUALIFIED_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const KEY_RULE: &str =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
const VARIABLE_RULE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";

pub(crate) fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

pub(crate) fn range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// A rule with its pattern and examples. The doubled space is upstream's.
fn rule(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let mut sentence = format!("{rule} (");
    if !examples.is_empty() {
        sentence.push_str("e.g. ");
        for (index, example) in examples.iter().enumerate() {
            if index > 0 {
                sentence.push_str(" or ");
            }
            sentence.push_str(&["'", example, "', "].concat());
        }
    }
    sentence.push_str(&["regex used for validation is '", pattern, "')"].concat());
    sentence
}

fn is_label_text(text: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|byte| edge(byte) || *byte == b'-')
}

fn is_subdomain_text(text: &str) -> bool {
    text.split('.').all(is_label_text)
}

fn is_qualified_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// One part of a domain name, as in RFC 1123.
pub(crate) fn label(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > LABEL_LENGTH {
        messages.push(too_long(LABEL_LENGTH));
    }
    if !is_label_text(text) {
        if is_subdomain_text(text) {
            messages.push("must not contain dots".to_owned());
        } else {
            messages.push(rule(LABEL_RULE, LABEL_PATTERN, &["my-name", "123-abc"]));
        }
    }
    messages
}

/// A domain name, as in RFC 1123.
pub(crate) fn subdomain(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !is_subdomain_text(text) {
        messages.push(rule(SUBDOMAIN_RULE, SUBDOMAIN_PATTERN, &["example.com"]));
    }
    messages
}

/// A domain name whose parts may hold underscores, as search paths do.
pub(crate) fn subdomain_with_underscores(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    let fine = text.split('.').all(|part| {
        let part = part.strip_prefix('_').unwrap_or(part);
        !part.starts_with('_') && !part.ends_with('_') && is_label_text(&part.replace('_', "-"))
    });
    if !fine {
        messages.push(rule(UNDERSCORE_RULE, UNDERSCORE_PATTERN, &["example.com"]));
    }
    messages
}

/// One part of a domain name that starts with a letter, as in RFC 1035.
pub(crate) fn old_label(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > LABEL_LENGTH {
        messages.push(too_long(LABEL_LENGTH));
    }
    if !is_label_text(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        messages.push(rule(
            OLD_LABEL_RULE,
            OLD_LABEL_PATTERN,
            &["my-name", "abc-123"],
        ));
    }
    messages
}

/// A domain name whose first part is an asterisk.
pub(crate) fn wildcard_subdomain(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain_text) {
        messages.push(rule(WILDCARD_RULE, WILDCARD_PATTERN, &["*.example.com"]));
    }
    messages
}

/// A name that can stand in a path as it is.
pub(crate) fn path_segment(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text == "." || text == ".." {
        messages.push(format!("may not be '{text}'"));
        return messages;
    }
    messages.extend(path_segment_prefix(text));
    messages
}

/// The beginning of a name that can stand in a path.
pub(crate) fn path_segment_prefix(text: &str) -> Messages {
    ["/", "%"]
        .into_iter()
        .filter(|forbidden| text.contains(forbidden))
        .map(|forbidden| format!("may not contain '{forbidden}'"))
        .collect()
}

/// The key of a label or annotation: a name with an optional domain before a slash.
pub(crate) fn qualified_name(text: &str) -> Messages {
    let examples = &["MyName", "my.name", "123-abc"];
    let mut messages = Messages::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else {
                messages.extend(
                    subdomain(prefix)
                        .into_iter()
                        .map(|message| format!("prefix part {message}")),
                );
            }
            *name
        }
        _ => {
            messages.push(format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                rule(QUALIFIED_RULE, QUALIFIED_PATTERN, examples)
            ));
            return messages;
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        messages.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !is_qualified_text(name) {
        messages.push(format!(
            "name part {}",
            rule(QUALIFIED_RULE, QUALIFIED_PATTERN, examples)
        ));
    }
    messages
}

pub(crate) fn label_value(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > LABEL_LENGTH {
        messages.push(too_long(LABEL_LENGTH));
    }
    if !text.is_empty() && !is_qualified_text(text) {
        messages.push(rule(
            LABEL_VALUE_RULE,
            &format!("({QUALIFIED_PATTERN})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    messages
}

/// A key in a config map or secret, which becomes a file name.
pub(crate) fn config_key(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_LENGTH {
        messages.push(too_long(SUBDOMAIN_LENGTH));
    }
    let fine = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !fine {
        messages.push(rule(
            KEY_RULE,
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match text {
        "." => messages.push("must not be '.'".to_owned()),
        ".." => messages.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

pub(crate) fn environment_variable(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.is_empty() {
        messages.push("environment variable name must be non-empty".to_owned());
    }
    if text
        .chars()
        .any(|each| !(' '..='~').contains(&each) || each == '=')
    {
        messages.push(VARIABLE_RULE.to_owned());
    }
    messages
}

pub(crate) fn port_name(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > 15 {
        messages.push(too_long(15));
    }
    let charset = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || !text.bytes().all(charset) {
        messages.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        messages.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        messages.push("must not begin or end with a hyphen".to_owned());
    }
    messages
}

pub(crate) fn port_number(number: i64) -> Messages {
    in_range(number, 1, 65535)
}

pub(crate) fn in_range(number: i64, low: i64, high: i64) -> Messages {
    if (low..=high).contains(&number) {
        Messages::new()
    } else {
        vec![range(low, high)]
    }
}

/// A user or group id.
pub(crate) fn unix_id(number: i64) -> Messages {
    in_range(number, 0, i64::from(u32::MAX))
}

pub(crate) fn percentage(text: &str) -> Messages {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Messages::new();
    }
    vec![rule(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

pub(crate) fn header_name(text: &str) -> Messages {
    let fine = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fine {
        return Messages::new();
    }
    vec![rule(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// A domain, a slash and a path, like the names of controllers.
pub(crate) fn domain_prefixed_path(text: &str, path: &Path) -> Vec<FieldError> {
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let Some((domain, rest)) = text
        .split_once('/')
        .filter(|(domain, rest)| !domain.is_empty() && !rest.is_empty())
    else {
        return vec![FieldError::invalid(
            path,
            text,
            "must be a domain-prefixed path (such as \"acme.io/foo\")",
        )];
    };
    let mut faults: Vec<FieldError> = subdomain(domain)
        .into_iter()
        .map(|message| FieldError::invalid(path, domain, message))
        .collect();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(allowed) {
        faults.push(FieldError::invalid(
            path,
            rest,
            rule("Invalid path", "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+", &[]),
        ));
    }
    faults
}

/// An address of either family.
pub(crate) fn ip(text: &str, path: &Path) -> Option<FieldError> {
    text.parse::<IpAddr>().err().map(|_| {
        FieldError::invalid(
            path,
            text,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        )
    })
}

/// The network of a range like `10.0.0.0/8`, when it is one.
pub(crate) fn parse_range(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    if bits.is_empty() || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let bits: u8 = bits.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((address, bits))
}

/// A range of addresses of either family.
pub(crate) fn ip_range(text: &str, path: &Path) -> Option<FieldError> {
    parse_range(text).is_none().then(|| {
        FieldError::invalid(
            path,
            text,
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        )
    })
}

/// Whether a list has exactly one address of each family.
pub(crate) fn is_dual_stack(addresses: &[IpAddr]) -> bool {
    addresses.iter().any(IpAddr::is_ipv4) && addresses.iter().any(IpAddr::is_ipv6)
}
