//! The libraries that are mapped into this process, and the loader that mapped them.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::Part;

/// No path of a loader is longer.
const LONGEST_PATH: u64 = 4096;
/// No program of ours has as many parts.
const MOST_HEADERS: u16 = 256;
/// The kind of program header that names the loader.
const INTERPRETER: u32 = 3;

pub(super) fn besides(program: &Utf8Path) -> io::Result<Vec<Part>> {
    let Some(loader) = loader(program)? else {
        return Ok(Vec::new());
    };
    let mut parts: BTreeMap<Utf8PathBuf, Utf8PathBuf> =
        libraries(&fs::read_to_string("/proc/self/maps")?)
            .map(|file| (file.to_owned(), file.to_owned()))
            .collect();
    // Its name is usually a link to one of the files above; in an image it is a file.
    let file = loader.canonicalize_utf8()?;
    parts.insert(loader, file);
    Ok(parts
        .into_iter()
        .map(|(path, file)| Part { path, file })
        .collect())
}

/// The libraries in a table of mappings, each once or more.
fn libraries(maps: &str) -> impl Iterator<Item = &Utf8Path> {
    maps.lines().filter_map(|line| {
        let path = Utf8Path::new(line.get(line.find('/')?..)?);
        let is_library = path.file_name()?.split('.').any(|part| part == "so");
        is_library.then_some(path)
    })
}

/// Who loads a program, as its file names it; `None` if it needs nobody.
fn loader(program: &Utf8Path) -> io::Result<Option<Utf8PathBuf>> {
    let mut file = fs::File::open(program)?;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    // Only the form this program can have itself: 64 bits, little end first.
    if header[..6] != *b"\x7fELF\x02\x01" {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a program of this machine",
        ));
    }
    let table = number(&header[32..40]);
    let count = u16::from_le_bytes([header[56], header[57]]).min(MOST_HEADERS);
    file.seek(SeekFrom::Start(table))?;
    for _ in 0..count {
        let mut entry = [0; 56];
        file.read_exact(&mut entry)?;
        if u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]) != INTERPRETER {
            continue;
        }
        let (offset, length) = (
            number(&entry[8..16]),
            number(&entry[32..40]).min(LONGEST_PATH),
        );
        file.seek(SeekFrom::Start(offset))?;
        let mut text = Vec::new();
        file.take(length).read_to_end(&mut text)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        return Ok(Some(text.trim_end_matches('\0').into()));
    }
    Ok(None)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_from_other_mappings() {
        let maps = "\
55d0-55d1 r--p 00000000 fe:00 1  /usr/bin/transom
7f00-7f01 r-xp 00000000 fe:00 2  /usr/lib/x86_64-linux-gnu/libc.so.6
7f02-7f03 rw-p 00000000 00:00 0
7f04-7f05 r--p 00000000 fe:00 3  /usr/lib/locale/C.utf8/LC_CTYPE
7fff-8000 rw-p 00000000 00:00 0  [stack]
7f06-7f07 r--p 00000000 fe:00 4  /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
";
        let found: Vec<&str> = libraries(maps).map(Utf8Path::as_str).collect();
        assert_eq!(
            found,
            [
                "/usr/lib/x86_64-linux-gnu/libc.so.6",
                "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
            ]
        );
    }

    #[test]
    fn this_program_is_whole_with_its_parts() {
        let parts = super::super::parts().unwrap();
        assert!(parts.program.is_file());
        for part in &parts.besides {
            assert!(part.path.is_absolute() && part.file.is_file(), "{part:?}");
        }
        let loader = loader(&parts.program).unwrap();
        assert_eq!(parts.besides.is_empty(), loader.is_none());
    }
}
