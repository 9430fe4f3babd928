//! Carries out plans. Each operation is atomic: a reader sees the old link or the new one. Doing an
//! operation again changes nothing.

use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use uuid::Uuid;

use super::{InstallOperation, InstallPlan, LinkStyle};
use crate::unit::link::create_symbolic_link;
use crate::unit::load::MASK_TEXT;

/// What a masked unit's link leads to on Linux.
const NOTHING: &str = "/dev/null";

/// Why a change failed. Operations before it have been done, those after it have not.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error("refusing to change `{path}`: it is not in a unit folder")]
    Outside { path: Utf8PathBuf },
    #[error("refusing to replace `{path}`: it is a folder")]
    Folder { path: Utf8PathBuf },
    #[error("cannot write `{path}`")]
    Write {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("cannot remove `{path}`")]
    Remove {
        path: Utf8PathBuf,
        source: io::Error,
    },
}

/// Does everything in `plan`, below `folders` only.
pub fn execute(plan: &InstallPlan, folders: &[Utf8PathBuf]) -> Result<(), ExecuteError> {
    for operation in &plan.operations {
        let link = match operation {
            InstallOperation::Link { link, .. }
            | InstallOperation::Mask { link, .. }
            | InstallOperation::Unlink { link } => link,
        };
        check_inside(link, folders)?;
    }
    for operation in &plan.operations {
        match operation {
            InstallOperation::Link {
                link,
                target,
                style: LinkStyle::Symbolic,
            } => place_symbolic(link, target)?,
            InstallOperation::Link {
                link,
                target,
                style: LinkStyle::Pointer,
            } => {
                place_file(link, &format!("{target}\n"))?;
            }
            InstallOperation::Mask {
                link,
                style: LinkStyle::Symbolic,
            } => {
                place_symbolic(link, Utf8Path::new(NOTHING))?;
            }
            InstallOperation::Mask {
                link,
                style: LinkStyle::Pointer,
            } => {
                place_file(link, &format!("{MASK_TEXT}\n"))?;
            }
            InstallOperation::Unlink { link } => remove(link)?,
        }
    }
    Ok(())
}

/// A link lies in a unit folder or in a folder directly inside one, and climbs nowhere.
fn check_inside(link: &Utf8Path, folders: &[Utf8PathBuf]) -> Result<(), ExecuteError> {
    let is_inside = folders.iter().any(|folder| {
        link.strip_prefix(folder).is_ok_and(|rest| {
            let parts: Vec<&str> = rest.components().map(|part| part.as_str()).collect();
            (1..=2).contains(&parts.len()) && !parts.contains(&"..")
        })
    });
    if is_inside {
        Ok(())
    } else {
        Err(ExecuteError::Outside {
            path: link.to_owned(),
        })
    }
}

fn place_symbolic(link: &Utf8Path, target: &Utf8Path) -> Result<(), ExecuteError> {
    if fs_err::read_link(link).is_ok_and(|present| present == target.as_std_path()) {
        return Ok(());
    }
    replace(link, |temporary| create_symbolic_link(target, temporary))
}

fn place_file(link: &Utf8Path, text: &str) -> Result<(), ExecuteError> {
    if fs_err::read(link).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    replace(link, |temporary| {
        let mut file = fs_err::File::create_new(temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
}

/// Makes the new thing beside the old one and moves it into place.
fn replace(
    link: &Utf8Path,
    make: impl FnOnce(&Utf8Path) -> io::Result<()>,
) -> Result<(), ExecuteError> {
    let failed = |source| ExecuteError::Write {
        path: link.to_owned(),
        source,
    };
    if fs_err::symlink_metadata(link).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(ExecuteError::Folder {
            path: link.to_owned(),
        });
    }
    let folder = link.parent().unwrap_or(link);
    fs_err::create_dir_all(folder).map_err(failed)?;
    // Not a unit name and not `.conf`, so a left-over after a crash means nothing.
    let temporary = folder.join(format!(".transom-{}", Uuid::new_v4().simple()));
    let outcome = make(&temporary).and_then(|()| fs_err::rename(&temporary, link));
    if let Err(source) = outcome {
        return match fs_err::remove_file(&temporary) {
            Ok(()) => Err(failed(source)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(failed(source)),
            Err(error) => Err(failed(io::Error::new(
                source.kind(),
                format!("{source}, and then {error}"),
            ))),
        };
    }
    Ok(())
}

fn remove(link: &Utf8Path) -> Result<(), ExecuteError> {
    let failed = |source| ExecuteError::Remove {
        path: link.to_owned(),
        source,
    };
    match fs_err::remove_file(link) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let Some(folder) = link.parent() else {
        return Ok(());
    };
    let is_link_folder = ["wants", "requires", "upholds"]
        .iter()
        .any(|suffix| folder.extension() == Some(suffix));
    if !is_link_folder {
        return Ok(());
    }
    match fs_err::remove_dir(folder) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}
