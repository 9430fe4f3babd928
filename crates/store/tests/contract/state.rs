//! What is in a store after transactions, now and earlier.

use bytes::Bytes;
use transom_store::{Condition, Outcome, Page, Range, Revision, StoreError, Transaction};

use crate::support::{
    Shared, commit, delete, delete_write, keys, list, pairs, put, put_write, text, writes,
};

pub(crate) async fn a_key_is_created_once(store: Shared) {
    assert_eq!(store.get("a").await.unwrap(), None);
    let revision = commit(&store, Transaction::create("a", "1")).await;
    let refused = store.commit(Transaction::create("a", "2")).await.unwrap();
    let entry = store.get("a").await.unwrap().unwrap();
    assert_eq!(text(&entry), "1");
    assert_eq!((entry.created, entry.modified), (revision, revision));
    assert_eq!(entry.lease, None);
    let current = Some(entry);
    assert_eq!(
        refused,
        Outcome::Refused {
            condition: 0,
            current
        }
    );
    assert_eq!(store.revision().await.unwrap(), revision);
}

pub(crate) async fn a_key_is_replaced_by_whoever_saw_its_newest_value(store: Shared) {
    let first = put(&store, "a", "1").await;
    let second = commit(&store, Transaction::replace("a", first, "2")).await;
    assert_eq!(second, Revision(first.0 + 1));
    let late = store.commit(Transaction::replace("a", first, "3")).await;
    let Outcome::Refused {
        condition: 0,
        current: Some(current),
    } = late.unwrap()
    else {
        panic!("an old revision was replaced");
    };
    assert_eq!(text(&current), "2");
    assert_eq!((current.created, current.modified), (first, second));
    let late = store.commit(Transaction::remove("a", first)).await.unwrap();
    assert!(matches!(late, Outcome::Refused { .. }));
    commit(&store, Transaction::remove("a", second)).await;
    let gone = store.commit(Transaction::replace("a", second, "4")).await;
    assert_eq!(
        gone.unwrap(),
        Outcome::Refused {
            condition: 0,
            current: None
        }
    );
}

pub(crate) async fn a_key_that_was_deleted_begins_anew(store: Shared) {
    put(&store, "a", "1").await;
    delete(&store, "a").await;
    assert_eq!(store.get("a").await.unwrap(), None);
    let again = commit(&store, Transaction::create("a", "2")).await;
    let entry = store.get("a").await.unwrap().unwrap();
    assert_eq!((entry.created, entry.modified), (again, again));
}

pub(crate) async fn a_transaction_is_one_revision(store: Shared) {
    let before = put(&store, "old", "1").await;
    let several = writes([
        put_write("a", "1"),
        put_write("b", "2"),
        delete_write("old"),
    ]);
    let revision = commit(&store, several).await;
    assert_eq!(revision, Revision(before.0 + 1));
    let page = list(&store, "", None).await;
    assert_eq!(page.revision, revision);
    assert_eq!(pairs(&page.entries), [("a", "1"), ("b", "2")]);
    assert!(page.entries.iter().all(|entry| entry.modified == revision));
}

pub(crate) async fn nothing_is_written_if_one_condition_fails(store: Shared) {
    let seen = put(&store, "a", "1").await;
    let transaction = Transaction {
        conditions: vec![
            Condition::Unchanged {
                key: "a".to_owned(),
                modified: seen,
            },
            Condition::Absent {
                key: "b".to_owned(),
            },
            Condition::Absent {
                key: "a".to_owned(),
            },
            Condition::Unchanged {
                key: "b".to_owned(),
                modified: seen,
            },
        ],
        writes: vec![put_write("b", "2"), delete_write("a")],
    };
    let Outcome::Refused {
        condition: 2,
        current: Some(current),
    } = store.commit(transaction).await.unwrap()
    else {
        panic!("the third condition is the first that does not hold");
    };
    assert_eq!(&*current.key, "a");
    assert_eq!(keys(&list(&store, "", None).await.entries), ["a"]);
    assert_eq!(store.revision().await.unwrap(), seen);
}

