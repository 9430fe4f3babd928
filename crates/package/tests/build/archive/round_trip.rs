//! What is packed comes back, and packing depends on nothing but the content.

use transom_host::files::{Files, Kind};
use transom_model::Os;
use transom_package::archive::{Format, MANIFEST, SBOM, Unpack, extension, read_manifest};

use super::{Place, chain, id};

/// On any machine, of either system. A change of these is a change of every archive there is.
const LINUX_SHA256: &str = "958abffe88fe4badbbf3609a72ecbcb3979ef3fa2ab64af028d51e9f40189c94";
const WINDOWS_SHA256: &str = "4f1578fabe412f51da88fe368e3e661e87b00a29459d9aa24afefdcaa66808b2";

#[test]
fn a_package_comes_back_as_it_was_packed() {
    for os in [Os::Linux, Os::Windows] {
        let place = Place::new();
        place.sample("in");
        let packed = place.pack("in", os, "archive").unwrap();
        let unpacked = place.unpack_as("archive", &Unpack::of(&id())).unwrap();
        assert_eq!(unpacked.manifest.as_ref(), Some(&packed.manifest));
        assert_eq!(
            read_manifest(&place.path("archive")).unwrap(),
            packed.manifest
        );
        for path in ["bin/tool", "lib/data.bin", "lib/data/ä b.txt"] {
            assert_eq!(
                fs_err::read(place.path("out").join(path)).unwrap(),
                fs_err::read(place.path("in").join(path)).unwrap(),
                "{path}"
            );
        }
        let empty = place.files.metadata(&place.path("out/empty")).unwrap();
        assert_eq!(empty.kind, Kind::Dir);
        for name in [MANIFEST, SBOM, "pkginfo.json", "buildinfo.full.json"] {
            assert!(place.files.metadata(&place.path("out").join(name)).is_ok());
        }
        assert!(!packed.manifest.entries.contains_key(MANIFEST));
        assert_eq!(
            fs_err::metadata(place.path("archive")).unwrap().len(),
            packed.size
        );
    }
}

#[test]
fn the_same_files_give_the_same_bytes_anywhere_and_at_any_time() {
    for (os, sha256) in [(Os::Linux, LINUX_SHA256), (Os::Windows, WINDOWS_SHA256)] {
        let place = Place::new();
        place.sample("first");
        let second = place.sample("elsewhere/second");
        // Another time than that of the first.
        let file = fs_err::File::options()
            .write(true)
            .open(second.join("bin/tool"))
            .unwrap();
        file.file()
            .set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        let first = place.pack("first", os, "a").unwrap();
        let second = place.pack("elsewhere/second", os, "b").unwrap();
        assert_eq!(first, second);
        assert_eq!(
            fs_err::read(place.path("a")).unwrap(),
            fs_err::read(place.path("b")).unwrap()
        );
        assert_eq!(first.sha256.to_string(), sha256, "{os}");
    }
}

#[test]
fn the_format_follows_the_system_that_the_package_is_for() {
    let place = Place::new();
    place.sample("in");
    for (os, format) in [(Os::Linux, Format::TarZstd), (Os::Windows, Format::Zip)] {
        let name = format!("archive.{}", extension(os));
        place.pack("in", os, &name).unwrap();
        let mut file = fs_err::File::open(place.path(&name)).unwrap();
        assert_eq!(Format::of(&mut file).unwrap(), format);
        assert_eq!(format.to_string(), extension(os));
    }
}

#[test]
fn names_that_windows_cannot_have_are_refused_when_packing_for_it() {
    // A Windows machine could not even make these.
    if Place::new().files.os() == Os::Windows {
        return;
    }
    for (path, reason) in [
        ("bin/aux.txt", "devices"),
        ("bin/a:b", "forbids"),
        ("bin/a.", "ends in a dot"),
        ("bin/a\\b", "forbids"),
        ("bin/TOOL", "case of its letters"),
    ] {
        let place = Place::new();
        place.write("in/bin/tool", "");
        place.write(&format!("in/{path}"), "");
        let error = place.pack("in", Os::Windows, "archive").unwrap_err();
        assert!(chain(&error).contains(reason), "{path}: {}", chain(&error));
        assert!(place.files.metadata(&place.path("archive")).is_err());
        // Linux has no problem with them.
        place.pack("in", Os::Linux, "archive").unwrap();
        place.unpack("archive").unwrap();
    }
}

