//! The files of a volume on Linux, all of which change in one instant: they are in a folder of their own, `..data` leads
//! to that folder, and the names that containers know lead through `..data`.
//!
//! Invariant: whoever opens `..data` once sees files that belong together, such as a certificate and its key.

use camino::Utf8Path;
use jiff::Timestamp;
use transom_host::files::{Access, FileError, Files, Kind, path};

use super::{LARGEST_FILE, content::Content};

/// The name that leads to what is valid now.
const CURRENT: &str = "..data";
/// How many names for a new folder are tried.
const NAMES: u32 = 1_000;

/// Makes a folder show these files and no others.
pub(super) fn publish(
    files: &dyn Files,
    folder: &Utf8Path,
    content: &Content,
    access: impl Fn(i32) -> Access,
    now: Timestamp,
) -> Result<(), FileError> {
    let os = files.os();
    let current = path::join(os, folder, CURRENT);
    let known = files.read_link(&current).ok();
    let known = known.filter(|name| {
        is_same(
            files,
            &path::join(os, folder, name.as_str()),
            content,
            &access,
        )
    });
    let version = match known {
        Some(name) => name.into_string(),
        None => {
            let name = free_name(files, folder, now)?;
            write(files, &path::join(os, folder, &name), content, access)?;
            files.replace_link(Utf8Path::new(&name), &current)?;
            name
        }
    };
    let names: Vec<&str> = content.keys().map(|path| first(path)).collect();
    for name in &names {
        show(files, folder, name)?;
    }
    for entry in files.names(folder)? {
        let is_wanted = [CURRENT, &version].contains(&entry.name.as_str())
            || names.contains(&entry.name.as_str());
        if !is_wanted {
            files.remove_tree(&path::join(os, folder, &entry.name))?;
        }
    }
    Ok(())
}

/// The first name of a path with slashes.
fn first(path: &str) -> &str {
    path.split_once('/').map_or(path, |(first, _)| first)
}

/// A name that says since when its files are valid.
fn free_name(files: &dyn Files, folder: &Utf8Path, now: Timestamp) -> Result<String, FileError> {
    let since = now.strftime("..%Y_%m_%d_%H_%M_%S");
    for number in 0..NAMES {
        let name = format!("{since}.{number}");
        match files.metadata(&path::join(files.os(), folder, &name)) {
            Ok(_) => {}
            Err(FileError::NotFound { .. }) => return Ok(name),
            Err(error) => return Err(error),
        }
    }
    Err(FileError::Exists {
        path: path::join(files.os(), folder, &since.to_string()),
    })
}

fn write(
    files: &dyn Files,
    version: &Utf8Path,
    content: &Content,
    access: impl Fn(i32) -> Access,
) -> Result<(), FileError> {
    files.create_dir_all(version)?;
    for (name, file) in content {
        let target = path::join(files.os(), version, name);
        if let Some(parent) = path::parent(files.os(), &target) {
            files.create_dir_all(&parent)?;
        }
        files.write_durable(&target, &file.bytes, access(file.mode))?;
    }
    Ok(())
}

