//! Holders from the Restart Manager, which installers use to ask the same question.
#![expect(unsafe_code, reason = "calls of the Windows API")]

use camino::Utf8Path;
use windows::Win32::Foundation::{ERROR_MORE_DATA, ERROR_SUCCESS, WIN32_ERROR};
use windows::Win32::System::RestartManager::{
    CCH_RM_SESSION_KEY, RM_PROCESS_INFO, RmEndSession, RmGetList, RmRegisterResources,
    RmStartSession,
};
use windows::core::{HSTRING, PCWSTR, PWSTR};

use super::super::steps::Steps;
use super::super::windows::{WindowsFiles, in_use};
use super::{Holder, Holders};

/// The list may grow between two questions; it is not chased for ever.
const ATTEMPTS: u32 = 4;

pub(in super::super) fn holders(path: &Utf8Path) -> Holders {
    match ask(path) {
        // Wine's knows no processes, and no version knows folders: silence is not an answer.
        Ok(found) if found.is_empty() && may_be_held(path) => Holders::Unknown {
            reason: "the restart manager names nobody".to_owned(),
        },
        Ok(mut found) => {
            found.sort();
            Holders::Known(found)
        }
        Err((call, code)) => Holders::Unknown {
            reason: format!("{call} failed with code {}", code.0),
        },
    }
}

fn may_be_held(path: &Utf8Path) -> bool {
    WindowsFiles.is_dir(path).unwrap_or(false) || in_use(path).is_some()
}

struct Session(u32);

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the session was started and is ended once.
        let ended = unsafe { RmEndSession(self.0) };
        if ended != ERROR_SUCCESS {
            tracing::debug!(code = ended.0, "could not end a restart manager session");
        }
    }
}

type Failure = (&'static str, WIN32_ERROR);

fn check(call: &'static str, code: WIN32_ERROR) -> Result<(), Failure> {
    if code == ERROR_SUCCESS {
        Ok(())
    } else {
        Err((call, code))
    }
}

fn ask(path: &Utf8Path) -> Result<Vec<Holder>, Failure> {
    let mut number = 0;
    let mut key = [0_u16; CCH_RM_SESSION_KEY as usize + 1];
    // SAFETY: the key has room for the length the call documents, and its zero.
    let started = unsafe { RmStartSession(&raw mut number, None, PWSTR(key.as_mut_ptr())) };
    check("RmStartSession", started)?;
    let session = Session(number);
    // The Restart Manager does not know verbatim paths.
    let name = HSTRING::from(path.as_str());
    let names = [PCWSTR(name.as_ptr())];
    // SAFETY: the name outlives the call.
    let registered = unsafe { RmRegisterResources(session.0, Some(&names), None, None) };
    check("RmRegisterResources", registered)?;

    let mut found: Vec<RM_PROCESS_INFO> = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut needed = 0;
        let mut count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let mut reasons = 0;
        // SAFETY: `found` has room for `count` entries, and all numbers outlive the call.
        let listed = unsafe {
            RmGetList(
                session.0,
                &raw mut needed,
                &raw mut count,
                Some(found.as_mut_ptr()),
                &raw mut reasons,
            )
        };
        if listed != ERROR_MORE_DATA {
            check("RmGetList", listed)?;
            found.truncate(count as usize);
            return Ok(found.iter().map(holder).collect());
        }
        found.resize(needed as usize, RM_PROCESS_INFO::default());
    }
    Err(("RmGetList", ERROR_MORE_DATA))
}

fn holder(info: &RM_PROCESS_INFO) -> Holder {
    let name = &info.strAppName;
    let end = name
        .iter()
        .position(|unit| *unit == 0)
        .unwrap_or(name.len());
    Holder {
        pid: info.Process.dwProcessId,
        name: String::from_utf16_lossy(&name[..end]),
    }
}
