//! Access on Windows: discretionary access lists. Every change is read back, because a system that
//! takes a list and drops it (Wine does) must not pass for a private file.
#![expect(
    unsafe_code,
    reason = "security descriptors and tokens are raw Win32 structures"
)]

use std::io;
use std::os::windows::fs::MetadataExt as _;

use camino::Utf8Path;
use windows::Win32::Foundation::{
    CloseHandle, ERROR_NONE_MAPPED, HANDLE, HLOCAL, LocalFree, WIN32_ERROR,
};
use windows::Win32::Security::Authorization::{
    ConvertSecurityDescriptorToStringSecurityDescriptorW, ConvertSidToStringSidW,
    ConvertStringSecurityDescriptorToSecurityDescriptorW, ConvertStringSidToSidW,
    GetNamedSecurityInfoW, SDDL_REVISION_1, SE_FILE_OBJECT, SetNamedSecurityInfoW,
};
use windows::Win32::Security::{
    ACL, DACL_SECURITY_INFORMATION, GetSecurityDescriptorDacl, GetTokenInformation,
    LookupAccountNameW, LookupAccountSidW, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SID_NAME_USE, TOKEN_ELEVATION,
    TOKEN_QUERY, TOKEN_USER, TokenElevation, TokenUser,
};
use windows::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};
use windows::core::{BOOL, HSTRING, PCWSTR, PWSTR};

use super::sddl::{self, Kind};
use super::{Access, AccessError, Account, AccountId, Privacy, Restricted, steps_down};

/// A file attribute: the file is a link or junction.
const REPARSE_POINT: u32 = 0x400;

/// Access by discretionary access lists.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowsAccess;

impl Access for WindowsAccess {
    fn restrict_to_owner(&self, path: &Utf8Path) -> Result<Restricted, AccessError> {
        let failed = |source| AccessError::Restrict {
            path: path.to_owned(),
            source,
        };
        let kind = kind_of(path, failed)?;
        let user = current_sid().map_err(|source| AccessError::CurrentUser { source })?;
        set_access_list(path, &sddl::render_private(&user, kind)).map_err(failed)?;
        match self.check_private(path)? {
            Privacy::Private => Ok(Restricted::Verified),
            Privacy::Exposed { who } => Ok(Restricted::NotVerified {
                why: format!(
                    "the system took the access list, and the file is still open to {}",
                    who.join(", ")
                ),
            }),
            Privacy::Unknown { why } => Ok(Restricted::NotVerified { why }),
        }
    }

    fn check_private(&self, path: &Utf8Path) -> Result<Privacy, AccessError> {
        let (descriptor, user) = look_at(path)?;
        Ok(sddl::judge(&descriptor, &user))
    }

    fn check_unchangeable(&self, path: &Utf8Path) -> Result<Privacy, AccessError> {
        let (descriptor, user) = look_at(path)?;
        Ok(sddl::judge_change(&descriptor, &user))
    }

    fn account(&self, name: &str) -> Result<Account, AccessError> {
        let failed = |error: windows::core::Error| {
            if error.code() == ERROR_NONE_MAPPED.to_hresult() {
                AccessError::NoSuchUser {
                    name: name.to_owned(),
                }
            } else {
                AccessError::LookUp {
                    name: name.to_owned(),
                    source: error.into(),
                }
            }
        };
        if name.is_empty() {
            return Err(AccessError::NoSuchUser {
                name: name.to_owned(),
            });
        }
        if name.starts_with("S-1-") {
            return account_of_sid(name).map_err(failed);
        }
        let sid = sid_of_name(name).map_err(failed)?;
        account_of_sid(&sid).map_err(failed)
    }

    fn group(&self, name: &str) -> Result<u32, AccessError> {
        Err(AccessError::GroupsNotSupported {
            name: name.to_owned(),
        })
    }

    fn ensure_folder(
        &self,
        base: &Utf8Path,
        name: &Utf8Path,
        _owner: Option<&Account>,
        _mode: u32,
    ) -> Result<(), AccessError> {
        let steps = steps_down(name)?;
        let failed = |path: &Utf8Path, source| AccessError::Folder {
            path: path.to_owned(),
            source,
        };
        fs_err::create_dir_all(base).map_err(|source| failed(base, source))?;
        let mut path = base.to_owned();
        for step in steps {
            path.push(step);
            match fs_err::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(&path, error));
                }
                _ => {}
            }
            if kind_of(&path, |source| failed(&path, source))? != Kind::Folder {
                return Err(failed(&path, io::ErrorKind::NotADirectory.into()));
            }
        }
        Ok(())
    }

    fn current_account(&self) -> Result<Account, AccessError> {
        let sid = current_sid().map_err(|source| AccessError::CurrentUser { source })?;
        account_of_sid(&sid).map_err(|error| AccessError::CurrentUser {
            source: error.into(),
        })
    }

    fn is_elevated(&self) -> Result<bool, AccessError> {
        is_elevated().map_err(|error| AccessError::CurrentUser {
            source: error.into(),
        })
    }
}

