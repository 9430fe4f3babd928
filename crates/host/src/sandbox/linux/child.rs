//! The child's way from the clone to the program.
//!
//! Invariant: between clone and exec the child only makes system calls on memory that was prepared
//! before. It allocates nothing and takes no lock, because another thread may have held one.
#![expect(unsafe_code, reason = "clone, mount and exec have no safe form")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::libc::{self, c_char, c_int, c_long, c_ulong};

use super::{Maps, Prepared, PreparedAction};

const HOST_NAME: &CStr = c"build";
/// What an ordinary build does as root, and no more: nothing that reaches the machine.
const CAPABILITIES: [c_int; 10] = [
    0,  // CHOWN
    1,  // DAC_OVERRIDE
    3,  // FOWNER
    4,  // FSETID
    5,  // KILL
    6,  // SETGID
    7,  // SETUID
    10, // NET_BIND_SERVICE
    18, // SYS_CHROOT
    31, // SETFCAP
];
const HIGHEST_CAPABILITY: c_int = 63;

/// Makes the child. It never returns from here: it becomes the program, or reports and ends.
pub(super) fn clone_child(prepared: &Prepared, report: RawFd) -> io::Result<i32> {
    let mut flags = libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::SIGCHLD;
    if prepared.maps.is_some() {
        flags |= libc::CLONE_NEWUSER;
    }
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts
            .iter()
            .map(|text| text.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (argv, envp) = (pointers(&prepared.argv), pointers(&prepared.envp));
    // SAFETY: without a stack of its own the child goes on with a copy of ours, as after a fork. It
    // makes system calls on prepared memory only, and never returns.
    let result = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, 0, 0, 0) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: we are the child, and all pointers are to memory that was copied with us.
            let (step, errno) = unsafe { become_program(prepared, &argv, &envp, report) };
            let mut message = [0_u8; 8];
            message[..4].copy_from_slice(&step.to_ne_bytes());
            message[4..].copy_from_slice(&errno.to_ne_bytes());
            // SAFETY: the descriptor and the buffer are ours. There is nobody else to tell.
            unsafe {
                libc::write(report, message.as_ptr().cast(), message.len());
                libc::_exit(127)
            }
        }
        pid => i32::try_from(pid).map_err(io::Error::other),
    }
}

/// What failed, and how: the number of a step and that of an error.
type Failure = (u32, i32);

/// The child's way to the program. Returns only if it failed.
///
/// # Safety
/// To be called in a freshly cloned child only, with null-terminated lists of pointers to live texts.
unsafe fn become_program(
    prepared: &Prepared,
    argv: &[*const c_char],
    envp: &[*const c_char],
    report: RawFd,
) -> Failure {
    // SAFETY: the caller's promise.
    match unsafe { try_become_program(prepared, argv, envp, report) } {
        Ok(()) => (0, 0),
        Err(failure) => failure,
    }
}

/// # Safety
/// As [`become_program`].
unsafe fn try_become_program(
    prepared: &Prepared,
    argv: &[*const c_char],
    envp: &[*const c_char],
    report: RawFd,
) -> Result<(), Failure> {
    let count = u32::try_from(prepared.actions.len()).unwrap_or(u32::MAX);
    let step = |index: u32| move |errno: i32| (count.saturating_add(index), errno);
    // SAFETY: system calls on texts and descriptors that live as long as the child.
    unsafe {
        bind_life(report).map_err(step(0))?;
        if let Some(maps) = &prepared.maps {
            map_users(maps).map_err(step(1))?;
        }
        let none = std::ptr::null();
        check(libc::mount(
            none,
            c"/".as_ptr(),
            none,
            libc::MS_REC | libc::MS_PRIVATE,
            none.cast(),
        ))
        .map_err(step(2))?;
        loopback_up().map_err(step(3))?;
        check(libc::sethostname(
            HOST_NAME.as_ptr(),
            HOST_NAME.to_bytes().len(),
        ))
        .map_err(step(4))?;
        mount_memory(&prepared.workspace, c"mode=755").map_err(step(5))?;
        for (index, action) in prepared.actions.iter().enumerate() {
            perform(action).map_err(|errno| (u32::try_from(index).unwrap_or(u32::MAX), errno))?;
        }
        enter(&prepared.workspace, &prepared.directory).map_err(step(6))?;
        connect(prepared).map_err(step(7))?;
        give_up_rights().map_err(step(8))?;
        libc::execve(prepared.program.as_ptr(), argv.as_ptr(), envp.as_ptr());
    }
    Err(step(9)(errno()))
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn check(result: c_int) -> Result<(), i32> {
    if result == -1 { Err(errno()) } else { Ok(()) }
}

/// Makes the kernel kill us when our parent dies, and looks whether it has already.
unsafe fn bind_life(report: RawFd) -> Result<(), i32> {
    let mut look = libc::pollfd {
        fd: report,
        events: 0,
        revents: 0,
    };
    // SAFETY: plain system calls; `look` is ours.
    unsafe {
        check(libc::prctl(
            libc::PR_SET_PDEATHSIG,
            libc::SIGKILL as c_ulong,
        ))?;
        check(libc::poll(&raw mut look, 1, 0))?;
        // Nobody reads what we report.
        if look.revents & libc::POLLERR != 0 {
            return Err(libc::ESRCH);
        }
        check(libc::setsid()).map(|()| {
            libc::umask(0o022);
        })
    }
}

unsafe fn map_users(maps: &Maps) -> Result<(), i32> {
    // SAFETY: the texts live, and the files belong to ourselves.
    unsafe {
        write_file(c"/proc/self/setgroups", c"deny")?;
        write_file(c"/proc/self/uid_map", &maps.users)?;
        write_file(c"/proc/self/gid_map", &maps.groups)
    }
}

unsafe fn write_file(path: &CStr, content: &CStr) -> Result<(), i32> {
    let bytes = content.to_bytes();
    // SAFETY: both texts live; the descriptor is closed again.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let result = if written == -1 { Err(errno()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

/// A new network has a loopback that is down, and nothing else.
unsafe fn loopback_up() -> Result<(), i32> {
    // SAFETY: all zeros is a good value of this plain structure, and the socket is closed again.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        check(socket)?;
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l'.cast_signed();
        request.ifr_name[1] = b'o'.cast_signed();
        #[expect(clippy::cast_possible_truncation, reason = "flags of 16 bits")]
        let up = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        request.ifr_ifru.ifru_flags = up;
        let result = check(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request));
        libc::close(socket);
        result
    }
}

