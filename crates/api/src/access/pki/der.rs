//! The few forms of DER that a certificate needs beyond what was read from elsewhere.
//!
//! Lengths are always the shortest ones possible, as DER wants.

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;

/// An explicit tag of its place in the certificate.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// An implicit tag of a plain value.
pub(super) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// A tag, the length, and the parts.
pub(super) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut bytes = vec![tag];
    if let Some(short) = u8::try_from(body.len()).ok().filter(|short| *short < 0x80) {
        bytes.push(short);
    } else {
        let length = body.len().to_be_bytes();
        let zeros = length.iter().take_while(|byte| **byte == 0).count();
        let length = &length[zeros..];
        // A length has at most eight bytes, so this is at most 0x88.
        bytes.extend(u8::try_from(length.len()).map(|count| 0x80 | count));
        bytes.extend_from_slice(length);
    }
    bytes.extend(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_possible() {
        for (length, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (255, &[4, 0x81, 255]),
            (256, &[4, 0x82, 1, 0]),
            (70_000, &[4, 0x83, 1, 0x11, 0x70]),
        ] {
            let body = vec![7; length];
            let bytes = value(OCTET_STRING, &[&body]);
            assert_eq!(&bytes[..head.len()], head);
            assert_eq!(bytes.len(), head.len() + length);
        }
    }
}