/// The descriptor of what is at `path`, and who we are; a link is refused.
fn look_at(path: &Utf8Path) -> Result<(String, String), AccessError> {
    let failed = |source| AccessError::Read {
        path: path.to_owned(),
        source,
    };
    kind_of(path, failed)?;
    let user = current_sid().map_err(|source| AccessError::CurrentUser { source })?;
    Ok((access_list(path).map_err(failed)?, user))
}

/// Whether the path is a file or a folder; a link is refused.
fn kind_of(
    path: &Utf8Path,
    failed: impl Fn(io::Error) -> AccessError,
) -> Result<Kind, AccessError> {
    let metadata = fs_err::symlink_metadata(path).map_err(failed)?;
    if metadata.file_attributes() & REPARSE_POINT != 0 {
        return Err(AccessError::Link {
            path: path.to_owned(),
        });
    }
    Ok(if metadata.is_dir() {
        Kind::Folder
    } else {
        Kind::File
    })
}

/// Memory that the system allocated and we free.
struct Local(HLOCAL);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the handle came from a call that documents `LocalFree` as its release, and is
        // freed once.
        unsafe {
            LocalFree(Some(self.0));
        }
    }
}

/// An open token that closes itself.
struct Token(HANDLE);

impl Drop for Token {
    fn drop(&mut self) {
        // SAFETY: the handle is open and ours. Closing a token cannot lose data, so its result
        // says nothing.
        let _ = unsafe { CloseHandle(self.0) };
    }
}

fn check(code: WIN32_ERROR) -> io::Result<()> {
    code.ok().map_err(Into::into)
}

fn set_access_list(path: &Utf8Path, descriptor: &str) -> io::Result<()> {
    let text = HSTRING::from(descriptor);
    let name = HSTRING::from(path.as_str());
    let mut binary = PSECURITY_DESCRIPTOR::default();
    // SAFETY: both strings live through the call; the descriptor is freed by `Local`.
    unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            &text,
            SDDL_REVISION_1,
            &raw mut binary,
            None,
        )?;
    }
    let _free = Local(HLOCAL(binary.0));
    let mut present = BOOL::default();
    let mut defaulted = BOOL::default();
    let mut list: *mut ACL = std::ptr::null_mut();
    // SAFETY: the descriptor is valid until `_free` is dropped; the list points into it.
    unsafe {
        GetSecurityDescriptorDacl(binary, &raw mut present, &raw mut list, &raw mut defaulted)?;
    }
    // SAFETY: name and list live through the call.
    check(unsafe {
        SetNamedSecurityInfoW(
            &name,
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION,
            None,
            None,
            Some(list),
            None,
        )
    })
}

fn access_list(path: &Utf8Path) -> io::Result<String> {
    let name = HSTRING::from(path.as_str());
    let mut binary = PSECURITY_DESCRIPTOR::default();
    // SAFETY: the name lives through the call; the descriptor is freed by `Local`.
    check(unsafe {
        GetNamedSecurityInfoW(
            &name,
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION | OWNER_SECURITY_INFORMATION,
            None,
            None,
            None,
            None,
            &raw mut binary,
        )
    })?;
    let _free = Local(HLOCAL(binary.0));
    let mut text = PWSTR::null();
    // SAFETY: the descriptor is valid until `_free` is dropped.
    unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(
            binary,
            SDDL_REVISION_1,
            DACL_SECURITY_INFORMATION | OWNER_SECURITY_INFORMATION,
            &raw mut text,
            None,
        )?;
    }
    take_string(text)
}

/// Copies a string that the system allocated, and frees it.
fn take_string(text: PWSTR) -> io::Result<String> {
    let _free = Local(HLOCAL(text.0.cast()));
    // SAFETY: the system wrote a string with a zero at its end.
    unsafe { text.to_string() }.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn open_token() -> windows::core::Result<Token> {
    let mut token = HANDLE::default();
    // SAFETY: the pseudo handle of this process is always valid.
    unsafe {
        OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token)?;
    }
    Ok(Token(token))
}

