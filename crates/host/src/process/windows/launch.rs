//! From a description to a running program: created asleep, put into its job, then woken, so that it
//! never runs an instruction outside of the job.
#![expect(unsafe_code, reason = "Win32 calls")]

use std::collections::BTreeMap;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use camino::Utf8Path;
use windows::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BAD_EXE_FORMAT, ERROR_DIRECTORY, ERROR_EXE_MACHINE_TYPE_MISMATCH,
    ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND, HANDLE, MAX_PATH, WIN32_ERROR,
};
use windows::Win32::System::SystemInformation::GetSystemWindowsDirectoryW;
use windows::Win32::System::Threading::{
    BELOW_NORMAL_PRIORITY_CLASS, CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP,
    CREATE_NO_WINDOW, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessW,
    DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, HIGH_PRIORITY_CLASS,
    IDLE_PRIORITY_CLASS, InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_CREATION_FLAGS, PROCESS_INFORMATION, ResumeThread,
    STARTF_USESTDHANDLES, STARTUPINFOEXW, UpdateProcThreadAttribute,
};
use windows::Win32::System::WindowsProgramming::GetUserNameW;
use windows::core::{HSTRING, PCWSTR, PWSTR};

use super::super::command_line::{self, CommandLineError};
use super::super::{Lifetime, MARKER, Spawn, SpawnError, UserSpec};
use super::handle::{ProcessHandle, own, raw};
use super::streams::{self, Pipes, system};

/// A process that exists and has not run yet.
#[derive(Debug)]
pub(super) struct Asleep {
    pub(super) process: ProcessHandle,
    pub(super) pid: u32,
    thread: OwnedHandle,
}

impl Asleep {
    /// Lets it run.
    pub(super) fn wake(&self) -> io::Result<()> {
        // SAFETY: the handle is open.
        if unsafe { ResumeThread(raw(&self.thread)) } == u32::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

pub(super) fn launch(spec: &Spawn) -> Result<(Asleep, Pipes), SpawnError> {
    check(spec)?;
    let root = system_root().map_err(system(spec, "find the Windows folder"))?;
    let line = command_line(spec, &root)?;
    let environment = environment(spec, &root)?;
    let (handles, pipes) = streams::open(spec)?;
    let breakaway = match spec.lifetime {
        Lifetime::Detached => CREATE_BREAKAWAY_FROM_JOB,
        Lifetime::WithOwner => PROCESS_CREATION_FLAGS(0),
    };
    let mut created = create(spec, &root, &line, &environment, &handles, breakaway);
    // Our own job may forbid to leave it. Then the program stays in it, and lives as long as it may.
    if breakaway.0 != 0 && is(&created, ERROR_ACCESS_DENIED) {
        let stay = PROCESS_CREATION_FLAGS(0);
        created = create(spec, &root, &line, &environment, &handles, stay);
    }
    let asleep = created.map_err(|error| explain(spec, error))?;
    Ok((asleep, pipes))
}

fn is<T>(result: &io::Result<T>, code: WIN32_ERROR) -> bool {
    result
        .as_ref()
        .is_err_and(|error| win32(error) == Some(code))
}

/// Errors come as the number itself or wrapped into an `HRESULT`.
fn win32(error: &io::Error) -> Option<WIN32_ERROR> {
    const WRAPPED: u32 = 0x8007_0000;
    let code = error.raw_os_error()?.cast_unsigned();
    let wrapped = code & 0xFFFF_0000 == WRAPPED;
    Some(WIN32_ERROR(if wrapped { code & 0xFFFF } else { code }))
}

/// What Windows would report less clearly, or not at all.
fn check(spec: &Spawn) -> Result<(), SpawnError> {
    let program = spec.program.clone();
    if !program.is_absolute() {
        return Err(SpawnError::RelativeProgram { program });
    }
    if program.as_str().contains(['\0', '"']) {
        return Err(bad_text(
            spec,
            "the path",
            "it contains a NUL or a quotation mark",
        ));
    }
    match fs_err::metadata(&program) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SpawnError::MissingExecutable { program });
        }
        Ok(metadata) if metadata.is_dir() => {
            let source = io::ErrorKind::IsADirectory.into();
            return Err(SpawnError::NotExecutable { program, source });
        }
        _ => {}
    }
    if let Some(directory) = &spec.directory {
        let failed = |source| SpawnError::Directory {
            directory: directory.clone(),
            source,
        };
        if !fs_err::metadata(directory).map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
    }
    let mut groups = spec.user_group.iter().chain(&spec.more_user_groups);
    if let Some(group) = groups.next().cloned() {
        return Err(SpawnError::GroupNotSupported { group });
    }
    match &spec.user {
        Some(user) if !is_ourselves(user) => {
            Err(SpawnError::UserNotSupported { user: user.clone() })
        }
        _ => Ok(()),
    }
}

