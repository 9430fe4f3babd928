//! Crash walks: a process dies at every point of adding, signing, rotating, importing and fetching.
//! Readers then see all of the old state or all of the new, doing it again succeeds, and nothing is
//! left over.

use std::process::Command;

use camino::Utf8Path;
use transom_host::files::crash_walk::crash_walk;
use transom_host::files::{Files as _, How, Native};
use transom_model::Os;
use transom_package::repository::{Selection, collect};

use crate::child;
use crate::site::Site;

/// Runs what a test of this file needs of async code.
fn block<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}

/// A site with one package, whose state before each death is kept aside.
fn prepared() -> Site {
    block(async {
        let site = Site::new().await;
        site.add_package("old--1", Os::Linux).await;
        site.archive("new--1", Os::Linux, "new for Linux");
        site.archive("new--1", Os::Windows, "new for Windows");
        site.pin();
        site
    })
}

fn keep(site: &Site, name: &str) {
    let (from, to) = (site.root.join(name), site.root.join(format!("{name}.kept")));
    Native.copy_tree(&from, &to, How::Copy).expect("kept");
}

fn restore(site: &Site, name: &str) {
    let (from, to) = (site.root.join(format!("{name}.kept")), site.root.join(name));
    Native.remove_tree(&to).expect("removed");
    Native.copy_tree(&from, &to, How::Copy).expect("restored");
}

/// All files below a folder that look like something half done.
fn debris(folder: &Utf8Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in Native.list(folder).expect("listed") {
        let half = [".part", ".part.json", ".corrupt", ".tmp", ".lock"]
            .iter()
            .any(|ending| entry.name.ends_with(ending));
        // The lock of a whole folder stays, empty of meaning.
        if half && entry.name != ".lock" {
            found.push(entry.path.to_string());
        }
        if entry.metadata.kind == transom_host::files::Kind::Dir {
            found.extend(debris(&entry.path));
        }
    }
    found
}

#[expect(
    clippy::print_stdout,
    reason = "the number of points is a result of the test"
)]
fn tell(role: &str, deaths: u64) {
    println!("{role}: died at {deaths} points");
}

/// Walks a role that changes the repository.
fn walk(role: &str, site: &Site, old: &[&str], new: &[&str]) -> u64 {
    keep(site, "repository");
    let scenario = || -> Command {
        restore(site, "repository");
        child::command(role, &site.root)
    };
    let deaths = crash_walk(scenario, |point| {
        let listed = block(site.listed());
        assert!(
            listed == old || listed == new,
            "at point {point}: {listed:?}"
        );
        block(child::play(role, site, &site.keys()));
        assert_eq!(block(site.listed()), new, "again after point {point}");
        let editor = block(site.editor());
        collect(&editor, false).expect("collected");
        editor.close();
        let problems = block(site.problems());
        assert!(problems.is_empty(), "after point {point}: {problems:?}");
        let left = debris(&site.repository());
        assert!(left.is_empty(), "after point {point}: {left:?}");
    })
    .expect("walked");
    assert_eq!(block(site.listed()), new);
    tell(role, deaths);
    deaths
}

#[test]
fn an_addition_that_dies_anywhere_is_seen_completely_or_not_at_all() {
    let site = prepared();
    let new = ["new--1 linux", "new--1 windows", "old--1 linux"];
    let deaths = walk("add", &site, &["old--1 linux"], &new);
    assert!(deaths > 30, "{deaths}");
}

#[test]
fn a_renewal_that_dies_anywhere_leaves_a_repository() {
    let site = prepared();
    let deaths = walk("sign", &site, &["old--1 linux"], &["old--1 linux"]);
    assert!(deaths > 12, "{deaths}");
}

#[test]
fn a_rotation_that_dies_anywhere_leaves_a_repository_that_readers_follow() {
    let site = prepared();
    site.make_keys("timestamp-new", 1);
    let deaths = walk("rotate", &site, &["old--1 linux"], &["old--1 linux"]);
    assert!(deaths > 12, "{deaths}");
}

#[test]
fn an_import_that_dies_anywhere_is_seen_completely_or_not_at_all() {
    let site = prepared();
    block(async {
        let bundle = site.export("bundle", &Selection::default()).await;
        site.import(&bundle, Some(&site.pin()), crate::site::now())
            .await
            .expect("imported");
        for name in ["new--1.tar.zst", "new--1.zip"] {
            site.add(&site.root.join(name)).await.expect("added");
        }
        site.export("bundle", &Selection::default()).await;
    });
    keep(&site, "mirror");
    let scenario = || -> Command {
        restore(&site, "mirror");
        child::command("import", &site.root)
    };
    let deaths = crash_walk(scenario, |point| {
        let listed = block(site.mirrored());
        let whole = listed == ["old--1"] || listed == ["new--1", "new--1", "old--1"];
        assert!(whole, "at point {point}: {listed:?}");
        block(child::play("import", &site, &site.keys()));
        assert_eq!(block(site.mirrored()).len(), 3, "again after point {point}");
        let left = debris(&site.mirror());
        assert!(left.is_empty(), "after point {point}: {left:?}");
    })
    .expect("walked");
    tell("import", deaths);
    assert!(deaths > 25, "{deaths}");
}

#[test]
fn a_fetch_that_dies_anywhere_leaves_all_of_the_archive_or_nothing() {
    let site = prepared();
    let folder = site.root.join("fetched");
    let archive = folder.join("archive");
    let scenario = || -> Command {
        Native.remove_tree(&folder).expect("removed");
        Native
            .remove_tree(&site.root.join("datastores"))
            .expect("removed");
        Native.create_dir_all(&folder).expect("made");
        child::command("fetch", &site.root)
    };
    let original = site.repository().join("packages/old/old--1.tar.zst");
    let original = fs_err::read(original).expect("read");
    let deaths = crash_walk(scenario, |point| {
        if archive.exists() {
            assert!(
                fs_err::read(&archive).expect("read") == original,
                "at point {point}"
            );
        }
        block(child::play("fetch", &site, &site.keys()));
        assert!(
            fs_err::read(&archive).expect("read") == original,
            "after point {point}"
        );
        let mut left = debris(&folder);
        left.extend(debris(&site.root.join("datastores")));
        assert!(left.is_empty(), "after point {point}: {left:?}");
    })
    .expect("walked");
    tell("fetch", deaths);
    assert!(deaths > 25, "{deaths}");
}
