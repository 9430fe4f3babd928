//! Walks on this machine: a child process is killed before every step of an operation on real files.

use std::path::Path;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use transom_host::files::crash_walk::crash_walk;
use transom_host::files::fault;

use super::scenario::{Scenario, Snapshot};
use crate::machine::Machine;

const SCENARIO: &str = "TRANSOM_TEST_SCENARIO";
const FOLDER: &str = "TRANSOM_TEST_FOLDER";

fn command(scenario: Scenario, base: &Utf8Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command
        .args([
            "--exact",
            "crash::native::acts_as_it_was_told",
            "--nocapture",
        ])
        .env(SCENARIO, format!("{scenario:?}"))
        .env(FOLDER, base)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[expect(
    clippy::disallowed_methods,
    reason = "how a child of this binary learns what to do"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Not a test of its own: without a scenario there is nothing to do.
#[test]
fn acts_as_it_was_told() {
    let (Some(scenario), Some(base)) = (variable(SCENARIO), variable(FOLDER)) else {
        return;
    };
    let machine = Machine::at(Utf8Path::new(&base));
    fault::arm_from_environment().expect("a plan");
    Scenario::named(&scenario).act(&machine).expect("done");
}

#[cfg(target_os = "linux")]
const MEMORY: &str = "/dev/shm";
/// There only if this Windows is Wine.
#[cfg(windows)]
const MEMORY: &str = r"Z:\dev\shm";

/// A folder that no disk slows down: a killed process loses nothing that it wrote, synced or not.
fn memory_folder() -> tempfile::TempDir {
    let memory = Path::new(MEMORY);
    let made = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.expect("a temporary folder")
}

/// A plain copy of a tree; what was one file under two names becomes two.
fn copy(from: &Utf8Path, to: &Utf8Path) {
    fs_err::create_dir(to).expect("made");
    for entry in from.read_dir_utf8().expect("listed") {
        let entry = entry.expect("an entry");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("known");
        if kind.is_dir() {
            copy(source, &target);
        } else if kind.is_symlink() {
            let leads = source.read_link_utf8().expect("read");
            copy_link(&leads, &target);
        } else {
            fs_err::copy(source, &target).expect("copied");
        }
    }
}

#[cfg(target_os = "linux")]
fn copy_link(leads: &Utf8Path, link: &Utf8Path) {
    std::os::unix::fs::symlink(leads, link).expect("linked");
}

/// There are none where Wine runs; a junction is derived anew.
#[cfg(windows)]
fn copy_link(_leads: &Utf8Path, _link: &Utf8Path) {}

/// Kills the operation at each of its points, each time on a node prepared anew.
fn walk(scenario: Scenario) {
    let folder = memory_folder();
    let outer = Utf8Path::from_path(folder.path()).expect("a Unicode path");
    let (base, template) = (outer.join("machine"), outer.join("template"));
    fs_err::create_dir(&base).expect("made");
    let machine = Machine::at(&base);
    scenario.prepare(&machine);
    copy(&base, &template);
    let old = Snapshot::of(&machine);
    scenario.act(&machine).expect("nothing is in its way");
    let new = Snapshot::of(&machine);
    let points = crash_walk(
        || {
            Machine::at(&base)
                .files
                .remove_tree(&base)
                .expect("removed");
            copy(&template, &base);
            command(scenario, &base)
        },
        |point| {
            let machine = Machine::at(&base);
            machine.recover();
            scenario.judge(&machine, &old, &new, &format!("at point {point}"));
        },
    )
    .expect("walked");
    super::say(&format!("{scenario:?}: killed at each of {points} points"));
    assert!(points >= 5, "{scenario:?} has {points} points");
}

macro_rules! walks {
    ($($name:ident => $scenario:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                walk(Scenario::$scenario);
            }
        )*
    };
}

walks! {
    a_first_activation_killed_at_any_point_leaves_nothing_or_all => FirstActivation,
    an_activation_killed_at_any_point_leaves_the_old_or_the_new => Activation,
    a_swap_killed_at_any_point_leaves_the_old_or_the_new => Swap,
    a_trial_killed_at_any_point_leaves_the_old_or_the_new => Trial,
    a_failed_trial_killed_at_any_point_leaves_the_old => FailedTrial,
    a_rollback_killed_at_any_point_leaves_the_old_or_the_new => Rollback,
    a_collection_killed_at_any_point_leaves_nothing_in_part => Collection,
    an_addition_killed_at_any_point_leaves_nothing_or_all => Addition,
    a_removal_killed_at_any_point_leaves_all_or_nothing => Removal,
    an_uninstallation_killed_at_any_point_leaves_all_or_nothing => Uninstallation,
}
