//! What only Linux can show.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use camino::Utf8Path;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use transom_host::files::{Access, FileError, Files, Holder, Holders, How, Kind, Native};

use crate::Machine;
use crate::child::Player;

#[test]
fn the_holder_of_an_open_file_and_of_its_folder_is_named() {
    let machine = Machine::native();
    let path = machine.path("file");
    Native
        .write_durable(&path, b"x", Access::Public)
        .expect("written");
    let player = Player::start("hold", &path);
    for held in [&path, &machine.root] {
        match Native.holders(held) {
            Holders::Known(holders) => {
                let pids: Vec<u32> = holders.iter().map(|Holder { pid, .. }| *pid).collect();
                assert_eq!(pids, [player.child.id()], "{held}");
                assert!(holders[0].name.starts_with("files"), "{holders:?}");
            }
            unknown @ Holders::Unknown { .. } => panic!("{unknown:?}"),
        }
    }
}

#[test]
fn the_holder_of_a_running_program_is_named() {
    let exe = std::env::current_exe().expect("our own path");
    let exe = Utf8Path::from_path(&exe).expect("Unicode");
    let Holders::Known(holders) = Native.holders(exe) else {
        panic!("unknown");
    };
    assert!(
        holders
            .iter()
            .any(|holder| holder.pid == std::process::id())
    );
}

#[test]
fn a_lock_is_free_when_its_process_was_killed() {
    let machine = Machine::native();
    let path = machine.path("lock");
    let mut player = Player::start("lock", &path);
    match Native.lock(&path, Duration::from_millis(10)) {
        Err(FileError::Locked { holder, .. }) => assert_eq!(holder, Some(player.child.id())),
        other => panic!("{other:?}"),
    }
    player.kill();
    Native
        .lock(&path, Duration::from_secs(5))
        .expect("free")
        .release();
}

#[test]
fn a_lock_file_that_was_replaced_is_not_taken_for_the_lock() {
    let machine = Machine::native();
    let path = machine.path("lock");
    let first = Native.lock(&path, Duration::ZERO).expect("locked");
    Native.remove_file(&path).expect("removed");
    // Whoever removes a lock file breaks the lock, but the next two exclude each other.
    let second = Native.lock(&path, Duration::ZERO).expect("a new file");
    drop(first);
    Native.lock(&path, Duration::ZERO).expect_err("still held");
    second.release();
}

#[test]
fn a_full_disk_is_said_to_be_full_and_nothing_is_left() {
    let machine = Machine::native();
    // Private to this thread, and gone with it.
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNS) {
        assert_eq!(error, nix::Error::EPERM);
        return;
    }
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("private");
    mount(
        Some("tmpfs"),
        machine.root.as_std_path(),
        Some("tmpfs"),
        MsFlags::empty(),
        Some("size=64k"),
    )
    .expect("a small disk");

    let path = machine.path("file");
    Native
        .write_durable(&path, b"old", Access::Public)
        .expect("fits");
    let large = vec![1; 1 << 20];
    let written = Native.write_durable(&path, &large, Access::Public);
    assert!(
        matches!(&written, Err(FileError::DiskFull { path: named, .. }) if *named == path),
        "{written:?}"
    );
    assert_eq!(Native.read(&path, 10).expect("read"), b"old");
    assert_eq!(Native.list(&machine.root).expect("listed").len(), 1);
    let space = Native.free_space(&path).expect("measured");
    assert_eq!(space.total, 64 * 1024);
}

#[test]
fn modes_survive_a_copy_and_special_bits_do_not() {
    let machine = Machine::native();
    let tree = machine.path("tree");
    Native
        .create_dir_all(&machine.path("tree/sub"))
        .expect("made");
    let tool = machine.path("tree/sub/tool");
    Native
        .write_durable(&tool, b"x", Access::Public)
        .expect("written");
    let chmod = |path: &Utf8Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("changed");
    };
    chmod(&tool, 0o4751);
    chmod(&machine.path("tree/sub"), 0o555);
    chmod(&tree, 0o750);
    let copy = machine.path("copy");
    Native.copy_tree(&tree, &copy, How::Copy).expect("copied");
    for (name, mode) in [
        ("copy", 0o750),
        ("copy/sub", 0o555),
        ("copy/sub/tool", 0o751),
    ] {
        let metadata = Native.metadata(&machine.path(name)).expect("there");
        assert_eq!(metadata.mode, Some(mode), "{name}");
    }
    Native.remove_tree(&copy).expect("removed");
}

