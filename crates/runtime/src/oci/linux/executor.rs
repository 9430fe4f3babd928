//! The last steps before a container's program: the filter of system calls, capabilities, exec.
//!
//! Invariant: the program never has a capability beyond those wanted. libcontainer is asked to leave the
//! ones that a filter needs, since it cannot install ours; they are given up here, right after it.

#![expect(
    unsafe_code,
    reason = "a filter is installed by prctl, which has no safe form"
)]

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::RawFd;
use std::os::unix::fs::PermissionsExt;

use caps::{CapSet, Capability, CapsHashSet};
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::workload::{Executor, ExecutorError, ExecutorValidationError};
use nix::libc;

use super::seccomp::Filter;

/// Starts a program with exactly what it may have.
#[derive(Clone)]
pub(super) struct LastSteps {
    pub(super) capabilities: CapsHashSet,
    pub(super) filter: Option<Filter>,
    /// Where to tell why the program could not be started. Closed by a start.
    pub(super) report: RawFd,
}

impl Executor for LastSteps {
    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        let program = arguments(spec).first().cloned().unwrap_or_default();
        let wrong = |text| Err(ExecutorValidationError::ArgValidationError(text));
        if program.is_empty() {
            return wrong("no command specified".to_owned());
        }
        let candidates: Vec<String> = if program.contains('/') {
            vec![program.clone()]
        } else {
            search_path(spec)
                .split(':')
                .map(|folder| format!("{folder}/{program}"))
                .collect()
        };
        let mut found = false;
        for candidate in candidates {
            match std::fs::metadata(&candidate) {
                Ok(metadata)
                    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 =>
                {
                    return Ok(());
                }
                Ok(_) => found = true,
                Err(_) => {}
            }
        }
        if found {
            wrong(format!("exec: {program:?}: permission denied"))
        } else if program.contains('/') {
            wrong(format!(
                "exec: {program:?}: stat {program}: no such file or directory"
            ))
        } else {
            wrong(format!(
                "exec: {program:?}: executable file not found in $PATH"
            ))
        }
    }

    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let error = match self.try_exec(&arguments(spec)) {
            Ok(never) => match never {},
            Err(error) => error,
        };
        // SAFETY: the descriptor is open until exec, and the bytes outlive the call.
        let written = unsafe { libc::write(self.report, error.as_ptr().cast(), error.len()) };
        if written < 0 {
            tracing::error!(error, "nobody hears why a program could not be started");
        }
        Err(ExecutorError::Other(error))
    }
}

impl LastSteps {
    fn try_exec(&self, arguments: &[String]) -> Result<std::convert::Infallible, String> {
        let texts: Result<Vec<CString>, _> = arguments
            .iter()
            .map(|text| CString::new(text.as_bytes()))
            .collect();
        let texts = texts.map_err(|_| "an argument has a zero in it".to_owned())?;
        let program = texts
            .first()
            .ok_or_else(|| "no command specified".to_owned())?;
        if let Some(filter) = &self.filter {
            filter
                .install()
                .map_err(|error| format!("the seccomp profile cannot be applied: {error}"))?;
        }
        self.give_up_capabilities()
            .map_err(|error| format!("capabilities cannot be set: {error}"))?;
        nix::unistd::execvp(program, &texts).map_err(|error| {
            let program = program.to_string_lossy();
            format!("exec: {program:?}: {}", error.desc().to_lowercase())
        })
    }

    fn give_up_capabilities(&self) -> Result<(), caps::errors::CapsError> {
        let bounding = caps::read(None, CapSet::Bounding)?;
        for capability in bounding.difference(&self.capabilities) {
            caps::drop(None, CapSet::Bounding, *capability)?;
        }
        caps::clear(None, CapSet::Ambient)?;
        let nothing = HashSet::new();
        caps::set(None, CapSet::Effective, &nothing)?;
        caps::set(None, CapSet::Permitted, &self.capabilities)?;
        caps::set(None, CapSet::Effective, &self.capabilities)?;
        // What is not inheritable is gone with the exec of a user who is not root.
        caps::set(None, CapSet::Inheritable, &nothing)?;
        Ok(())
    }
}

/// All capabilities that this process could give to another.
pub(super) fn available_capabilities() -> CapsHashSet {
    let bounding = caps::read(None, CapSet::Bounding).unwrap_or_default();
    let permitted = caps::read(None, CapSet::Permitted).unwrap_or_default();
    bounding.intersection(&permitted).copied().collect()
}

/// A capability by the name pods use: without `CAP_`.
pub(super) fn capability(name: &str) -> Option<Capability> {
    let upper = name.to_ascii_uppercase();
    let plain = upper.strip_prefix("CAP_").unwrap_or(&upper);
    format!("CAP_{plain}").parse().ok()
}

fn arguments(spec: &Spec) -> Vec<String> {
    let process = spec.process().as_ref();
    process
        .and_then(|process| process.args().clone())
        .unwrap_or_default()
}

fn search_path(spec: &Spec) -> String {
    let process = spec.process().as_ref();
    let environment = process
        .and_then(|process| process.env().clone())
        .unwrap_or_default();
    environment
        .iter()
        .find_map(|variable| variable.strip_prefix("PATH="))
        .unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .to_owned()
}
