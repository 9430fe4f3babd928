//! Locks, holders, space, and names that are odd but ordinary.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use transom_host::files::{FileError, Holders, How};

use crate::Machine;

contract![
    a_lock_excludes_until_it_is_dropped,
    a_lock_lets_one_thread_in_at_a_time,
    nobody_holds_a_closed_file,
    space_is_measured,
    spaces_and_foreign_letters_are_ordinary,
    a_path_of_more_than_260_characters_is_ordinary,
];

fn a_lock_excludes_until_it_is_dropped(machine: &Machine) {
    let path = machine.path("lock");
    let lock = machine.files.lock(&path, Duration::ZERO).expect("locked");
    match machine.files.lock(&path, Duration::from_millis(20)) {
        Err(FileError::Locked { holder, waited, .. }) => {
            assert_eq!(holder, Some(std::process::id()));
            assert_eq!(waited, Duration::from_millis(20));
        }
        other => panic!("{other:?}"),
    }
    drop(lock);
    let again = machine
        .files
        .lock(&path, Duration::ZERO)
        .expect("free again");
    assert_eq!(again.path(), path);
    again.release();
    assert!(machine.is_there("lock"), "the file stays");
}

fn a_lock_lets_one_thread_in_at_a_time(machine: &Machine) {
    let path = machine.path("lock");
    let inside = AtomicU32::new(0);
    let files = machine.files.as_ref();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let lock = files.lock(&path, Duration::from_mins(1)).expect("locked");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(lock);
                }
            });
        }
    });
}

fn nobody_holds_a_closed_file(machine: &Machine) {
    let path = machine.write("file", "x");
    match machine.files.holders(&path) {
        Holders::Known(holders) => assert_eq!(holders, []),
        // An ordinary user does not see into all processes.
        Holders::Unknown { reason } => assert!(!reason.is_empty()),
    }
}

fn space_is_measured(machine: &Machine) {
    let path = machine.write("file", "x");
    for path in [&machine.root, &path] {
        let space = machine.files.free_space(path).expect("measured");
        assert!(space.available <= space.total, "{space:?}");
        assert!(space.total > 0);
    }
    let missing = machine.files.free_space(&machine.path("missing"));
    assert!(matches!(missing, Err(FileError::NotFound { .. })));
}

fn spaces_and_foreign_letters_are_ordinary(machine: &Machine) {
    let folder = machine.make_dir("ein Ordner/日本 語");
    machine.write("ein Ordner/日本 語/Grüße.txt", "Übung");
    assert_eq!(machine.content("ein Ordner/日本 語/Grüße.txt"), "Übung");
    assert_eq!(machine.names("ein Ordner/日本 語"), ["Grüße.txt"]);
    let copy = machine.path("ein Ordner/copy of it");
    machine
        .files
        .copy_tree(&folder, &copy, How::Copy)
        .expect("copied");
    assert_eq!(machine.content("ein Ordner/copy of it/Grüße.txt"), "Übung");
    machine
        .files
        .remove_tree(&machine.path("ein Ordner"))
        .expect("removed");
    assert!(machine.names("").is_empty());
}

fn a_path_of_more_than_260_characters_is_ordinary(machine: &Machine) {
    let deep = ["a folder with a rather long name of forty"; 8].join("/");
    assert!(deep.len() > 260);
    machine.make_dir(&deep);
    let file = format!("{deep}/file");
    let path = machine.write(&file, "deep");
    assert_eq!(machine.content(&file), "deep");
    let link = machine.path(&format!("{deep}/link"));
    machine.files.link_file(&path, &link).expect("linked");
    let lock = machine.path(&format!("{deep}/lock"));
    machine
        .files
        .lock(&lock, Duration::ZERO)
        .expect("locked")
        .release();
    let top = machine.path("a folder with a rather long name of forty");
    machine
        .files
        .copy_tree(&top, &machine.path("copy"), How::Copy)
        .expect("copied");
    machine.files.remove_tree(&top).expect("removed");
    assert_eq!(machine.names(""), ["copy"]);
}
