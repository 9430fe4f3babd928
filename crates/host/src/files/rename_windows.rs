//! The rename of newer Windows that lets readers of the old content keep it (Windows 10 1709 on).
#![expect(unsafe_code, reason = "calls of the Windows API")]

use std::io;
use std::mem::offset_of;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;

use camino::Utf8Path;
use windows::Wdk::Storage::FileSystem::{
    FILE_RENAME_IGNORE_READONLY_ATTRIBUTE, FILE_RENAME_INFORMATION, FILE_RENAME_POSIX_SEMANTICS,
    FILE_RENAME_REPLACE_IF_EXISTS, FileRenameInformationEx, NtSetInformationFile,
};
use windows::Win32::Foundation::{HANDLE, RtlNtStatusToDosError};
use windows::Win32::Storage::FileSystem::{
    DELETE, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, SYNCHRONIZE,
};
use windows::Win32::System::IO::IO_STATUS_BLOCK;

use super::windows::{literal, translate};

pub(super) fn rename_posix(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    let file = std::fs::OpenOptions::new()
        .access_mode(DELETE.0 | SYNCHRONIZE.0)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS.0 | FILE_FLAG_OPEN_REPARSE_POINT.0)
        .open(literal(from)?)
        .map_err(translate)?;
    let memory = describe(to)?;
    let size = u32::try_from(size_of_val(memory.as_slice())).map_err(io::Error::other)?;
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: the handle is open, and the memory is initialised for `size` bytes; a synchronous
    // handle keeps no pointer behind.
    let outcome = unsafe {
        NtSetInformationFile(
            HANDLE(file.as_raw_handle()),
            &raw mut status,
            memory.as_ptr().cast(),
            size,
            FileRenameInformationEx,
        )
    };
    if outcome.is_err() {
        // SAFETY: a pure translation of one number into another.
        let code = unsafe { RtlNtStatusToDosError(outcome) };
        return Err(translate(io::Error::from_raw_os_error(code.cast_signed())));
    }
    file.sync_all().or_else(|error| {
        // The handle may rename but not write; the rename itself is in the journal.
        tracing::debug!(%error, "could not flush after a rename");
        Ok(())
    })
}

/// The request: a structure that ends in an array of one character which continues behind it. Whole
/// structures give the memory its alignment.
fn describe(to: &Utf8Path) -> io::Result<Vec<FILE_RENAME_INFORMATION>> {
    let verbatim = literal(to)?;
    // The kernel spells the verbatim prefix in its own way.
    let name: Vec<u16> = r"\??\"
        .encode_utf16()
        .chain(verbatim.as_os_str().encode_wide().skip(r"\\?\".len()))
        .collect();
    let name_at = offset_of!(FILE_RENAME_INFORMATION, FileName);
    let bytes = size_of_val(name.as_slice());
    let count = (name_at + bytes).div_ceil(size_of::<FILE_RENAME_INFORMATION>());
    let mut memory = vec![FILE_RENAME_INFORMATION::default(); count];
    memory[0].Anonymous.Flags = FILE_RENAME_REPLACE_IF_EXISTS
        | FILE_RENAME_POSIX_SEMANTICS
        | FILE_RENAME_IGNORE_READONLY_ATTRIBUTE;
    memory[0].FileNameLength = u32::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: `count` structures hold the name behind the offset of its first character.
    unsafe {
        memory
            .as_mut_ptr()
            .byte_add(name_at)
            .cast::<u16>()
            .copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renames_over(is_read: bool) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("Unicode");
        let (from, to) = (root.join("from"), root.join("to, a longer name"));
        fs_err::write(&from, "first").expect("written");
        rename_posix(&from, &to).expect("to a free name");
        fs_err::write(&from, "second").expect("written");
        let reader = is_read.then(|| fs_err::File::open(&to).expect("opened"));
        rename_posix(&from, &to).expect("over the first");
        drop(reader);
        assert_eq!(fs_err::read_to_string(&to).expect("read"), "second");
        assert_eq!(fs_err::read_dir(root).expect("listed").count(), 1);
    }

    #[test]
    fn a_file_is_renamed_over_another() {
        renames_over(false);
    }

    #[test]
    #[ignore = "needs real Windows: Wine ignores POSIX semantics"]
    fn a_file_is_renamed_over_one_that_somebody_reads() {
        renames_over(true);
    }
}
