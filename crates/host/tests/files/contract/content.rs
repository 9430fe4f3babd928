//! Content: written whole, read whole, listed in order.

use std::time::{Duration, Instant};

use transom_host::files::fault::{self, Place, Plan};
use transom_host::files::{Access, FileError, How, Kind};
use transom_model::os::Os;

use crate::Machine;

contract![
    a_written_file_is_read_back,
    a_write_replaces_all_of_the_old_content,
    a_write_that_fails_at_any_step_leaves_the_old_content_and_no_temporary,
    a_write_into_a_missing_folder_says_what_is_missing,
    a_write_does_not_replace_a_folder,
    readers_never_see_half_of_a_write,
    a_file_above_the_limit_is_refused_not_cut_off,
    a_folder_cannot_be_read_as_a_file,
    what_is_missing_is_named,
    a_folder_is_listed_in_order_with_what_each_entry_is,
    missing_folders_are_made_and_existing_ones_kept,
    a_file_in_the_way_of_a_folder_is_named,
    replace_moves_a_file_over_another,
    rename_dir_moves_a_folder_and_refuses_a_taken_name,
    only_our_own_leftovers_are_swept,
];

fn a_written_file_is_read_back(machine: &Machine) {
    for (name, access) in [
        ("public", Access::Public),
        ("tool", Access::Executable),
        ("secret", Access::Secret),
    ] {
        let path = machine.path(name);
        machine
            .files
            .write_durable(&path, b"content", access)
            .expect("written");
        assert_eq!(machine.content(name), "content");
        let metadata = machine.files.metadata(&path).expect("described");
        assert_eq!((metadata.kind, metadata.length), (Kind::File, 7));
        if machine.files.os() == Os::Linux {
            assert_eq!(metadata.mode, Some(access.mode()), "{name}");
        }
    }
    assert_eq!(machine.names(""), ["public", "secret", "tool"]);
}

fn a_write_replaces_all_of_the_old_content(machine: &Machine) {
    machine.write("file", "a long old content");
    machine.write("file", "new");
    assert_eq!(machine.content("file"), "new");
    assert_eq!(machine.names(""), ["file"]);
    machine.write("file", "");
    assert_eq!(machine.content("file"), "");
}

fn a_write_that_fails_at_any_step_leaves_the_old_content_and_no_temporary(machine: &Machine) {
    let path = machine.write("file", "old");
    let mut failures = 0;
    for step in 1.. {
        let plan = fault::arm_thread(Plan::Fail(Place::Nth(step)));
        let written = machine.files.write_durable(&path, b"new", Access::Public);
        drop(plan);
        assert_eq!(machine.names(""), ["file"], "at step {step}");
        match written {
            Ok(()) => break,
            Err(FileError::Io { path: named, .. }) => {
                assert!(named == path || named == machine.root, "{named}");
            }
            Err(other) => panic!("at step {step}: {other:?}"),
        }
        failures += 1;
        // Once renamed the new content is there; the failure then is that it may not survive.
        let expected = if step <= 4 { "old" } else { "new" };
        assert_eq!(machine.content("file"), expected, "at step {step}");
    }
    assert_eq!(failures, 5, "create, content, sync, rename, folder");
}

fn a_write_into_a_missing_folder_says_what_is_missing(machine: &Machine) {
    let path = machine.path("missing/file");
    let written = machine.files.write_durable(&path, b"x", Access::Public);
    assert!(
        matches!(&written, Err(FileError::NotFound { path: named }) if *named == path),
        "{written:?}"
    );
}

fn a_write_does_not_replace_a_folder(machine: &Machine) {
    let folder = machine.make_dir("folder");
    machine.write("folder/inner", "kept");
    let written = machine.files.write_durable(&folder, b"x", Access::Public);
    assert!(
        matches!(written, Err(FileError::WrongKind { .. })),
        "{written:?}"
    );
    assert_eq!(machine.content("folder/inner"), "kept");
    assert_eq!(machine.names(""), ["folder"]);
}

fn readers_never_see_half_of_a_write(machine: &Machine) {
    let contents = ["a".repeat(10_000), "b".repeat(20_000)];
    let path = machine.write("file", &contents[0]);
    let files = machine.files.as_ref();
    std::thread::scope(|scope| {
        let writers = contents.each_ref().map(|content| {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..20 {
                    files
                        .write_durable(path, content.as_bytes(), Access::Public)
                        .expect("written");
                }
            })
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            let started = Instant::now();
            let seen = files.read(&path, 100_000).expect("read");
            let taken = started.elapsed();
            assert!(
                contents.iter().any(|content| content.as_bytes() == seen),
                "{} bytes",
                seen.len()
            );
            // Wine lets no file be replaced while it is read: leave the writers most of the time, also where a read
            // takes long.
            std::thread::sleep(Duration::from_millis(5).max(4 * taken));
        }
    });
    assert_eq!(machine.names(""), ["file"]);
}

