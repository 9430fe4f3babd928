//! Links and trees: made, copied and removed without going anywhere else.

use transom_host::files::fault::{self, Place, Plan};
use transom_host::files::{Discarded, FileError, How};
use transom_model::os::Os;

use crate::Machine;

contract![
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
    names_say_what_each_entry_is,
    what_is_discarded_is_gone_at_once_or_swept_later,
    a_staged_file_is_linked_or_copied_from_elsewhere,
];

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

fn names_say_what_each_entry_is(machine: &Machine) {
    let tree = machine.plant();
    let names = machine.files.names(&tree).expect("listed");
    let listed = machine.files.list(&tree).expect("listed");
    let cheap: Vec<_> = names
        .into_iter()
        .map(|entry| (entry.name, entry.kind))
        .collect();
    let full: Vec<_> = listed
        .into_iter()
        .map(|entry| (entry.name, entry.metadata.kind))
        .collect();
    assert_eq!(cheap, full);
    let missing = machine.files.names(&machine.path("missing"));
    assert!(matches!(missing, Err(FileError::NotFound { .. })));
}

fn what_is_discarded_is_gone_at_once_or_swept_later(machine: &Machine) {
    let tree = machine.plant();
    let points = {
        let mut point = 1;
        loop {
            let plan = fault::arm_thread(Plan::Halt(Place::Nth(point)));
            let done = machine.files.discard(&tree);
            drop(plan);
            if done.is_ok() {
                break point;
            }
            match machine.names("").as_slice() {
                [name] if name == "tree" => {
                    assert_eq!(machine.names("tree"), machine.tree_names(), "half removed");
                }
                [name] => assert!(transom_host::files::is_temporary(name), "{name}"),
                // All of it is removed, and only the folder is not synced.
                [] => {}
                other => panic!("{other:?}"),
            }
            machine
                .files
                .sweep_temporaries(&machine.root)
                .expect("swept");
            if !machine.is_there("tree") {
                machine.plant();
            }
            point += 1;
        }
    };
    assert!(points > 5, "{points}");
    assert!(machine.names("").is_empty());
    let nothing = machine.files.discard(&tree).expect("nothing is there");
    assert!(matches!(nothing, Discarded::Gone));
    let file = machine.write("file", "text");
    let gone = machine.files.discard(&file).expect("a file goes too");
    assert!(matches!(gone, Discarded::Gone));
    assert!(!machine.is_there("file"));
}

fn a_staged_file_is_linked_or_copied_from_elsewhere(machine: &Machine) {
    let original = machine.write("original", "one");
    let made = machine.path("made");
    let staging = machine.files.stage(&made).expect("begun");
    staging
        .link_or_copy(&original, "linked".into(), 0o644)
        .expect("linked");
    staging
        .copy_from(&original, "copied".into(), 0o644)
        .expect("copied");
    staging.commit().expect("visible");
    assert_eq!(machine.content("made/linked"), "one");
    assert_eq!(machine.content("made/copied"), "one");
}
