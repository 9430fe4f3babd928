//! The formats of texts that a schema may ask for. A format that is not known is no condition.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use crate::schema::time;

/// Whether a text has a format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => time::parse(text).is_ok(),
        "date" => time::parse(&format!("{text}T00:00:00Z")).is_ok(),
        "byte" => STANDARD.decode(text).is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_network(text),
        "mac" => is_hardware_address(text),
        "uuid" => matches(&UUID, text),
        "uuid3" => matches(&UUID, text) && version_of(text) == Some('3'),
        "uuid4" => matches(&UUID, text) && version_of(text) == Some('4'),
        "uuid5" => matches(&UUID, text) && version_of(text) == Some('5'),
        "hostname" => text.len() <= 255 && matches(&HOST_NAME, text),
        "email" => matches(&EMAIL, text),
        "uri" => text.starts_with('/') || url::Url::parse(text).is_ok(),
        "duration" => matches(&DURATION, text),
        _ => true,
    }
}

type Pattern = LazyLock<Option<Regex>>;

static UUID: Pattern = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static HOST_NAME: Pattern = LazyLock::new(|| {
    Regex::new(r"^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.?$").ok()
});
static EMAIL: Pattern =
    LazyLock::new(|| Regex::new(r"^[^\s@<>()\[\],;:]+@[^\s@<>()\[\],;:]+$").ok());
static DURATION: Pattern = LazyLock::new(|| {
    Regex::new(r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(ns|us|µs|μs|ms|s|m|h|d|w)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$").ok()
});

/// A pattern of ours that did not compile would fit nothing; the tests would tell.
fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(text))
}

/// The digit of an UUID that tells how it was made.
fn version_of(text: &str) -> Option<char> {
    text.chars().filter(|character| *character != '-').nth(12)
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_hardware_address(text: &str) -> bool {
    let separator = if text.contains(':') { ':' } else { '-' };
    let parts: Vec<&str> = text.split(separator).collect();
    [6, 8, 20].contains(&parts.len())
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_knows_its_texts() {
        for (format, good, bad) in [
            ("date-time", "2026-01-01T00:00:00Z", "2026-01-01"),
            ("date", "2026-01-01", "2026-02-30"),
            ("byte", "aGk=", "%"),
            ("ipv4", "10.0.0.1", "::1"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "00:11:22:aa:bb:cc", "00:11"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
            (
                "uuid4",
                "123e4567-e89b-42d3-a456-426614174000",
                "123e4567-e89b-12d3-a456-426614174000",
            ),
            ("hostname", "a.example.com", "-a"),
            ("email", "a@b.c", "a b"),
            ("uri", "https://a/b", "nothing"),
            ("duration", "1h30m", "soon"),
        ] {
            assert!(fits(format, good), "{format} {good}");
            assert!(!fits(format, bad), "{format} {bad}");
        }
        assert!(fits("made-up", "anything"));
    }
}
