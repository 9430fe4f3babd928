//! Windows has neither `SIGTERM` nor `NOTIFY_SOCKET`: only the end of the input ends the server.

use std::sync::mpsc::Sender;

use anyhow::Result;

#[expect(
    clippy::unnecessary_wraps,
    reason = "the same function can fail on Linux"
)]
pub(crate) fn watch_signals(_ask: Sender<()>) -> Result<()> {
    Ok(())
}

/// Always: whoever starts the server without a pipe says `--ignore-input`.
pub(crate) fn input_is_a_pipe() -> bool {
    true
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the same function can fail on Linux"
)]
pub(crate) fn report_ready() -> Result<()> {
    Ok(())
}
