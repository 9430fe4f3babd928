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
    let error = access.check_private(missing).unwrap_err();
    assert!(matches!(error, AccessError::Read { .. }), "{error}");
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
