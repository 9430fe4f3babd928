//! Named pipes. There is always one instance that waits for a client, so that a client which comes
//! while another is being served does not find nobody.
#![expect(unsafe_code, reason = "security descriptors and peers are Win32 calls")]

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{
    ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions,
};
use windows::Win32::Foundation::{
    CloseHandle, ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND, ERROR_NO_DATA,
    ERROR_PIPE_BUSY, GetLastError, HANDLE, HLOCAL, LocalFree,
};
use windows::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows::Win32::Security::{
    GetTokenInformation, PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER,
    TokenUser,
};
use windows::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeServerProcessId};
use windows::Win32::System::Threading::{CreateMutexW, GetCurrentProcess, OpenProcessToken};
use windows::core::{HSTRING, PWSTR};

use super::{AcceptError, BindError, ConnectError, Peer};

const BUSY_PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address(String);

impl Address {
    pub(super) fn in_directory(directory: &Utf8Path, name: &str) -> Self {
        // A path without a current directory stands for itself.
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
        let text = absolute.to_string_lossy().to_lowercase().replace('/', "\\");
        let text = text.strip_prefix(r"\\?\").unwrap_or(&text);
        let digest = Sha256::digest(text.trim_end_matches('\\').as_bytes());
        let hash = digest
            .iter()
            .take(12)
            .fold(0_u128, |hash, byte| hash << 8 | u128::from(*byte));
        Self(format!(r"\\.\pipe\transom-{hash:024x}-{name}"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug)]
pub(super) struct Listener {
    address: Address,
    security: OwnerOnly,
    _claim: Claim,
    /// The instance that waits for the next client.
    waiting: NamedPipeServer,
}

impl Listener {
    pub(super) fn bind(address: &Address) -> Result<Self, BindError> {
        let failed = |step| {
            move |source| BindError::System {
                endpoint: address.to_string(),
                step,
                source,
            }
        };
        let in_use = || BindError::InUse {
            endpoint: address.to_string(),
        };
        let claim = Claim::take(address)
            .map_err(failed("its name cannot be claimed"))?
            .ok_or_else(in_use)?;
        let security = OwnerOnly::new().map_err(failed("its access rights cannot be described"))?;
        let waiting = security.instance(address, true).map_err(|error| {
            // The answer to a claim of the first instance when there is one already.
            if error.raw_os_error() == Some(ERROR_ACCESS_DENIED.0.cast_signed())
                || error.raw_os_error() == Some(ERROR_PIPE_BUSY.0.cast_signed())
            {
                in_use()
            } else {
                failed("the pipe cannot be made")(error)
            }
        })?;
        Ok(Self {
            address: address.clone(),
            security,
            _claim: claim,
            waiting,
        })
    }

    pub(super) async fn accept(&mut self) -> Result<Stream, AcceptError> {
        let failed = |source| AcceptError::System {
            endpoint: self.address.to_string(),
            source,
        };
        while let Err(error) = self.waiting.connect().await {
            if error.raw_os_error() != Some(ERROR_NO_DATA.0.cast_signed()) {
                return Err(failed(error));
            }
            // A client came and went before anybody looked; the instance waits for the next.
            self.waiting.disconnect().map_err(failed)?;
        }
        // The next instance must wait before this one is handed out.
        let next = self
            .security
            .instance(&self.address, false)
            .map_err(failed)?;
        Ok(Stream::Server(std::mem::replace(&mut self.waiting, next)))
    }
}

pub(super) async fn connect(address: &Address, timeout: Duration) -> Result<Stream, ConnectError> {
    let endpoint = address.to_string();
    let deadline = Instant::now() + timeout;
    loop {
        let error = match ClientOptions::new().open(&address.0) {
            Ok(client) => return Ok(Stream::Client(client)),
            Err(error) => error,
        };
        let code = error.raw_os_error().map_or(0, i32::cast_unsigned);
        if code == ERROR_FILE_NOT_FOUND.0 {
            return Err(ConnectError::NobodyListens { endpoint });
        }
        if code == ERROR_ACCESS_DENIED.0 {
            return Err(ConnectError::Denied {
                endpoint,
                source: error,
            });
        }
        if code != ERROR_PIPE_BUSY.0 {
            return Err(ConnectError::System {
                endpoint,
                source: error,
            });
        }
        if Instant::now() >= deadline {
            return Err(ConnectError::Busy { endpoint, timeout });
        }
        // Another client took the waiting instance; the next one is about to be made.
        tokio::time::sleep(BUSY_PAUSE).await;
    }
}

#[derive(Debug)]
pub(super) enum Stream {
    Server(NamedPipeServer),
    Client(NamedPipeClient),
}

pub(super) fn peer(stream: &Stream) -> Peer {
    let mut pid = 0;
    // SAFETY: the handle is an open pipe and `pid` outlives the call.
    let known = unsafe {
        match stream {
            Stream::Server(pipe) => {
                GetNamedPipeClientProcessId(HANDLE(pipe.as_raw_handle()), &raw mut pid)
            }
            Stream::Client(pipe) => {
                GetNamedPipeServerProcessId(HANDLE(pipe.as_raw_handle()), &raw mut pid)
            }
        }
    };
    Peer {
        pid: (known.is_ok() && pid != 0).then_some(pid),
        user: None,
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Self::Client(pipe) => Pin::new(pipe).poll_read(context, buffer),
        };
        match read {
            // The way a pipe says that the other side has hung up.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_write(context, buffer),
            Self::Client(pipe) => Pin::new(pipe).poll_write(context, buffer),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_flush(context),
            Self::Client(pipe) => Pin::new(pipe).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_shutdown(context),
            Self::Client(pipe) => Pin::new(pipe).poll_shutdown(context),
        }
    }
}

/// The right to listen, held by the existence of a named object, which ends with its process. The
/// system's own flag for the first instance keeps strangers out; Wine ignores that flag.
#[derive(Debug)]
struct Claim {
    _mutex: OwnedHandle,
}

impl Claim {
    /// `None`: somebody else holds it.
    fn take(address: &Address) -> io::Result<Option<Self>> {
        let name = address.0.replace('\\', "-");
        // SAFETY: the name outlives the call; the handle is ours; the last error is read at once.
        unsafe {
            let mutex = CreateMutexW(None, false, &HSTRING::from(format!(r"Global\{name}")));
            let existed = GetLastError() == ERROR_ALREADY_EXISTS;
            let mutex = match mutex {
                Ok(mutex) => OwnedHandle::from_raw_handle(mutex.0),
                // It exists and belongs to another user.
                Err(error) if error.code() == ERROR_ACCESS_DENIED.to_hresult() => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            Ok((!existed).then_some(Self { _mutex: mutex }))
        }
    }
}

/// A security descriptor that lets in us, the system and administrators.
#[derive(Debug)]
struct OwnerOnly(PSECURITY_DESCRIPTOR);

// SAFETY: the descriptor is never written after it was made.
unsafe impl Send for OwnerOnly {}
// SAFETY: as above.
unsafe impl Sync for OwnerOnly {}

impl OwnerOnly {
    fn new() -> io::Result<Self> {
        let user = own_sid()?;
        let text = format!("D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;{user})");
        let mut descriptor = PSECURITY_DESCRIPTOR::default();
        // SAFETY: both pointers outlive the call; the result is ours to free.
        unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                &HSTRING::from(text),
                SDDL_REVISION_1,
                &raw mut descriptor,
                None,
            )?;
        }
        Ok(Self(descriptor))
    }

    fn instance(&self, address: &Address, first: bool) -> io::Result<NamedPipeServer> {
        let mut attributes = SECURITY_ATTRIBUTES {
            nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or_default(),
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: false.into(),
        };
        let mut options = ServerOptions::new();
        options
            .first_pipe_instance(first)
            .reject_remote_clients(true);
        let attributes: *mut c_void = (&raw mut attributes).cast();
        // SAFETY: `attributes` and the descriptor it points to outlive the call.
        unsafe { options.create_with_security_attributes_raw(&address.0, attributes) }
    }
}

impl Drop for OwnerOnly {
    fn drop(&mut self) {
        // SAFETY: the descriptor came from a function whose result is freed this way.
        unsafe { LocalFree(Some(HLOCAL(self.0.0))) };
    }
}

/// The security identifier of the user that we run as.
fn own_sid() -> io::Result<String> {
    // SAFETY: every pointer outlives its call; the buffer is aligned for TOKEN_USER and as large as
    // the system says it must be; what the system allocated is freed.
    unsafe {
        let mut token = HANDLE::default();
        OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token)?;
        let mut buffer = [0_u64; 32];
        let mut length = 0;
        let result = GetTokenInformation(
            token,
            TokenUser,
            Some(buffer.as_mut_ptr().cast()),
            u32::try_from(size_of_val(&buffer)).unwrap_or_default(),
            &raw mut length,
        );
        CloseHandle(token)?;
        result?;
        let user = buffer.as_ptr().cast::<TOKEN_USER>().read();
        let mut text = PWSTR::null();
        ConvertSidToStringSidW(user.User.Sid, &raw mut text)?;
        let sid = text.to_string();
        LocalFree(Some(HLOCAL(text.0.cast())));
        sid.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_folder_has_one_pipe_however_it_is_written() {
        let pipe = |folder: &str| Address::in_directory(Utf8Path::new(folder), "control");
        assert_eq!(pipe(r"C:\Transom\run"), pipe("c:/transom/RUN/"));
        assert_ne!(pipe(r"C:\Transom\run"), pipe(r"C:\Transom\other"));
    }
}
