//! Which names in an archive are harmless on the system that will use them. Pure: a Linux machine
//! refuses what would be harmful on a Windows node.

use camino::Utf8PathBuf;
use transom_model::os::Os;

/// Names of devices on Windows, in every folder and with every extension.
const DEVICES: [&str; 7] = ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];
/// Followed by a digit these are devices too.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];
const FORBIDDEN_ON_WINDOWS: [char; 7] = ['<', '>', ':', '"', '|', '?', '*'];
/// The longest name in a folder, on the file systems of both systems.
const LONGEST_NAME: usize = 255;

/// Why an entry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("its path is absolute")]
    Absolute,
    #[error("its path goes upwards")]
    Upwards,
    #[error("its path is not Unicode")]
    NotUnicode,
    #[error("its path contains a character that Windows or the file system forbids")]
    ForbiddenCharacter,
    #[error("its path contains a name that Windows keeps for devices")]
    DeviceName,
    #[error("its path contains a name that ends in a dot or a space")]
    TrailingDotOrSpace,
    #[error("its path is too long")]
    TooLong,
    #[error("it has no name")]
    NoName,
    #[error("another entry has the same name")]
    Duplicate,
    #[error("another entry has the same name but for the case of its letters")]
    DuplicateButForCase,
    #[error("its path leads through an entry that is not a folder")]
    ThroughNonFolder,
    #[error("its link leads out of the folder")]
    LinkLeadsOut,
    #[error("its link leads to no file of the archive before it")]
    LinkToNothing,
    #[error("links are not possible on the target system")]
    LinkNotPossible,
    #[error("it is a device, a pipe or something else that is not content")]
    NotContent,
    #[error("it is encrypted")]
    Encrypted,
    #[error("it is sparse in a way that is not supported")]
    SparseFormat,
}

/// The path of an entry below the destination: plain names joined by `/`. Empty for the destination
/// itself.
pub fn entry_path(target: Os, raw: &[u8], longest: usize) -> Result<Utf8PathBuf, Refusal> {
    if raw.len() > longest {
        return Err(Refusal::TooLong);
    }
    let text = std::str::from_utf8(raw).map_err(|_| Refusal::NotUnicode)?;
    if text.is_empty() {
        return Err(Refusal::NoName);
    }
    // Some archivers on Windows write the separator of their system.
    let text = match target {
        Os::Linux => text.to_owned(),
        Os::Windows => text.replace('\\', "/"),
    };
    if text.starts_with('/') || (target == Os::Windows && has_drive(&text)) {
        return Err(Refusal::Absolute);
    }
    let mut names = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            name => {
                check_name(target, name)?;
                names.push(name);
            }
        }
    }
    Ok(names.join("/").into())
}

fn has_drive(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':'
}

/// Whether one name of a folder is possible on the target system.
pub fn check_name(target: Os, name: &str) -> Result<(), Refusal> {
    if name == ".." {
        return Err(Refusal::Upwards);
    }
    if name.len() > LONGEST_NAME {
        return Err(Refusal::TooLong);
    }
    if name.contains('\0') {
        return Err(Refusal::ForbiddenCharacter);
    }
    if target == Os::Linux {
        return Ok(());
    }
    if name.ends_with(['.', ' ']) {
        return Err(Refusal::TrailingDotOrSpace);
    }
    if name.contains(FORBIDDEN_ON_WINDOWS) || name.chars().any(|c| c < ' ') {
        return Err(Refusal::ForbiddenCharacter);
    }
    if is_device(name) {
        return Err(Refusal::DeviceName);
    }
    Ok(())
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.trim_end_matches(' ').to_lowercase();
    let is_number = |rest: &str| {
        let mut rest = rest.chars();
        matches!(rest.next(), Some('0'..='9' | '¹' | '²' | '³')) && rest.next().is_none()
    };
    DEVICES.contains(&stem.as_str())
        || NUMBERED_DEVICES
            .iter()
            .any(|device| stem.strip_prefix(device).is_some_and(is_number))
}

/// Two names are the same on the target system if they have the same key.
pub fn key(target: Os, path: &str) -> String {
    match target {
        Os::Linux => path.to_owned(),
        // Both ways, because some letters have no partner in one direction.
        Os::Windows => path.to_uppercase().to_lowercase(),
    }
}