fn a_file_above_the_limit_is_refused_not_cut_off(machine: &Machine) {
    let path = machine.write("file", "12345");
    assert_eq!(machine.files.read(&path, 5).expect("read"), b"12345");
    let read = machine.files.read(&path, 4);
    assert!(matches!(read, Err(FileError::TooLarge { limit: 4, .. })));
}

fn a_folder_cannot_be_read_as_a_file(machine: &Machine) {
    let read = machine.files.read(&machine.root, 10);
    assert!(matches!(read, Err(FileError::WrongKind { .. })), "{read:?}");
    let path = machine.write("file", "x");
    let listed = machine.files.list(&path);
    assert!(
        matches!(listed, Err(FileError::WrongKind { .. })),
        "{listed:?}"
    );
}

fn what_is_missing_is_named(machine: &Machine) {
    let path = machine.path("missing");
    let files = &machine.files;
    for error in [
        files.read(&path, 1).expect_err("missing"),
        files.metadata(&path).expect_err("missing"),
        files.list(&path).expect_err("missing"),
        files.read_link(&path).expect_err("missing"),
        files
            .rename_dir(&path, &machine.path("other"))
            .expect_err("missing"),
        files
            .replace(&path, &machine.path("other"))
            .expect_err("missing"),
        files
            .link_file(&path, &machine.path("other"))
            .expect_err("missing"),
        files
            .copy_tree(&path, &machine.path("other"), How::Copy)
            .expect_err("missing"),
    ] {
        assert_eq!(error.to_string(), format!("`{path}` does not exist"));
    }
}

fn a_folder_is_listed_in_order_with_what_each_entry_is(machine: &Machine) {
    machine.write("b", "12");
    machine.write("a", "1");
    machine.make_dir("c");
    let entries = machine.files.list(&machine.root).expect("listed");
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.name.as_str(),
                entry.metadata.kind,
                entry.metadata.length,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("a", Kind::File, 1),
            ("b", Kind::File, 2),
            ("c", Kind::Dir, 0)
        ]
    );
    assert_eq!(entries[0].path, machine.path("a"));
}

fn missing_folders_are_made_and_existing_ones_kept(machine: &Machine) {
    machine.make_dir("a/b/c");
    machine.write("a/b/c/file", "kept");
    machine.make_dir("a/b/c");
    assert_eq!(machine.content("a/b/c/file"), "kept");
}

fn a_file_in_the_way_of_a_folder_is_named(machine: &Machine) {
    let file = machine.write("file", "x");
    for below in ["file", "file/folder"] {
        match machine.files.create_dir_all(&machine.path(below)) {
            Err(FileError::WrongKind { path, .. }) => {
                assert!(path.as_str().starts_with(file.as_str()), "{path}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(machine.content("file"), "x");
}

fn replace_moves_a_file_over_another(machine: &Machine) {
    let from = machine.write("from", "new");
    let to = machine.write("to", "old");
    machine.files.replace(&from, &to).expect("replaced");
    assert_eq!(machine.names(""), ["to"]);
    assert_eq!(machine.content("to"), "new");
}

fn rename_dir_moves_a_folder_and_refuses_a_taken_name(machine: &Machine) {
    let from = machine.make_dir("from");
    machine.write("from/file", "x");
    let taken = machine.make_dir("taken");
    let refused = machine.files.rename_dir(&from, &taken);
    assert!(
        matches!(&refused, Err(FileError::Exists { path }) if *path == taken),
        "{refused:?}"
    );
    machine
        .files
        .rename_dir(&from, &machine.path("to"))
        .expect("renamed");
    assert_eq!(machine.content("to/file"), "x");
    assert_eq!(machine.names(""), ["taken", "to"]);
    let file = machine.path("to/file");
    let refused = machine.files.rename_dir(&file, &machine.path("x"));
    assert!(matches!(refused, Err(FileError::WrongKind { .. })));
}

fn only_our_own_leftovers_are_swept(machine: &Machine) {
    machine.write(".transom-notes.tmp", "mine");
    machine.write("file.tmp", "theirs");
    let leftover = machine.path(".transom-0123456789abcdef0123456789abcdef.tmp");
    machine.files.create_dir_all(&leftover).expect("made");
    machine.write(".transom-0123456789abcdef0123456789abcdef.tmp/half", "half");
    let swept = machine.files.sweep_temporaries(&machine.root);
    assert_eq!(swept.expect("swept"), [leftover]);
    assert_eq!(machine.names(""), [".transom-notes.tmp", "file.tmp"]);
}