#[test]
fn links_are_copied_not_followed_and_pipes_are_refused() {
    let machine = Machine::native();
    let tree = machine.path("tree");
    Native.create_dir_all(&tree).expect("made");
    symlink("/etc/passwd", machine.path("tree/link")).expect("linked");
    let copy = machine.path("copy");
    Native
        .copy_tree(&tree, &copy, How::HardLink)
        .expect("copied");
    let link = Native.metadata(&machine.path("copy/link")).expect("there");
    assert_eq!(link.kind, Kind::Link);

    let pipe = machine.path("tree/pipe");
    nix::unistd::mkfifo(pipe.as_std_path(), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let refused = Native.copy_tree(&tree, &machine.path("other"), How::Copy);
    assert!(matches!(&refused, Err(FileError::WrongKind { path, .. }) if *path == pipe));
    // Reading a pipe without a writer would block for ever.
    let read = Native.read(&pipe, 10);
    assert!(matches!(read, Err(FileError::WrongKind { .. })), "{read:?}");
}

#[test]
fn a_write_replaces_a_link_and_keeps_what_it_led_to() {
    let machine = Machine::native();
    let target = machine.path("target");
    let link = machine.path("link");
    Native
        .write_durable(&target, b"kept", Access::Public)
        .expect("written");
    symlink(&target, &link).expect("linked");
    Native
        .write_durable(&link, b"new", Access::Secret)
        .expect("written");
    assert_eq!(Native.read(&target, 10).expect("read"), b"kept");
    assert_eq!(Native.metadata(&link).expect("there").kind, Kind::File);
}

#[test]
fn a_name_that_is_not_unicode_is_removed_and_never_listed_wrongly() {
    use std::os::unix::ffi::OsStrExt;
    let machine = Machine::native();
    let folder = machine.path("folder");
    Native.create_dir_all(&folder).expect("made");
    let odd = folder
        .as_std_path()
        .join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs_err::write(&odd, "x").expect("written");
    Native.list(&folder).expect_err("cannot be spelled");
    Native.remove_tree(&folder).expect("removed");
}

#[test]
fn a_folder_in_memory_has_a_limit_and_goes_with_the_tree_it_is_in() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let machine = Machine::native();
    let folder = machine.path("pods/one/volumes/scratch");
    let page = 4_096_u64;
    for _ in 0..2 {
        // Once more changes nothing.
        Native
            .ensure_memory_folder(&folder, Some(16 * page))
            .expect("made");
    }
    assert_eq!(Native.free_space(&folder).expect("space").total, 16 * page);
    let large = vec![0; 64 * 4_096];
    let error = Native
        .write_durable(&folder.join("large"), &large, Access::Public)
        .expect_err("too much");
    assert!(matches!(error, FileError::DiskFull { .. }), "{error}");
    Native
        .write_durable(&folder.join("small"), b"x", Access::Mode(0o440))
        .expect("written");
    let mode = Native.metadata(&folder.join("small")).expect("there").mode;
    assert_eq!(mode, Some(0o440));
    Native.remove_tree(&machine.path("pods")).expect("removed");
    let mounts = fs_err::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(!mounts.contains(folder.as_str()), "{mounts}");
}

#[test]
fn a_folder_with_content_is_not_hidden_by_one_in_memory() {
    let machine = Machine::native();
    let folder = machine.path("kept");
    Native.create_dir_all(&folder).expect("made");
    Native
        .write_durable(&folder.join("file"), b"x", Access::Public)
        .expect("written");
    Native
        .ensure_memory_folder(&folder, None)
        .expect("left alone");
    assert_eq!(Native.read(&folder.join("file"), 9).expect("there"), b"x");
}

#[test]
fn what_is_held_fast_stays_what_it_was_when_a_link_takes_its_name() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let machine = Machine::native();
    let (volume, secret) = (machine.path("volume"), machine.path("secret"));
    for (folder, text) in [(&volume.join("data/inner"), "own"), (&secret, "secret")] {
        Native.create_dir_all(folder).expect("made");
        Native
            .write_durable(&folder.join("file"), text.as_bytes(), Access::Public)
            .expect("written");
    }
    let place = machine.path("agent/sub-paths/0");
    let pin = |below: &str| Native.pin(&volume, below.into(), &place);
    let read = || {
        Native
            .read(&place.join("file"), 9)
            .map(|bytes| String::from_utf8(bytes).ok())
    };
    pin("data/inner").expect("held");
    let (data, old) = (volume.join("data"), volume.join("old"));
    Native.rename_dir(&data, &old).expect("moved");
    symlink(&machine.root, &data).expect("linked");
    assert_eq!(read().expect("there").as_deref(), Some("own"));

    // Whoever comes now is told of the link; what is held already stays.
    for below in ["data/secret", "data"] {
        let error = pin(below).expect_err("a link");
        assert!(matches!(error, FileError::Io { .. }), "{error:?}");
    }
    assert_eq!(read().expect("there").as_deref(), Some("own"));
    // A single file, a new folder, and the end: what was held is still where it was.
    pin("old/inner/file").expect("held");
    assert_eq!(Native.read(&place, 9).expect("there"), b"own");
    pin("new/folder").expect("made and held");
    assert!(volume.join("new/folder").is_dir());
    pin("old").expect("held");
    let agent = machine.path("agent");
    Native.remove_tree(&agent).expect("removed");
    let kept = Native
        .read(&volume.join("old/inner/file"), 9)
        .expect("kept");
    assert_eq!(kept, b"own");
    let mounts = fs_err::read_to_string("/proc/self/mounts").expect("mounts");
    assert!(!mounts.contains(agent.as_str()), "{mounts}");
}

#[test]
fn a_folder_that_is_swapped_for_a_link_all_the_time_never_leads_astray() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::sync::atomic::{AtomicBool, Ordering};

    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let machine = Machine::native();
    let (volume, secret) = (machine.path("volume"), machine.path("secret"));
    let (data, link) = (volume.join("data"), volume.join("link"));
    Native.create_dir_all(&data).expect("made");
    Native.create_dir_all(&secret).expect("made");
    Native
        .write_durable(&secret.join("file"), b"secret", Access::Public)
        .expect("written");
    symlink(&secret, &link).expect("linked");
    let (is_over, place) = (AtomicBool::new(false), machine.path("agent/0"));
    let shown: Vec<bool> = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let (one, other) = (data.as_str(), link.as_str());
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("swapped");
            }
        });
        let look = |_| {
            let held = Native.pin(&volume, "data".into(), &place);
            held.is_ok().then(|| place.join("file").exists())
        };
        let shown = (0..2_000).filter_map(look).collect();
        is_over.store(true, Ordering::Relaxed);
        shown
    });
    assert!(!shown.is_empty(), "it was never held");
    assert!(!shown.contains(&true), "it showed what is outside");
    Native.remove_tree(&machine.path("agent")).expect("removed");
    assert!(secret.join("file").exists());
}
