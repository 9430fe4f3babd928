//! What images are for, seen without getting them.

use transom_model::images::ImagePlatform;

use super::*;
use crate::images::{Description, Seen};

fn platform(os: &str, version: Option<&str>) -> Vec<ImagePlatform> {
    vec![ImagePlatform {
        os: os.to_owned(),
        architecture: "amd64".to_owned(),
        os_version: version.map(str::to_owned),
    }]
}

fn image(seen: Seen) -> Description {
    match seen {
        Seen::Image(description) => description,
        Seen::Same => panic!("nothing was known"),
    }
}

#[tokio::test]
async fn an_index_says_what_its_images_are_for_and_a_single_image_in_its_configuration() {
    let registry = Registry::start(&[Trouble::OtherPlatform]).await;
    let registries = Registries::default();
    let at = |tag: &str| format!("{}/team/app{tag}", registry.address);
    let index = image(
        registries
            .look(&at(":1"), &[], None)
            .await
            .expect("an index"),
    );
    assert_eq!(index.platforms, platform("windows", Some("10.0.20348.1")));
    let single = image(
        registries
            .look(&at(":single"), &[], None)
            .await
            .expect("a manifest"),
    );
    assert_eq!(single.platforms, platform("linux", None));
    assert_ne!(single.digest, index.digest);
    let fixed = at(&format!("@{}", single.digest));
    let by_digest = image(
        registries
            .look(&fixed, &[], None)
            .await
            .expect("a manifest"),
    );
    assert_eq!(by_digest, single);
    assert_eq!(registry.bytes_of_layers(), 0, "no layer is needed for that");
}

#[tokio::test]
async fn what_is_known_by_its_digest_is_not_read_again() {
    let registry = Registry::start(&[]).await;
    let registries = Registries::default();
    let name = format!("{}/team/app:1", registry.address);
    let found = image(registries.look(&name, &[], None).await.expect("an image"));
    let again = registries.look(&name, &[], Some(&found.digest)).await;
    assert_eq!(again.expect("an answer"), Seen::Same);
    let other = format!("sha256:{}", "0".repeat(64));
    let again = registries.look(&name, &[], Some(&other)).await;
    assert_eq!(again.expect("an answer"), Seen::Image(found));
}

#[tokio::test]
async fn a_look_needs_the_same_credentials_as_a_pull_and_tells_what_went_wrong() {
    let registry = Registry::start(&[Trouble::NeedsPassword]).await;
    let registries = Registries::default();
    let name = format!("{}/team/app:1", registry.address);
    let login = |password: &str| Credentials::Password {
        user: "me".to_owned(),
        password: password.to_owned(),
    };
    let refused = registries.look(&name, &[login("wrong")], None).await;
    let text = refused.expect_err("no right").to_string();
    assert!(text.contains(&name), "{text}");
    assert!(!text.contains("wrong"), "a secret is told: {text}");
    let logins = [login("wrong"), login("right")];
    image(
        registries
            .look(&name, &logins, None)
            .await
            .expect("an image"),
    );
    let missing = format!("{}/team/app:2", registry.address);
    assert!(registries.look(&missing, &logins, None).await.is_err());
    let bad = registries.look("UPPER CASE", &[], None).await;
    assert!(matches!(bad, Err(RuntimeError::InvalidReference { .. })));
}

#[tokio::test]
async fn a_node_describes_what_it_made_itself_and_what_it_cannot_run() {
    let registry = Registry::start(&[Trouble::OtherPlatform]).await;
    let store = Store::new();
    let images = store.open();
    let settings = ImageSettings::default();
    images
        .build("made.here/tool:1", &[], &settings, Timestamp::UNIX_EPOCH)
        .expect("an image");
    let made = images.describe(&pull_of("made.here/tool:1")).await;
    assert_eq!(made.expect("an image").platforms, platform("linux", None));
    let other = pull_of(&format!("{}/team/app:1", registry.address));
    images.pull(&other).await.expect_err("no platform");
    let other = images.describe(&other).await.expect("an image");
    assert_eq!(other.platforms, platform("windows", Some("10.0.20348.1")));
}
