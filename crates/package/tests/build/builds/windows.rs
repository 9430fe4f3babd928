//! Scripts for PowerShell. What stands in for it is `cmd.exe`, which the tests can count on.

use std::collections::BTreeMap;

use transom_package::build::Options;

use super::SourceTree;

#[test]
fn without_powershell_there_is_a_clear_error() {
    let tree = SourceTree::new();
    tree.write("tool/windows.buildinfo.json", "{}");
    tree.write("tool/windows.build.ps1", "exit 0\r\n");
    let options = Options {
        powershell: None,
        environment: BTreeMap::new(),
        ..Options::default()
    };
    let ran = tree.build_with(&["tool:windows"], &options);
    assert!(ran.failure("tool").contains("no PowerShell"));
}
