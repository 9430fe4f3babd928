//! Anything at all is fed to the readers of metadata and of bundles: they refuse, and never panic.

use proptest::prelude::*;
use transom_package::repository::{PackageListId, parse_metadata, read_bundle};

/// JSON that is nearly metadata.
fn nearly_metadata() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("_type"),
        Just("signed"),
        Just("signatures"),
        Just("targets"),
        Just("version"),
        Just("expires"),
        Just("meta"),
        Just("keys"),
        Just("roles"),
        Just("custom"),
        Just("length"),
        Just("hashes"),
        Just("sha256"),
        Just("root"),
        Just("kind"),
        Just("package"),
        Just("spec_version"),
        Just("packages/../x"),
        Just("keyids"),
    ];
    let leaf = prop_oneof![
        Just(serde_json::json!(null)),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        "[ -~]{0,12}".prop_map(serde_json::Value::from),
        word.clone().prop_map(serde_json::Value::from),
        Just(serde_json::json!("2026-11-16T00:00:00Z")),
    ];
    let value = leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::hash_map(word.clone(), inner, 0..6).prop_map(|fields| {
                let fields: serde_json::Map<String, serde_json::Value> = fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect();
                serde_json::Value::Object(fields)
            }),
        ]
    });
    value.prop_map(|value| value.to_string().into_bytes())
}

/// Real metadata with some bytes changed.
const ROOT: &str = r#"{"signatures":[{"keyid":"aa","sig":"bb"}],"signed":{"_type":"targets","spec_version":"1.0.0","version":1,"expires":"2026-11-16T00:00:00Z","targets":{"packages/a/a--1.zip":{"length":1,"hashes":{"sha256":"aa"},"custom":{"kind":"package","id":"a--1","os":"windows"}}}}}"#;

proptest! {
    #[test]
    fn any_bytes_are_no_metadata(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse_metadata(&bytes).is_err());
    }

    #[test]
    fn nearly_metadata_never_panics(bytes in nearly_metadata()) {
        let _ = parse_metadata(&bytes);
    }

    #[test]
    fn changed_metadata_never_panics(at in 0..ROOT.len(), byte in any::<u8>()) {
        let mut bytes = ROOT.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = parse_metadata(&bytes);
    }

    #[test]
    fn any_bytes_are_no_bundle(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read_bundle(bytes.as_slice()).is_err());
    }

    #[test]
    fn any_entries_are_no_bundle(
        entries in prop::collection::vec(("[a-z./]{1,30}", any::<u8>(), any::<u16>()), 0..5),
        index in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        if index {
            let text = br#"{"format":1,"metadata":["1.root.json"],"blobs":["ab"]}"#;
            bytes.extend(entry("bundle.json", b'0', text.len() as u64, text));
        }
        for (name, kind, size) in entries {
            bytes.extend(entry(&name, kind, u64::from(size), b"some content"));
        }
        prop_assert!(read_bundle(bytes.as_slice()).is_err());
    }

    #[test]
    fn only_forty_digits_name_a_list(text in "\\PC{0,45}") {
        let good = text.len() == 40 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        prop_assert_eq!(text.parse::<PackageListId>().is_ok(), good);
    }
}

fn entry(name: &str, kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_ustar_mut().expect("ustar").name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_ustar_mut().expect("ustar").typeflag = [kind];
    header.set_size(size);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[test]
fn deep_json_is_refused() {
    for text in ["[".repeat(100_000), "{\"signed\":".repeat(100_000)] {
        parse_metadata(text.as_bytes()).expect_err("too deep");
    }
}
