//! Notifications over a Unix datagram socket, with the sender's credentials from the kernel.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};

use std::time::Duration;

use camino::Utf8Path;
use nix::sys::socket::sockopt::PassCred;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, setsockopt};
use nix::unistd::geteuid;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::{LONGEST_MESSAGE, Message, NotifyError, Sender};

/// How long a service waits for a supervisor whose queue is full.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest path that fits a Unix socket address.
const LONGEST_PATH: usize = 107;

#[derive(Debug)]
pub(super) struct Receiver {
    socket: UnixDatagram,
}

/// A path where it fits, so that every library can use it; an abstract name otherwise.
pub(super) fn address(folder: &Utf8Path) -> String {
    let path = folder.join("notify");
    if path.as_str().len() <= LONGEST_PATH {
        return path.into_string();
    }
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    format!("@transom-notify-{:016x}", hasher.finish())
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    match address.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(address),
    }
}

impl Receiver {
    pub(super) fn bind(folder: &Utf8Path) -> Result<Self, NotifyError> {
        let address = address(folder);
        let bound = || -> io::Result<UnixDatagram> {
            if !address.starts_with('@') {
                match fs_err::remove_file(&address) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            let socket = StdDatagram::bind_addr(&resolve(&address)?)?;
            if !address.starts_with('@') {
                // Services run as any user. Who may speak is decided by credentials, not by mode.
                fs_err::set_permissions(&address, PermissionsExt::from_mode(0o666))?;
            }
            socket.set_nonblocking(true)?;
            setsockopt(&socket, PassCred, &true)?;
            UnixDatagram::from_std(socket)
        };
        let socket = bound().map_err(|source| NotifyError::Bind { address, source })?;
        Ok(Self { socket })
    }

    pub(super) async fn receive(&mut self) -> Option<Message> {
        loop {
            self.socket.readable().await.ok()?;
            match self
                .socket
                .try_io(Interest::READABLE, || read_one(&self.socket))
            {
                Ok(message) => return Some(message),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }
}

fn read_one(socket: &UnixDatagram) -> io::Result<Message> {
    let mut buffer = [0; LONGEST_MESSAGE];
    let mut slices = [IoSliceMut::new(&mut buffer)];
    // Room for credentials only: passed file descriptors are dropped by the kernel.
    let mut control = nix::cmsg_space!(nix::sys::socket::UnixCredentials);
    let received = recvmsg::<UnixAddr>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let sender = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmCredentials(credentials) => Some(Sender::Process {
            pid: u32::try_from(credentials.pid()).ok()?,
            is_our_user: credentials.uid() == 0 || credentials.uid() == geteuid().as_raw(),
        }),
        _ => None,
    });
    let sender = sender.ok_or_else(|| io::Error::other("the kernel did not name the sender"))?;
    let length = received.bytes;
    Ok(Message {
        sender,
        text: String::from_utf8_lossy(&buffer[..length]).into_owned(),
    })
}

pub(super) fn send(address: &str, text: &str) -> io::Result<()> {
    let socket = StdDatagram::unbound()?;
    // A supervisor that does not read must not hold up its service for ever.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.send_to_addr(text.as_bytes(), &resolve(address)?)?;
    Ok(())
}