fn bad_text(spec: &Spawn, what: &str, reason: &'static str) -> SpawnError {
    SpawnError::BadText {
        program: spec.program.clone(),
        what: what.to_owned(),
        reason,
    }
}

fn is_ourselves(user: &UserSpec) -> bool {
    let UserSpec::Name(name) = user else {
        return false;
    };
    let mut buffer = [0_u16; 257];
    let mut length = 257;
    // SAFETY: the buffer is as long as said.
    let known = unsafe { GetUserNameW(Some(PWSTR(buffer.as_mut_ptr())), &raw mut length) };
    let length = (length as usize).saturating_sub(1);
    let ours = String::from_utf16_lossy(buffer.get(..length).unwrap_or_default());
    let asked = name.rsplit('\\').next().unwrap_or(name);
    known.is_ok() && ours.to_lowercase() == asked.to_lowercase()
}

fn system_root() -> io::Result<String> {
    let mut buffer = [0_u16; MAX_PATH as usize];
    // SAFETY: the length is that of the buffer.
    let length = unsafe { GetSystemWindowsDirectoryW(Some(&mut buffer)) } as usize;
    match buffer.get(..length) {
        Some(text) if length > 0 => Ok(String::from_utf16_lossy(text)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn interpreter(root: &str) -> String {
    format!(r"{root}\System32\cmd.exe")
}

fn command_line(spec: &Spawn, root: &str) -> Result<String, SpawnError> {
    let program = spec.program.as_str();
    let line = if command_line::is_batch_file(program) {
        command_line::render_batch(&interpreter(root), program, &spec.args)
    } else {
        command_line::render(program, &spec.args)
    };
    line.map_err(|error| refused(spec, &error))
}

fn environment(spec: &Spawn, root: &str) -> Result<Vec<u16>, SpawnError> {
    let mut variables: BTreeMap<String, String> = spec.env.clone();
    variables.retain(|name, _| !name.eq_ignore_ascii_case(MARKER));
    variables.insert(MARKER.to_owned(), spec.group.to_string());
    let has_root = |name: &String| name.eq_ignore_ascii_case("SystemRoot");
    if !variables.keys().any(has_root) {
        variables.insert("SystemRoot".to_owned(), root.to_owned());
    }
    command_line::environment_block(&variables).map_err(|error| refused(spec, &error))
}

fn refused(spec: &Spawn, error: &CommandLineError) -> SpawnError {
    let reason = match error {
        CommandLineError::Nul { .. } => "it contains a NUL",
        CommandLineError::BatchArgument { .. } => "a batch file may take it for a command",
        CommandLineError::BadVariable { .. } => "the name is empty, or has a NUL or `=` in it",
        CommandLineError::SameVariable { .. } => "two names differ in case only",
    };
    let what = match error {
        CommandLineError::Nul { index } | CommandLineError::BatchArgument { index, .. } => {
            format!("argument {index}")
        }
        CommandLineError::BadVariable { name } => format!("variable `{}`", name.escape_default()),
        CommandLineError::SameVariable { first, second } => {
            format!("variables `{first}` and `{second}`")
        }
    };
    bad_text(spec, &what, reason)
}

fn priority(nice: Option<i32>) -> PROCESS_CREATION_FLAGS {
    match nice {
        Some(..=-10) => HIGH_PRIORITY_CLASS,
        Some(15..) => IDLE_PRIORITY_CLASS,
        Some(5..15) => BELOW_NORMAL_PRIORITY_CLASS,
        _ => PROCESS_CREATION_FLAGS(0),
    }
}

fn create(
    spec: &Spawn,
    root: &str,
    line: &str,
    environment: &[u16],
    handles: &[OwnedHandle; 3],
    extra: PROCESS_CREATION_FLAGS,
) -> io::Result<Asleep> {
    let application = if command_line::is_batch_file(spec.program.as_str()) {
        HSTRING::from(interpreter(root))
    } else {
        HSTRING::from(spec.program.as_str())
    };
    let directory = spec
        .directory
        .as_deref()
        .map(Utf8Path::as_str)
        .map(HSTRING::from);
    let directory = directory
        .as_ref()
        .map_or(PCWSTR::null(), |text| PCWSTR(text.as_ptr()));
    let mut line: Vec<u16> = line.encode_utf16().chain([0]).collect();
    let inherited: [HANDLE; 3] =
        std::array::from_fn(|index| HANDLE(handles[index].as_raw_handle()));
    let attributes = HandleList::new(&inherited)?;

    let mut startup = STARTUPINFOEXW::default();
    startup.StartupInfo.cb =
        u32::try_from(size_of::<STARTUPINFOEXW>()).map_err(io::Error::other)?;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [
        startup.StartupInfo.hStdInput,
        startup.StartupInfo.hStdOutput,
        startup.StartupInfo.hStdError,
    ] = inherited;
    startup.lpAttributeList = attributes.pointer();
    let flags = CREATE_SUSPENDED
        | CREATE_UNICODE_ENVIRONMENT
        | EXTENDED_STARTUPINFO_PRESENT
        | CREATE_NO_WINDOW
        | CREATE_NEW_PROCESS_GROUP
        | priority(spec.nice)
        | extra;
    let mut created = PROCESS_INFORMATION::default();
    // SAFETY: every string ends with NUL, the environment with two; all of it, the attributes and
    // the handles they list outlive the call. Both handles that come back are ours.
    unsafe {
        CreateProcessW(
            &application,
            Some(PWSTR(line.as_mut_ptr())),
            None,
            None,
            true,
            flags,
            Some(environment.as_ptr().cast()),
            directory,
            &raw const startup.StartupInfo,
            &raw mut created,
        )?;
        Ok(Asleep {
            process: ProcessHandle::new(own(created.hProcess)),
            pid: created.dwProcessId,
            thread: own(created.hThread),
        })
    }
}

/// Says that these handles are inherited and no others. Borrows them for as long as it lives.
struct HandleList<'a> {
    /// In words, for alignment.
    memory: Vec<usize>,
    _handles: &'a [HANDLE; 3],
}

impl<'a> HandleList<'a> {
    fn new(handles: &'a [HANDLE; 3]) -> io::Result<Self> {
        let mut size = 0;
        // SAFETY: asked for the size only, which is why it fails by design.
        let _ = unsafe { InitializeProcThreadAttributeList(None, 1, None, &raw mut size) };
        let mut memory = vec![0_usize; size.div_ceil(size_of::<usize>())];
        let list = LPPROC_THREAD_ATTRIBUTE_LIST(memory.as_mut_ptr().cast());
        // SAFETY: the memory is as large as the system asked, and lives as long as the list, as do
        // the handles, of which there are at least one and no doubles.
        unsafe {
            InitializeProcThreadAttributeList(Some(list), 1, None, &raw mut size)?;
            let attributes = Self {
                memory,
                _handles: handles,
            };
            UpdateProcThreadAttribute(
                list,
                0,
                PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
                Some(handles.as_ptr().cast()),
                size_of_val(handles),
                None,
                None,
            )?;
            Ok(attributes)
        }
    }

    fn pointer(&self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        LPPROC_THREAD_ATTRIBUTE_LIST(self.memory.as_ptr().cast_mut().cast())
    }
}

impl Drop for HandleList<'_> {
    fn drop(&mut self) {
        // SAFETY: the list was initialized, and nobody uses it any more.
        unsafe { DeleteProcThreadAttributeList(self.pointer()) };
    }
}

fn explain(spec: &Spawn, source: io::Error) -> SpawnError {
    let program = spec.program.clone();
    match win32(&source) {
        Some(ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) => {
            SpawnError::MissingExecutable { program }
        }
        Some(ERROR_ACCESS_DENIED) => SpawnError::NotExecutable { program, source },
        Some(ERROR_BAD_EXE_FORMAT | ERROR_EXE_MACHINE_TYPE_MISMATCH) => {
            SpawnError::WrongFormat { program, source }
        }
        Some(ERROR_DIRECTORY) => SpawnError::Directory {
            directory: spec.directory.clone().unwrap_or_default(),
            source,
        },
        _ => system(spec, "create a process")(source),
    }
}
