//! Questions about paths of a system that need not be the one we run on.

use transom_model::os::Os;

/// Whether `path` needs no current folder. On Windows `\folder` and `/folder` are on the system
/// drive, so that one unit file can serve both systems.
pub fn is_absolute(path: &str, os: Os) -> bool {
    match os {
        Os::Linux => path.starts_with('/'),
        Os::Windows => {
            let bytes = path.as_bytes();
            path.starts_with(['/', '\\'])
                || (bytes.len() >= 3
                    && bytes[0].is_ascii_alphabetic()
                    && bytes[1] == b':'
                    && matches!(bytes[2], b'/' | b'\\'))
        }
    }
}

/// Whether `path` climbs out of its folder anywhere.
pub fn has_parent_step(path: &str, os: Os) -> bool {
    let separators: &[char] = match os {
        Os::Linux => &['/'],
        Os::Windows => &['/', '\\'],
    };
    path.split(separators).any(|part| part == "..")
}
