//! Names that follow from what they name: hashes of templates as people know them.

use serde_json::Value;

const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1a over 32 bits.
pub(crate) fn fnv32a(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// Writes a number with letters that form no words and do not look alike.
pub(crate) fn encode(number: u32) -> String {
    let digit = |byte: u8| char::from(LETTERS[usize::from(byte) % LETTERS.len()]);
    number.to_string().bytes().map(digit).collect()
}

/// The hash of a template. The count of collisions makes another name where one is taken.
pub(crate) fn hash_of(template: &Value, collisions: Option<i32>) -> String {
    let text = template.to_string();
    let mut count = [0_u8; 8];
    let extra = collisions.map_or(&[][..], |collisions| {
        count[..4].copy_from_slice(&collisions.to_le_bytes());
        &count
    });
    encode(fnv32a(&[text.as_bytes(), extra]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_are_those_that_everybody_computes() {
        assert_eq!(fnv32a(&[b""]), 0x811c_9dc5);
        assert_eq!(fnv32a(&[b"foo", b"bar"]), 0xbf9c_f968);
        assert_eq!(encode(1_234_567_890), "56789bcdf4");
    }

    #[test]
    fn a_collision_gives_another_name() {
        let one = json!({"a": 1, "b": 2});
        assert_ne!(hash_of(&one, None), hash_of(&one, Some(0)));
        assert_ne!(hash_of(&one, Some(0)), hash_of(&one, Some(1)));
    }
}
