//! How long a certificate is good, and when the next one is asked for.
//!
//! Invariant: the moment depends on the certificate alone. A restart does not change it, and nodes that joined
//! together do not renew together.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// From when until when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    begins: Timestamp,
    ends: Timestamp,
    /// Drawn out of the certificate, any number as likely as another.
    draw: u16,
}

impl Life {
    /// `None` if the text is no certificate.
    pub(super) fn of(certificate: &str) -> Option<Self> {
        let block = pem::parse(certificate).ok()?;
        let (_, parsed) = X509Certificate::from_der(block.contents()).ok()?;
        let validity = parsed.validity();
        let digest = Sha256::digest(block.contents());
        Some(Self {
            begins: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            ends: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
            draw: u16::from_be_bytes([digest[0], digest[1]]),
        })
    }

    /// Between 70 and 90 percent of its life, as kubelets do.
    pub(super) fn renewal(&self) -> Timestamp {
        let all = self.ends.as_millisecond() - self.begins.as_millisecond();
        let (most, draw) = (i64::from(u16::MAX), i64::from(self.draw));
        let used = all / 10 * 7 + all / 5 * draw / most;
        self.begins
            .saturating_add(SignedDuration::from_millis(used))
            .unwrap_or(self.ends)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.ends < now
    }

    pub(super) fn ends(&self) -> Timestamp {
        self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(draw: u16) -> Life {
        Life {
            begins: Timestamp::from_second(1_000).unwrap(),
            ends: Timestamp::from_second(2_000).unwrap(),
            draw,
        }
    }

    #[test]
    fn a_certificate_is_renewed_between_seven_and_nine_tenths_of_its_life() {
        for (draw, expected) in [(0, 1_700), (u16::MAX, 1_900), (u16::MAX / 2, 1_799)] {
            assert_eq!(
                life(draw).renewal().as_second(),
                expected,
                "a draw of {draw}"
            );
        }
    }

    #[test]
    fn the_longest_life_has_a_moment_for_its_renewal() {
        let longest = Life {
            begins: Timestamp::MIN,
            ends: Timestamp::MAX,
            draw: u16::MAX,
        };
        assert!(longest.renewal() < Timestamp::MAX);
        assert!(longest.renewal() > Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn a_certificate_is_good_until_its_last_second() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(!life(0).is_over(at(2_000)));
        assert!(life(0).is_over(at(2_001)));
    }

    #[test]
    fn what_is_no_certificate_has_no_life() {
        for text in [
            "",
            "nonsense",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert_eq!(Life::of(text), None, "{text}");
        }
    }
}
