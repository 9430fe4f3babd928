//! The test binary as another process, which dies at a point of its work that its parent chose.

use std::process::{Command, Stdio};

use camino::Utf8Path;
use transom_host::files::fault;

use crate::site::{EXPIRY, Site, now};

const ROLE: &str = "TRANSOM_TEST_ROLE";
const PATH: &str = "TRANSOM_TEST_PATH";

/// A process that does `role` at the site in `path`.
pub(crate) fn command(role: &str, path: &Utf8Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command
        .args([
            "--exact",
            "child::plays_the_role_it_was_given",
            "--nocapture",
        ])
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[expect(
    clippy::disallowed_methods,
    reason = "how a child of this binary learns its role"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Not a test of its own: without a role there is nothing to play.
#[tokio::test]
async fn plays_the_role_it_was_given() {
    let (Some(role), Some(path)) = (variable(ROLE), variable(PATH)) else {
        return;
    };
    let site = Site::at(Utf8Path::new(&path));
    let keys = site.keys();
    fault::arm_from_environment().expect("a plan");
    play(&role, &site, &keys).await;
}

/// Does what a command would do.
pub(crate) async fn play(role: &str, site: &Site, keys: &transom_package::repository::KeyRing) {
    match role {
        "add" => {
            let additions = [
                crate::site::addition(&site.root.join("new--1.tar.zst")),
                crate::site::addition(&site.root.join("new--1.zip")),
            ];
            let mut editor = site.editor().await;
            editor
                .add(&additions, keys, EXPIRY, &|_| ())
                .await
                .expect("added");
        }
        "sign" => {
            let mut editor = site.editor().await;
            editor.renew(keys, EXPIRY).await.expect("renewed");
        }
        "rotate" => {
            use transom_package::repository::{Keyholders, RoleType, RootChange, SigningKey};
            let path = site.key_folder().join("timestamp-new-1.pem");
            let new = [SigningKey::load(&path).expect("a key")];
            let holders = Keyholders::default().with(RoleType::Timestamp, &new, 1);
            let mut editor = site.editor().await;
            editor
                .change_root(&RootChange::Keys(holders), keys, EXPIRY)
                .await
                .expect("changed");
        }
        "import" => {
            site.import(&site.root.join("bundle"), Some(&site.pin()), now())
                .await
                .expect("imported");
        }
        "fetch" => {
            let client = site.reader("node").await.expect("read");
            client
                .fetch(
                    &crate::site::id("old--1"),
                    transom_model::Os::Linux,
                    &site.root.join("fetched").join("archive"),
                    &|_| (),
                )
                .await
                .expect("fetched");
        }
        other => panic!("no role `{other}`"),
    }
}
