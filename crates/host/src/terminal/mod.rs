//! The terminal that this process was started from. Invariant: whatever is changed about it is changed back when the
//! value goes, also when the program fails.
//!
//! # Platform behavior
//!
//! On Windows the console also learns escape sequences as long as it is raw, in both directions, since that is what
//! programs elsewhere send and expect.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

use std::io;

/// The terminal passes every key on as it is typed, and shows nothing by itself.
#[derive(Debug)]
pub struct RawTerminal {
    _saved: system::Saved,
}

impl RawTerminal {
    /// Makes the terminal at the standard input raw. Fails if there is no terminal.
    pub fn enter() -> io::Result<Self> {
        let saved = system::Saved::enter()?;
        Ok(Self { _saved: saved })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_cannot_be_raw() {
        // Tests are run with something else as standard input.
        if !io::IsTerminal::is_terminal(&io::stdin()) {
            RawTerminal::enter().unwrap_err();
        }
    }
}
