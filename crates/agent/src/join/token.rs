//! The token a machine joins with: who the cluster is, and that we are wanted there.

use std::fmt;
use std::str::FromStr;

use rustls::crypto::aws_lc_rs;

use super::authority::Pin;

/// Begins every token, so that a later form can be told apart.
const FORM: &str = "t1";

const ALPHABET: [char; 36] = [
    'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's',
    't', 'u', 'v', 'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
];

/// `t1.<digest of the authority>.<id>.<secret>`. The last two are a bootstrap token of Kubernetes.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    pub pin: Pin,
    pub id: String,
    secret: String,
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JoinToken({}…)", self.id)
    }
}

/// The text is no token. It is not repeated: most of it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a join token: {reason}; copy the whole line that `transom token create` prints"
)]
pub struct InvalidToken {
    reason: &'static str,
}

/// The system has no random numbers to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random numbers")]
pub struct NoRandomness;

impl JoinToken {
    /// A token of parts that a server made.
    pub fn new(pin: Pin, id: &str, secret: &str) -> Result<Self, InvalidToken> {
        let is_word = |text: &str, length| {
            text.len() == length
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !is_word(id, 6) {
            return Err(InvalidToken {
                reason: "its id has not six small letters or digits",
            });
        }
        if !is_word(secret, 16) {
            return Err(InvalidToken {
                reason: "its secret has not sixteen small letters or digits",
            });
        }
        Ok(Self {
            pin,
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// A new one. Letters and digits of 36, drawn without preference.
    pub fn generate(pin: Pin) -> Result<Self, NoRandomness> {
        let random = aws_lc_rs::default_provider().secure_random;
        let word = |length: usize| {
            let mut text = String::with_capacity(length);
            while text.len() < length {
                let mut bytes = [0; 32];
                random.fill(&mut bytes).map_err(|_| NoRandomness)?;
                // 252 is the largest multiple of 36 in a byte: what is above would favour the first letters.
                let drawn = bytes.iter().filter(|byte| **byte < 252);
                text.extend(
                    drawn
                        .take(length - text.len())
                        .map(|byte| ALPHABET[usize::from(byte % 36)]),
                );
            }
            Ok(text)
        };
        Ok(Self {
            pin,
            id: word(6)?,
            secret: word(16)?,
        })
    }

    /// The part that the API keeps beside the id. Never for a log.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The part that the API knows.
    pub(super) fn bearer(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The whole of it, for whoever asked for a token. Never for a log.
    pub fn reveal(&self) -> String {
        format!("{FORM}.{}.{}.{}", self.pin, self.id, self.secret)
    }
}

impl FromStr for JoinToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let [form, pin, id, secret] = parts[..] else {
            return Err(InvalidToken {
                reason: "it has not four parts with dots between them",
            });
        };
        if form != FORM {
            return Err(InvalidToken {
                reason: "it does not begin with `t1.`",
            });
        }
        let pin = pin.parse().map_err(|()| InvalidToken {
            reason: "its second part is not a SHA-256 digest in hexadecimal",
        })?;
        Self::new(pin, id, secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";

    #[test]
    fn a_token_is_read_as_it_was_shown() {
        let text = format!("t1.{PIN}.abcdef.0123456789abcdef");
        let token: JoinToken = format!("  {text}\n").parse().unwrap();
        assert_eq!(token.reveal(), text);
        assert_eq!(token.bearer(), "abcdef.0123456789abcdef");
    }

    #[test]
    fn what_is_wrong_with_a_token_is_said_without_its_secret() {
        let cases = [
            ("abcdef.0123456789abcdef".to_owned(), "four parts"),
            (format!("t2.{PIN}.abcdef.0123456789abcdef"), "t1."),
            ("t1.00ff.abcdef.0123456789abcdef".to_owned(), "SHA-256"),
            (format!("t1.{PIN}.abcde.0123456789abcdef"), "its id"),
            (format!("t1.{PIN}.abcdef.0123456789ABCDEF"), "its secret"),
        ];
        for (text, expected) in cases {
            let fault = text.parse::<JoinToken>().unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
            assert!(!fault.contains("0123456789"), "{fault}");
        }
    }

    #[test]
    fn new_tokens_are_good_and_different() {
        let pin: Pin = PIN.parse().unwrap();
        let first = JoinToken::generate(pin).unwrap();
        let second = JoinToken::generate(pin).unwrap();
        assert_ne!(first.reveal(), second.reveal());
        assert_eq!(first.reveal().parse(), Ok(first));
    }

    #[test]
    fn a_token_is_not_printed_with_its_secret() {
        let token: JoinToken = format!("t1.{PIN}.abcdef.0123456789abcdef").parse().unwrap();
        assert_eq!(format!("{token:?}"), "JoinToken(abcdef…)");
    }
}
