//! Scripts for PowerShell, started for real.

use transom_package::build::Options;

use super::SourceTree;

fn tree() -> SourceTree {
    let tree = SourceTree::new();
    tree.write("tool/windows.buildinfo.json", "{}");
    tree.write("tool/windows.build.ps1", "exit 0\r\n");
    tree
}

#[test]
fn without_powershell_there_is_a_clear_error() {
    let ran = tree().build(&["tool:windows"]);
    assert!(ran.failure("tool").contains("no PowerShell"));
}

/// Under Wine it is a program that does nothing and ends well, which is enough for an empty package.
#[test]
fn a_script_that_ends_well_makes_a_package() {
    let tree = tree();
    let options = Options {
        powershell: Some(r"C:\windows\system32\WindowsPowerShell\v1.0\powershell.exe".into()),
        ..Options::default()
    };
    let ran = tree.build_with(&["tool:windows"], &options).good();
    let to = ran.unpack(&tree, "tool");
    let names: Vec<String> = fs_err::read_dir(&to)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn a_program_that_fails_fails_the_build() {
    let tree = tree();
    let options = Options {
        // It takes none of the arguments that PowerShell takes.
        powershell: Some(r"C:\windows\system32\sc.exe".into()),
        ..Options::default()
    };
    let ran = tree.build_with(&["tool:windows"], &options);
    assert!(ran.failure("tool").contains("failed with exit code"));
}
