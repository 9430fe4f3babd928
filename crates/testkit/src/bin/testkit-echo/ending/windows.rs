//! Windows has neither `SIGTERM` nor `NOTIFY_SOCKET`: only the end of the input ends the server.

use std::fs::File;
use std::io;
use std::os::windows::io::AsHandle as _;
use std::sync::mpsc::Sender;

use anyhow::Result;

#[expect(clippy::unnecessary_wraps, reason = "the other system can fail here")]
pub(crate) fn watch_signals(_ask: Sender<()>) -> Result<()> {
    Ok(())
}

pub(crate) fn input_is_a_pipe() -> bool {
    let _ = io::stdin().as_handle().try_clone_to_owned().map(File::from);
    true
}

#[expect(clippy::unnecessary_wraps, reason = "the other system can fail here")]
pub(crate) fn report_ready() -> Result<()> {
    Ok(())
}