pub(crate) async fn deleting_what_is_absent_changes_nothing(store: Shared) {
    let before = put(&store, "a", "1").await;
    assert_eq!(delete(&store, "b").await, before);
    assert_eq!(store.revision().await.unwrap(), before);
    let both = writes([delete_write("a"), delete_write("b")]);
    assert_eq!(commit(&store, both).await, Revision(before.0 + 1));
    assert_eq!(commit(&store, Transaction::default()).await.0, before.0 + 1);
}

pub(crate) async fn one_key_cannot_be_written_twice_in_a_transaction(store: Shared) {
    let before = store.revision().await.unwrap();
    for second in [put_write("a", "2"), delete_write("a")] {
        let twice = writes([put_write("a", "1"), put_write("b", "1"), second]);
        let error = store.commit(twice).await.unwrap_err();
        assert!(matches!(error, StoreError::TwoWrites { key } if key == "a"));
    }
    assert_eq!(store.revision().await.unwrap(), before);
}

pub(crate) async fn what_no_store_accepts_is_refused(store: Shared) {
    let before = store.revision().await.unwrap();
    let large = Bytes::from(vec![b'x'; Transaction::LARGEST]);
    let error = store.commit(Transaction::create("a", large)).await;
    assert!(matches!(error, Err(StoreError::TooLarge { .. })));
    let many = (0..=Transaction::MOST).map(|number| put_write(&format!("k{number}"), ""));
    let error = store.commit(writes(many)).await;
    assert!(matches!(error, Err(StoreError::TooMany { .. })));
    for key in [String::new(), "k".repeat(Transaction::LONGEST_KEY + 1)] {
        let error = store.commit(writes([put_write(&key, "1")])).await;
        assert!(matches!(error, Err(StoreError::BadKey { .. })));
        assert_eq!(store.get(&key).await.unwrap(), None);
        assert!(key.is_empty() || list(&store, &key, None).await.entries.is_empty());
    }
    assert_eq!(store.revision().await.unwrap(), before);
    let most = (0..Transaction::MOST).map(|number| put_write(&format!("k{number}"), ""));
    commit(&store, writes(most)).await;
    let longest = "k".repeat(Transaction::LONGEST_KEY);
    put(&store, &longest, "1").await;
    assert!(store.get(&longest).await.unwrap().is_some());
}

pub(crate) async fn values_may_be_empty_or_large(store: Shared) {
    put(&store, "empty", "").await;
    assert_eq!(text(&store.get("empty").await.unwrap().unwrap()), "");
    let large: Vec<u8> = (0..1_u32 << 20)
        .map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    commit(&store, Transaction::create("large", large.clone())).await;
    let entry = store.get("large").await.unwrap().unwrap();
    assert!(
        entry.value == large,
        "a large value came back as another one"
    );
    let largest = vec![b'x'; Transaction::LARGEST - "largest".len() * 2];
    commit(&store, Transaction::create("largest", largest)).await;
}

pub(crate) async fn a_prefix_is_no_folder(store: Shared) {
    for key in ["a", "a/", "a/b", "a0", "ab", "b"] {
        put(&store, key, "1").await;
    }
    for (prefix, expected) in [
        ("", &["a", "a/", "a/b", "a0", "ab", "b"][..]),
        ("a", &["a", "a/", "a/b", "a0", "ab"]),
        ("a/", &["a/", "a/b"]),
        ("a/b", &["a/b"]),
        ("a/b/", &[]),
        ("b", &["b"]),
        ("c", &[]),
    ] {
        let page = list(&store, prefix, None).await;
        assert_eq!(keys(&page.entries), expected, "{prefix}");
        assert!(!page.more);
    }
}

