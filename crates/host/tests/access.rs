//! What access promises, on this machine's backend and on the fake.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::fake::FakeAccess;
use transom_host::access::{Access, AccessError, Native, Privacy, Restricted};

/// A place for files of one test, gone afterwards.
fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

/// Restricting either makes the file private for all to see, or says that it could not be seen.
fn restricting_is_seen_or_reported(access: &dyn Access, path: &Utf8Path) {
    match access.restrict_to_owner(path).unwrap() {
        Restricted::Verified => {
            assert_eq!(access.check_private(path).unwrap(), Privacy::Private);
            assert_eq!(access.check_unchangeable(path).unwrap(), Privacy::Private);
        }
        Restricted::NotVerified { why } => {
            assert!(!why.is_empty());
            assert_ne!(access.check_private(path).unwrap(), Privacy::Private);
        }
    }
    // Twice equals once.
    let first = access.check_private(path).unwrap();
    let _ = access.restrict_to_owner(path).unwrap();
    assert_eq!(access.check_private(path).unwrap(), first);
}

fn a_missing_file_is_an_error_with_its_path(access: &dyn Access, missing: &Utf8Path) {
    let error = access.restrict_to_owner(missing).unwrap_err();
    assert!(error.to_string().contains(missing.as_str()), "{error}");
    for error in [
        access.check_private(missing).unwrap_err(),
        access.check_unchangeable(missing).unwrap_err(),
    ] {
        assert!(matches!(error, AccessError::Read { .. }), "{error}");
    }
}

fn the_current_user_is_found_by_name(access: &dyn Access) {
    let current = access.current_account().unwrap();
    assert!(!current.name.is_empty());
    assert_eq!(access.account(&current.name).unwrap(), current);
}

fn an_unknown_user_is_named_in_the_error(access: &dyn Access) {
    let error = access.account("no-such-user-of-transom").unwrap_err();
    assert!(
        matches!(&error, AccessError::NoSuchUser { name } if name == "no-such-user-of-transom")
    );
    assert!(matches!(
        access.account(""),
        Err(AccessError::NoSuchUser { .. })
    ));
}

/// A folder is made for its owner, twice as once, and only below its base.
fn a_folder_is_made_below_its_base_only(access: &dyn Access, base: &Utf8Path, file: &str) {
    let owner = access.current_account().unwrap();
    for _ in 0..2 {
        for owner in [None, Some(&owner)] {
            let name = Utf8Path::new("between/inside");
            access.ensure_folder(base, name, owner, 0o750).unwrap();
        }
    }
    for bad in ["", ".", "..", "a/../..", "../a", "/a", "./a"] {
        let error = access
            .ensure_folder(base, Utf8Path::new(bad), None, 0o755)
            .unwrap_err();
        assert!(matches!(error, AccessError::NotBelow { .. }), "{bad}");
    }
    let below_file = Utf8PathBuf::from(format!("{file}/below"));
    for bad in [Utf8Path::new(file), &below_file] {
        let error = access.ensure_folder(base, bad, None, 0o755).unwrap_err();
        assert!(matches!(error, AccessError::Folder { .. }), "{bad} {error}");
        assert!(error.to_string().contains(file), "{error}");
    }
}

fn a_group_is_known_by_number_or_not_at_all(access: &dyn Access) {
    match access.group("4000000001") {
        Ok(number) => assert_eq!(number, 4_000_000_001),
        Err(error) => assert!(matches!(error, AccessError::GroupsNotSupported { .. })),
    }
    let error = access.group("no-such-group-of-transom").unwrap_err();
    assert!(error.to_string().contains("no-such-group-of-transom"));
    assert!(access.group("").is_err());
}

#[test]
fn this_machine_keeps_the_promises_of_access() {
    let (_keep, folder) = folder();
    let file = folder.join("secret key ✓");
    fs_err::write(&file, "secret").unwrap();
    let below = folder.join("secrets");
    fs_err::create_dir(&below).unwrap();

    restricting_is_seen_or_reported(&Native, &file);
    restricting_is_seen_or_reported(&Native, &below);
    assert_eq!(
        fs_err::read_to_string(&file).unwrap(),
        "secret",
        "the owner still reads it"
    );
    fs_err::write(below.join("inside"), "").unwrap();

    a_missing_file_is_an_error_with_its_path(&Native, &folder.join("missing"));
    the_current_user_is_found_by_name(&Native);
    an_unknown_user_is_named_in_the_error(&Native);
    let base = folder.join("base");
    fs_err::create_dir(&base).unwrap();
    fs_err::write(base.join("a-file"), "").unwrap();
    a_folder_is_made_below_its_base_only(&Native, &base, "a-file");
    assert!(base.join("between").join("inside").is_dir());
    a_group_is_known_by_number_or_not_at_all(&Native);
    Native.is_elevated().unwrap();
}

