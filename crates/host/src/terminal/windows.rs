//! Modes of the console: one of its input and one of its output.
#![expect(
    unsafe_code,
    reason = "the console is reached through the system's own functions"
)]

use std::io;

use windows::Win32::System::Console::{
    CONSOLE_MODE, DISABLE_NEWLINE_AUTO_RETURN, ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT,
    ENABLE_PROCESSED_INPUT, ENABLE_VIRTUAL_TERMINAL_INPUT, ENABLE_VIRTUAL_TERMINAL_PROCESSING,
    GetConsoleMode, GetStdHandle, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetConsoleMode,
};

/// The modes before; the output may be no console.
#[derive(Debug)]
pub(super) struct Saved {
    input: CONSOLE_MODE,
    output: Option<CONSOLE_MODE>,
}

impl Saved {
    pub(super) fn enter() -> io::Result<Self> {
        let input = mode(STD_INPUT_HANDLE)?;
        let output = mode(STD_OUTPUT_HANDLE).ok();
        let saved = Self { input, output };
        let cooked = ENABLE_ECHO_INPUT.0 | ENABLE_LINE_INPUT.0 | ENABLE_PROCESSED_INPUT.0;
        let raw = (input.0 & !cooked) | ENABLE_VIRTUAL_TERMINAL_INPUT.0;
        set(STD_INPUT_HANDLE, CONSOLE_MODE(raw))?;
        if let Some(output) = output {
            let escapes = ENABLE_VIRTUAL_TERMINAL_PROCESSING.0 | DISABLE_NEWLINE_AUTO_RETURN.0;
            // Old consoles know no escape sequences; keys are passed on all the same.
            let _ = set(STD_OUTPUT_HANDLE, CONSOLE_MODE(output.0 | escapes));
        }
        Ok(saved)
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // The console may be gone; there is nobody to tell.
        let _ = set(STD_INPUT_HANDLE, self.input);
        if let Some(output) = self.output {
            let _ = set(STD_OUTPUT_HANDLE, output);
        }
    }
}

fn mode(which: STD_HANDLE) -> io::Result<CONSOLE_MODE> {
    let mut mode = CONSOLE_MODE::default();
    // SAFETY: `mode` is valid for the whole call, and a handle that is no console is refused.
    unsafe {
        let handle = GetStdHandle(which)?;
        GetConsoleMode(handle, &raw mut mode)?;
    }
    Ok(mode)
}

fn set(which: STD_HANDLE, mode: CONSOLE_MODE) -> io::Result<()> {
    // SAFETY: no memory is passed, and a handle that is no console is refused.
    unsafe {
        let handle = GetStdHandle(which)?;
        SetConsoleMode(handle, mode)?;
    }
    Ok(())
}
