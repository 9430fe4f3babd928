//! The steps on Windows. Every path goes to the system in its verbatim form, so length and odd names
//! do not matter; every code that means "somebody has it open" becomes `ResourceBusy`.
#![expect(unsafe_code, reason = "calls of the Windows API")]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::windows::fs::{FileTypeExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;
use windows::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_DELETE_PENDING, ERROR_INVALID_FUNCTION, ERROR_INVALID_HANDLE,
    ERROR_LOCK_VIOLATION, ERROR_NOT_SUPPORTED, ERROR_SHARING_VIOLATION, ERROR_USER_MAPPED_FILE,
    GENERIC_READ, GENERIC_WRITE, HLOCAL, LocalFree,
};
use windows::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, CreateHardLinkW, DELETE, FILE_ATTRIBUTE_NORMAL,
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_NONE, FlushFileBuffers,
    GetDiskFreeSpaceExW, MOVE_FILE_FLAGS, MOVEFILE_REPLACE_EXISTING, MOVEFILE_WRITE_THROUGH,
    MoveFileExW,
};
use windows::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};
use windows::core::{HSTRING, PCWSTR, w};

use super::anchor::FolderAnchor;
use super::steps::{Anchor, Links, LockGuard, NewFile, RemovalFailure, Steps};
use super::{
    Access, Holders, Kind, Metadata, Named, Space, fault, holders, lock, path, removal_windows,
};

/// The files of this Windows machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowsFiles;

/// A path as the system is to take it, literally.
pub(super) fn literal(path: &Utf8Path) -> io::Result<PathBuf> {
    let absolute = if path::is_absolute(Os::Windows, path) {
        path.to_owned()
    } else {
        camino::absolute_utf8(path)?
    };
    path::verbatim(&absolute)
        .map(PathBuf::from)
        .map_err(|reason| io::Error::new(ErrorKind::InvalidInput, reason))
}

pub(super) fn wide(path: &Utf8Path) -> io::Result<HSTRING> {
    literal(path).map(|path| HSTRING::from(path.as_os_str()))
}

/// Gives the codes the standard library does not sort the kind our callers look for.
pub(super) fn translate(error: io::Error) -> io::Error {
    let Some(code) = error.raw_os_error().map(i32::cast_unsigned) else {
        return error;
    };
    let kind = if [
        ERROR_SHARING_VIOLATION.0,
        ERROR_LOCK_VIOLATION.0,
        ERROR_USER_MAPPED_FILE.0,
        ERROR_DELETE_PENDING.0,
    ]
    .contains(&code)
    {
        ErrorKind::ResourceBusy
    } else if code == ERROR_NOT_SUPPORTED.0 {
        ErrorKind::Unsupported
    } else {
        return error;
    };
    io::Error::new(kind, error)
}

/// The error of a call through the `windows` crate, which wraps the code of the system.
pub(super) fn system_error(error: &windows::core::Error) -> io::Error {
    const FACILITY_WIN32: u32 = 0x8007_0000;
    let code = error.code().0.cast_unsigned();
    if code & 0xffff_0000 == FACILITY_WIN32 {
        translate(io::Error::from_raw_os_error((code & 0xffff).cast_signed()))
    } else {
        io::Error::other(error.to_string())
    }
}

impl Steps for WindowsFiles {
    fn os(&self) -> Os {
        Os::Windows
    }

    fn metadata(&self, path: &Utf8Path) -> io::Result<Metadata> {
        let metadata = std::fs::symlink_metadata(literal(path)?).map_err(translate)?;
        Ok(describe(&metadata))
    }

    fn is_dir(&self, path: &Utf8Path) -> io::Result<bool> {
        let metadata = std::fs::metadata(literal(path)?).map_err(translate)?;
        Ok(metadata.is_dir())
    }

    fn open(&self, path: &Utf8Path, links: Links) -> io::Result<Box<dyn Read>> {
        if self.is_dir(path)? {
            return Err(ErrorKind::IsADirectory.into());
        }
        let flags = match links {
            Links::Follow => 0,
            Links::Refuse => FILE_FLAG_OPEN_REPARSE_POINT.0,
        };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(literal(path)?)
            .map_err(translate)?;
        if file.metadata()?.file_type().is_file() {
            Ok(Box::new(file))
        } else {
            Err(ErrorKind::IsADirectory.into())
        }
    }

    fn names(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(literal(folder)?).map_err(translate)? {
            let name = entry?.file_name().into_string().map_err(|name| {
                let reason = format!("the name {} is not Unicode", name.display());
                io::Error::new(ErrorKind::InvalidData, reason)
            })?;
            names.push(name);
        }
        Ok(names)
    }

