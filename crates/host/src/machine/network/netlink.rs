//! Just enough of rtnetlink to dump tables: one request, messages, attributes. Lengths come from the
//! kernel and are still checked, so no answer can make us read outside its bytes.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

const HEADER: usize = 16;
const FLAG_REQUEST: u16 = 0x1;
const FLAG_ACKNOWLEDGE: u16 = 0x4;
const FLAG_DUMP: u16 = 0x300;
const FLAG_DUMP_INTERRUPTED: u16 = 0x10;
const TYPE_ERROR: u16 = 2;
const TYPE_DONE: u16 = 3;
/// The kernel sends dumps in pieces of at most this size.
const BUFFER: usize = 64 * 1024;
/// A table that changes all the time is given up on after so many tries.
const TRIES: usize = 8;

/// One message of an answer: its type, and its body behind the header.
pub(in super::super) struct Message {
    pub kind: u16,
    pub body: Vec<u8>,
}

/// Asks for all entries of a table. `body` is the fixed part of the request, mostly zeros.
pub(super) fn dump(kind: u16, body: &[u8]) -> io::Result<Vec<Message>> {
    for _ in 0..TRIES {
        if let Some(messages) = dump_once(kind, body)? {
            return Ok(messages);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "the table changed each time it was read",
    ))
}

/// None if the table changed while it was read, so that entries may be missing.
fn dump_once(kind: u16, body: &[u8]) -> io::Result<Option<Vec<Message>>> {
    // The route family is protocol 0, which is the default.
    let socket = connect(None)?;
    let request = request(kind, FLAG_DUMP, body);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut messages = Vec::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        let (_, length) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::TRUNC)?;
        let answer = buffer
            .get(..length)
            .ok_or_else(|| invalid("an answer was cut off"))?;
        match parse(answer, &mut messages)? {
            Progress::More => {}
            Progress::Done => return Ok(Some(messages)),
            Progress::Interrupted => return Ok(None),
        }
    }
}

/// Asks for something to be done, and returns once the kernel has said whether it was.
pub(in super::super) fn ask(
    protocol: Option<Protocol>,
    kind: u16,
    flags: u16,
    body: &[u8],
) -> io::Result<()> {
    /// An answer of more pieces than this is none to our question.
    const PIECES: usize = 64;
    let socket = connect(protocol)?;
    let request = request(kind, flags | FLAG_ACKNOWLEDGE, body);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    for _ in 0..PIECES {
        let (_, length) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::TRUNC)?;
        let answer = buffer
            .get(..length)
            .ok_or_else(|| invalid("an answer was cut off"))?;
        if parse(answer, &mut Vec::new())? == Progress::Done {
            return Ok(());
        }
    }
    Err(invalid("an answer without an end"))
}

fn connect(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(Duration::from_secs(5)),
    )?;
    Ok(socket)
}

fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((FLAG_REQUEST | flags).to_ne_bytes());
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

#[derive(Debug, PartialEq, Eq)]
enum Progress {
    More,
    Done,
    Interrupted,
}

/// Takes the messages out of one piece of an answer.
fn parse(mut bytes: &[u8], messages: &mut Vec<Message>) -> io::Result<Progress> {
    while !bytes.is_empty() {
        let length =
            u32_at(bytes, 0).ok_or_else(|| invalid("a message without a header"))? as usize;
        let kind = u16_at(bytes, 4).ok_or_else(|| invalid("a message without a type"))?;
        let flags = u16_at(bytes, 6).ok_or_else(|| invalid("a message without flags"))?;
        let body = bytes
            .get(HEADER..length)
            .ok_or_else(|| invalid("a message longer than its answer"))?;
        if flags & FLAG_DUMP_INTERRUPTED != 0 {
            return Ok(Progress::Interrupted);
        }
        match kind {
            TYPE_DONE => return Ok(Progress::Done),
            TYPE_ERROR => {
                let code = u32_at(body, 0).map_or(0, u32::cast_signed);
                // The acknowledgement of a request is an error message without an error.
                if code == 0 {
                    return Ok(Progress::Done);
                }
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            _ => messages.push(Message {
                kind,
                body: body.to_vec(),
            }),
        }
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
    }
    Ok(Progress::More)
}

/// The attributes behind the fixed part of a body, as type and value.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// The two highest bits of a type are flags.
    const TYPE_MASK: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & TYPE_MASK;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(two.try_into().ok()?))
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = request(kind, flags, body);
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn an_answer_ends_with_done() {
        let mut messages = Vec::new();
        let answer = [message(16, 2, b"abcde"), message(TYPE_DONE, 2, &[0; 4])].concat();
        assert_eq!(parse(&answer, &mut messages).unwrap(), Progress::Done);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].body, b"abcde");
        assert_eq!(
            parse(&message(16, 2, b""), &mut messages).unwrap(),
            Progress::More
        );
    }

    #[test]
    fn a_dump_during_a_change_is_not_taken() {
        let answer = message(16, FLAG_DUMP_INTERRUPTED, b"");
        assert_eq!(
            parse(&answer, &mut Vec::new()).unwrap(),
            Progress::Interrupted
        );
    }

    #[test]
    fn an_error_of_the_kernel_is_told() {
        let answer = message(TYPE_ERROR, 0, &(-1_i32).to_ne_bytes());
        let error = parse(&answer, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, &mut Vec::new());
            prop_assert!(attributes(&bytes).count() <= 50);
        }
    }
}
