//! Folders that are either complete or not there. A folder is filled beside its place, stamped with
//! what it was made from, and renamed; a stamp that differs means it must be made again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::State;

const STAMP: &str = ".made-from";

/// A folder that is made as a whole.
#[derive(Debug)]
pub(crate) struct Stamped {
    pub(crate) folder: PathBuf,
    /// What it is made from: a version, a recipe number, a path that got baked in.
    pub(crate) made_from: String,
}

impl Stamped {
    pub(crate) fn state(&self) -> Result<State> {
        Ok(match fs_err::read_to_string(self.folder.join(STAMP)) {
            Ok(stamp) if stamp == self.made_from => State::Present,
            Ok(stamp) => State::Missing(format!(
                "made from {}, wanted {}",
                one_line(&stamp),
                one_line(&self.made_from)
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                State::Missing("not installed".into())
            }
            Err(error) => return Err(error.into()),
        })
    }

    /// Lets `fill` fill an empty folder, then puts it in place of what was there.
    pub(crate) fn make(&self, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let fresh = self.beside("new");
        let old = self.beside("old");
        remove(&fresh)?;
        remove(&old)?;
        fs_err::create_dir_all(&fresh)?;
        fill(&fresh)?;
        fs_err::write(fresh.join(STAMP), &self.made_from)?;
        if self.folder.exists() {
            rename(&self.folder, &old)?;
        }
        rename(&fresh, &self.folder)?;
        remove(&old)
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.folder.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(suffix);
        self.folder.with_file_name(name)
    }
}

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or("nothing").to_owned()
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs_err::rename(from, to).context("could not put the new folder in place")
}

/// Removes a folder that may not exist.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    match fs_err::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(folder: &Path, made_from: &str) -> Stamped {
        Stamped {
            folder: folder.join("thing"),
            made_from: made_from.into(),
        }
    }

    #[test]
    fn a_folder_is_there_only_when_it_was_filled_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let thing = stamped(folder.path(), "1");
        let result = thing.make(|fresh| {
            fs_err::write(fresh.join("half"), "")?;
            anyhow::bail!("interrupted")
        });
        assert!(result.is_err());
        assert_ne!(thing.state().unwrap(), State::Present);

        thing
            .make(|fresh| Ok(fs_err::write(fresh.join("whole"), "")?))
            .unwrap();
        assert_eq!(thing.state().unwrap(), State::Present);
        assert!(!folder.path().join("thing/half").exists());
    }

    #[test]
    fn another_version_replaces_the_old_one_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let old = stamped(folder.path(), "1");
        old.make(|fresh| Ok(fs_err::write(fresh.join("old"), "")?))
            .unwrap();
        let new = stamped(folder.path(), "2");
        assert_eq!(
            new.state().unwrap(),
            State::Missing("made from 1, wanted 2".into())
        );
        new.make(|_| Ok(())).unwrap();
        assert_eq!(new.state().unwrap(), State::Present);
        assert!(!folder.path().join("thing/old").exists());
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    }
}
