//! The wire form of protobuf: varints, lengths, tags.
//!
//! Reading never goes past what is there, whatever the bytes say.

use super::ProtobufError;

/// One field as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The fields of a message, one after the other.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field's number and content; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3)
            .ok()
            .filter(|number| *number > 0)
            .ok_or(ProtobufError::Malformed("illegal tag"))?;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| {
                    ProtobufError::Malformed("negative length found during unmarshaling")
                })?;
                Payload::Bytes(self.take(length)?)
            }
            5 => Payload::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(ProtobufError::Malformed("illegal wire type")),
        };
        Ok(Some((number, payload)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Malformed("integer overflow"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(END)?;
        self.0 = rest;
        Ok(*array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(END)?;
        self.0 = rest;
        Ok(taken)
    }
}

const END: ProtobufError = ProtobufError::Malformed("unexpected EOF");

/// A message that is being written.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(super) fn varint(&mut self, mut value: u64) {
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }

    fn tag(&mut self, number: u32, wire_type: u64) {
        self.varint(u64::from(number) << 3 | wire_type);
    }

    pub(crate) fn integer(&mut self, number: u32, value: i64) {
        self.tag(number, 0);
        self.varint(value.cast_unsigned());
    }

    pub(crate) fn double(&mut self, number: u32, value: f64) {
        self.tag(number, 1);
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// A message inside this one, written by `write`.
    pub(crate) fn message<E>(
        &mut self,
        number: u32,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.tag(number, 2);
        let place = self.0.len();
        self.0.push(0);
        write(self)?;
        let length = self.0.len() - place - 1;
        match u8::try_from(length) {
            Ok(short @ 0..128) => self.0[place] = short,
            _ => {
                // One byte was kept free; a longer length moves what was written.
                let mut prefix = Self::default();
                prefix.varint(length as u64);
                self.0.splice(place..=place, prefix.0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_any_size_are_written_in_front() {
        for length in [0, 1, 127, 128, 16_383, 16_384] {
            let mut writer = Writer::default();
            writer
                .message::<()>(3, |inner| {
                    inner.0.extend(vec![7; length]);
                    Ok(())
                })
                .unwrap();
            let mut reader = Reader(&writer.0);

            assert_eq!(
                reader.next().unwrap(),
                Some((3, Payload::Bytes(&vec![7; length])))
            );
            assert_eq!(reader.next().unwrap(), None);
        }
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let mut writer = Writer::default();
        writer.integer(1, -1);

        assert_eq!(writer.0.len(), 11);
        assert_eq!(
            Reader(&writer.0).next().unwrap(),
            Some((1, Payload::Varint(u64::MAX)))
        );
    }

    #[test]
    fn what_ends_too_soon_is_an_error() {
        for bytes in [
            &[0x08][..],
            &[0x0a, 5, 1],
            &[0x09, 1, 2],
            &[0x0d, 1],
            &[0x80],
        ] {
            assert!(Reader(bytes).next().is_err(), "{bytes:?}");
        }
        for bytes in [&[0x00, 1][..], &[0x0b], &[0xff; 11]] {
            assert!(Reader(bytes).next().is_err(), "{bytes:?}");
        }
    }
}
