//! Windows has no `SIGTERM`: only the end of the input ends the server. `NOTIFY_SOCKET` names a pipe.

use std::io::Write as _;
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

/// Writes to the pipe that the supervisor names, if it names one.
#[expect(
    clippy::disallowed_methods,
    reason = "the variable belongs to the supervisor's protocol"
)]
pub(crate) fn report_ready() -> Result<()> {
    let Some(pipe) = std::env::var_os("NOTIFY_SOCKET").filter(|pipe| !pipe.is_empty()) else {
        return Ok(());
    };
    let mut pipe = fs_err::OpenOptions::new()
        .write(true)
        .open(std::path::PathBuf::from(pipe))?;
    pipe.write_all(b"READY=1\n")?;
    pipe.flush()?;
    Ok(())
}
