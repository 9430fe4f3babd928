//! The rename of newer Windows that lets readers of the old content keep it (Windows 10 1709 on).
#![expect(unsafe_code, reason = "calls of the Windows API")]

use std::io;
use std::mem::offset_of;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;

use camino::Utf8Path;
use windows::Win32::Foundation::HANDLE;
use windows::Win32::Storage::FileSystem::{
    DELETE, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_RENAME_INFO,
    FileRenameInfoEx, SYNCHRONIZE, SetFileInformationByHandle,
};

use super::windows::{literal, system_error, translate, wide};

const REPLACE_IF_EXISTS: u32 = 1;
const POSIX_SEMANTICS: u32 = 2;

pub(super) fn rename_posix(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    let file = std::fs::OpenOptions::new()
        .access_mode(DELETE.0 | SYNCHRONIZE.0)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS.0 | FILE_FLAG_OPEN_REPARSE_POINT.0)
        .open(literal(from)?)
        .map_err(translate)?;
    let target = wide(to)?;
    let name_at = offset_of!(FILE_RENAME_INFO, FileName);
    let name_bytes = target.len() * size_of::<u16>();
    // The structure ends in an array of one character that continues behind it. Whole structures
    // give the memory its alignment, and room for the zero at the end.
    let count = (name_at + name_bytes + size_of::<u16>()).div_ceil(size_of::<FILE_RENAME_INFO>());
    let mut memory = vec![FILE_RENAME_INFO::default(); count];
    memory[0].Anonymous.Flags = REPLACE_IF_EXISTS | POSIX_SEMANTICS;
    memory[0].FileNameLength = u32::try_from(name_bytes).map_err(io::Error::other)?;
    // SAFETY: `count` structures hold the name behind the offset of its first character.
    unsafe {
        memory
            .as_mut_ptr()
            .byte_add(name_at)
            .cast::<u16>()
            .copy_from_nonoverlapping(target.as_ptr(), target.len());
    }
    let size = u32::try_from(name_at + name_bytes + size_of::<u16>()).map_err(io::Error::other)?;
    // SAFETY: the handle is open and the memory is initialised for at least `size` bytes.
    unsafe {
        SetFileInformationByHandle(
            HANDLE(file.as_raw_handle()),
            FileRenameInfoEx,
            memory.as_ptr().cast(),
            size,
        )
    }
    .map_err(|error| system_error(&error))?;
    file.sync_all().or_else(|error| {
        // The handle may rename but not write; the rename itself is in the journal.
        tracing::debug!(%error, "could not flush after a rename");
        Ok(())
    })
}
