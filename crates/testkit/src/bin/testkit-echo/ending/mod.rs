//! When the server should end, and how it tells that it is ready. On Linux an input that is no pipe,
//! as a service has it, does not end the server; on Windows `--ignore-input` says so.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::io::{self, Read as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::Result;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

pub(crate) use system::report_ready;

/// Notices that the process is asked to end.
pub(crate) struct Ending {
    asked: Receiver<()>,
}

impl Ending {
    /// Starts to watch for the system's request to end, and for the end of the input.
    pub(crate) fn watch(ignore_input: bool) -> Result<Self> {
        let (ask, asked) = channel();
        system::watch_signals(ask.clone())?;
        if !ignore_input && system::input_is_a_pipe() {
            thread::spawn(move || wait_for_end_of_input(&ask));
        } else {
            // Without a sender the wait would be over at once.
            thread::spawn(move || {
                let _ask = ask;
                loop {
                    thread::park();
                }
            });
        }
        Ok(Self { asked })
    }

    /// Returns when the process is asked to end.
    pub(crate) fn wait(&self) {
        let _ = self.asked.recv();
    }
}

fn wait_for_end_of_input(ask: &Sender<()>) {
    let mut piece = [0; 512];
    let mut input = io::stdin().lock();
    while matches!(input.read(&mut piece), Ok(length) if length > 0) {}
    // The receiver is gone only when the server is ending already.
    let _ = ask.send(());
}
