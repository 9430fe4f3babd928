//! What watches tell, and what compaction takes from them.

use futures::{FutureExt, StreamExt};
use transom_store::{Range, Revision, StoreError};

use crate::support::{
    Shared, commit, delete, delete_write, events_until, list, pairs, put, put_write, told, writes,
};

pub(crate) async fn a_watch_sees_every_change_with_what_was_before(store: Shared) {
    let start = store.revision().await.unwrap();
    let mut watch = store.watch("", start).await.unwrap();
    let first = put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    let both = commit(&store, writes([delete_write("a"), put_write("b", "3")])).await;
    let mut events = events_until(&mut watch, both).await;
    // Within a revision the order is the store's own.
    events[2..].sort_by(|one, other| one.key.cmp(&other.key));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        events.iter().map(told).collect::<Vec<_>>(),
        [
            ("a".to_owned(), None, some("1")),
            ("a".to_owned(), some("1"), some("2")),
            ("a".to_owned(), some("2"), None),
            ("b".to_owned(), None, some("3")),
        ]
    );
    let revisions: Vec<u64> = events.iter().map(|event| event.revision.0).collect();
    let begin = first.0;
    assert_eq!(revisions, [begin, begin + 1, begin + 2, begin + 2]);
    let replaced = events[1].previous.as_ref().unwrap();
    assert_eq!((replaced.created, replaced.modified), (first, first));
    assert_eq!(events[1].current.as_ref().unwrap().created, first);
    assert_eq!(events[3].current.as_ref().unwrap().modified, both);
    let mut replay = store.watch("", start).await.unwrap();
    let mut again = events_until(&mut replay, both).await;
    again[2..].sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(again, events);
}

pub(crate) async fn a_watch_sees_only_its_prefix_and_tells_its_progress(store: Shared) {
    let start = store.revision().await.unwrap();
    let mut watch = store.watch("a/", start).await.unwrap();
    put(&store, "a", "no").await;
    put(&store, "a/1", "yes").await;
    put(&store, "a0", "no").await;
    let last = put(&store, "b/1", "no").await;
    let events = events_until(&mut watch, last).await;
    assert_eq!(events.len(), 1);
    assert_eq!(&*events[0].key, "a/1");
    let later = put(&store, "c", "no").await;
    assert!(events_until(&mut watch, later).await.is_empty());
}

pub(crate) async fn a_watch_begins_in_the_past_now_or_later(store: Shared) {
    let mut revisions = vec![store.revision().await.unwrap()];
    for number in 0..5 {
        revisions.push(put(&store, "a", &number.to_string()).await);
    }
    let newest = *revisions.last().unwrap();
    for (seen, after) in revisions.iter().enumerate() {
        let mut watch = store.watch("", *after).await.unwrap();
        if *after < newest {
            let events = events_until(&mut watch, newest).await;
            assert_eq!(events.len(), 5 - seen);
            assert_eq!(events[0].revision, revisions[seen + 1]);
        }
    }
    let mut now = store.watch("", newest).await.unwrap();
    assert!(now.next().now_or_never().is_none());
    let mut later = store.watch("", Revision(newest.0 + 1)).await.unwrap();
    put(&store, "a", "not for later").await;
    let last = put(&store, "a", "for both").await;
    assert_eq!(events_until(&mut now, last).await.len(), 2);
    let events = events_until(&mut later, last).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].revision, last);
}

pub(crate) async fn a_slow_watch_delays_nobody(store: Shared) {
    let start = store.revision().await.unwrap();
    let mut slow = store.watch("", start).await.unwrap();
    let mut last = start;
    let value = "x".repeat(1000);
    for number in 0..700 {
        last = put(&store, &format!("k{number}"), &value).await;
    }
    let mut quick = store.watch("", Revision(last.0 - 1)).await.unwrap();
    assert_eq!(events_until(&mut quick, last).await.len(), 1);
    let events = events_until(&mut slow, last).await;
    assert_eq!(events.len(), 700);
    for (event, revision) in events.iter().zip(start.0 + 1..) {
        assert_eq!(event.revision.0, revision);
    }
}

pub(crate) async fn a_forgotten_revision_is_told_apart(store: Shared) {
    let start = put(&store, "a", "0").await;
    let mut unread = store.watch("", start).await.unwrap();
    let mut revision = start;
    for number in 0..3000 {
        let several = (0..4).map(|key| put_write(&format!("k{key}"), &number.to_string()));
        revision = commit(&store, writes(several)).await;
    }
    store.compact(revision).await.unwrap();
    // No news: it is forgotten already.
    store.compact(start).await.unwrap();
    store.compact(revision).await.unwrap();
    let range = Range {
        at: Some(start),
        ..Range::default()
    };
    let error = store.list(range).await.unwrap_err();
    let StoreError::Compacted { requested, oldest } = error else {
        panic!("{error:?}");
    };
    assert_eq!((requested, oldest), (start, revision));
    let watched = match store.watch("", start).await {
        Err(error) => error,
        Ok(mut watch) => watch.next().await.unwrap().unwrap_err(),
    };
    assert!(matches!(watched, StoreError::Compacted { requested, .. } if requested == start));
    let future = store.compact(Revision(revision.0 + 1)).await.unwrap_err();
    assert!(matches!(future, StoreError::Future { .. }));
    // A watch that nobody reads may have been ahead of compaction, but must not skip anything.
    let mut seen = start;
    while seen < revision {
        match unread.next().await.unwrap() {
            Ok(batch) => {
                for event in &batch.events {
                    assert!(event.revision.0 <= seen.0 + 1, "a gap after {seen}");
                    seen = event.revision;
                }
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Compacted { .. }), "{error:?}");
                assert!(unread.next().await.is_none(), "a watch ends after an error");
                return;
            }
        }
    }
}

pub(crate) async fn compaction_keeps_the_newest_state_and_what_follows(store: Shared) {
    put(&store, "a", "1").await;
    put(&store, "b", "1").await;
    put(&store, "c", "1").await;
    put(&store, "a", "2").await;
    let kept = delete(&store, "b").await;
    put(&store, "a", "3").await;
    delete(&store, "c").await;
    let last = put(&store, "b", "4").await;
    store.compact(kept).await.unwrap();
    let old = list(&store, "", Some(kept)).await;
    assert_eq!(pairs(&old.entries), [("a", "2"), ("c", "1")]);
    let new = list(&store, "", None).await;
    assert_eq!(pairs(&new.entries), [("a", "3"), ("b", "4")]);
    let mut watch = store.watch("", kept).await.unwrap();
    let some = |text: &str| Some(text.to_owned());
    let events = events_until(&mut watch, last).await;
    assert_eq!(
        events.iter().map(told).collect::<Vec<_>>(),
        [
            ("a".to_owned(), some("2"), some("3")),
            ("c".to_owned(), some("1"), None),
            ("b".to_owned(), None, some("4")),
        ]
    );
    store.compact(last).await.unwrap();
    let newest = list(&store, "", Some(last)).await;
    assert_eq!(pairs(&newest.entries), [("a", "3"), ("b", "4")]);
    assert_eq!(store.revision().await.unwrap(), last);
}
