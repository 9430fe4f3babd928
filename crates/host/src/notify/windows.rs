//! Notifications over a named pipe: a client connects, writes its lines and hangs up.

use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{LONGEST_MESSAGE, Message, NotifyError, Sender};
use crate::ipc::{Access, Endpoint, Listener, Stream};

/// A client that holds the pipe open for longer without hanging up is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries while every instance of the pipe is taken.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Receiver {
    messages: mpsc::Receiver<Message>,
}

pub(super) fn address(folder: &Utf8Path) -> String {
    Endpoint::in_directory(folder, "notify").to_string()
}

impl Receiver {
    pub(super) fn bind(folder: &Utf8Path) -> Result<Self, NotifyError> {
        let endpoint = Endpoint::in_directory(folder, "notify");
        let mut listener =
            Listener::bind(&endpoint, Access::OwnerOnly).map_err(|error| NotifyError::Bind {
                address: endpoint.to_string(),
                source: io::Error::other(error),
            })?;
        let (sender, messages) = mpsc::channel(16);
        tokio::spawn(async move {
            while let Ok(stream) = listener.accept().await {
                tokio::spawn(read_one(stream, sender.clone()));
            }
        });
        Ok(Self { messages })
    }

    pub(super) async fn receive(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}

async fn read_one(stream: Stream, sender: mpsc::Sender<Message>) {
    let mut bytes = Vec::new();
    let mut limited = stream.take(LONGEST_MESSAGE as u64);
    // A broken pipe is how some clients hang up: what came before counts.
    let _ = timeout(PATIENCE, limited.read_to_end(&mut bytes)).await;
    if !bytes.is_empty() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // Fails only when the receiver has gone.
        let _ = sender
            .send(Message {
                sender: Sender::OurUser,
                text,
            })
            .await;
    }
}

pub(super) fn send(address: &str, text: &str) -> io::Result<()> {
    const PIPE_BUSY: i32 = 231;
    let give_up = Instant::now() + PATIENCE;
    let mut pipe = loop {
        // Not fs_err: it hides the system's code, and the address is named by the caller.
        match OpenOptions::new().write(true).open(address) {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) && Instant::now() < give_up => {
                std::thread::sleep(BUSY_PAUSE);
            }
            opened => break opened?,
        }
    };
    pipe.write_all(text.as_bytes())
}
