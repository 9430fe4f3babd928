//! What only the fake can show: what a power cut leaves, and a machine that refuses.

use camino::Utf8Path;
use transom_host::files::fake::FakeFiles;
use transom_host::files::fault::{self, Place, Plan};
use transom_host::files::{Access, FileError, Files, Holder, Holders, How};
use transom_model::os::Os;

const BOTH: [Os; 2] = [Os::Linux, Os::Windows];

fn path(os: Os, name: &str) -> camino::Utf8PathBuf {
    match os {
        Os::Linux => format!("/{name}").into(),
        Os::Windows => format!(r"C:\{}", name.replace('/', r"\")).into(),
    }
}

fn write(files: &FakeFiles, at: &Utf8Path, content: &str) {
    files
        .write_durable(at, content.as_bytes(), Access::Public)
        .expect("written");
}

fn read(files: &FakeFiles, at: &Utf8Path) -> String {
    String::from_utf8(files.read(at, 1000).expect("read")).expect("text")
}

#[test]
fn what_was_written_durably_survives_a_crash() {
    for os in BOTH {
        for crash in [FakeFiles::crash, FakeFiles::crash_keeping_names] {
            let files = FakeFiles::new(os);
            let folder = path(os, "a/b");
            files.create_dir_all(&folder).expect("made");
            let file = path(os, "a/b/file");
            write(&files, &file, "old");
            write(&files, &file, "new");
            crash(&files);
            assert_eq!(read(&files, &file), "new");
        }
    }
}

#[test]
fn a_crash_at_any_step_of_a_write_leaves_the_old_content_or_the_new() {
    for os in BOTH {
        for crash in [FakeFiles::crash, FakeFiles::crash_keeping_names] {
            for step in 1..=5 {
                let files = FakeFiles::new(os);
                let file = path(os, "file");
                write(&files, &file, "old");
                let plan = fault::arm_thread(Plan::Fail(Place::Nth(step)));
                files
                    .write_durable(&file, b"new", Access::Public)
                    .expect_err("stopped");
                drop(plan);
                crash(&files);
                let content = read(&files, &file);
                assert!(content == "old" || content == "new", "{step}: {content:?}");
            }
        }
    }
}

#[test]
fn a_name_that_was_not_synced_is_lost_in_a_crash() {
    let files = FakeFiles::new(Os::Linux);
    let file = Utf8Path::new("/file");
    let plan = fault::arm_thread(Plan::Fail(Place::Named("files.write.folder".to_owned())));
    files
        .write_durable(file, b"new", Access::Public)
        .expect_err("stopped before the folder was synced");
    drop(plan);
    assert_eq!(read(&files, file), "new");
    files.crash();
    assert!(matches!(
        files.metadata(file),
        Err(FileError::NotFound { .. })
    ));
}

#[test]
fn a_committed_tree_survives_a_crash_and_an_unfinished_one_is_invisible() {
    for os in BOTH {
        for how in [How::Copy, How::HardLink] {
            let files = FakeFiles::new(os);
            files.create_dir_all(&path(os, "tree/bin")).expect("made");
            write(&files, &path(os, "tree/bin/tool"), "run me");
            let unfinished = files.stage(&path(os, "other")).expect("begun");
            files
                .copy_tree(&path(os, "tree"), &path(os, "copy"), how)
                .expect("copied");
            files.crash_keeping_names();
            assert_eq!(read(&files, &path(os, "copy/bin/tool")), "run me");
            assert!(files.metadata(&path(os, "other")).is_err());
            drop(unfinished);
            files.crash();
            assert_eq!(read(&files, &path(os, "copy/bin/tool")), "run me");
        }
    }
}

#[test]
fn renames_and_links_survive_a_crash() {
    let files = FakeFiles::new(Os::Linux);
    files.create_dir_all("/a".into()).expect("made");
    files.create_dir_all("/b".into()).expect("made");
    write(&files, "/a/file".into(), "moved");
    files
        .replace("/a/file".into(), "/b/file".into())
        .expect("moved");
    files
        .link_file("/b/file".into(), "/b/second".into())
        .expect("linked");
    files.rename_dir("/b".into(), "/c".into()).expect("renamed");
    files.link_dir("/a".into(), "/now".into()).expect("linked");
    files
        .replace_link("/c".into(), "/now".into())
        .expect("switched");
    files.crash();
    assert!(files.list("/a".into()).expect("listed").is_empty());
    assert_eq!(read(&files, "/now/second".into()), "moved");
}

#[test]
fn what_was_removed_stays_removed_after_a_crash() {
    let files = FakeFiles::new(Os::Linux);
    files.create_dir_all("/tree/bin".into()).expect("made");
    write(&files, "/tree/bin/tool".into(), "x");
    write(&files, "/file".into(), "x");
    files.remove_file("/file".into()).expect("removed");
    files.remove_tree("/tree".into()).expect("removed");
    files.crash();
    assert!(files.list("/".into()).expect("listed").is_empty());
}

#[test]
fn a_full_disk_is_said_to_be_full_and_the_old_content_stays() {
    for os in BOTH {
        let files = FakeFiles::new(os);
        let file = path(os, "file");
        write(&files, &file, "old");
        files.fill_up_to(3);
        let written = files.write_durable(&file, b"new content", Access::Public);
        assert!(
            matches!(&written, Err(FileError::DiskFull { path, .. }) if *path == file),
            "{written:?}"
        );
        assert_eq!(read(&files, &file), "old");
        let root = path(os, "");
        assert_eq!(files.list(&root).expect("listed").len(), 1);
    }
}

#[test]
fn an_open_file_keeps_windows_from_replacing_and_removing_it() {
    let files = FakeFiles::new(Os::Windows);
    let file = Utf8Path::new(r"C:\folder\tool.exe");
    files.create_dir_all(r"C:\folder".into()).expect("made");
    write(&files, file, "old");
    files.hold(file, 42, "foo.exe");
    let holder = Holder {
        pid: 42,
        name: "foo.exe".to_owned(),
    };

    let replaced = files.write_durable(file, b"new", Access::Public);
    let removed = files.remove_tree(r"C:\folder".into());
    for result in [replaced, removed] {
        match result {
            Err(FileError::InUse { path, holders, .. }) => {
                assert_eq!(path, file);
                assert_eq!(holders, Holders::Known(vec![holder.clone()]));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(read(&files, file), "old");

    files.let_go(file);
    write(&files, file, "new");
    files.remove_tree(r"C:\folder".into()).expect("removed");
}

#[test]
fn an_open_file_does_not_keep_linux_from_anything() {
    let files = FakeFiles::new(Os::Linux);
    write(&files, "/tool".into(), "old");
    files.hold("/tool".into(), 42, "foo");
    write(&files, "/tool".into(), "new");
    files.remove_file("/tool".into()).expect("removed");
}

#[test]
fn a_file_that_is_open_for_a_moment_is_waited_for() {
    let files = FakeFiles::new(Os::Windows);
    let file = Utf8Path::new(r"C:\file");
    write(&files, file, "old");
    files.hold_briefly(file, 7, "scanner.exe", 3);
    write(&files, file, "new");
    assert_eq!(read(&files, file), "new");
}

#[test]
fn a_denial_is_told_apart_from_a_missing_file() {
    let files = FakeFiles::new(Os::Linux);
    files.create_dir_all("/closed".into()).expect("made");
    files.deny("/closed".into());
    let error = files
        .write_durable("/closed/file".into(), b"x", Access::Public)
        .expect_err("denied");
    assert!(matches!(error, FileError::Denied { .. }), "{error:?}");
    assert_eq!(error.to_string(), "no permission to write `/closed/file`");
}

#[test]
fn windows_does_not_care_for_the_case_of_a_name() {
    let files = FakeFiles::new(Os::Windows);
    write(&files, r"C:\ReadMe".into(), "1");
    assert_eq!(read(&files, r"c:\README".into()), "1");
    write(&files, r"C:\readme".into(), "2");
    assert_eq!(files.list(r"C:\".into()).expect("listed").len(), 1);
}

#[test]
fn a_folder_link_without_effect_is_not_believed() {
    let files = FakeFiles::new(Os::Windows);
    files.create_dir_all(r"C:\target".into()).expect("made");
    files.pretend_folder_links();
    let linked = files.link_dir(r"C:\target".into(), r"C:\link".into());
    assert!(matches!(linked, Err(FileError::NotSupported { .. })));
}

#[test]
fn the_lock_of_a_dead_process_is_free() {
    let files = FakeFiles::new(Os::Linux);
    let path = Utf8Path::new("/lock");
    files
        .lock(path, std::time::Duration::ZERO)
        .expect("locked")
        .release();
    files.lock_as(path, 42);
    let wait = std::time::Duration::from_secs(5);
    let error = files.lock(path, wait).expect_err("held");
    assert_eq!(
        error.to_string(),
        "`/lock` is locked by process 42, waited 5s"
    );
    files.process_dies(42);
    files.lock(path, wait).expect("free").release();
}