/// Checks where a symbolic link at `link` leads. `..` is allowed at the start only, and only as often
/// as `link` has folders above it: those are real folders, so counting is exact, and a `..` behind a
/// name could turn round in a folder that is itself a link.
pub fn check_link(link: &str, link_target: &str) -> Result<(), Refusal> {
    if link_target.starts_with('/') || link_target.is_empty() || link_target.contains('\0') {
        return Err(Refusal::LinkLeadsOut);
    }
    let mut folders_above = link.matches('/').count();
    let mut descending = false;
    for name in link_target.split('/') {
        match name {
            "" | "." => {}
            ".." if descending || folders_above == 0 => return Err(Refusal::LinkLeadsOut),
            ".." => folders_above -= 1,
            _ => descending = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_names_are_normalised() {
        for (raw, expected) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("./", ""),
            ("console/aux-files/com10", "console/aux-files/com10"),
            ("ä b/日本", "ä b/日本"),
            ("..a/b..c", "..a/b..c"),
        ] {
            for target in [Os::Linux, Os::Windows] {
                let path = entry_path(target, raw.as_bytes(), 100);
                assert_eq!(path.as_deref(), Ok(expected.into()), "{raw}");
            }
        }
        assert_eq!(
            entry_path(Os::Windows, br"bin\tool.exe", 100).as_deref(),
            Ok("bin/tool.exe".into())
        );
        assert_eq!(
            entry_path(Os::Linux, b"aux:x\\y.", 100).as_deref(),
            Ok("aux:x\\y.".into())
        );
    }

    #[test]
    fn harmful_names_are_refused_everywhere() {
        for (raw, reason) in [
            (&b""[..], Refusal::NoName),
            (b"/etc/passwd", Refusal::Absolute),
            (b"..", Refusal::Upwards),
            (b"a/../../b", Refusal::Upwards),
            (b"a/..", Refusal::Upwards),
            (b"a\xff", Refusal::NotUnicode),
            (b"a\0b", Refusal::ForbiddenCharacter),
            (&[b'a'; 101], Refusal::TooLong),
        ] {
            for target in [Os::Linux, Os::Windows] {
                assert_eq!(entry_path(target, raw, 100), Err(reason), "{raw:?}");
            }
        }
        assert_eq!(
            entry_path(Os::Linux, &[b'a'; 256], 1000),
            Err(Refusal::TooLong)
        );
    }

    #[test]
    fn names_that_mean_something_else_on_windows_are_refused_for_windows() {
        for (raw, reason) in [
            (r"C:\x", Refusal::Absolute),
            ("c:x", Refusal::Absolute),
            (r"\\server\share\x", Refusal::Absolute),
            ("//server/share/x", Refusal::Absolute),
            (r"\x", Refusal::Absolute),
            (r"\\?\C:\x", Refusal::Absolute),
            (r"a\..\..\b", Refusal::Upwards),
            ("CON", Refusal::DeviceName),
            ("a/aux.txt", Refusal::DeviceName),
            ("NUL.tar.gz", Refusal::DeviceName),
            ("Com1", Refusal::DeviceName),
            ("com1 .txt", Refusal::DeviceName),
            ("lpt²", Refusal::DeviceName),
            ("CONIN$", Refusal::DeviceName),
            ("a.", Refusal::TrailingDotOrSpace),
            ("a /b", Refusal::TrailingDotOrSpace),
            ("...", Refusal::TrailingDotOrSpace),
            ("file:stream", Refusal::ForbiddenCharacter),
            ("file::$DATA", Refusal::ForbiddenCharacter),
            ("a|b", Refusal::ForbiddenCharacter),
            ("a\tb", Refusal::ForbiddenCharacter),
        ] {
            assert_eq!(
                entry_path(Os::Windows, raw.as_bytes(), 100),
                Err(reason),
                "{raw}"
            );
        }
    }

    #[test]
    fn a_link_stays_inside_however_it_is_followed() {
        for (link, target) in [
            ("a", "b"),
            ("a/b", "../c"),
            ("a/b/c", "../../d/e"),
            ("a", "./b//c"),
            ("a/b", ".."),
        ] {
            assert_eq!(check_link(link, target), Ok(()), "{link} -> {target}");
        }
        for (link, target) in [
            ("a", ".."),
            ("a", "/etc"),
            ("a/b", "../.."),
            ("a", ""),
            // `x` may be a link to `.`, and then this is outside.
            ("a", "x/.."),
            ("a/b", "x/.."),
            ("a/b", "../x/.."),
        ] {
            assert_eq!(
                check_link(link, target),
                Err(Refusal::LinkLeadsOut),
                "{link} -> {target}"
            );
        }
    }
}
