//! A whole store in one file, at one revision.
//!
//! The file is a mark, a format version, records (kind, length, protobuf) and the SHA-256 of all before
//! it. It appears under its name when it is complete and durable, or not at all.

mod read;
mod record;
mod write;

pub(crate) use read::{Piece, Reader, verify};
pub(crate) use write::write;
