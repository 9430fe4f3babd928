//! New keys: who must sign, in which order, and what readers of all ages make of it.

use transom_model::Os;
use transom_package::repository::{
    EditError, Keyholders, RepositoryError, RoleType, RootChange, RootOutcome,
};

use crate::site::{EXPIRY, Site, later, now};

#[tokio::test]
async fn new_keys_take_over_and_old_readers_follow() {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    site.reader("old").await.expect("read");
    let holders = Keyholders::default()
        .with(RoleType::Root, &site.make_keys("root-new", 3), 2)
        .with(RoleType::Targets, &site.make_keys("targets-new", 1), 1)
        .with(RoleType::Timestamp, &site.make_keys("timestamp-new", 1), 1);
    let mut editor = site.editor().await;
    let outcome = editor
        .change_root(&RootChange::Keys(holders), &site.keys(), EXPIRY)
        .await
        .expect("changed");
    assert_eq!(outcome, RootOutcome::Published { version: 2 });
    editor.close();
    for old in ["root-1", "root-2", "targets-1", "targets-2", "timestamp-1"] {
        fs_err::remove_file(site.key_folder().join(format!("{old}.pem"))).expect("removed");
    }
    site.add_package("b--1", Os::Linux).await;
    for reader in ["old", "new"] {
        let client = site.reader(reader).await.expect("read");
        assert_eq!(client.packages().count(), 2);
    }
    assert_eq!(site.problems().await, []);
}

#[tokio::test]
async fn keys_that_were_taken_back_sign_nothing_any_more() {
    let site = Site::new().await;
    let old = site.some_keys(&["targets-1", "targets-2", "snapshot-1", "timestamp-1"]);
    let holders =
        Keyholders::default().with(RoleType::Timestamp, &site.make_keys("timestamp-new", 1), 1);
    let mut editor = site.editor().await;
    editor
        .change_root(&RootChange::Keys(holders), &site.keys(), EXPIRY)
        .await
        .expect("changed");
    let error = editor.renew(&old, EXPIRY).await.expect_err("taken back");
    assert!(
        matches!(
            error,
            EditError::TooFewKeys {
                role: RoleType::Timestamp,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_root_waits_until_enough_keys_from_anywhere_have_signed_it() {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    let new = site.make_keys("root-new", 2);
    let holders = Keyholders::default().with(RoleType::Root, &new, 2);
    let mut editor = site.editor().await;
    let outcome = editor
        .change_root(
            &RootChange::Keys(holders),
            &site.some_keys(&["root-1"]),
            EXPIRY,
        )
        .await
        .expect("waits");
    assert_eq!(
        outcome,
        RootOutcome::Waiting {
            version: 2,
            old: (1, 2),
            new: (0, 2)
        }
    );
    assert!(!site.metadata("2.root.json").exists());
    let error = editor
        .sign_root(&site.some_keys(&["snapshot-1"]), EXPIRY)
        .await
        .expect_err("of no use");
    assert!(matches!(error, EditError::UselessKeys), "{error}");
    for (key, done) in [
        ("root-2", false),
        ("root-new-1", false),
        ("root-new-2", true),
    ] {
        let outcome = editor
            .sign_root(&site.some_keys(&[key]), EXPIRY)
            .await
            .expect("signed");
        let published = matches!(outcome, RootOutcome::Published { version: 2 });
        assert_eq!(published, done, "{key}: {outcome:?}");
    }
    let error = editor
        .sign_root(&site.keys(), EXPIRY)
        .await
        .expect_err("done");
    assert!(matches!(error, EditError::NothingPending), "{error}");
    editor.close();
    assert_eq!(site.listed().await, ["a--1 linux"]);
    assert_eq!(site.problems().await, []);
}

#[tokio::test]
async fn a_root_is_renewed_before_it_expires() {
    let site = Site::new().await;
    let mut editor = site.editor_at(later(99)).await;
    editor.renew(&site.keys(), EXPIRY).await.expect("renewed");
    let error = site
        .read(&site.url(), "a", later(101))
        .await
        .expect_err("expired");
    assert!(
        matches!(
            error,
            RepositoryError::Expired {
                role: RoleType::Root,
                ..
            }
        ),
        "{error}"
    );
    editor
        .change_root(&RootChange::Nothing, &site.keys(), EXPIRY)
        .await
        .expect("renewed");
    editor.close();
    site.read(&site.url(), "a", later(101)).await.expect("read");
}

#[tokio::test]
async fn lost_keys_are_replaced_without_them() {
    let site = Site::new().await;
    site.add_package("a--1", Os::Linux).await;
    for lost in ["snapshot-1", "timestamp-1"] {
        fs_err::remove_file(site.key_folder().join(format!("{lost}.pem"))).expect("removed");
    }
    let online = site.make_keys("online-new", 1);
    let holders = Keyholders::default()
        .with(RoleType::Snapshot, &online, 1)
        .with(RoleType::Timestamp, &online, 1);
    let mut editor = site.editor().await;
    editor
        .change_root(&RootChange::Keys(holders), &site.keys(), EXPIRY)
        .await
        .expect("changed");
    editor.close();
    assert_eq!(site.listed().await, ["a--1 linux"]);
}

#[tokio::test]
async fn a_threshold_that_cannot_be_reached_is_refused() {
    let site = Site::new().await;
    let keys = site.make_keys("new", 2);
    for threshold in [0, 3] {
        let holders = Keyholders::default().with(RoleType::Root, &keys, threshold);
        let mut editor = site.editor().await;
        let error = editor
            .change_root(&RootChange::Keys(holders), &site.keys(), EXPIRY)
            .await
            .expect_err("impossible");
        assert!(matches!(error, EditError::Threshold { .. }), "{error}");
        editor.close();
    }
    site.read(&site.url(), "a", now()).await.expect("unchanged");
}