#[test]
fn the_fake_keeps_the_promises_of_access() {
    let access = FakeAccess::default();
    let file = Utf8Path::new("/etc/transom/key");
    access.add_file(file);
    assert!(matches!(
        access.check_private(file).unwrap(),
        Privacy::Exposed { .. }
    ));
    restricting_is_seen_or_reported(&access, file);
    a_missing_file_is_an_error_with_its_path(&access, Utf8Path::new("/missing"));
    the_current_user_is_found_by_name(&access);
    an_unknown_user_is_named_in_the_error(&access);
    access.add_file("/base/a-file");
    a_folder_is_made_below_its_base_only(&access, Utf8Path::new("/base"), "a-file");
    let (owner, mode) = access.folder("/base/between/inside".into()).unwrap();
    assert_eq!((owner.name.as_str(), mode), ("root", 0o750));
    a_group_is_known_by_number_or_not_at_all(&access);
    access.add_group("adm", 4);
    assert_eq!(access.group("adm").unwrap(), 4);
    assert!(access.is_elevated().unwrap());
    access.set_elevated(false);
    assert!(!access.is_elevated().unwrap());
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use transom_host::access::AccountId;

    use super::*;

    fn mode(path: &Utf8Path) -> u32 {
        fs_err::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_become_0600_and_folders_0700() {
        let (_keep, folder) = folder();
        let file = folder.join("key");
        fs_err::write(&file, "").unwrap();
        fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(
            Native.check_private(&file).unwrap(),
            Privacy::Exposed {
                who: vec![
                    format!("group {}", rustix::process::getegid().as_raw()),
                    "everyone".to_owned()
                ]
            }
        );
        assert_eq!(
            Native.restrict_to_owner(&file).unwrap(),
            Restricted::Verified
        );
        assert_eq!(mode(&file), 0o600);
        assert_eq!(
            Native.restrict_to_owner(&folder).unwrap(),
            Restricted::Verified
        );
        assert_eq!(mode(&folder), 0o700);
    }

    #[test]
    fn a_folder_that_others_only_read_is_unchangeable() {
        let (_keep, folder) = folder();
        for (bits, is_private) in [
            (0o755, true),
            (0o775, false),
            (0o757, false),
            (0o1777, false),
        ] {
            fs_err::set_permissions(&folder, std::fs::Permissions::from_mode(bits)).unwrap();
            let found = Native.check_unchangeable(&folder).unwrap();
            assert_eq!(found == Privacy::Private, is_private, "{bits:o} {found:?}");
        }
    }

    #[test]
    fn a_link_is_refused_and_its_target_left_alone() {
        let (_keep, folder) = folder();
        let target = folder.join("target");
        fs_err::write(&target, "").unwrap();
        fs_err::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).unwrap();
        let link = folder.join("link");
        symlink(&target, &link).unwrap();
        assert!(matches!(
            Native.restrict_to_owner(&link),
            Err(AccessError::Link { .. })
        ));
        assert!(matches!(
            Native.check_private(&link),
            Err(AccessError::Link { .. })
        ));
        assert_eq!(mode(&target), 0o644);
    }

    #[test]
    fn a_folder_gets_its_owner_and_mode_and_those_between_stay_ours() {
        use std::os::unix::fs::MetadataExt as _;
        let (_keep, folder) = folder();
        let mut owner = Native.current_account().unwrap();
        if rustix::process::geteuid().is_root() {
            owner = Native.account("4000000001").unwrap();
            let AccountId::Unix { gid, .. } = &mut owner.id else {
                panic!("not an account of Linux");
            };
            *gid = 4_000_000_002;
        }
        let AccountId::Unix { uid, gid, .. } = owner.id else {
            panic!("not an account of Linux");
        };
        let name = Utf8Path::new("a/b");
        Native
            .ensure_folder(&folder, name, Some(&owner), 0o2710)
            .unwrap();
        let made = fs_err::metadata(folder.join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (uid, gid));
        assert_eq!(mode(&folder.join(name)), 0o2710);
        let between = fs_err::metadata(folder.join("a")).unwrap();
        assert_eq!(between.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(mode(&folder.join("a")), 0o755);
        // And back again, when the service has no user any more.
        Native.ensure_folder(&folder, name, None, 0o700).unwrap();
        let made = fs_err::metadata(folder.join(name)).unwrap();
        assert_eq!(made.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(mode(&folder.join(name)), 0o700);
    }

    #[test]
    fn no_link_is_followed_on_the_way_to_a_folder() {
        let (_keep, folder) = folder();
        let target = folder.join("target");
        fs_err::create_dir(&target).unwrap();
        fs_err::set_permissions(&target, std::fs::Permissions::from_mode(0o711)).unwrap();
        symlink(&target, folder.join("link")).unwrap();
        for name in ["link", "link/inside"] {
            let result = Native.ensure_folder(&folder, Utf8Path::new(name), None, 0o777);
            assert!(matches!(result, Err(AccessError::Folder { .. })), "{name}");
        }
        assert_eq!(mode(&target), 0o711);
        assert!(!target.join("inside").exists());
    }

    #[test]
    fn a_number_without_an_entry_is_a_user_too() {
        let account = Native.account("4000000001").unwrap();
        assert!(matches!(
            account.id,
            AccountId::Unix {
                uid: 4_000_000_001,
                ..
            }
        ));
    }
}

#[cfg(windows)]
mod windows {
    use transom_host::access::AccountId;

    use super::*;

    #[test]
    fn the_system_account_is_found_by_its_sid() {
        let account = Native.account("S-1-5-18").unwrap();
        assert_eq!(
            account.id,
            AccountId::Windows {
                sid: "S-1-5-18".to_owned()
            }
        );
        assert!(!account.name.is_empty());
        assert!(Native.account("S-1-nonsense").is_err());
    }

    #[test]
    #[ignore = "needs real Windows: Wine drops access lists"]
    fn a_restricted_file_is_verified_as_private() {
        let (_keep, folder) = folder();
        let file = folder.join("key");
        fs_err::write(&file, "").unwrap();
        assert_eq!(
            Native.restrict_to_owner(&file).unwrap(),
            Restricted::Verified
        );
        assert_eq!(Native.check_private(&file).unwrap(), Privacy::Private);
    }
}
