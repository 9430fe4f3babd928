//! Patience with files that somebody else has open. On Windows a virus scanner or an indexer opens
//! each new file for a moment; every retry here has a back-off and an end.

use std::io::{self, ErrorKind};
use std::time::Duration;

use transom_model::os::Os;

use super::steps::Steps;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// With doubling from 5 ms: about 1.3 s in all.
const BUSY_ATTEMPTS: u32 = 9;
/// Windows also says "access denied" for a file that is about to disappear, or that a reader has open
/// while it is replaced; a real denial should not cost a second: about 600 ms in all.
const DENIED_ATTEMPTS: u32 = 8;

/// Repeats a step while the file is in use.
pub(super) fn patiently<T>(
    steps: &dyn Steps,
    mut step: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        match step() {
            Err(error) if attempt < attempts(steps.os(), &error) => {
                tracing::debug!(attempt, %error, "file in use, trying again");
                steps.pause(pause);
                pause *= 2;
                attempt += 1;
            }
            result => return result,
        }
    }
}

fn attempts(os: Os, error: &io::Error) -> u32 {
    match error.kind() {
        ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy => BUSY_ATTEMPTS,
        ErrorKind::PermissionDenied if os == Os::Windows => DENIED_ATTEMPTS,
        _ => 1,
    }
}