#[test]
fn what_packing_adds_cannot_be_there_before() {
    for name in [MANIFEST, SBOM, "pkginfo.json", "buildinfo.full.json"] {
        let place = Place::new();
        place.write(&format!("in/{name}"), "{}");
        let error = place.pack("in", Os::Linux, "archive").unwrap_err();
        assert!(error.to_string().contains("kept"), "{error}");
    }
}

#[test]
fn an_archive_that_is_there_is_not_overwritten() {
    let place = Place::new();
    place.sample("in");
    place.write("archive", "precious");
    let error = place.pack("in", Os::Linux, "archive").unwrap_err();
    assert!(chain(&error).contains("cannot be written"), "{error}");
    assert_eq!(fs_err::read(place.path("archive")).unwrap(), b"precious");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn modes_are_normal_whatever_they_were() {
        let place = Place::new();
        place.write("in/bin/tool", "");
        place.write("in/bin/text", "");
        let set = |path: &str, mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            fs_err::set_permissions(place.path(path), permissions).unwrap();
        };
        set("in/bin/tool", 0o4700);
        set("in/bin/text", 0o666);
        set("in/bin", 0o777);
        place.pack("in", Os::Linux, "archive").unwrap();
        place.unpack("archive").unwrap();
        let mode = |path: &str| place.files.metadata(&place.path(path)).unwrap().mode;
        assert_eq!(mode("out/bin/tool"), Some(0o755));
        assert_eq!(mode("out/bin/text"), Some(0o644));
        assert_eq!(mode("out/bin"), Some(0o755));
    }

    #[test]
    fn links_stay_links_and_do_not_depend_on_the_place() {
        let place = Place::new();
        place.write("in/lib/deep/tool", "content");
        fs_err::create_dir_all(place.path("in/bin")).unwrap();
        let home = "/opt/mesosphere/packages/tool";
        for (target, link) in [
            ("../lib/deep/tool", "in/bin/relative"),
            (&format!("{home}/lib/deep/tool"), "in/bin/absolute"),
            (home, "in/bin/home"),
            ("nowhere", "in/bin/broken"),
        ] {
            symlink(target, place.path(link)).unwrap();
        }
        place.pack("in", Os::Linux, "archive").unwrap();
        place.unpack("archive").unwrap();
        let target = |path: &str| place.files.read_link(&place.path(path)).unwrap();
        assert_eq!(target("out/bin/relative"), "../lib/deep/tool");
        assert_eq!(target("out/bin/absolute"), "../lib/deep/tool");
        assert_eq!(target("out/bin/home"), "../");
        assert_eq!(target("out/bin/broken"), "nowhere");
        let content = fs_err::read(place.path("out/bin/absolute")).unwrap();
        assert_eq!(content, b"content");
    }

    #[test]
    fn links_out_of_the_package_and_links_for_windows_are_refused() {
        for (target, os, reason) in [
            ("/etc/passwd", Os::Linux, "not in the package"),
            ("../../x", Os::Linux, "not in the package"),
            ("tool", Os::Windows, "links are not possible"),
        ] {
            let place = Place::new();
            place.write("in/bin/tool", "");
            symlink(target, place.path("in/bin/link")).unwrap();
            let error = place.pack("in", os, "archive").unwrap_err();
            assert!(chain(&error).contains(reason), "{}", chain(&error));
        }
    }

    #[test]
    fn what_is_no_content_and_what_is_no_text_is_refused() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let place = Place::new();
        fs_err::create_dir_all(place.path("in")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.path("in/socket")).unwrap();
        let error = place.pack("in", Os::Linux, "archive").unwrap_err();
        assert!(chain(&error).contains("not content"), "{}", chain(&error));

        let place = Place::new();
        fs_err::create_dir_all(place.path("in")).unwrap();
        let name = OsStr::from_bytes(b"a\xff");
        fs_err::write(place.path("in").as_std_path().join(name), "").unwrap();
        let error = place.pack("in", Os::Linux, "archive").unwrap_err();
        assert!(chain(&error).contains("not Unicode"), "{}", chain(&error));
    }
}
