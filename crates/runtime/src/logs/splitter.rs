//! From bytes as a program writes them to pieces that fit an entry.

use super::Tag;

/// The longest text of one entry. A longer line becomes several.
pub const LONGEST_PIECE: usize = 16 << 10;

/// Cuts one stream of bytes into lines and long lines into pieces. Holds at most one piece.
#[derive(Debug, Default)]
pub struct Splitter {
    held: Vec<u8>,
}

impl Splitter {
    /// Takes bytes in and tells every piece that is complete, without the ends of lines.
    pub fn feed(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Tag, &[u8])) {
        while !bytes.is_empty() {
            let room = LONGEST_PIECE - self.held.len();
            let window = &bytes[..bytes.len().min(room + 1)];
            if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
                self.emit(&bytes[..end], Tag::Full, &mut emit);
                bytes = &bytes[end + 1..];
            } else if bytes.len() > room {
                self.emit(&bytes[..room], Tag::Partial, &mut emit);
                bytes = &bytes[room..];
            } else {
                self.held.extend_from_slice(bytes);
                return;
            }
        }
    }

    /// The stream has ended: what has no end of line is told as a part of a line.
    pub fn finish(&mut self, mut emit: impl FnMut(Tag, &[u8])) {
        if !self.held.is_empty() {
            self.emit(&[], Tag::Partial, &mut emit);
        }
    }

    fn emit(&mut self, rest: &[u8], tag: Tag, emit: &mut impl FnMut(Tag, &[u8])) {
        if self.held.is_empty() {
            emit(tag, rest);
        } else {
            self.held.extend_from_slice(rest);
            emit(tag, &self.held);
            self.held.clear();
        }
    }
}
