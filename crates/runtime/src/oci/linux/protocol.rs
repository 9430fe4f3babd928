//! What the agent and the shim of a pod say to each other over a socket: frames of a length, a channel and
//! content. Invariant: no frame is longer than [`LONGEST_FRAME`], and the first one names the version.
//!
//! The shim may be older than the agent that adopts it: fields are only ever added, with a default.

use std::io;

use serde::{Deserialize, Serialize};

use crate::Ended;

/// Raised when an old shim could no longer understand.
pub(super) const VERSION: u32 = 1;
pub(super) const LONGEST_FRAME: usize = 256 * 1024;
const HEADER: usize = 5;

/// What a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// A [`Request`] or a [`Reply`].
    Control,
    /// Empty content ends the input.
    Input,
    Output,
    Errors,
}

impl Channel {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Control, Self::Input, Self::Output, Self::Errors]
            .into_iter()
            .find(|channel| *channel as u8 == byte)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) version: u32,
    pub(super) call: Call,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Call {
    /// Runs a container whose folder is prepared. Answered by `Started` or `Failed`.
    Start(Start),
    /// Sends a signal to the first process of a container, or to all of them.
    Signal {
        container: String,
        signal: i32,
        all: bool,
    },
    /// Runs a program in a container with the descriptors that come along. Answered by `Started`, which
    /// brings the terminal along if there is one, then by `Ended`. Hanging up kills it.
    Exec {
        container: String,
        terminal: bool,
        process: String,
    },
    /// Joins a container: frames of output come, frames of input go.
    Attach {
        container: String,
        input: bool,
        output: bool,
        errors: bool,
    },
    Resize {
        container: String,
        columns: u16,
        rows: u16,
    },
    ReopenLog {
        container: String,
    },
    /// Tells of every end of a container from now on, as `ContainerEnded`.
    Watch,
    /// Ends the shim and all that runs in it.
    Shutdown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) container: String,
    pub(super) log: String,
    pub(super) stdin: bool,
    pub(super) stdin_once: bool,
    pub(super) terminal: bool,
    /// The file that counts how often memory ran out, and the word before the number.
    pub(super) memory_events: Option<String>,
    /// The file that lists the processes of the container.
    pub(super) processes: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Done,
    Started { pid: i32 },
    Failed { message: String },
    Ended { exit_code: i32 },
    ContainerEnded { container: String, ended: Ended },
}

/// A frame as bytes.
pub(super) fn frame(channel: Channel, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADER + content.len());
    bytes.extend(length.to_be_bytes());
    bytes.push(channel as u8);
    bytes.extend(content);
    bytes
}

pub(super) fn control(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let content = serde_json::to_vec(message)?;
    if content.len() > LONGEST_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "a message to the shim is too long",
        ));
    }
    Ok(frame(Channel::Control, &content))
}

/// Takes the first frame out of what was received, once all of it is there.
pub(super) fn take_frame(received: &mut Vec<u8>) -> io::Result<Option<(Channel, Vec<u8>)>> {
    let Some((header, rest)) = received.split_at_checked(HEADER) else {
        return Ok(None);
    };
    let (length, channel) = match header {
        [a, b, c, d, channel] => (u32::from_be_bytes([*a, *b, *c, *d]), *channel),
        _ => return Ok(None),
    };
    let wrong = |text| io::Error::new(io::ErrorKind::InvalidData, text);
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length > LONGEST_FRAME {
        return Err(wrong("a frame is too long"));
    }
    let channel =
        Channel::from_byte(channel).ok_or_else(|| wrong("a frame has an unknown channel"))?;
    if rest.len() < length {
        return Ok(None);
    }
    let content = rest[..length].to_vec();
    received.drain(..HEADER + length);
    Ok(Some((channel, content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_and_in_order_however_they_arrive() {
        let sent = [
            frame(Channel::Input, b"one"),
            frame(Channel::Output, b""),
            frame(Channel::Errors, b"3"),
        ]
        .concat();
        let (mut received, mut taken) = (Vec::new(), Vec::new());
        for byte in sent {
            received.push(byte);
            taken.extend(take_frame(&mut received).expect("a good frame"));
        }
        assert_eq!(
            taken,
            [
                (Channel::Input, b"one".to_vec()),
                (Channel::Output, Vec::new()),
                (Channel::Errors, b"3".to_vec())
            ]
        );
        assert!(received.is_empty());
    }

    #[test]
    fn a_frame_that_is_too_long_or_of_no_channel_is_an_error() {
        let mut long = u32::MAX.to_be_bytes().to_vec();
        long.push(0);
        assert!(take_frame(&mut long).is_err());
        let mut unknown = vec![0, 0, 0, 0, 9];
        assert!(take_frame(&mut unknown).is_err());
    }
}
