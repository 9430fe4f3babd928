//! Messages that were touched, keys that come and go.

use camino::Utf8Path;
use transom_host::{
    access::fake::FakeAccess,
    files::{
        Access, Files,
        fake::FakeFiles,
        fault::{Place, Plan, arm_thread},
    },
};
use transom_model::os::Os;

use super::*;

const FILE: &str = "/data/pki/encryption.keys";
const NAME: &str = "/registry/secrets/ns/name";

fn ring(files: &FakeFiles) -> Result<KeyRing, RingError> {
    let permissions = FakeAccess::default();
    permissions.add_file("/data/pki");
    KeyRing::ensure(files, &permissions, Utf8Path::new(FILE))
}

fn read(files: &FakeFiles) -> Vec<u8> {
    files.read(Utf8Path::new(FILE), 1 << 20).unwrap()
}

#[test]
fn what_was_sealed_opens_after_a_restart() {
    let files = FakeFiles::new(Os::Linux);
    let stored = Sealer::new(ring(&files).unwrap())
        .seal(NAME, b"top")
        .unwrap();
    assert!(!stored.windows(3).any(|window| window == b"top"));
    files.crash();
    let again = Sealer::new(ring(&files).unwrap());
    assert_eq!(again.open(NAME, &stored).unwrap(), b"top");
    let empty = again.seal(NAME, b"").unwrap();
    assert_eq!(again.open(NAME, &empty).unwrap(), b"");
    let mode = files.metadata(Utf8Path::new(FILE)).unwrap().mode;
    assert_eq!(mode, Some(0o600));
}

#[test]
fn any_change_of_a_bit_or_of_the_name_is_noticed() {
    let sealer = Sealer::new(ring(&FakeFiles::new(Os::Linux)).unwrap());
    let stored = sealer.seal(NAME, b"secret").unwrap();
    for index in 0..stored.len() {
        let mut changed = stored.clone();
        changed[index] ^= 1;
        let error = sealer.open(NAME, &changed).unwrap_err();
        match index {
            0..8 => assert_eq!(error, SealError::NotSealed),
            8..16 => assert!(matches!(error, SealError::UnknownKey { .. })),
            _ => assert_eq!(error, SealError::Tampered, "at {index}"),
        }
    }
    let elsewhere = sealer.open("/registry/secrets/ns/other", &stored);
    assert_eq!(elsewhere.unwrap_err(), SealError::Tampered);
    for length in 0..stored.len() {
        assert!(sealer.open(NAME, &stored[..length]).is_err(), "{length}");
    }
    assert_eq!(sealer.open(NAME, b"{}").unwrap_err(), SealError::NotSealed);
}

#[test]
fn the_same_secret_is_never_stored_as_the_same_bytes() {
    let sealer = Sealer::new(ring(&FakeFiles::new(Os::Linux)).unwrap());
    let first = sealer.seal(NAME, b"secret").unwrap();
    let second = sealer.seal(NAME, b"secret").unwrap();
    assert_ne!(first[16..48], second[16..48]);
    assert_ne!(first[HEADER_LENGTH..], second[HEADER_LENGTH..]);
}

#[test]
fn the_newest_key_writes_and_all_keys_read() {
    let files = FakeFiles::new(Os::Linux);
    let path = Utf8Path::new(FILE);
    let before = Sealer::new(ring(&files).unwrap());
    let old = before.seal(NAME, b"secret").unwrap();
    assert!(!before.needs_rewrite(&old));
    let rotated = ring(&files).unwrap().rotate(&files, path).unwrap();
    let sealer = Sealer::new(rotated);
    assert!(sealer.needs_rewrite(&old));
    assert!(sealer.needs_rewrite(b"plain") && !Sealer::is_sealed(b"plain"));
    let plain = sealer.open(NAME, &old).unwrap();
    let new = sealer.seal(NAME, &plain).unwrap();
    assert!(!sealer.needs_rewrite(&new) && Sealer::is_sealed(&new));
    let reread = Sealer::new(ring(&files).unwrap());
    assert_eq!(
        reread.open(NAME, &old).unwrap(),
        reread.open(NAME, &new).unwrap()
    );
    assert!(matches!(
        before.open(NAME, &new),
        Err(SealError::UnknownKey { .. })
    ));
    let retired = ring(&files).unwrap().retire(&files, path).unwrap();
    let sealer = Sealer::new(retired);
    assert_eq!(sealer.open(NAME, &new).unwrap(), b"secret");
    assert!(matches!(
        sealer.open(NAME, &old),
        Err(SealError::UnknownKey { .. })
    ));
}

#[test]
fn a_rotation_that_dies_leaves_the_old_keys_or_the_new() {
    for point in 1.. {
        let files = FakeFiles::new(Os::Linux);
        let stored = Sealer::new(ring(&files).unwrap()).seal(NAME, b"x").unwrap();
        let current = ring(&files).unwrap();
        let done = {
            let _plan = arm_thread(Plan::Halt(Place::Nth(point)));
            current.rotate(&files, Utf8Path::new(FILE)).is_ok()
        };
        files.crash();
        let sealer = Sealer::new(ring(&files).unwrap());
        assert_eq!(sealer.open(NAME, &stored).unwrap(), b"x", "died at {point}");
        if done {
            assert!(point > 3);
            return;
        }
    }
}

#[test]
fn a_damaged_file_is_an_error_and_stays_as_it_is() {
    let files = FakeFiles::new(Os::Linux);
    ring(&files).unwrap();
    let line = String::from_utf8(read(&files)).unwrap();
    for damage in [
        String::new(),
        "\n".to_owned(),
        line[..20].to_owned(),
        format!("{line}{line}"),
        format!("{line}nonsense\n"),
        line.replacen(' ', "  x", 1),
        format!("éé{}", &line[4..]),
    ] {
        let path = Utf8Path::new(FILE);
        files
            .write_durable(path, damage.as_bytes(), Access::Secret)
            .unwrap();
        let error = ring(&files).unwrap_err();
        assert!(
            matches!(error, RingError::Damaged { .. }),
            "{damage:?} {error:?}"
        );
        assert_eq!(read(&files), damage.as_bytes());
    }
}

#[test]
fn no_key_is_in_debug_output() {
    let files = FakeFiles::new(Os::Linux);
    let sealer = Sealer::new(ring(&files).unwrap());
    let shown = format!("{sealer:?}");
    let line = String::from_utf8(read(&files)).unwrap();
    let (id, secret) = line.trim().split_once(' ').unwrap();
    assert!(shown.contains(id) && !shown.contains(secret), "{shown}");
    assert!(shown.len() < 200, "{shown}");
}
