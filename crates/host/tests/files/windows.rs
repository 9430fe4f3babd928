//! What only Windows can show; run under Wine except where a test says it needs the real one.

use std::time::Duration;

use transom_host::files::{Access, FileError, Files, Holders, Native};

use crate::Machine;
use crate::child::Player;

#[test]
fn a_file_that_is_open_is_neither_removed_nor_replaced_until_its_process_ends() {
    let machine = Machine::native();
    let path = machine.path("file");
    Native
        .write_durable(&path, b"old", Access::Public)
        .expect("written");
    let mut player = Player::start("hold", &path);
    let removed = Native.remove_tree(&machine.root);
    let replaced = Native.write_durable(&path, b"new", Access::Public);
    for result in [removed, replaced] {
        match result {
            Err(FileError::InUse {
                path: named,
                holders,
                ..
            }) => {
                assert_eq!(named, path);
                assert_ne!(holders, Holders::Known(Vec::new()), "somebody does hold it");
            }
            other => panic!("{other:?}"),
        }
    }
    player.kill();
    Native
        .write_durable(&path, b"new", Access::Public)
        .expect("written");
    assert_eq!(Native.read(&path, 10).expect("read"), b"new");
    let entries = Native.list(&machine.root).expect("listed");
    assert_eq!(entries.len(), 1, "no temporary file is left");
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
fn a_read_only_file_is_removed() {
    let machine = Machine::native();
    let path = machine.path("folder");
    Native.create_dir_all(&path).expect("made");
    let file = machine.path("folder/file");
    Native
        .write_durable(&file, b"x", Access::Public)
        .expect("written");
    let mut permissions = std::fs::metadata(&file).expect("there").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&file, permissions).expect("set");
    assert!(Native.metadata(&file).expect("there").read_only);
    Native.remove_tree(&path).expect("removed");
    Native.metadata(&path).expect_err("gone");
}

#[test]
fn a_read_only_file_is_replaced() {
    let machine = Machine::native();
    let file = machine.path("file");
    Native
        .write_durable(&file, b"old", Access::Public)
        .expect("written");
    let mut permissions = std::fs::metadata(&file).expect("there").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&file, permissions).expect("set");
    Native
        .write_durable(&file, b"new", Access::Public)
        .expect("replaced");
    assert_eq!(Native.read(&file, 10).expect("read"), b"new");
}

#[test]
fn a_path_with_forward_slashes_or_in_another_case_is_the_same() {
    let machine = Machine::native();
    let path = machine.path("File");
    Native
        .write_durable(&path, b"x", Access::Public)
        .expect("written");
    let other = path.as_str().replace('\\', "/").to_uppercase();
    assert_eq!(Native.read(other.as_str().into(), 10).expect("read"), b"x");
}

#[test]
#[ignore = "needs real Windows: Wine's restart manager knows no processes"]
fn the_holder_of_an_open_file_is_named() {
    let machine = Machine::native();
    let path = machine.path("file");
    Native
        .write_durable(&path, b"x", Access::Public)
        .expect("written");
    let player = Player::start("hold", &path);
    let Holders::Known(holders) = Native.holders(&path) else {
        panic!("unknown");
    };
    assert_eq!(holders[0].pid, player.child.id());
}

#[test]
#[ignore = "needs real Windows: Wine has no junctions"]
fn a_junction_leads_to_its_folder_and_is_replaced() {
    let machine = Machine::native();
    for name in ["first", "second"] {
        Native.create_dir_all(&machine.path(name)).expect("made");
    }
    let link = machine.path("link");
    Native
        .link_dir(&machine.path("first"), &link)
        .expect("linked");
    Native
        .replace_link(&machine.path("second"), &link)
        .expect("replaced");
    assert_eq!(
        Native.read_link(&link).expect("a link"),
        machine.path("second")
    );
}
