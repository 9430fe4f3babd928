//! The token of a client that can set no headers: a browser offers it as a subprotocol of its web socket.
//!
//! The token is never echoed: it must stand beside another subprotocol, which is the one to agree on.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, header};

/// How such a subprotocol begins; the rest is the token in the alphabet of URLs.
pub(crate) const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The token that a web socket offers, `None` without one. What cannot be read is an empty one, which is nobody's.
pub(crate) fn offered_token(headers: &HeaderMap) -> Option<String> {
    let is_websocket = headers
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_websocket {
        return None;
    }
    let words: Vec<&str> = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let mut tokens = words
        .iter()
        .filter_map(|word| word.strip_prefix(TOKEN_PROTOCOL));
    let token = tokens.next()?;
    let is_clear = tokens.next().is_none() && words.len() > 1;
    let bytes = URL_SAFE_NO_PAD.decode(token).ok().filter(|_| is_clear);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Some(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(upgrade: &str, protocols: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, upgrade.parse().unwrap());
        for protocol in protocols {
            headers.append(header::SEC_WEBSOCKET_PROTOCOL, protocol.parse().unwrap());
        }
        offered_token(&headers)
    }

    #[test]
    fn a_token_stands_beside_another_subprotocol() {
        let token = format!("{TOKEN_PROTOCOL}{}", URL_SAFE_NO_PAD.encode("sesame"));
        let both = format!("v5.channel.k8s.io, {token}");
        let found = Some("sesame".to_owned());
        assert_eq!(offered("websocket", &[&both]), found);
        assert_eq!(offered("WebSocket", &[&token, "v5.channel.k8s.io"]), found);
        assert_eq!(offered("SPDY/3.1", &[&both]), None);
        assert_eq!(offered("websocket", &["v5.channel.k8s.io"]), None);
        assert_eq!(offered("websocket", &[]), None);
        let broken = format!("{TOKEN_PROTOCOL}!!, v5.channel.k8s.io");
        for unclear in [&[token.as_str()][..], &[&both, &token], &[&broken]] {
            assert_eq!(offered("websocket", unclear), Some(String::new()));
        }
    }
}