/// Lets a name lead through [`CURRENT`].
fn show(files: &dyn Files, folder: &Utf8Path, name: &str) -> Result<(), FileError> {
    let link = path::join(files.os(), folder, name);
    let target = path::join(files.os(), Utf8Path::new(CURRENT), name);
    match files.metadata(&link) {
        Ok(found) if found.kind == Kind::Link && files.read_link(&link)? == target => return Ok(()),
        // From an agent that knew only plain files.
        Ok(_) => files.remove_tree(&link)?,
        Err(FileError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    files.link_dir(&target, &link)
}

/// Whether a folder has these files, with these modes, and no others.
fn is_same(
    files: &dyn Files,
    version: &Utf8Path,
    content: &Content,
    access: impl Fn(i32) -> Access,
) -> bool {
    let is_there = |(name, file): (&String, &super::content::File)| {
        let path = path::join(files.os(), version, name);
        let mode = files.metadata(&path).ok().and_then(|found| found.mode);
        let read = files.read(&path, LARGEST_FILE);
        mode == Some(access(file.mode).mode()) && read.is_ok_and(|bytes| bytes == file.bytes)
    };
    content.iter().all(is_there) && count(files, version, 0) == Some(content.len())
}

/// How many files are below a folder.
fn count(files: &dyn Files, folder: &Utf8Path, depth: usize) -> Option<usize> {
    const DEEPEST: usize = 32;
    let mut sum = 0;
    for entry in files.names(folder).ok()? {
        sum += match entry.kind {
            Kind::Dir if depth < DEEPEST => count(
                files,
                &path::join(files.os(), folder, &entry.name),
                depth + 1,
            )?,
            _ => 1,
        };
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::content::File;
    use camino::Utf8PathBuf;
    use transom_host::files::fake::FakeFiles;
    use transom_model::Os;

    const FOLDER: &str = "/pods/one/volume";

    fn content(all: &[(&str, &str)]) -> Content {
        let file = |text: &str| File {
            bytes: text.as_bytes().to_vec(),
            mode: 0o640,
        };
        all.iter()
            .map(|(name, text)| ((*name).to_owned(), file(text)))
            .collect()
    }

    fn put(files: &FakeFiles, all: &[(&str, &str)]) {
        files.create_dir_all(FOLDER.into()).unwrap();
        let access = |mode: i32| Access::Mode(mode.cast_unsigned());
        let now = Timestamp::UNIX_EPOCH;
        publish(files, FOLDER.into(), &content(all), access, now).unwrap();
    }

    fn place(below: &str) -> Utf8PathBuf {
        path::join(Os::Linux, FOLDER.into(), below)
    }

    fn names(files: &FakeFiles) -> Vec<String> {
        let all = files.names(FOLDER.into()).unwrap();
        all.into_iter().map(|one| one.name).collect()
    }

    fn read(files: &FakeFiles, below: &str) -> String {
        let bytes = files.read(&place(below), 99).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn all_files_change_with_one_link() {
        let files = FakeFiles::new(Os::Linux);
        put(
            &files,
            &[("tls.crt", "one"), ("tls.key", "one"), ("a/b", "x")],
        );
        let first = "..1970_01_01_00_00_00.0";
        assert_eq!(names(&files), [first, CURRENT, "a", "tls.crt", "tls.key"]);
        let current = place(CURRENT);
        assert_eq!(files.read_link(&current).unwrap(), first);
        assert_eq!(read(&files, "a/b"), "x");
        let link = files.metadata(&place("tls.crt"));
        assert_eq!(link.unwrap().kind, Kind::Link);

        put(
            &files,
            &[("tls.crt", "two"), ("tls.key", "two"), ("new", "y")],
        );
        let second = "..1970_01_01_00_00_00.1";
        assert_eq!(
            names(&files),
            [second, CURRENT, "new", "tls.crt", "tls.key"]
        );
        assert_eq!(read(&files, "tls.crt"), "two");
        assert_eq!(read(&files, "..data/tls.key"), "two");
        // What is as it should be is not written again.
        put(
            &files,
            &[("tls.crt", "two"), ("tls.key", "two"), ("new", "y")],
        );
        assert_eq!(files.read_link(&current).unwrap(), second);
        put(&files, &[("tls.crt", "two")]);
        assert_eq!(names(&files), [first, CURRENT, "tls.crt"]);
    }

    #[test]
    fn plain_files_of_an_older_agent_are_taken_over() {
        let files = FakeFiles::new(Os::Linux);
        files.create_dir_all(&place("a")).unwrap();
        for name in ["tls.crt", "a/b", "gone"] {
            files
                .write_durable(&place(name), b"old", Access::Public)
                .unwrap();
        }
        put(&files, &[("tls.crt", "one"), ("a/b", "x")]);
        assert_eq!(read(&files, "tls.crt"), "one");
        assert_eq!(read(&files, "a/b"), "x");
        assert!(!names(&files).contains(&"gone".to_owned()));
    }
}
