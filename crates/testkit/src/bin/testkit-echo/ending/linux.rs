//! `SIGTERM`, the kind of the input, and `NOTIFY_SOCKET`. The signal is blocked in every thread, so
//! it is only ever taken by the thread that waits for it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::Sender;
use std::thread;

use anyhow::{Context as _, Result};
use nix::sys::signal::{SigSet, Signal};

pub(crate) fn watch_signals(ask: Sender<()>) -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    thread::spawn(move || {
        // The receiver is gone only when the server is ending already.
        if signals.wait().is_ok() {
            let _ = ask.send(());
        }
    });
    Ok(())
}

pub(crate) fn input_is_a_pipe() -> bool {
    let kind = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .and_then(|input| {
            let kind = input.metadata()?.file_type();
            Ok(kind.is_fifo() || kind.is_socket())
        });
    kind.unwrap_or(false)
}

pub(crate) fn report_ready() -> Result<()> {
    let Some(path) = notify_socket() else {
        return Ok(());
    };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&path)?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(b"READY=1", &address)
        .with_context(|| format!("could not notify {}", path.display()))?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the variable belongs to the supervisor's protocol"
)]
fn notify_socket() -> Option<OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())
}
