//! The three standard streams of a program, as handles that it may inherit.
#![expect(unsafe_code, reason = "Win32 calls")]

use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use camino::Utf8Path;
use fs_err::OpenOptions;
use windows::Win32::Foundation::{DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE};
use windows::Win32::System::Threading::GetCurrentProcess;

use super::super::{Input, Output, Spawn, SpawnError};
use super::handle::{own, raw};

/// Our ends of the pipes.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: Option<PipeReader>,
    pub(super) stderr: Option<PipeReader>,
}

/// The program's ends: inheritable, so they are made last and closed right after the program starts.
pub(super) fn open(spec: &Spawn) -> Result<([OwnedHandle; 3], Pipes), SpawnError> {
    let mut pipes = Pipes::default();
    let stdin: OwnedHandle = match &spec.stdin {
        Input::Null => null(spec)?,
        Input::Pipe => {
            let (reader, writer) = io::pipe().map_err(system(spec, "make a pipe"))?;
            pipes.stdin = Some(writer);
            reader.into()
        }
        Input::File(path) => {
            let failed = |source| SpawnError::OpenInput {
                path: path.clone(),
                source,
            };
            let file = OpenOptions::new().read(true).open(path).map_err(failed)?;
            file.into_file().into()
        }
    };
    let stdout = output(spec, &spec.stdout, &io::stdout(), &mut pipes.stdout)?;
    let is_file = matches!(spec.stderr, Output::Append(_) | Output::Truncate(_));
    let stderr = if is_file && spec.stderr == spec.stdout {
        // One open file for both, or each would overwrite the other's lines.
        stdout.try_clone().map_err(system(spec, "share a file"))?
    } else {
        output(spec, &spec.stderr, &io::stderr(), &mut pipes.stderr)?
    };
    let inherit = |handle| inheritable(&handle).map_err(system(spec, "share a handle"));
    Ok(([inherit(stdin)?, inherit(stdout)?, inherit(stderr)?], pipes))
}

fn output(
    spec: &Spawn,
    output: &Output,
    inherited: &impl AsRawHandle,
    ours: &mut Option<PipeReader>,
) -> Result<OwnedHandle, SpawnError> {
    Ok(match output {
        // A service has no output of its own to share.
        Output::Inherit if inherited.as_raw_handle().is_null() => null(spec)?,
        Output::Inherit => inheritable(inherited).map_err(system(spec, "share our output"))?,
        Output::Null => null(spec)?,
        Output::Pipe => {
            let (reader, writer) = io::pipe().map_err(system(spec, "make a pipe"))?;
            *ours = Some(reader);
            writer.into()
        }
        Output::Append(path) => file(path, OpenOptions::new().create(true).append(true))?,
        Output::Truncate(path) => file(
            path,
            OpenOptions::new().create(true).write(true).truncate(true),
        )?,
    })
}

fn file(path: &Utf8Path, options: &OpenOptions) -> Result<OwnedHandle, SpawnError> {
    let file = options
        .open(path)
        .map_err(|source| SpawnError::OpenOutput {
            path: path.to_owned(),
            source,
        })?;
    Ok(file.into_file().into())
}

fn null(spec: &Spawn) -> Result<OwnedHandle, SpawnError> {
    let file = OpenOptions::new().read(true).write(true).open("NUL");
    Ok(file
        .map_err(system(spec, "open the null device"))?
        .into_file()
        .into())
}

fn inheritable(handle: &impl AsRawHandle) -> io::Result<OwnedHandle> {
    let mut copy = HANDLE::default();
    // SAFETY: the handle is open; the copy is ours.
    unsafe {
        let process = GetCurrentProcess();
        DuplicateHandle(
            process,
            raw(handle),
            process,
            &raw mut copy,
            0,
            true,
            DUPLICATE_SAME_ACCESS,
        )?;
        Ok(own(copy))
    }
}

pub(super) fn system(spec: &Spawn, step: &'static str) -> impl FnOnce(io::Error) -> SpawnError {
    let program = spec.program.clone();
    move |source| SpawnError::System {
        program,
        step,
        source,
    }
}
