//! Single values of the Windows registry, below the local machine's key. A value that is not there
//! is None; everything else that goes wrong is an error.
#![expect(unsafe_code, reason = "the registry is read through raw Win32 calls")]

use std::io;

use windows::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND};
use windows::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, REG_ROUTINE_FLAGS, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW,
};
use windows::core::HSTRING;

/// No name or version we read is longer.
const TEXT_LIMIT: usize = 2048;

pub(crate) fn text(key: &str, value: &str) -> io::Result<Option<String>> {
    let mut buffer = vec![0_u16; TEXT_LIMIT];
    let bytes = get(
        key,
        value,
        RRF_RT_REG_SZ,
        buffer.as_mut_ptr().cast(),
        TEXT_LIMIT * 2,
    )?;
    Ok(bytes.map(|bytes| {
        let units = &buffer[..(bytes / 2).min(TEXT_LIMIT)];
        let end = units
            .iter()
            .position(|unit| *unit == 0)
            .unwrap_or(units.len());
        String::from_utf16_lossy(&units[..end])
    }))
}

pub(crate) fn number(key: &str, value: &str) -> io::Result<Option<u32>> {
    let mut number = 0_u32;
    let bytes = get(
        key,
        value,
        RRF_RT_REG_DWORD,
        (&raw mut number).cast(),
        size_of::<u32>(),
    )?;
    Ok(bytes.map(|_| number))
}

/// Fills a buffer and tells how many bytes were written.
fn get(
    key: &str,
    value: &str,
    kind: REG_ROUTINE_FLAGS,
    buffer: *mut core::ffi::c_void,
    size: usize,
) -> io::Result<Option<usize>> {
    let mut size = u32::try_from(size).unwrap_or(u32::MAX);
    // SAFETY: callers pass a buffer of `size` writable bytes; the strings live through the call.
    let code = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            &HSTRING::from(key),
            &HSTRING::from(value),
            kind,
            None,
            Some(buffer),
            Some(&raw mut size),
        )
    };
    if code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND {
        return Ok(None);
    }
    code.ok()?;
    Ok(Some(size as usize))
}
