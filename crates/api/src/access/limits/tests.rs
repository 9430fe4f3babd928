//! Turns, cancellations and floods. Time stands still unless a test moves it.

use std::task::Poll;

use futures::poll;
use tokio::time::{advance, sleep};

use super::*;

fn small() -> Limits {
    Limits {
        system: 1,
        ordinary: 2,
        waiting: 6,
        waiting_for_each_user: 3,
        longest_wait: Duration::from_secs(10),
        lasting: 3,
        lasting_for_each_user: 2,
        rate_for_each_user: 10.0,
        burst_for_each_user: 100.0,
    }
}

/// A request that waits: it entered the queue before this returns.
async fn queue(
    gate: &Gate,
    user: &'static str,
) -> tokio::task::JoinHandle<Result<Permit, TooManyRequests>> {
    let waiting = gate.usage(Class::Ordinary).waiting;
    let handle = tokio::spawn({
        let gate = gate.clone();
        async move { gate.enter(user, Class::Ordinary).await }
    });
    while gate.usage(Class::Ordinary).waiting == waiting && !handle.is_finished() {
        tokio::task::yield_now().await;
    }
    handle
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_user_does_not_keep_another_out() {
    let gate = Gate::new(small());
    let first = gate.enter("noisy", Class::Ordinary).await.unwrap();
    let second = gate.enter("noisy", Class::Ordinary).await.unwrap();
    let mut noisy = Vec::new();
    for _ in 0..3 {
        noisy.push(queue(&gate, "noisy").await);
    }
    let quiet = queue(&gate, "quiet").await;
    let refused = gate.enter("noisy", Class::Ordinary).await;
    assert_eq!(refused.unwrap_err().retry_after_seconds, 1);
    // One turn for the noisy user, who came first, and the next one for the quiet one.
    drop(first);
    drop(second);
    let _quiet = quiet.await.unwrap().unwrap();
    assert_eq!(
        gate.usage(Class::Ordinary),
        Usage {
            running: 2,
            waiting: 2
        }
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_too_long_is_sent_away_and_leaves_nothing_behind() {
    let gate = Gate::new(small());
    let permits = [
        gate.enter("a", Class::Ordinary).await.unwrap(),
        gate.enter("b", Class::Ordinary).await.unwrap(),
    ];
    let waiting = queue(&gate, "c").await;
    advance(Duration::from_secs(11)).await;
    assert!(waiting.await.unwrap().is_err());
    assert_eq!(
        gate.usage(Class::Ordinary),
        Usage {
            running: 2,
            waiting: 0
        }
    );
    drop(permits);
    assert_eq!(gate.usage(Class::Ordinary), Usage::default());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_in_its_turn_gives_the_place_back() {
    let gate = Gate::new(small());
    let first = gate.enter("a", Class::Ordinary).await.unwrap();
    let _second = gate.enter("a", Class::Ordinary).await.unwrap();
    let mut cancelled = Box::pin(gate.enter("b", Class::Ordinary));
    assert!(poll!(&mut cancelled).is_pending());
    let mut patient = Box::pin(gate.enter("c", Class::Ordinary));
    assert!(poll!(&mut patient).is_pending());
    drop(first);
    // Its turn has come, and it goes away without having looked.
    drop(cancelled);
    let Poll::Ready(Ok(_permit)) = poll!(&mut patient) else {
        panic!("the place is lost");
    };
    assert_eq!(
        gate.usage(Class::Ordinary),
        Usage {
            running: 2,
            waiting: 0
        }
    );
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_for_all_together() {
    let gate = Gate::new(small());
    let _permits = [
        gate.enter("a", Class::Ordinary).await.unwrap(),
        gate.enter("a", Class::Ordinary).await.unwrap(),
    ];
    let mut waiting = Vec::new();
    for user in ["a", "a", "b", "b", "c", "c"] {
        waiting.push(queue(&gate, user).await);
    }
    assert!(gate.enter("d", Class::Ordinary).await.is_err());
    assert_eq!(gate.usage(Class::Ordinary).waiting, 6);
    for handle in waiting {
        handle.abort();
        assert!(handle.await.is_err());
    }
    assert_eq!(gate.usage(Class::Ordinary).waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn heartbeats_have_a_lane_of_their_own() {
    let gate = Gate::new(small());
    let _permits = [
        gate.enter("a", Class::Ordinary).await.unwrap(),
        gate.enter("a", Class::Ordinary).await.unwrap(),
    ];
    let heartbeat = gate.enter("system:node:a", Class::System).await.unwrap();
    drop(heartbeat);
    assert_eq!(gate.usage(Class::System), Usage::default());
}

#[tokio::test(start_paused = true)]
async fn lasting_requests_are_counted_apart() {
    let gate = Gate::new(small());
    let first = gate.enter("a", Class::Lasting).await.unwrap();
    let _second = gate.enter("a", Class::Lasting).await.unwrap();
    assert!(gate.enter("a", Class::Lasting).await.is_err());
    let _third = gate.enter("b", Class::Lasting).await.unwrap();
    assert!(gate.enter("c", Class::Lasting).await.is_err());
    drop(first);
    let _fourth = gate.enter("c", Class::Lasting).await.unwrap();
    assert_eq!(gate.usage(Class::Lasting).running, 3);
    assert_eq!(gate.usage(Class::Ordinary), Usage::default());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_is_too_fast_is_told_when_to_come_back() {
    let gate = Gate::new(Limits {
        rate_for_each_user: 0.5,
        burst_for_each_user: 2.0,
        ..small()
    });
    for _ in 0..2 {
        gate.enter("a", Class::Ordinary).await.map(drop).unwrap();
    }
    let refused = gate.enter("a", Class::Ordinary).await.unwrap_err();
    assert_eq!(refused.retry_after_seconds, 2);
    let error = ApiError::from(refused);
    assert_eq!(error.code, 429);
    assert_eq!(error.message, "Too many requests, please try again later.");
    gate.enter("b", Class::Ordinary).await.map(drop).unwrap();
    gate.enter("a", Class::System).await.map(drop).unwrap();
    sleep(Duration::from_secs(2)).await;
    gate.enter("a", Class::Ordinary).await.map(drop).unwrap();
    assert!(gate.enter("a", Class::Ordinary).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn names_made_up_by_a_stranger_are_forgotten() {
    let mut buckets = Buckets::new(10.0, 5.0);
    for round in 0..3 {
        for number in 0..9_999 {
            buckets
                .take(&format!("{round}-{number}"), Instant::now())
                .unwrap();
        }
        advance(Duration::from_secs(1)).await;
    }
    assert!(buckets.len() <= 10_000, "{}", buckets.len());
}

#[test]
fn the_class_follows_from_who_asks_for_what() {
    let user = |name: &str, group: &str| User::authenticated(name, vec![group.to_owned()]);
    let resource = |group: &str, resource: &str| {
        Target::Resource(Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            ..Resource::default()
        })
    };
    let lease = resource("coordination.k8s.io", "leases");
    let pods = resource("", "pods");
    let node = user("system:node:a", group::NODES);
    assert_eq!(Class::of(&node, &lease, false), Class::System);
    assert_eq!(Class::of(&node, &pods, false), Class::Ordinary);
    assert_eq!(Class::of(&node, &pods, true), Class::Lasting);
    assert_eq!(
        Class::of(&user("bob", "dev"), &lease, false),
        Class::Ordinary
    );
    let root = user("root", group::MASTERS);
    assert_eq!(Class::of(&root, &pods, false), Class::System);
    let path = Target::Path("/metrics".to_owned());
    assert_eq!(
        Class::of(&user("bob", "dev"), &path, false),
        Class::Ordinary
    );
}
