//! What every Windows since 2018 has as `tar.exe` and Wine has not, as far as `kubectl cp` uses it.
//!
//! ```text
//! tar cf - PATH          packs to standard output
//! tar -xmf - -C FOLDER   unpacks standard input
//! ```

use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Whether this program was started by that name.
pub(super) fn is_asked_for() -> bool {
    let own = std::env::current_exe();
    own.is_ok_and(|path| path.file_stem().is_some_and(|name| name == "tar"))
}

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cf", "-", path] => pack(path),
        ["-xmf", "-", "-C", folder] => unpack(Path::new(folder)),
        ["-xmf", "-"] => unpack(Path::new(".")),
        _ => bail!("this tar does not know {words:?}"),
    }
}

fn pack(path: &str) -> Result<()> {
    let mut archive = tar::Builder::new(io::stdout().lock());
    // Archives know no absolute names.
    let name = path.trim_start_matches(['/', '\\']);
    if Path::new(path).is_dir() {
        archive.append_dir_all(name, path)
    } else {
        archive.append_path_with_name(path, name)
    }
    .with_context(|| format!("could not pack {path}"))?;
    archive.finish()?;
    Ok(())
}

fn unpack(folder: &Path) -> Result<()> {
    let mut archive = tar::Archive::new(io::stdin().lock());
    archive.set_preserve_mtime(false);
    archive
        .unpack(folder)
        .with_context(|| format!("could not unpack to {}", folder.display()))
}