unsafe fn mount_memory(at: &CStr, options: &CStr) -> Result<(), i32> {
    let memory = c"tmpfs".as_ptr();
    // SAFETY: all texts live.
    unsafe {
        check(libc::mount(
            memory,
            at.as_ptr(),
            memory,
            libc::MS_NOSUID | libc::MS_NODEV,
            options.as_ptr().cast(),
        ))
    }
}

unsafe fn perform(action: &PreparedAction) -> Result<(), i32> {
    // SAFETY: all texts live as long as the child.
    unsafe {
        match action {
            PreparedAction::Dir { at, mode } => check(libc::mkdir(at.as_ptr(), *mode)),
            PreparedAction::File { at } => {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
                let file = libc::open(at.as_ptr(), flags, 0o644);
                check(file)?;
                check(libc::close(file))
            }
            PreparedAction::Symlink { target, at } => {
                check(libc::symlink(target.as_ptr(), at.as_ptr()))
            }
            PreparedAction::Memory { at, options } => mount_memory(at, options),
            PreparedAction::Bind { from, at, writable } => bind(from, at, *writable),
            PreparedAction::Processes { at } => {
                let kind = c"proc".as_ptr();
                // Read-only: for root, some files in there change the machine itself.
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
                let none = std::ptr::null();
                check(libc::mount(kind, at.as_ptr(), kind, flags, none))
            }
        }
    }
}

/// Shows `from` at `at`, with all that is mounted below it: in a user namespace the kernel refuses to
/// show what such a mount hides.
unsafe fn bind(from: &CStr, at: &CStr, writable: bool) -> Result<(), i32> {
    let none = std::ptr::null();
    let flags = libc::MS_BIND | libc::MS_REC;
    // SAFETY: all texts live, and the kernel is told the size of the structure.
    unsafe {
        check(libc::mount(
            from.as_ptr(),
            at.as_ptr(),
            none,
            flags,
            none.cast(),
        ))?;
        if writable {
            return Ok(());
        }
        let attributes = libc::mount_attr {
            attr_set: libc::MOUNT_ATTR_RDONLY,
            attr_clr: 0,
            propagation: 0,
            userns_fd: 0,
        };
        let result = libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            at.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        );
        if result == 0 { Ok(()) } else { Err(errno()) }
    }
}

/// Makes the workspace the root, leaves the old one behind, and closes the new one for writing.
unsafe fn enter(workspace: &CStr, directory: &CStr) -> Result<(), i32> {
    let here = c".".as_ptr();
    let none = std::ptr::null();
    // SAFETY: all texts live.
    unsafe {
        check(libc::chdir(workspace.as_ptr()))?;
        // Both at one place: the old root then lies above the new one, until it is taken away.
        if libc::syscall(libc::SYS_pivot_root, here, here) != 0 {
            return Err(errno());
        }
        check(libc::umount2(here, libc::MNT_DETACH))?;
        let flags =
            libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
        check(libc::mount(none, c"/".as_ptr(), none, flags, none.cast()))?;
        check(libc::chdir(directory.as_ptr()))
    }
}

unsafe fn connect(prepared: &Prepared) -> Result<(), i32> {
    // SAFETY: the descriptors are open and above 2.
    unsafe {
        check(libc::dup2(prepared.null.as_raw_fd(), 0))?;
        check(libc::dup2(prepared.log.as_raw_fd(), 1))?;
        check(libc::dup2(prepared.log.as_raw_fd(), 2))?;
        // Whatever else is open here is none of the program's business. Our report closes with it.
        let rest = libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        if rest == 0 { Ok(()) } else { Err(errno()) }
    }
}

/// The program may be root, but of nothing that reaches out of its world.
unsafe fn give_up_rights() -> Result<(), i32> {
    // SAFETY: plain system calls; the empty set is initialised before it is used.
    unsafe {
        for capability in 0..=HIGHEST_CAPABILITY {
            if CAPABILITIES.contains(&capability) {
                continue;
            }
            let dropped = libc::prctl(libc::PR_CAPBSET_DROP, c_long::from(capability), 0, 0, 0);
            // The first number that the kernel does not know is the end.
            if dropped == -1 && errno() == libc::EINVAL {
                break;
            }
            check(dropped)?;
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        // Our runtime ignores this signal, and what is ignored stays so across an exec.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null_mut(),
        ))
    }
}
