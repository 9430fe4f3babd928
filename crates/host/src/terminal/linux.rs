//! Terminal attributes as POSIX has them.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The attributes before.
#[derive(Debug)]
pub(super) struct Saved(Termios);

impl Saved {
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // The terminal may be gone; there is nobody to tell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}