    fn kinds(&self, folder: &Utf8Path) -> io::Result<Vec<Named>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(literal(folder)?).map_err(translate)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| {
                let reason = format!("the name {} is not Unicode", name.display());
                io::Error::new(ErrorKind::InvalidData, reason)
            })?;
            let kind = kind_of(entry.file_type()?);
            found.push(Named { name, kind });
        }
        Ok(found)
    }

    fn read_link(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        let target = std::fs::read_link(literal(path)?).map_err(translate)?;
        let target = Utf8PathBuf::from_path_buf(target)
            .map_err(|_| io::Error::new(ErrorKind::InvalidData, "its target is not Unicode"))?;
        let plain = target.as_str().strip_prefix(r"\\?\").map(Utf8PathBuf::from);
        Ok(plain.unwrap_or(target))
    }

    fn make_dir(&self, path: &Utf8Path) -> io::Result<()> {
        let path = wide(path)?;
        // SAFETY: the string outlives the call.
        unsafe { CreateDirectoryW(&path, None) }.map_err(|error| system_error(&error))
    }

    fn create_new(&self, path: &Utf8Path, access: Access) -> io::Result<Box<dyn NewFile>> {
        let file = if access.is_secret() {
            create_secret(&wide(path)?)?
        } else {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(literal(path)?)
                .map_err(translate)?
        };
        Ok(Box::new(OpenFile(file)))
    }

    fn rename_over(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        if std::fs::symlink_metadata(literal(to)?).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
        match move_file(from, to, flags) {
            // The attribute protects content from being written, not a name from being replaced.
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied
                    && self.metadata(to).is_ok_and(|metadata| metadata.read_only) =>
            {
                removal_windows::clear_attributes(&wide(to)?)?;
                move_file(from, to, flags)
            }
            // Somebody reads the old content: with POSIX semantics they keep it and we go on.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ResourceBusy | ErrorKind::PermissionDenied
                ) =>
            {
                super::rename_windows::rename_posix(from, to)
                    .map_err(|_| busy_rather_than_denied(to, error))
            }
            moved => moved,
        }
    }

    fn rename_new(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        move_file(from, to, MOVEFILE_WRITE_THROUGH)
    }

    /// NTFS keeps its names in a journal and renames here write through, so a file system that
    /// cannot flush a folder loses no more than the journal would.
    fn sync_dir(&self, folder: &Utf8Path) -> io::Result<()> {
        let opened = OpenOptions::new()
            .access_mode(GENERIC_READ.0 | GENERIC_WRITE.0)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS.0)
            .open(literal(folder)?);
        let cannot = |error: &io::Error| {
            let codes = [
                ERROR_ACCESS_DENIED.0,
                ERROR_INVALID_FUNCTION.0,
                ERROR_INVALID_HANDLE.0,
                ERROR_NOT_SUPPORTED.0,
            ];
            error
                .raw_os_error()
                .is_some_and(|code| codes.contains(&code.cast_unsigned()))
        };
        match opened {
            Ok(folder) => match folder.sync_all() {
                Err(error) if cannot(&error) => Ok(()),
                result => result.map_err(translate),
            },
            Err(error) if cannot(&error) => Ok(()),
            Err(error) => Err(translate(error)),
        }
    }

    fn hard_link(&self, original: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
        let (original, link) = (wide(original)?, wide(link)?);
        // SAFETY: both strings outlive the call.
        unsafe { CreateHardLinkW(&link, &original, None) }.map_err(|error| system_error(&error))
    }

    fn link_dir(&self, target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
        let place = literal(link)?;
        if std::fs::symlink_metadata(&place).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        junction::create(target.as_std_path(), &place).map_err(|error| {
            // A junction begins as an empty folder; a half-made one is taken away again.
            if let Err(error) = removal_windows::remove_empty_folder(&place) {
                tracing::warn!(%link, %error, "could not remove a half-made junction");
            }
            translate(error)
        })
    }

    fn unlink(&self, path: &Utf8Path) -> io::Result<()> {
        removal_windows::unlink(&literal(path)?)
    }

    fn remove_dir_tree(&self, path: &Utf8Path) -> Result<(), RemovalFailure> {
        let folder = literal(path).map_err(|source| RemovalFailure {
            path: path.to_owned(),
            source,
        })?;
        removal_windows::remove_dir_tree(self, &folder, path)
    }

    fn anchor(&self, path: &Utf8Path) -> io::Result<Box<dyn Anchor>> {
        Ok(Box::new(FolderAnchor::create(path)?))
    }

    fn holders(&self, path: &Utf8Path) -> Holders {
        holders::holders(path)
    }

    fn try_lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        lock::try_lock(path)
    }

    fn lock_holder(&self, path: &Utf8Path) -> Option<u32> {
        lock::recorded_holder(self, path)
    }

    fn mount_memory(&self, _: &Utf8Path, _: Option<u64>) -> io::Result<()> {
        Err(io::Error::new(
            ErrorKind::Unsupported,
            "Windows has no folders in memory",
        ))
    }

    fn bind(&self, _: &Utf8Path, _: &Utf8Path, _: &Utf8Path) -> io::Result<()> {
        Err(io::Error::new(
            ErrorKind::Unsupported,
            "Windows shows no folder at another place",
        ))
    }

    fn free_space(&self, path: &Utf8Path) -> io::Result<Space> {
        // The call wants a folder.
        let folder = if self.is_dir(path)? {
            path.to_owned()
        } else {
            path::parent(Os::Windows, path).unwrap_or_else(|| path.to_owned())
        };
        let folder = wide(&folder)?;
        let (mut available, mut total) = (0, 0);
        // SAFETY: the string and both numbers outlive the call.
        unsafe {
            GetDiskFreeSpaceExW(
                &folder,
                Some(&raw mut available),
                Some(&raw mut total),
                None,
            )
        }
        .map_err(|error| system_error(&error))?;
        Ok(Space {
            total,
            available,
            inodes: None,
        })
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

fn kind_of(file_type: std::fs::FileType) -> Kind {
    if file_type.is_symlink() || file_type.is_symlink_dir() {
        Kind::Link
    } else if file_type.is_dir() {
        Kind::Dir
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

fn describe(metadata: &std::fs::Metadata) -> Metadata {
    let kind = kind_of(metadata.file_type());
    Metadata {
        kind,
        length: if kind == Kind::File {
            metadata.len()
        } else {
            0
        },
        mode: None,
        // On folders the attribute means something else.
        read_only: kind == Kind::File && metadata.permissions().readonly(),
    }
}

/// A rename over an open file is "denied"; only opening that file tells that it is in use.
fn busy_rather_than_denied(path: &Utf8Path, error: io::Error) -> io::Error {
    in_use(path).unwrap_or(error)
}

/// Tries to open a file for us alone, and returns the refusal if somebody else has it open.
pub(super) fn in_use(path: &Utf8Path) -> Option<io::Error> {
    let opened = literal(path).and_then(|path| {
        OpenOptions::new()
            .access_mode(DELETE.0)
            .share_mode(FILE_SHARE_NONE.0)
            .open(path)
            .map_err(translate)
    });
    match opened {
        Err(busy) if busy.kind() == ErrorKind::ResourceBusy => Some(busy),
        _ => None,
    }
}

fn move_file(from: &Utf8Path, to: &Utf8Path, flags: MOVE_FILE_FLAGS) -> io::Result<()> {
    let (from, to) = (wide(from)?, wide(to)?);
    // SAFETY: both strings outlive the call.
    unsafe { MoveFileExW(&from, &to, flags) }.map_err(|error| system_error(&error))
}

/// Creates a file that from its first instant only the system, administrators and its owner can open.
fn create_secret(path: &HSTRING) -> io::Result<File> {
    let mut descriptor = PSECURITY_DESCRIPTOR::default();
    // SAFETY: the text is a constant, and `descriptor` receives memory that we free below.
    unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            w!("D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)"),
            SDDL_REVISION_1,
            &raw mut descriptor,
            None,
        )
    }
    .map_err(|error| system_error(&error))?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).map_err(io::Error::other)?,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: false.into(),
    };
    // SAFETY: the path and the descriptor outlive the call.
    let created = unsafe {
        CreateFileW(
            PCWSTR(path.as_ptr()),
            GENERIC_READ.0 | GENERIC_WRITE.0,
            FILE_SHARE_NONE,
            Some(&raw const attributes),
            CREATE_NEW,
            FILE_ATTRIBUTE_NORMAL,
            None,
        )
    };
    // SAFETY: the memory was allocated by the conversion above and nothing refers to it any more.
    unsafe { LocalFree(Some(HLOCAL(descriptor.0))) };
    let handle = created.map_err(|error| system_error(&error))?;
    // SAFETY: the handle is open and nobody else owns it.
    Ok(unsafe { File::from_raw_handle(handle.0) })
}

/// A file being written.
#[derive(Debug)]
pub(super) struct OpenFile(pub(super) File);

impl NewFile for OpenFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).map_err(translate)
    }

    fn sync(&mut self) -> io::Result<()> {
        use windows::Win32::Foundation::HANDLE;
        // SAFETY: the handle is open while the file lives.
        unsafe { FlushFileBuffers(HANDLE(self.0.as_raw_handle())) }
            .map_err(|error| system_error(&error))
    }

    /// Nothing flushes a whole tree on Windows, so each file is flushed when it is complete.
    fn settle(&mut self) -> io::Result<()> {
        self.sync()
    }
}

/// Ends this process so that no destructor runs and nothing is flushed.
pub(super) fn die_abruptly() -> ! {
    // SAFETY: the pseudo handle of our own process is always valid.
    let ended =
        unsafe { TerminateProcess(GetCurrentProcess(), fault::DEATH_EXIT_CODE.cast_unsigned()) };
    tracing::error!(?ended, "could not end this process");
    std::process::abort()
}
