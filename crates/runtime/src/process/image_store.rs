//! Images of a runtime that needs none: folders and archives somebody put on the node, and the node itself.
//!
//! Invariant: a container gets its own copy; nothing it does changes an image. Whoever runs a program of the node
//! said so: a name that means something else elsewhere never means the node.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::archive::{Extraction, Limits, extract_tar, extract_zip};
use transom_host::files::{FileError, Files, How, Kind, Native};
use transom_model::os::Os;

use super::{chain, discard, file_error};
use crate::{Image, RuntimeError};

/// The id and name of the image that is the node as it is.
pub(super) const HOST: &str = "host";
/// Names of the same in any version: for pods that bring a command, and for the program that this is.
const HOST_NAMES: [&str; 2] = ["transom.dev/host", "transom.dev/transom"];
const PREFIX: &str = "image:";
/// Deep enough for any image, shallow enough for the stack.
const DEEPEST: usize = 64;

/// The forms an image may have in the store, by what its file name ends with.
const FORMS: [&str; 3] = ["", ".zip", ".tar"];

fn limits() -> Limits {
    Limits {
        entries: 1_000_000,
        file_bytes: 16 << 30,
        total_bytes: 64 << 30,
        path_bytes: 4096,
        depth: DEEPEST,
        ratio: 1000,
    }
}

/// A reference as a file name that either system takes, from which it can be read back.
fn encode(reference: &str) -> String {
    let mut name = String::new();
    for character in reference.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => name.push(character),
            other => {
                let mut bytes = [0; 4];
                for byte in other.encode_utf8(&mut bytes).bytes() {
                    name.push('%');
                    name.extend(char::from_digit(u32::from(byte >> 4), 16));
                    name.extend(char::from_digit(u32::from(byte & 15), 16));
                }
            }
        }
    }
    name
}

