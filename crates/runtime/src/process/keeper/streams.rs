//! The three streams of a program: outputs go to the log and to whoever is attached, the input comes from them.
//!
//! Invariant: nobody who listens can hold the program up. A listener that is too slow loses its connection.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{broadcast, mpsc, watch};
use transom_host::process::Process;

use super::complain;
use crate::logs::{LogWriter, Stream};

const CHUNK: usize = 32 << 10;
/// Chunks that may wait for an attached listener: a few mebibytes at most.
const MOST_CHUNKS: usize = 128;
/// Chunks of input that may wait for the program to read them.
const MOST_INPUT: usize = 16;
/// How long outputs may stay open after all processes of the container have ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(super) struct Streams {
    pub(super) log: Arc<LogWriter>,
    /// What the program says from now on.
    heard: broadcast::Sender<(Stream, Bytes)>,
    input: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// How many outputs are still open.
    open: watch::Receiver<usize>,
}

impl Streams {
    /// Begins to carry what a program says.
    pub(super) fn carry(process: &dyn Process, log: Arc<LogWriter>) -> Self {
        let heard = broadcast::channel(MOST_CHUNKS).0;
        let (closed, open) = watch::channel(2);
        let closed = Arc::new(closed);
        let outputs = [
            (process.take_stdout(), Stream::Stdout),
            (process.take_stderr(), Stream::Stderr),
        ];
        for (pipe, stream) in outputs {
            let (log, heard, closed) = (Arc::clone(&log), heard.clone(), Arc::clone(&closed));
            std::thread::spawn(move || {
                if let Some(pipe) = pipe {
                    listen(pipe, stream, &log, &heard);
                }
                closed.send_modify(|open| *open -= 1);
            });
        }
        let input = process.take_stdin().map(feed);
        Self {
            log,
            heard,
            input: Mutex::new(input),
            open,
        }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<(Stream, Bytes)> {
        self.heard.subscribe()
    }

    /// Where input for the program goes, while it has one.
    pub(super) fn input(&self) -> Option<mpsc::Sender<Bytes>> {
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.clone()
    }

    /// Ends the program's input, once all that was sent has been read.
    pub(super) fn close_input(&self) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        *input = None;
    }

    /// Waits until both outputs have ended.
    pub(super) async fn finish(&self) {
        let mut open = self.open.clone();
        let ended = tokio::time::timeout(LAST_WORDS, open.wait_for(|open| *open == 0)).await;
        if ended.is_err() {
            complain("somebody outside the container holds its outputs open");
        }
    }
}

fn listen(
    mut pipe: PipeReader,
    stream: Stream,
    log: &LogWriter,
    heard: &broadcast::Sender<(Stream, Bytes)>,
) {
    let mut buffer = vec![0; CHUNK];
    let mut complained = false;
    let mut check = |written: std::io::Result<()>| {
        if let Err(error) = written
            && !std::mem::replace(&mut complained, true)
        {
            // The program must not stop because its log is full.
            complain(&format!("the log cannot be written: {error}"));
        }
    };
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                check(log.write(stream, &buffer[..read]));
                if heard.receiver_count() > 0 {
                    // Fails when the last listener has just gone.
                    let _ = heard.send((stream, Bytes::copy_from_slice(&buffer[..read])));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    check(log.finish(stream));
}

/// Writes to a program's input from a thread of its own: programs read when they like.
pub(super) fn feed(mut pipe: PipeWriter) -> mpsc::Sender<Bytes> {
    let (sender, mut queue) = mpsc::channel::<Bytes>(MOST_INPUT);
    std::thread::spawn(move || {
        while let Some(bytes) = queue.blocking_recv() {
            if pipe.write_all(&bytes).and_then(|()| pipe.flush()).is_err() {
                // The program closed its input; whoever sends more learns it from the closed queue.
                return;
            }
        }
    });
    sender
}

/// Sends what a program says to one listener, who decides how fast.
pub(super) fn forward<T: Send + 'static>(
    pipe: Option<PipeReader>,
    to: mpsc::Sender<T>,
    wrap: fn(Bytes) -> T,
) {
    let Some(mut pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    let bytes = Bytes::copy_from_slice(&buffer[..read]);
                    if to.blocking_send(wrap(bytes)).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
}
