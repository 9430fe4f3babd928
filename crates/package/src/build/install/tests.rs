//! Which files go where.

use super::*;

fn found(paths: &[&str]) -> Vec<Found> {
    let mut found: Vec<Found> = paths
        .iter()
        .map(|path| Found {
            path: (*path).to_owned(),
            kind: if path.ends_with('@') {
                Kind::Link
            } else {
                Kind::File
            },
            mode: Some(0o644),
        })
        .collect();
    found.push(Found {
        path: "src/tool/bin".to_owned(),
        kind: Kind::Dir,
        mode: Some(0o755),
    });
    found
}

fn rule(copy: &str, to: &str) -> InstallRule {
    InstallRule {
        copy: copy.to_owned(),
        to: to.to_owned(),
        mode: None,
        strip: 0,
        exclude: Vec::new(),
    }
}

fn plan(os: Os, rules: &[InstallRule]) -> Result<Vec<String>, String> {
    let found = found(&[
        "src/tool/bin/a.exe",
        "src/tool/bin/b.exe",
        "src/tool/bin/sub/c.exe",
        "src/tool/README",
        "src/tool/link@",
        "extra/a.conf",
        "extra/d/A.conf",
    ]);
    plan_install(rules, &found, os)
        .map(|copies| {
            let line =
                |(to, copy): (&String, &Copy)| format!("{} -> {to} {:o}", copy.from, copy.mode);
            copies.iter().map(line).collect()
        })
        .map_err(|error| error.to_string())
}

#[track_caller]
fn gives(rules: &[InstallRule], expected: &[&str]) {
    assert_eq!(plan(Os::Windows, rules).unwrap(), expected);
}

#[track_caller]
fn fails(rules: &[InstallRule], reason: &str) {
    let error = plan(Os::Windows, rules).unwrap_err();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_file_goes_into_a_folder_or_gets_a_name() {
    gives(
        &[
            rule("extra/a.conf", "etc/"),
            rule("extra/a.conf", "etc/b.conf"),
        ],
        &[
            "extra/a.conf -> etc/a.conf 644",
            "extra/a.conf -> etc/b.conf 644",
        ],
    );
}

#[test]
fn a_folder_goes_with_all_below_it() {
    gives(
        &[rule("src/tool/bin", "bin/")],
        &[
            "src/tool/bin/a.exe -> bin/a.exe 644",
            "src/tool/bin/b.exe -> bin/b.exe 644",
            "src/tool/bin/sub/c.exe -> bin/sub/c.exe 644",
        ],
    );
}

#[test]
fn a_glob_stays_in_its_folder_unless_it_says_so() {
    gives(
        &[rule("src/tool/bin/*.exe", "bin/")],
        &[
            "src/tool/bin/a.exe -> bin/a.exe 644",
            "src/tool/bin/b.exe -> bin/b.exe 644",
        ],
    );
    let deep = InstallRule {
        mode: Some("0755".to_owned()),
        exclude: vec!["**/b.exe".to_owned(), "src/tool/bin/sub".to_owned()],
        strip: 1,
        ..rule("src/tool/**/*.exe", "bin/")
    };
    gives(&[deep], &["src/tool/bin/a.exe -> bin/a.exe 755"]);
}

#[test]
fn a_rule_that_does_nothing_is_a_mistake() {
    fails(
        &[rule("src/tool/*.dll", "bin/")],
        "rule 1 of `install`: `src/tool/*.dll` matches no",
    );
    fails(&[rule("extra/a.conf", "a"), rule("nowhere", "b")], "rule 2");
    fails(&[rule("src/[", "bin/")], "is no glob");
}

#[test]
fn two_files_cannot_have_one_name() {
    fails(
        &[rule("extra/a.conf", "etc/"), rule("extra/d/*", "etc/")],
        "rule 2 of `install` writes `etc/A.conf`, which rule 1 writes already",
    );
    fails(&[rule("src/tool/bin/*", "bin/one")], "matches 2 files");
    fails(
        &[rule("extra/a.conf", "etc"), rule("extra/a.conf", "etc/x/y")],
        "which is a folder of what rule 2 writes",
    );
    let both = [rule("extra/a.conf", "etc/"), rule("extra/d/*", "etc/")];
    assert_eq!(plan(Os::Linux, &both).unwrap().len(), 2);
}

#[test]
fn nothing_leaves_the_package() {
    for (to, reason) in [
        ("../x", "upwards"),
        ("/etc/", "absolute"),
        ("C:\\x", "absolute"),
        ("bin/nul", "devices"),
        ("bin/a.", "dot"),
    ] {
        fails(&[rule("extra/a.conf", to)], reason);
    }
    fails(&[rule("src/tool/link@", "bin/")], "links are not possible");
    let stripped = InstallRule {
        strip: 3,
        ..rule("src/tool/bin/*", "bin/")
    };
    fails(&[stripped], "nothing is left");
    let mode = InstallRule {
        mode: Some("4755".to_owned()),
        ..rule("extra/a.conf", "etc/")
    };
    fails(&[mode], "no mode");
}
