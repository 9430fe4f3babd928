//! Crash walks: a child process dies at every fault point of an operation in turn, on this machine.

use std::process::Command;

use camino::Utf8Path;
use transom_host::files::crash_walk::crash_walk;
use transom_host::files::{Access, Files, How, Native};

use crate::{Machine, child};

fn names(folder: &Utf8Path) -> Vec<String> {
    let entries = Native.list(folder).expect("listed");
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_write_that_dies_at_any_point_leaves_the_old_content_or_the_new() {
    let machine = Machine::native();
    let path = machine.path("file");
    let reset = || -> Command {
        Native
            .write_durable(&path, b"old content", Access::Public)
            .expect("written");
        child::command("write", &path)
    };
    let mut seen = Vec::new();
    let deaths = crash_walk(reset, |point| {
        let content = Native.read(&path, 100).expect("whole");
        assert!(
            content == b"old content" || content == b"new content",
            "at point {point}: {content:?}"
        );
        seen.push(content == b"new content");
        Native.sweep_temporaries(&machine.root).expect("swept");
        assert_eq!(names(&machine.root), ["file"], "at point {point}");
    });
    assert_eq!(deaths.expect("walked"), 5);
    assert_eq!(seen, [false, false, false, false, true]);
    assert_eq!(Native.read(&path, 100).expect("read"), b"new content");
}

#[test]
fn a_copy_that_dies_at_any_point_leaves_all_of_it_or_nothing() {
    let machine = Machine::native();
    let tree = machine.path("tree");
    let copy = machine.path("copy");
    Native
        .create_dir_all(&machine.path("tree/bin"))
        .expect("made");
    for name in ["tree/readme", "tree/bin/tool"] {
        Native
            .write_durable(&machine.path(name), b"content", Access::Executable)
            .expect("written");
    }
    let scenario = || child::command("copy", &tree);
    let mut leftovers = 0;
    let deaths = crash_walk(scenario, |point| {
        let swept = Native.sweep_temporaries(&machine.root).expect("swept");
        leftovers += swept.len();
        match names(&machine.root).as_slice() {
            [only] => assert_eq!(only, "tree"),
            both => {
                assert_eq!(both, ["copy", "tree"], "at point {point}");
                assert_eq!(names(&copy), ["bin", "readme"]);
                let tool = machine.path("copy/bin/tool");
                assert_eq!(Native.read(&tool, 100).expect("whole"), b"content");
                Native.remove_tree(&copy).expect("removed");
            }
        }
    });
    assert!(deaths.expect("walked") >= 9);
    assert!(leftovers > 0, "no death left anything to sweep");
    assert_eq!(names(&copy), ["bin", "readme"]);
    // What is there now is really taken.
    Native
        .copy_tree(&tree, &copy, How::Copy)
        .expect_err("the name is taken");
}