fn current_sid() -> io::Result<String> {
    let token = open_token()?;
    let mut needed = 0;
    // The first call only asks for the size, and fails by design.
    // SAFETY: no buffer is given.
    let _ = unsafe { GetTokenInformation(token.0, TokenUser, None, 0, &raw mut needed) };
    // 8-byte items, so that the structure at its start is aligned.
    let mut buffer = vec![0_u64; (needed as usize).div_ceil(8).max(1)];
    let size = u32::try_from(buffer.len() * 8).unwrap_or(u32::MAX);
    // SAFETY: the buffer has the size that is named.
    unsafe {
        GetTokenInformation(
            token.0,
            TokenUser,
            Some(buffer.as_mut_ptr().cast()),
            size,
            &raw mut needed,
        )?;
    }
    // SAFETY: the call filled the buffer with this structure; the SID it points to is inside.
    let user = unsafe { &*buffer.as_ptr().cast::<TOKEN_USER>() };
    sid_text(user.User.Sid).map_err(Into::into)
}

fn sid_text(sid: PSID) -> windows::core::Result<String> {
    let mut text = PWSTR::null();
    // SAFETY: the SID is valid; the text is freed by `take_string`.
    unsafe { ConvertSidToStringSidW(sid, &raw mut text)? };
    take_string(text).map_err(Into::into)
}

fn sid_of_name(name: &str) -> windows::core::Result<String> {
    let name = HSTRING::from(name);
    let mut sid = vec![0_u64; 16];
    let mut sid_size = u32::try_from(sid.len() * 8).unwrap_or(u32::MAX);
    let mut domain = vec![0_u16; 256];
    let mut domain_size = u32::try_from(domain.len()).unwrap_or(u32::MAX);
    let mut kind = SID_NAME_USE::default();
    let pointer = PSID(sid.as_mut_ptr().cast());
    // SAFETY: the buffers have the sizes that are named; 128 bytes hold the longest SID (68).
    unsafe {
        LookupAccountNameW(
            PCWSTR::null(),
            &name,
            Some(pointer),
            &raw mut sid_size,
            Some(PWSTR(domain.as_mut_ptr())),
            &raw mut domain_size,
            &raw mut kind,
        )?;
    }
    sid_text(pointer)
}

fn account_of_sid(text: &str) -> windows::core::Result<Account> {
    let wide = HSTRING::from(text);
    let mut sid = PSID::default();
    // SAFETY: the text lives through the call; the SID is freed by `Local`.
    unsafe { ConvertStringSidToSidW(&wide, &raw mut sid)? };
    let _free = Local(HLOCAL(sid.0));
    let mut name = vec![0_u16; 256];
    let mut name_size = u32::try_from(name.len()).unwrap_or(u32::MAX);
    let mut domain = vec![0_u16; 256];
    let mut domain_size = u32::try_from(domain.len()).unwrap_or(u32::MAX);
    let mut kind = SID_NAME_USE::default();
    // SAFETY: the buffers have the sizes that are named.
    unsafe {
        LookupAccountSidW(
            PCWSTR::null(),
            sid,
            Some(PWSTR(name.as_mut_ptr())),
            &raw mut name_size,
            Some(PWSTR(domain.as_mut_ptr())),
            &raw mut domain_size,
            &raw mut kind,
        )?;
    }
    let until_zero = |buffer: &[u16]| {
        let end = buffer
            .iter()
            .position(|unit| *unit == 0)
            .unwrap_or(buffer.len());
        String::from_utf16_lossy(&buffer[..end])
    };
    Ok(Account {
        name: until_zero(&name),
        id: AccountId::Windows {
            sid: text.to_owned(),
        },
        home: None,
        shell: None,
    })
}

fn is_elevated() -> windows::core::Result<bool> {
    let token = open_token()?;
    let mut elevation = TOKEN_ELEVATION::default();
    let mut written = 0;
    let size = u32::try_from(size_of::<TOKEN_ELEVATION>()).unwrap_or(u32::MAX);
    // SAFETY: the structure has the size that is named.
    unsafe {
        GetTokenInformation(
            token.0,
            TokenElevation,
            Some((&raw mut elevation).cast()),
            size,
            &raw mut written,
        )?;
    }
    Ok(elevation.TokenIsElevated != 0)
}