fn decode(name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        if let (b'%', [high, low, tail @ ..]) = (first, tail) {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// What a name or an id means on this node; `None` if nothing.
pub(super) fn find(store: &Utf8Path, reference: &str) -> Option<Image> {
    let reference = reference.strip_prefix(PREFIX).unwrap_or(reference);
    let stored = locate(store, reference).and_then(|place| describe(&place, reference).ok());
    stored.or_else(|| means_host(reference).then(host))
}

/// What a name means, for who needs it: no registry is asked.
pub(super) fn pull(store: &Utf8Path, reference: &str) -> Result<Image, RuntimeError> {
    find(store, reference).ok_or_else(|| RuntimeError::Pull {
        reference: reference.to_owned(),
        cause: format!(
            "it is not in {store}, and the process runtime asks no registry: a pod that is to run a program of \
             the node has the image {}:1",
            HOST_NAMES[0]
        ),
    })
}

/// Refuses a name or an id that means nothing here.
pub(super) fn check(store: &Utf8Path, image: &str) -> Result<(), RuntimeError> {
    let reference = image.strip_prefix(PREFIX).unwrap_or(image);
    if means_host(image) || locate(store, reference).is_some() {
        return Ok(());
    }
    Err(RuntimeError::ImageMissing {
        reference: reference.to_owned(),
    })
}

fn means_host(reference: &str) -> bool {
    let name = reference.split(['@', ':']).next().unwrap_or(reference);
    reference == HOST || HOST_NAMES.contains(&name)
}

/// All images: the node itself, then those of the store.
pub(super) fn list(store: &Utf8Path) -> Result<Vec<Image>, RuntimeError> {
    let mut images = vec![host()];
    let entries = match Native.list(store) {
        Ok(entries) => entries,
        Err(FileError::NotFound { .. }) => return Ok(images),
        Err(error) => return Err(file_error(error)),
    };
    for entry in entries {
        let form = match entry.metadata.kind {
            Kind::Dir => Some(""),
            Kind::File => FORMS[1..]
                .iter()
                .copied()
                .find(|form| entry.name.ends_with(form)),
            Kind::Link | Kind::Other => None,
        };
        let name = form.and_then(|form| entry.name.strip_suffix(form));
        if let Some(reference) = name.and_then(decode) {
            images.push(describe(&entry.path, &reference)?);
        }
    }
    Ok(images)
}

pub(super) fn remove(store: &Utf8Path, id: &str) -> Result<(), RuntimeError> {
    let reference = id.strip_prefix(PREFIX).unwrap_or(id);
    match locate(store, reference) {
        Some(place) => discard(&place),
        None => Ok(()),
    }
}

/// Fills the folder of a container with its image.
pub(super) fn unpack(store: &Utf8Path, image: &str, root: &Utf8Path) -> Result<(), RuntimeError> {
    let reference = image.strip_prefix(PREFIX).unwrap_or(image);
    let failed = |cause: String| RuntimeError::Other(format!("image {reference:?}: {cause}"));
    check(store, image)?;
    let Some(place) = locate(store, reference) else {
        return Native.create_dir_all(root).map_err(file_error);
    };
    // What a start that was cut short has left.
    Native.remove_tree(root).map_err(file_error)?;
    if Native.metadata(&place).map_err(file_error)?.kind == Kind::Dir {
        return Native
            .copy_tree(&place, root, How::Copy)
            .map_err(file_error);
    }
    let job = Extraction {
        destination: root.to_owned(),
        target: Native.os(),
        limits: limits(),
    };
    let open =
        |path: &Utf8Path| fs_err::File::open(path).map_err(|error| failed(error.to_string()));
    let mut archive = open(&place)?;
    let unpacked = if place.extension() == Some("zip") {
        extract_zip(&Native, archive, &job)
    } else {
        let bytes = archive.metadata().ok().map(|found| found.len());
        extract_tar(&Native, &mut archive, bytes, &job)
    };
    unpacked.map(|_| ()).map_err(|error| failed(chain(&error)))
}

fn locate(store: &Utf8Path, reference: &str) -> Option<Utf8PathBuf> {
    let name = encode(reference);
    if reference.is_empty() || reference.starts_with('.') {
        return None;
    }
    let mut places = FORMS.iter().map(|form| store.join(format!("{name}{form}")));
    places.find(|place| {
        Native
            .metadata(place)
            .is_ok_and(|found| found.kind != Kind::Link)
    })
}

fn describe(place: &Utf8Path, reference: &str) -> Result<Image, RuntimeError> {
    Ok(Image {
        id: format!("{PREFIX}{reference}"),
        tags: vec![reference.to_owned()],
        size: size(place, DEEPEST).map_err(file_error)?,
        ..host()
    }
    .unpinned())
}

impl Image {
    fn unpinned(self) -> Self {
        Self {
            pinned: false,
            ..self
        }
    }
}

fn size(place: &Utf8Path, depth: usize) -> Result<u64, FileError> {
    let found = Native.metadata(place)?;
    if found.kind != Kind::Dir || depth == 0 {
        return Ok(found.length);
    }
    let mut sum = 0;
    for entry in Native.list(place)? {
        sum += match entry.metadata.kind {
            Kind::Dir => size(&entry.path, depth - 1)?,
            _ => entry.metadata.length,
        };
    }
    Ok(sum)
}

/// The node itself: always there, never removed.
fn host() -> Image {
    Image {
        id: HOST.to_owned(),
        tags: vec![HOST.to_owned()],
        os: match Native.os() {
            Os::Linux => "linux",
            Os::Windows => "windows",
        }
        .to_owned(),
        architecture: match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }
        .to_owned(),
        pinned: true,
        ..Image::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_becomes_a_name_and_comes_back() {
        for reference in [
            "registry.example:5000/a/b:1.2",
            "ü@sha256:0f",
            "..",
            "%25",
            "plain",
        ] {
            let name = encode(reference);
            assert!(!name.contains(['/', ':', '\\']), "{name}");
            assert_eq!(decode(&name).as_deref(), Some(reference));
        }
        assert_eq!(decode("%zz"), None);
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn only_names_that_say_so_mean_the_node() {
        let guard = tempfile::tempdir().unwrap();
        let store = Utf8Path::from_path(guard.path()).unwrap();
        for name in [
            "host",
            "transom.dev/host:1",
            "transom.dev/host",
            "transom.dev/transom:0.1.0",
            "transom.dev/host@sha256:0f",
        ] {
            assert_eq!(find(store, name), Some(host()), "{name}");
        }
        let root = store.join("root");
        for name in [
            "nginx:1.27",
            "docker.io/library/host:1",
            "transom.dev/hosts:1",
            "host:1",
            "example.org/transom.dev/host:1",
        ] {
            assert_eq!(find(store, name), None, "{name}");
            let refused = pull(store, name).unwrap_err().to_string();
            assert!(refused.contains("transom.dev/host:1"), "{refused}");
            let refused = unpack(store, name, &root);
            assert!(matches!(refused, Err(RuntimeError::ImageMissing { .. })));
            assert!(!root.exists());
        }
    }

    #[test]
    fn a_container_gets_a_copy_of_a_folder_and_nothing_of_the_node() {
        let guard = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(guard.path()).unwrap();
        let (store, root) = (top.join("store"), top.join("root"));
        fs_err::create_dir_all(store.join("tools%3a1/bin")).unwrap();
        fs_err::write(store.join("tools%3a1/bin/x"), "12345").unwrap();
        let image = find(&store, "tools:1").unwrap();
        assert_eq!(
            (image.id.as_str(), image.size, image.pinned),
            ("image:tools:1", 5, false)
        );
        assert_eq!(find(&store, &image.id).as_ref(), Some(&image));
        assert_eq!(list(&store).unwrap(), [host(), image.clone()]);
        for _ in 0..2 {
            unpack(&store, &image.id, &root).unwrap();
            fs_err::write(root.join("bin/x"), "changed").unwrap();
        }
        let kept = fs_err::read_to_string(store.join("tools%3a1/bin/x")).unwrap();
        assert_eq!(kept, "12345");
        remove(&store, &image.id).unwrap();
        remove(&store, &image.id).unwrap();
        let gone = unpack(&store, &image.id, &root);
        assert!(matches!(gone, Err(RuntimeError::ImageMissing { .. })));
        unpack(&store, HOST, &top.join("empty")).unwrap();
        assert_eq!(fs_err::read_dir(top.join("empty")).unwrap().count(), 0);
    }
}
