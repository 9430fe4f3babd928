//! The file system of a container image, for builds that name one which this machine has. It is exported
//! once for each id of the image and only read from then on.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{FileError, Files, Native};

use crate::command::{self, CommandError};

/// The runtimes that may know an image, in the order they are asked.
pub(super) const RUNTIMES: [&str; 2] = ["docker", "podman"];
const QUESTION: Duration = Duration::from_secs(30);
const EXPORT: Duration = Duration::from_mins(30);

/// Why an image that is there cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("the image `{image}` cannot be exported")]
    Export {
        image: String,
        #[source]
        source: CommandError,
    },
    #[error(transparent)]
    Files(#[from] FileError),
}

/// The root file system of an image, if one of `runtimes` knows it. `work` is for what is half done.
pub(super) fn root(
    cache: &Utf8Path,
    work: &Utf8Path,
    image: &str,
    runtimes: &[&str],
) -> Result<Option<Utf8PathBuf>, ImageError> {
    // A name that begins with a dash would be taken for an option.
    if image.starts_with('-') {
        return Ok(None);
    }
    let inspect = ["image", "inspect", "--format", "{{.Id}}", image];
    let known = runtimes.iter().find_map(|runtime| {
        let id = command::run(runtime, &inspect, None, QUESTION).ok()?;
        let id = id.trim().trim_start_matches("sha256:").to_owned();
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some((*runtime, id))
    });
    let Some((runtime, id)) = known else {
        return Ok(None);
    };
    let files = Native;
    let folder = cache.join("images").join(&id);
    if files.metadata(&folder).is_ok() {
        return Ok(Some(folder));
    }
    let (archive, whole) = (work.join("image.tar"), work.join("image"));
    files.create_dir_all(&whole)?;
    export(runtime, image, &archive, &whole).map_err(|source| ImageError::Export {
        image: image.to_owned(),
        source,
    })?;
    files.remove_file(&archive)?;
    match files.rename_dir(&whole, &folder) {
        // Another package of this build was quicker.
        Err(FileError::Exists { .. }) => {}
        renamed => renamed?,
    }
    Ok(Some(folder))
}

/// The system's tar, because an image holds what no package may: devices and links to anywhere. They
/// are harmless here: nothing reads them but what runs inside.
fn export(
    runtime: &str,
    image: &str,
    archive: &Utf8Path,
    folder: &Utf8Path,
) -> Result<(), CommandError> {
    // It is never started, but some images name no program.
    let container = command::run(runtime, &["create", image, "/bin/true"], None, EXPORT)?;
    let container = container.trim();
    let exported = command::run(
        runtime,
        &["export", "--output", archive.as_str(), container],
        None,
        EXPORT,
    );
    command::run(runtime, &["rm", container], None, QUESTION)?;
    exported?;
    let arguments = [
        "--extract",
        "--no-same-owner",
        "--exclude=dev/*",
        "--file",
        archive.as_str(),
        "--directory",
        folder.as_str(),
    ];
    command::run("tar", &arguments, None, EXPORT).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_nobody_knows_is_no_error() {
        for image in ["no-such-image", "--help"] {
            let found = root(
                "/nowhere".into(),
                "/nowhere".into(),
                image,
                &["/nowhere/docker"],
            );
            assert!(matches!(found, Ok(None)), "{image}");
        }
    }
}
