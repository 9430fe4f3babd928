//! Turns a description into what the child needs, and the child's errors into ours. All names are
//! looked up and all files opened here, before the fork.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;

use camino::Utf8Path;
use fs_err::OpenOptions;

use super::super::{Input, Lifetime, LimitReport, MARKER, Output, Spawn, SpawnError};
use super::account::Account;
use super::launch::{LaunchError, Prepared, Step, above_standard};
use super::rlimits;

/// Our ends of the pipes.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: Option<PipeReader>,
    pub(super) stderr: Option<PipeReader>,
}

pub(super) fn prepare(
    spec: &Spawn,
    cgroups: Vec<File>,
    report: &mut LimitReport,
) -> Result<(Prepared, Pipes), SpawnError> {
    if !spec.program.is_absolute() {
        return Err(SpawnError::RelativeProgram {
            program: spec.program.clone(),
        });
    }
    let account = Account::find(spec)?;
    let (streams, pipes) = streams(spec)?;
    let prepared = Prepared {
        program: text(spec, "the path", spec.program.as_str())?,
        argv: arguments(spec)?,
        envp: environment(spec)?,
        directory: match &spec.directory {
            Some(directory) => Some(text(spec, "the directory", directory.as_str())?),
            None => None,
        },
        streams,
        account,
        dies_with_owner: spec.lifetime == Lifetime::WithOwner,
        limits: rlimits::prepare(&spec.limits, report),
        cgroups,
        umask: spec.umask,
        nice: spec.nice,
        out_of_memory_score: spec
            .out_of_memory_score
            .map(|score| text(spec, "the score", &score.to_string()))
            .transpose()?,
    };
    Ok((prepared, pipes))
}

fn text(spec: &Spawn, what: &str, text: &str) -> Result<CString, SpawnError> {
    CString::new(text).map_err(|_| SpawnError::BadText {
        program: spec.program.clone(),
        what: what.to_owned(),
        reason: "it contains a NUL",
    })
}

fn arguments(spec: &Spawn) -> Result<Vec<CString>, SpawnError> {
    let name = spec.arg0.as_deref().unwrap_or(spec.program.as_str());
    [name]
        .into_iter()
        .chain(spec.args.iter().map(String::as_str))
        .enumerate()
        .map(|(index, argument)| text(spec, &format!("argument {index}"), argument))
        .collect()
}

fn environment(spec: &Spawn) -> Result<Vec<CString>, SpawnError> {
    let marker = format!("{MARKER}={}", spec.group);
    let mut variables = vec![text(spec, "the marker", &marker)?];
    for (name, value) in spec.env.iter().filter(|(name, _)| *name != MARKER) {
        if name.is_empty() || name.contains('=') {
            return Err(SpawnError::BadText {
                program: spec.program.clone(),
                what: format!("variable `{name}`"),
                reason: "the name is empty or contains `=`",
            });
        }
        let what = format!("variable `{}`", name.escape_default());
        variables.push(text(spec, &what, &format!("{name}={value}"))?);
    }
    Ok(variables)
}

fn streams(spec: &Spawn) -> Result<([Option<OwnedFd>; 3], Pipes), SpawnError> {
    let mut pipes = Pipes::default();
    let stdin = match &spec.stdin {
        Input::Null => Some(null(spec)?),
        Input::Pipe => {
            let (reader, writer) = io::pipe().map_err(system(spec, "make a pipe"))?;
            pipes.stdin = Some(writer);
            Some(reader.into())
        }
        Input::File(path) => {
            let failed = |source| SpawnError::OpenInput {
                path: path.clone(),
                source,
            };
            let file = OpenOptions::new().read(true).open(path).map_err(failed)?;
            Some(file.into_file().into())
        }
    };
    let stdout = output(spec, &spec.stdout, &mut pipes.stdout)?;
    let is_file = matches!(spec.stderr, Output::Append(_) | Output::Truncate(_));
    let stderr = match &stdout {
        // One open file for both, or each would overwrite the other's lines.
        Some(file) if is_file && spec.stderr == spec.stdout => {
            Some(file.try_clone().map_err(system(spec, "share a file"))?)
        }
        _ => output(spec, &spec.stderr, &mut pipes.stderr)?,
    };
    let mut streams = [stdin, stdout, stderr];
    for stream in &mut streams {
        if let Some(fd) = stream.take() {
            *stream = Some(above_standard(fd).map_err(system(spec, "move a descriptor"))?);
        }
    }
    Ok((streams, pipes))
}

