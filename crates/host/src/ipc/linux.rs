//! Unix sockets. A lock file beside the socket decides who may listen, so that the socket of a
//! listener that died is replaced and that of a living one never is.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};

use super::{AcceptError, BindError, ConnectError, Peer};

const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(5);

pub(super) type Stream = UnixStream;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    directory: Utf8PathBuf,
    file: String,
}

impl Address {
    pub(super) fn in_directory(directory: &Utf8Path, name: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            file: format!("{name}.sock"),
        }
    }

    fn open_directory(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(
            self.directory.as_str(),
            flags,
            Mode::empty(),
        )?)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.directory.join(&self.file))
    }
}

/// A socket's address holds 107 bytes of path. This form is short however deep the folder is.
fn short_path(directory: &OwnedFd, file: &str) -> String {
    format!("/proc/self/fd/{}/{file}", directory.as_raw_fd())
}

#[derive(Debug)]
pub(super) struct Listener {
    address: Address,
    directory: OwnedFd,
    lock: OwnedFd,
    /// Device and inode of our socket file.
    file: (u64, u64),
    socket: UnixListener,
}

impl Listener {
    pub(super) fn bind(address: &Address) -> Result<Self, BindError> {
        let failed = |step| {
            move |source: io::Error| BindError::System {
                endpoint: address.to_string(),
                step,
                source,
            }
        };
        let directory = address
            .open_directory()
            .map_err(failed("its folder cannot be opened"))?;
        let lock = lock(&directory, address)?;
        let in_use = || BindError::InUse {
            endpoint: address.to_string(),
        };
        // Somebody may listen who does not know about the lock.
        if StdStream::connect(short_path(&directory, &address.file)).is_ok() {
            return Err(in_use());
        }
        let temporary = format!(".{}.{}", address.file, std::process::id());
        // A leftover of a process that had our pid and died right here.
        let _ = rustix::fs::unlinkat(&directory, temporary.as_str(), AtFlags::empty());
        let socket = publish(&directory, &temporary, &address.file)
            .map_err(failed("the socket cannot be made"))?;
        let status =
            rustix::fs::statat(&directory, address.file.as_str(), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| failed("the socket vanished")(error.into()))?;
        Ok(Self {
            address: address.clone(),
            directory,
            lock,
            file: (status.st_dev, status.st_ino),
            socket: UnixListener::from_std(socket)
                .map_err(failed("the socket cannot be watched"))?,
        })
    }

    pub(super) async fn accept(&self) -> Result<Stream, AcceptError> {
        loop {
            let (stream, _) = self
                .socket
                .accept()
                .await
                .map_err(|source| AcceptError::System {
                    endpoint: self.address.to_string(),
                    source,
                })?;
            // The mode of the socket says the same; this also holds where modes are not kept.
            let owner = rustix::process::geteuid().as_raw();
            if peer(&stream)
                .user
                .is_some_and(|user| user == owner || user == 0)
            {
                return Ok(stream);
            }
            tracing::warn!(endpoint = %self.address, peer = ?peer(&stream), "refused another user");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = rustix::fs::statat(
            &self.directory,
            self.address.file.as_str(),
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .is_ok_and(|status| (status.st_dev, status.st_ino) == self.file);
        if ours {
            // Left behind, it would only be replaced by the next listener.
            let _ = rustix::fs::unlinkat(
                &self.directory,
                self.address.file.as_str(),
                AtFlags::empty(),
            );
        }
        // Explicitly, because a child between fork and exec may hold a copy of the descriptor.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

fn lock(directory: &OwnedFd, address: &Address) -> Result<OwnedFd, BindError> {
    let failed = |source: rustix::io::Errno| BindError::System {
        endpoint: address.to_string(),
        step: "its lock file cannot be used",
        source: source.into(),
    };
    let lock = rustix::fs::openat(
        directory,
        format!("{}.lock", address.file),
        OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::RUSR | Mode::WUSR,
    )
    .map_err(failed)?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::InUse {
            endpoint: address.to_string(),
        }),
        Err(error) => Err(failed(error)),
    }
}

/// Listens under a temporary name, then takes the real one in one step: at no instant is there a
/// socket that a client can find but not use, or that a stranger may open.
fn publish(directory: &OwnedFd, temporary: &str, file: &str) -> io::Result<StdListener> {
    let socket = StdListener::bind(short_path(directory, temporary))?;
    socket.set_nonblocking(true)?;
    let owner_only = Mode::RUSR | Mode::WUSR;
    rustix::fs::chmodat(directory, temporary, owner_only, AtFlags::empty())
        .and_then(|()| rustix::fs::renameat(directory, temporary, directory, file))
        .inspect_err(|_| {
            // The error that matters is the one above.
            let _ = rustix::fs::unlinkat(directory, temporary, AtFlags::empty());
        })?;
    Ok(socket)
}

pub(super) async fn connect(address: &Address, timeout: Duration) -> Result<Stream, ConnectError> {
    let endpoint = address.to_string();
    let attempt = async {
        let directory = address.open_directory()?;
        let path = short_path(&directory, &address.file);
        loop {
            match UnixStream::connect(&path).await {
                // The listener's queue is full; the kernel has no way to wait for room.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(FULL_QUEUE_PAUSE).await;
                }
                result => return result,
            }
        }
    };
    let Ok(result) = tokio::time::timeout(timeout, attempt).await else {
        return Err(ConnectError::Busy { endpoint, timeout });
    };
    let error = match result {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    Err(match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::NotADirectory => ConnectError::NobodyListens { endpoint },
        io::ErrorKind::PermissionDenied => ConnectError::Denied {
            endpoint,
            source: error,
        },
        _ => ConnectError::System {
            endpoint,
            source: error,
        },
    })
}

pub(super) fn peer(stream: &Stream) -> Peer {
    let credentials = stream.peer_cred().ok();
    Peer {
        pid: credentials
            .and_then(|credentials| credentials.pid())
            .and_then(|pid| u32::try_from(pid).ok()),
        user: credentials.map(|credentials| credentials.uid()),
    }
}
