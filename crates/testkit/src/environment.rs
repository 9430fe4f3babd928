//! The variables that tell the testkit where Wine and the programs under test are. A thing that is
//! missing is an error that says which command provides it, so that no test is skipped in silence.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// Folder with `usr/lib/wine/wine64` and `template`, the Wine prefix that Windows hosts start from.
pub const WINE: &str = "TRANSOM_TEST_WINE";
/// `transom.exe`, built for Windows.
pub const WINDOWS_EXE: &str = "TRANSOM_TEST_WINDOWS_EXE";
/// `testkit-echo`, built for Linux.
pub const ECHO: &str = "TRANSOM_TEST_ECHO";
/// `testkit-echo.exe`, built for Windows.
pub const WINDOWS_ECHO: &str = "TRANSOM_TEST_WINDOWS_ECHO";

/// Where Wine is looked for when [`WINE`] is not set.
const WINE_PLACES: [&str; 2] = ["/opt/transom-dev/wine", "/opt/wine10"];

/// What provides everything that can be missing.
const WAY_FORWARD: &str = "run the tests with `cargo xtask test`, which provides it";

/// Returns the path of `transom.exe`.
pub fn windows_transom_program() -> Result<PathBuf> {
    program(WINDOWS_EXE, "transom.exe")
}

/// Returns the path of the small web server and client, built for Linux.
pub fn echo_program() -> Result<PathBuf> {
    program(ECHO, "testkit-echo")
}

/// Returns the path of the small web server and client, built for Windows.
pub fn windows_echo_program() -> Result<PathBuf> {
    program(WINDOWS_ECHO, "testkit-echo.exe")
}

/// Returns the folder of the Wine installation.
pub(crate) fn wine_folder() -> Result<PathBuf> {
    let candidates = match variable(WINE) {
        Some(folder) => vec![folder],
        None => WINE_PLACES.map(PathBuf::from).to_vec(),
    };
    let complete = |folder: &PathBuf| {
        folder.join("usr/lib/wine/wine64").is_file() && folder.join("template/drive_c").is_dir()
    };
    match candidates.iter().find(|folder| complete(folder)) {
        Some(folder) => fs_err::canonicalize(folder).context("could not resolve the Wine folder"),
        None => {
            bail!("no Wine with a prefix template in {candidates:?} (set {WINE}): {WAY_FORWARD}")
        }
    }
}

fn program(name: &str, what: &str) -> Result<PathBuf> {
    let path = variable(name)
        .with_context(|| format!("{name} does not say where {what} is: {WAY_FORWARD}"))?;
    if !path.is_file() {
        bail!(
            "{name} names `{}`, which is not a file: {WAY_FORWARD}",
            path.display()
        );
    }
    Ok(path)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where the testkit reads variables"
)]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_an_error_with_a_way_forward() {
        let error = program("TRANSOM_TEST_OF_NO_VARIABLE", "x.exe").unwrap_err();
        assert_eq!(
            error.to_string(),
            "TRANSOM_TEST_OF_NO_VARIABLE does not say where x.exe is: \
             run the tests with `cargo xtask test`, which provides it"
        );
    }

    #[test]
    fn a_variable_that_names_no_file_is_an_error_that_names_it() {
        // Any variable that every process has and that names a folder.
        let error = program("PATH", "x.exe").unwrap_err();
        assert!(error.to_string().contains("which is not a file"), "{error}");
    }
}