fn output(
    spec: &Spawn,
    output: &Output,
    ours: &mut Option<PipeReader>,
) -> Result<Option<OwnedFd>, SpawnError> {
    Ok(Some(match output {
        Output::Inherit => return Ok(None),
        Output::Null => null(spec)?,
        Output::Pipe => {
            let (reader, writer) = io::pipe().map_err(system(spec, "make a pipe"))?;
            *ours = Some(reader);
            writer.into()
        }
        Output::Append(path) => open(path, OpenOptions::new().create(true).append(true))?,
        Output::Truncate(path) => open(
            path,
            OpenOptions::new().create(true).write(true).truncate(true),
        )?,
    }))
}

fn open(path: &Utf8Path, options: &OpenOptions) -> Result<OwnedFd, SpawnError> {
    let file = options
        .open(path)
        .map_err(|source| SpawnError::OpenOutput {
            path: path.to_owned(),
            source,
        })?;
    Ok(file.into_file().into())
}

fn null(spec: &Spawn) -> Result<OwnedFd, SpawnError> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/null");
    Ok(file
        .map_err(system(spec, "open the null device"))?
        .into_file()
        .into())
}

fn system(spec: &Spawn, step: &'static str) -> impl FnOnce(io::Error) -> SpawnError {
    let program = spec.program.clone();
    move |source| SpawnError::System {
        program,
        step,
        source,
    }
}

/// Says in our words what went wrong in the child.
pub(super) fn explain(spec: &Spawn, error: LaunchError) -> SpawnError {
    let (step, source) = match error {
        LaunchError::Fork(source) => return system(spec, "create a process")(source),
        LaunchError::Child { step, source } => (step, source),
    };
    let step = match step {
        Step::Exec => return explain_exec(spec, source),
        Step::Directory => {
            return SpawnError::Directory {
                directory: spec.directory.clone().unwrap_or_default(),
                source,
            };
        }
        Step::User => match &spec.user {
            Some(user) => {
                return SpawnError::SwitchUser {
                    user: user.clone(),
                    source,
                };
            }
            None => {
                return SpawnError::SwitchGroups {
                    program: spec.program.clone(),
                    source,
                };
            }
        },
        Step::Session => "open a session",
        Step::Lifetime => "tie the lifetime to ours",
        Step::Nice => "set the priority",
        Step::Limits => "set the limits",
        Step::Cgroup => "join the cgroup",
        Step::Streams => "connect the streams",
    };
    system(spec, step)(source)
}

fn explain_exec(spec: &Spawn, source: io::Error) -> SpawnError {
    let program = spec.program.clone();
    match source.kind() {
        // The kernel says "not found" about the program and about its interpreter alike.
        io::ErrorKind::NotFound if program.exists() => SpawnError::MissingInterpreter {
            interpreter: interpreter(&program).unwrap_or_else(|| "its dynamic loader".to_owned()),
            program,
        },
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SpawnError::MissingExecutable { program }
        }
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable { program, source },
        _ if source.raw_os_error() == Some(nix::libc::ENOEXEC) => {
            SpawnError::WrongFormat { program, source }
        }
        _ => system(spec, "execute the program")(source),
    }
}

/// The path after `#!`, if there is one.
fn interpreter(program: &Utf8Path) -> Option<String> {
    let file = fs_err::File::open(program).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(256))
        .read_until(b'\n', &mut line)
        .ok()?;
    let line = String::from_utf8_lossy(&line);
    let path = line.strip_prefix("#!")?.split_whitespace().next()?;
    Some(path.to_owned())
}
