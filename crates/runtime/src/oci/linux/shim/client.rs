//! Who is connected to a shim: what he said, and what he has not heard yet.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::descriptors;
use super::super::protocol::{self, Channel};

/// A client that is further behind holds up the container it listens to.
const MOST_PENDING: usize = 256 * 1024;
/// A client that takes nothing for so long is gone.
const LONGEST_STALL: Duration = Duration::from_secs(10);
const CHUNK: usize = 16 * 1024;

/// What a client is connected for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// His request has not come yet, or was answered.
    Asking,
    /// He waits for a helper to end.
    Waiting,
    Watching,
    /// He watches once all that is being started has been written down.
    WatchingSoon,
    Attached {
        container: String,
        input: bool,
        output: bool,
        errors: bool,
    },
    /// He waits for the end of this process, which ends with him.
    Executing {
        pid: i32,
    },
}

pub(super) struct Client {
    stream: UnixStream,
    pub(super) role: Role,
    received: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
    pending: VecDeque<u8>,
    stalled: Option<Instant>,
    /// Goes once he has heard all.
    pub(super) closing: bool,
}

impl Client {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            role: Role::Asking,
            received: Vec::new(),
            descriptors: Vec::new(),
            pending: VecDeque::new(),
            stalled: None,
            closing: false,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.pending.len() > MOST_PENDING
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
            .is_some_and(|since| since.elapsed() > LONGEST_STALL)
    }

    /// Reads what is there. `false`: he hung up.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let mut chunk = [0; CHUNK];
        match descriptors::receive(&self.stream, &mut chunk, &mut self.descriptors) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    pub(super) fn next_frame(&mut self) -> io::Result<Option<(Channel, Vec<u8>)>> {
        protocol::take_frame(&mut self.received)
    }

    pub(super) fn reply(&mut self, reply: &impl Serialize) -> io::Result<()> {
        let frame = protocol::control(reply)?;
        self.push(&frame)
    }

    pub(super) fn send_stream(&mut self, channel: Channel, content: &[u8]) -> io::Result<()> {
        let frame = protocol::frame(channel, content);
        self.push(&frame)
    }

    /// A reply with a descriptor beside it. Only the first thing said to a client can have one.
    pub(super) fn reply_with(
        &mut self,
        reply: &impl Serialize,
        descriptor: &OwnedFd,
    ) -> io::Result<()> {
        let frame = protocol::control(reply)?;
        let sent = descriptors::send(&self.stream, &frame, &[descriptor.as_fd()])?;
        self.push(&frame[sent..])
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.pending.is_empty() {
            self.stalled = Some(Instant::now());
        }
        self.pending.extend(bytes);
        self.flush()
    }

    /// Writes what the socket takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let (front, _) = self.pending.as_slices();
            match (&self.stream).write(front) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.pending.drain(..count);
                    self.stalled = Some(Instant::now());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stalled = None;
        Ok(())
    }
}
