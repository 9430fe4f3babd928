//! Sources of every kind, laid out by rules so that no script is needed.

use std::io::Write as _;
use std::process::Command;

use camino::Utf8Path;
use sha1::{Digest as _, Sha1};
use transom_package::build::Event;

use super::{HELLO_SHA1, SourceTree, read};

fn sha1(bytes: &[u8]) -> String {
    transom_package::hash::hex(&Sha1::digest(bytes))
}

/// A package of one source that is taken as it is.
fn declare(tree: &SourceTree, source: &str) {
    let recipe = format!(
        r#"{{"sources": {{"s": {source}}}, "install": [{{"copy": "src/s", "to": "all/"}}]}}"#
    );
    tree.write("p/windows.buildinfo.json", recipe);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tar(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, name, content.as_bytes())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn extract(tree: &SourceTree, archive: &[u8]) {
    tree.write("p/archive", archive);
    let sum = sha1(archive);
    declare(
        tree,
        &format!(r#"{{"kind": "url_extract", "url": "file://archive", "sha1": "{sum}"}}"#),
    );
}

#[test]
fn an_archive_of_each_kind_is_unpacked_without_its_folder() {
    let content = [("top-1/a", "A"), ("top-1/d/b", "B")];
    let bytes = tar(&content);
    for archive in [
        bytes.clone(),
        gzip(&bytes),
        bzip2(&bytes),
        xz(&bytes),
        zstd::encode_all(bytes.as_slice(), 1).unwrap(),
        zip(&content),
    ] {
        let tree = SourceTree::new();
        extract(&tree, &archive);
        let ran = tree.build(&["p:windows"]).good();
        let to = ran.unpack(&tree, "p");
        assert_eq!(read(&to.join("all/a")), "A");
        assert_eq!(read(&to.join("all/d/b")), "B");
    }
}

#[test]
fn an_archive_without_exactly_one_folder_is_refused() {
    for archive in [
        gzip(&tar(&[("a/x", ""), ("b/y", "")])),
        gzip(&tar(&[("a", "")])),
        zip(&[("a/x", ""), ("b/y", "")]),
        zip(&[("a/x", ""), ("readme", "")]),
    ] {
        let tree = SourceTree::new();
        extract(&tree, &archive);
        let error = tree.build(&["p:windows"]).failure("p");
        assert!(error.contains("exactly one folder"), "{error}");
    }
    // Beside the folder of a tar file there may be files, which are left out.
    let tree = SourceTree::new();
    extract(&tree, &gzip(&tar(&[("package.xml", "x"), ("a/x", "X")])));
    let ran = tree.build(&["p:windows"]).good();
    assert_eq!(read(&ran.unpack(&tree, "p").join("all/x")), "X");
}

#[test]
fn a_download_that_is_not_what_it_should_be_is_kept_apart() {
    let tree = SourceTree::new();
    tree.write("p/hello.txt", "goodbye\n");
    declare(
        &tree,
        &format!(r#"{{"kind": "url", "url": "file://hello.txt", "sha1": "{HELLO_SHA1}"}}"#),
    );
    let error = tree.build(&["p:windows"]).failure("p");
    assert!(error.contains(HELLO_SHA1), "{error}");
    assert!(error.contains(&sha1(b"goodbye\n")), "{error}");
    let folder = tree.folder.join("cache/sources/files");
    let kept: Vec<String> = fs_err::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        kept.iter().any(|name| name.ends_with(".corrupt")),
        "{kept:?}"
    );
    assert!(!kept.contains(&HELLO_SHA1.to_owned()), "{kept:?}");
    // And with the right content the next build goes on.
    tree.write("p/hello.txt", "hello\n");
    let ran = tree.build(&["p:windows"]).good();
    assert_eq!(
        read(&ran.unpack(&tree, "p").join("all/hello.txt")),
        "hello\n"
    );
}

fn git(folder: &Utf8Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(folder: &Utf8Path, content: &str) -> String {
    fs_err::write(folder.join("a"), content).unwrap();
    git(folder, &["add", "a"]);
    git(folder, &["commit", "--quiet", "-m", "change"]);
    git(folder, &["rev-parse", "HEAD"])
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: there is no git under Wine")]
fn a_commit_is_laid_out_exactly_and_fetched_only_when_it_is_missing() {
    let tree = SourceTree::new();
    let repository = tree.folder.join("elsewhere");
    fs_err::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    let first = commit(&repository, "one\r\n");
    let build = |commit: &str| {
        declare(
            &tree,
            &format!(
                r#"{{"kind": "git", "git": "{repository}", "ref": "{commit}", "ref_origin": "main"}}"#
            ),
        );
        tree.build(&["p:windows"]).good()
    };
    let ran = build(&first);
    assert_eq!(read(&ran.unpack(&tree, "p").join("all/a")), "one\r\n");
    assert!(
        !ran.events
            .iter()
            .any(|(_, event)| matches!(event, Event::Warning(_)))
    );

    let second = commit(&repository, "two\n");
    let ran = build(&second);
    assert_eq!(read(&ran.unpack(&tree, "p").join("all/a")), "two\n");

    // The old one is in the mirror, and the branch has moved away from it.
    fs_err::remove_dir_all(&repository).unwrap();
    fs_err::remove_dir_all(tree.folder.join("cache/packages")).unwrap();
    let ran = build(&first);
    let warned = ran
        .events
        .iter()
        .any(|(_, event)| matches!(event, Event::Warning(text) if text.contains(&second)));
    assert!(warned, "{:?}", ran.events);
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: there is no git under Wine")]
fn an_address_is_neither_an_option_nor_a_program() {
    let tree = SourceTree::new();
    let trap = tree.folder.join("trap");
    for url in [
        format!("--upload-pack=touch {trap}"),
        format!("ext::sh -c touch% {trap}"),
    ] {
        declare(
            &tree,
            &format!(
                r#"{{"kind": "git", "git": "{url}", "ref": "{}", "ref_origin": "main"}}"#,
                "1".repeat(40)
            ),
        );
        tree.build(&["p:windows"]).failure("p");
        assert!(!fs_err::exists(&trap).unwrap(), "{url}");
    }
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: there is no git under Wine")]
fn a_commit_that_is_nowhere_is_named() {
    let tree = SourceTree::new();
    let repository = tree.folder.join("elsewhere");
    fs_err::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    commit(&repository, "one");
    let missing = "1".repeat(40);
    declare(
        &tree,
        &format!(
            r#"{{"kind": "git", "git": "{repository}", "ref": "{missing}", "ref_origin": "main"}}"#
        ),
    );
    let error = tree.build(&["p:windows"]).failure("p");
    assert!(
        error.contains(&format!("the commit {missing} is not in")),
        "{error}"
    );
}

#[test]
#[cfg_attr(windows, ignore = "needs real Windows: there is no git under Wine")]
fn a_local_repository_is_taken_as_committed() {
    let tree = SourceTree::new();
    let repository = tree.folder.join("p/code");
    fs_err::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    commit(&repository, "committed");
    fs_err::write(repository.join("untracked"), "").unwrap();
    declare(&tree, r#"{"kind": "git_local", "rel_path": "code"}"#);
    let ran = tree.build(&["p:windows"]).good();
    let to = ran.unpack(&tree, "p");
    assert_eq!(read(&to.join("all/a")), "committed");
    assert!(!fs_err::exists(to.join("all/untracked")).unwrap());
}

#[test]
fn an_upstream_tree_is_fetched_once_and_again_when_it_changes() {
    use transom_package::build::Fetcher;
    use transom_package::recipe::Source;
    use transom_package::tree::Sources as _;
    let tree = SourceTree::new();
    let cache = tree.folder.join("cache");
    let to = cache.join("upstream/checkout");
    let fetcher = Fetcher::new(&cache);
    for content in ["one", "two"] {
        let archive = gzip(&tar(&[("top/file", content)]));
        tree.write("archive", &archive);
        let source = Source::UrlExtract {
            url: "file://archive".to_owned(),
            sha1: sha1(&archive),
        };
        let check_out = || {
            fetcher
                .check_out(&source, &tree.folder, &cache, &to)
                .unwrap();
        };
        check_out();
        assert_eq!(read(&to.join("file")), content);
        // Nothing is touched when it is the same.
        fs_err::write(to.join("witness"), "").unwrap();
        check_out();
        assert!(fs_err::exists(to.join("witness")).unwrap());
    }
    assert!(!fs_err::exists(cache.join("upstream-work")).unwrap());
}
