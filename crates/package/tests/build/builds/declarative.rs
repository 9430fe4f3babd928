//! Packages without a script: the same on every system, for every system.

use super::{HELLO_SHA1, SourceTree, read};
use transom_package::archive::Digest;

/// The archive of the tree below, wherever it is built.
const WINDOWS_SHA256: &str = "741832c5f9b19b86477319ba8df6166bab053565ed15a81173d1317a5b26c8c7";

fn sample() -> SourceTree {
    let tree = SourceTree::new();
    tree.write("tool/hello.exe", "hello\n");
    tree.write("tool/extra/conf/Tool.conf", "port=80\r\n");
    tree.write("tool/extra/conf/other.txt", "no");
    let recipe = format!(
        r#"{{
            "single_source": {{"kind": "url", "url": "file://hello.exe", "sha1": "{HELLO_SHA1}"}},
            "environment": {{"TOOL": "yes"}},
            "install": [
                {{"copy": "src/tool/hello.exe", "to": "bin/tool.exe"}},
                {{"copy": "extra/**/*.conf", "to": "etc/", "strip": 1}}
            ]
        }}"#
    );
    tree.write("tool/windows.buildinfo.json", recipe);
    tree
}

#[test]
fn a_package_for_windows_is_the_same_wherever_it_is_built() {
    let mut bytes = Vec::new();
    for _ in 0..2 {
        let tree = sample();
        let ran = tree.build(&["tool:windows"]).good();
        bytes.push(fs_err::read(ran.archive(&tree, "tool")).unwrap());
    }
    assert!(bytes[0] == bytes[1]);
    assert_eq!(Digest::of(&bytes[0]).to_string(), WINDOWS_SHA256);
}

#[test]
fn the_rules_decide_what_is_in_it() {
    let tree = sample();
    let ran = tree.build(&["tool:windows"]).good();
    let to = ran.unpack(&tree, "tool");
    assert_eq!(read(&to.join("bin/tool.exe")), "hello\n");
    assert_eq!(read(&to.join("etc/Tool.conf")), "port=80\r\n");
    let info = read(&to.join("pkginfo.json"));
    assert!(info.contains("\"TOOL\": \"yes\""), "{info}");
    let build: serde_json::Value =
        serde_json::from_str(&read(&to.join("buildinfo.full.json"))).unwrap();
    assert_eq!(build["variant"], "windows");
    assert_eq!(build["sources"]["tool"]["downloaded_sha1"], HELLO_SHA1);
    assert_eq!(
        build["package_version"],
        ran.package("tool").id.version_str()
    );
    let bom = read(&to.join("sbom.cdx.json"));
    assert!(
        bom.contains(HELLO_SHA1) && bom.contains("file://hello.exe"),
        "{bom}"
    );
    assert!(!fs_err::exists(to.join("etc/other.txt")).unwrap());
}

#[test]
fn a_rule_that_matches_nothing_fails_the_build() {
    let tree = SourceTree::new();
    tree.write(
        "tool/windows.buildinfo.json",
        r#"{"install": [{"copy": "extra/x", "to": "bin/"}]}"#,
    );
    let ran = tree.build(&["tool:windows"]);
    assert!(ran.failure("tool").contains("`extra/x` matches no file"));
    assert!(!fs_err::exists(ran.archive(&tree, "tool")).unwrap());
}
