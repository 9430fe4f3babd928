//! What a server says of itself when its store fails under it.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use camino::Utf8Path;
use http::Request;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;
use transom_api::{
    Api, Guard, Settings,
    access::authentication::{User, group},
    http::router_as,
    storage::Codec,
};
use transom_store::{
    Entry, Health, LeaseId, Memory, Outcome, Page, Pending, Range, Revision, Store, Transaction,
    Watch,
};

/// A store that can be said to have failed.
#[derive(Debug)]
struct Fragile {
    store: Memory,
    health: Health,
}

impl Store for Fragile {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        self.store.get(key)
    }

    fn list(&self, range: Range) -> Pending<'_, Page> {
        self.store.list(range)
    }

    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        self.store.commit(transaction)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Pending<'_, Watch> {
        self.store.watch(prefix, after)
    }

    fn revision(&self) -> Pending<'_, Revision> {
        self.store.revision()
    }

    fn compact(&self, revision: Revision) -> Pending<'_, ()> {
        self.store.compact(revision)
    }

    fn grant(&self, length: Duration) -> Pending<'_, LeaseId> {
        self.store.grant(length)
    }

    fn renew(&self, lease: LeaseId) -> Pending<'_, ()> {
        self.store.renew(lease)
    }

    fn revoke(&self, lease: LeaseId) -> Pending<'_, ()> {
        self.store.revoke(lease)
    }

    fn health(&self) -> Health {
        self.health.clone()
    }

    fn backup<'a>(&'a self, file: &'a Utf8Path) -> Pending<'a, Revision> {
        self.store.backup(file)
    }
}

#[tokio::test]
async fn a_server_whose_store_failed_is_neither_ready_nor_alive_and_says_why() {
    let (latch, health) = Health::new();
    let store = Memory::new();
    let (api, _feed) = Api::open(
        Arc::new(Fragile { store, health }),
        Arc::new(Codec::default()),
        Settings::default(),
        Arc::new(jiff::Timestamp::now),
        Arc::new(Guard::default()),
    )
    .await
    .unwrap();
    let user = User::authenticated("admin", vec![group::MASTERS.to_owned()]);
    let router = router_as(api, user);
    let ask = async |path: &str| {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    };
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(ask(path).await, (200, "ok".to_owned()), "{path}");
    }
    latch.fail("the disk is gone");
    for path in ["/livez", "/readyz", "/healthz"] {
        let (code, text) = ask(path).await;
        assert_eq!(code, 500, "{path}");
        assert!(text.contains("failed: the disk is gone"), "{text}");
        assert_eq!(ask(&format!("{path}/store")).await.0, 500, "{path}");
        assert_eq!(ask(&format!("{path}/ping")).await.0, 200, "{path}");
        let others = ask(&format!("{path}?exclude=store")).await;
        assert_eq!(others, (200, "ok".to_owned()), "{path}");
    }
    assert_eq!(
        ask("/livez?exclude=store&verbose").await.1,
        "[+]ping ok\n[+]store excluded: ok\nlivez check passed\n"
    );
}
