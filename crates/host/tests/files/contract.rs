//! What every system promises. Each case runs on this machine and on the fakes of both systems.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use transom_host::files::fake::FakeFiles;
use transom_host::files::fault::{self, Place, Plan};
use transom_host::files::{Access, FileError, Holders, How, Kind};
use transom_model::os::Os;

use crate::Machine;

fn fake(os: Os) -> Machine {
    let root: Utf8PathBuf = match os {
        Os::Linux => "/test".into(),
        Os::Windows => r"C:\Test".into(),
    };
    let machine = Machine {
        files: Box::new(FakeFiles::new(os)),
        root,
        _folder: None,
    };
    machine.files.create_dir_all(&machine.root).expect("a root");
    machine
}

macro_rules! contract {
    ($($case:ident),* $(,)?) => {
        mod native {
            $(#[test] fn $case() { super::$case(&crate::Machine::native()); })*
        }
        mod fake_linux {
            $(#[test] fn $case() { super::$case(&super::fake(transom_model::os::Os::Linux)); })*
        }
        mod fake_windows {
            $(#[test] fn $case() { super::$case(&super::fake(transom_model::os::Os::Windows)); })*
        }
    };
}

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
    a_hard_link_is_the_same_file,
    a_folder_link_leads_there_or_is_refused,
    removing_a_link_keeps_what_it_leads_to,
    removing_nothing_succeeds,
    a_tree_is_removed_with_all_below_it,
    remove_file_refuses_a_folder,
    a_copied_tree_equals_the_original,
    a_linked_tree_shares_its_files,
    a_tree_is_not_copied_into_itself_or_over_anything,
    a_copy_that_fails_at_any_step_leaves_nothing,
    an_abandoned_staging_leaves_nothing,
    a_staging_refuses_every_way_out,
    a_lock_excludes_until_it_is_dropped,
    a_lock_lets_one_thread_in_at_a_time,
    nobody_holds_a_closed_file,
    space_is_measured,
    spaces_and_foreign_letters_are_ordinary,
    a_path_of_more_than_260_characters_is_ordinary,
];

impl Machine {
    fn write(&self, below: &str, content: &str) -> Utf8PathBuf {
        let path = self.path(below);
        self.files
            .write_durable(&path, content.as_bytes(), Access::Public)
            .expect("written");
        path
    }

    fn make_dir(&self, below: &str) -> Utf8PathBuf {
        let path = self.path(below);
        self.files.create_dir_all(&path).expect("made");
        path
    }

    fn content(&self, below: &str) -> String {
        let bytes = self.files.read(&self.path(below), 1 << 20).expect("read");
        String::from_utf8(bytes).expect("text")
    }

    fn names(&self, below: &str) -> Vec<String> {
        let folder = if below.is_empty() {
            self.root.clone()
        } else {
            self.path(below)
        };
        let entries = self.files.list(&folder).expect("listed");
        entries.into_iter().map(|entry| entry.name).collect()
    }

    fn is_there(&self, below: &str) -> bool {
        self.files.metadata(&self.path(below)).is_ok()
    }

    /// A small tree with an executable, an empty folder and, on Linux, a link.
    fn plant(&self) -> Utf8PathBuf {
        let tree = self.make_dir("tree");
        self.make_dir("tree/bin/empty");
        self.write("tree/readme", "read me");
        let tool = self.path("tree/bin/tool");
        self.files
            .write_durable(&tool, b"run me", Access::Executable)
            .expect("written");
        if self.files.os() == Os::Linux {
            let link = self.path("tree/latest");
            self.files.link_dir("bin".into(), &link).expect("linked");
        }
        tree
    }

    fn tree_names(&self) -> Vec<&'static str> {
        match self.files.os() {
            Os::Linux => vec!["bin", "latest", "readme"],
            Os::Windows => vec!["bin", "readme"],
        }
    }
}

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
            let seen = files.read(&path, 100_000).expect("read");
            assert!(
                contents.iter().any(|content| content.as_bytes() == seen),
                "{} bytes",
                seen.len()
            );
            // Wine lets no file be replaced while it is read: leave the writers a gap.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(machine.names(""), ["file"]);
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

fn a_hard_link_is_the_same_file(machine: &Machine) {
    let original = machine.write("original", "one");
    let link = machine.path("link");
    machine.files.link_file(&original, &link).expect("linked");
    assert_eq!(machine.content("link"), "one");
    let again = machine.files.link_file(&original, &link);
    assert!(matches!(again, Err(FileError::Exists { .. })), "{again:?}");
    machine.files.remove_file(&original).expect("removed");
    assert_eq!(machine.content("link"), "one");
}

fn a_folder_link_leads_there_or_is_refused(machine: &Machine) {
    let first = machine.make_dir("first");
    let second = machine.make_dir("second");
    machine.write("first/file", "1");
    machine.write("second/file", "2");
    let link = machine.path("link");
    match machine.files.link_dir(&first, &link) {
        Ok(()) => {
            assert_eq!(machine.content("link/file"), "1");
            assert_eq!(machine.files.read_link(&link).expect("read"), first);
            let again = machine.files.link_dir(&second, &link);
            assert!(matches!(again, Err(FileError::Exists { .. })), "{again:?}");
            machine
                .files
                .replace_link(&second, &link)
                .expect("replaced");
            assert_eq!(machine.content("link/file"), "2");
            assert_eq!(machine.names(""), ["first", "link", "second"]);
            let refused = machine.files.replace_link(&second, &first);
            assert!(matches!(refused, Err(FileError::WrongKind { .. })));
        }
        // Wine has no junctions.
        Err(FileError::NotSupported { path, .. }) => {
            assert_eq!(path, link);
            assert_eq!(machine.names(""), ["first", "second"]);
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn removing_a_link_keeps_what_it_leads_to(machine: &Machine) {
    let outside = machine.make_dir("outside");
    machine.write("outside/file", "kept");
    machine.make_dir("tree/folder");
    for link in ["link", "tree/folder/link"] {
        match machine.files.link_dir(&outside, &machine.path(link)) {
            Ok(()) | Err(FileError::NotSupported { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    for path in ["link", "tree"] {
        machine
            .files
            .remove_tree(&machine.path(path))
            .expect("removed");
        assert!(!machine.is_there(path));
    }
    assert_eq!(machine.content("outside/file"), "kept");
}

fn removing_nothing_succeeds(machine: &Machine) {
    machine.write("file", "x");
    for path in [
        machine.path("missing"),
        machine.path("missing/below"),
        machine.path("file/below"),
    ] {
        machine.files.remove_file(&path).expect("nothing to do");
        machine.files.remove_tree(&path).expect("nothing to do");
    }
    assert_eq!(machine.names(""), ["file"]);
}

fn a_tree_is_removed_with_all_below_it(machine: &Machine) {
    let tree = machine.plant();
    machine.files.remove_tree(&tree).expect("removed");
    assert!(machine.names("").is_empty());
}

fn remove_file_refuses_a_folder(machine: &Machine) {
    let folder = machine.make_dir("folder");
    let refused = machine.files.remove_file(&folder);
    assert!(matches!(refused, Err(FileError::WrongKind { .. })));
    assert!(machine.is_there("folder"));
}

fn a_copied_tree_equals_the_original(machine: &Machine) {
    let tree = machine.plant();
    let copy = machine.path("copy");
    machine
        .files
        .copy_tree(&tree, &copy, How::Copy)
        .expect("copied");
    assert_eq!(machine.names(""), ["copy", "tree"]);
    assert_eq!(machine.names("copy"), machine.tree_names());
    assert_eq!(machine.names("copy/bin"), ["empty", "tool"]);
    for name in ["bin", "bin/empty", "bin/tool", "readme"] {
        let original = machine
            .files
            .metadata(&machine.path(&format!("tree/{name}")));
        let copied = machine
            .files
            .metadata(&machine.path(&format!("copy/{name}")));
        assert_eq!(copied.expect("there"), original.expect("there"), "{name}");
    }
    if machine.files.os() == Os::Linux {
        let link = machine.files.read_link(&machine.path("copy/latest"));
        assert_eq!(link.expect("a link"), "bin");
    }
    machine.write("copy/readme", "changed");
    assert_eq!(machine.content("tree/readme"), "read me");
}

fn a_linked_tree_shares_its_files(machine: &Machine) {
    let tree = machine.plant();
    let copy = machine.path("copy");
    machine
        .files
        .copy_tree(&tree, &copy, How::HardLink)
        .expect("linked");
    assert_eq!(machine.content("copy/bin/tool"), "run me");
    // Replacing, not rewriting, is what keeps shared content apart.
    machine.write("copy/readme", "changed");
    assert_eq!(machine.content("tree/readme"), "read me");
    machine.files.remove_tree(&tree).expect("removed");
    assert_eq!(machine.content("copy/bin/tool"), "run me");
}

fn a_tree_is_not_copied_into_itself_or_over_anything(machine: &Machine) {
    let tree = machine.plant();
    let inside = machine.path("tree/bin/copy");
    let refused = machine.files.copy_tree(&tree, &inside, How::Copy);
    assert!(matches!(refused, Err(FileError::InvalidPath { .. })));
    let taken = machine.write("taken", "kept");
    let refused = machine.files.copy_tree(&tree, &taken, How::Copy);
    assert!(matches!(refused, Err(FileError::Exists { .. })));
    let file = machine.path("tree/readme");
    let refused = machine
        .files
        .copy_tree(&file, &machine.path("x"), How::Copy);
    assert!(matches!(refused, Err(FileError::WrongKind { .. })));
    assert_eq!(machine.names(""), ["taken", "tree"]);
    assert_eq!(machine.content("taken"), "kept");
}

fn a_copy_that_fails_at_any_step_leaves_nothing(machine: &Machine) {
    let tree = machine.plant();
    let copy = machine.path("copy");
    for step in 1.. {
        let plan = fault::arm_thread(Plan::Fail(Place::Nth(step)));
        let copied = machine.files.copy_tree(&tree, &copy, How::Copy);
        drop(plan);
        if copied.is_ok() {
            assert!(step > 10, "only {step} steps");
            break;
        }
        match machine.names("").as_slice() {
            [only] => assert_eq!(only, "tree"),
            // The last step fails after the folder became visible, complete.
            both => {
                assert_eq!(both, ["copy", "tree"], "at step {step}");
                assert_eq!(machine.names("copy"), machine.tree_names());
                machine.files.remove_tree(&copy).expect("removed");
            }
        }
    }
    assert_eq!(machine.content("copy/bin/tool"), "run me");
}

fn an_abandoned_staging_leaves_nothing(machine: &Machine) {
    let destination = machine.path("built");
    let mut staging = machine.files.stage(&destination).expect("begun");
    staging.make_dir("folder".into(), 0o755).expect("made");
    let mut file = staging
        .create_file("folder/file".into(), 0o644)
        .expect("created");
    file.write_all(b"half").expect("written");
    assert!(!machine.is_there("built"));
    drop(file);
    drop(staging);
    assert!(machine.names("").is_empty());
}

fn a_staging_refuses_every_way_out(machine: &Machine) {
    let destination = machine.path("built");
    let mut staging = machine.files.stage(&destination).expect("begun");
    for path in ["", "..", "../out", "/etc", "a/../..", "a//b", "./a", "a\0b"] {
        let refused = staging.make_dir(path.into(), 0o755);
        assert!(
            matches!(refused, Err(FileError::InvalidPath { .. })),
            "{path:?}: {refused:?}"
        );
    }
    if machine.files.os() == Os::Linux {
        staging.symlink("..", "up".into()).expect("linked");
        let out = staging.create_file("up/out".into(), 0o644);
        assert!(out.is_err(), "went through a link");
    }
    drop(staging);
    assert!(machine.names("").is_empty());
}

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