pub(crate) async fn keys_sort_as_bytes(store: Shared) {
    let sorted = [
        "A",
        "a",
        "a\0",
        "a\0b",
        "a\u{1}",
        "aé",
        "z",
        "é",
        "日本",
        "\u{10ffff}",
    ];
    for key in sorted.iter().rev() {
        put(&store, key, key).await;
    }
    let page = list(&store, "", None).await;
    assert_eq!(keys(&page.entries), sorted);
    for key in sorted {
        assert_eq!(text(&store.get(key).await.unwrap().unwrap()), key);
    }
    let page = list(&store, "a\0", None).await;
    assert_eq!(keys(&page.entries), ["a\0", "a\0b"]);
    let page = list(&store, "\u{10ffff}", None).await;
    assert_eq!(keys(&page.entries), ["\u{10ffff}"]);
}

async fn page(store: &Shared, after: Option<&str>, limit: usize, at: Option<Revision>) -> Page {
    let range = Range {
        prefix: "p/".to_owned(),
        after: after.map(str::to_owned),
        limit: Some(limit),
        at,
    };
    store.list(range).await.unwrap()
}

pub(crate) async fn pages_follow_each_other(store: Shared) {
    put(&store, "a", "before").await;
    put(&store, "q", "after").await;
    for number in 0..7 {
        put(&store, &format!("p/{number}"), "1").await;
    }
    let first = page(&store, None, 3, None).await;
    assert_eq!(keys(&first.entries), ["p/0", "p/1", "p/2"]);
    assert!(first.more);
    put(&store, "p/31", "later").await;
    delete(&store, "p/4").await;
    let at = Some(first.revision);
    let second = page(&store, Some("p/2"), 3, at).await;
    assert_eq!(keys(&second.entries), ["p/3", "p/4", "p/5"]);
    assert_eq!((second.revision, second.more), (first.revision, true));
    let third = page(&store, Some("p/5"), 3, at).await;
    assert_eq!(keys(&third.entries), ["p/6"]);
    assert!(!third.more);
    let exact = page(&store, Some("p/3"), 3, at).await;
    assert_eq!((exact.entries.len(), exact.more), (3, false));
    // Where a page ended need not exist, and need not be under the prefix.
    assert_eq!(page(&store, Some("p/25"), 9, at).await.entries.len(), 4);
    assert_eq!(page(&store, Some("a"), 9, at).await.entries.len(), 7);
    assert_eq!(page(&store, Some("z"), 9, at).await.entries.len(), 0);
}

pub(crate) async fn old_states_can_be_listed(store: Shared) {
    let empty = store.revision().await.unwrap();
    let first = put(&store, "a", "1").await;
    let second = put(&store, "b", "2").await;
    let third = put(&store, "a", "3").await;
    let fourth = delete(&store, "b").await;
    let fifth = put(&store, "b", "5").await;
    for (at, expected) in [
        (empty, &[][..]),
        (first, &[("a", "1")]),
        (second, &[("a", "1"), ("b", "2")]),
        (third, &[("a", "3"), ("b", "2")]),
        (fourth, &[("a", "3")]),
        (fifth, &[("a", "3"), ("b", "5")]),
    ] {
        let page = list(&store, "", Some(at)).await;
        assert_eq!(pairs(&page.entries), expected, "at {at}");
        assert_eq!(page.revision, at);
    }
    let again = list(&store, "b", Some(fifth)).await;
    assert_eq!(again.entries[0].created, fifth);
    assert_eq!(
        list(&store, "a", Some(third)).await.entries[0].created,
        first
    );
}

pub(crate) async fn the_future_cannot_be_listed(store: Shared) {
    let newest = put(&store, "a", "1").await;
    let range = Range {
        at: Some(Revision(newest.0 + 1)),
        ..Range::default()
    };
    let error = store.list(range).await.unwrap_err();
    let StoreError::Future {
        requested,
        newest: known,
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((requested.0, known), (newest.0 + 1, newest));
}
