//! Who is tried when.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{pod, snapshot};
use crate::{Changes, PodToPlace, queue::Queue};

const SECOND: Duration = Duration::from_secs(1);

fn waiting(name: &str, priority: i32) -> PodToPlace {
    snapshot(&[], &[]).prepare(&pod(name, &json!({"spec": {"priority": priority}})))
}

fn pop(queue: &mut Queue, now: Instant) -> Option<String> {
    queue
        .pop(now)
        .map(|uid| uid.trim_start_matches("uid-").to_owned())
}

#[test]
fn the_most_important_comes_first_and_then_who_came_first() {
    let mut queue = Queue::default();
    let now = Instant::now();
    for (name, priority) in [("a", 0), ("b", 5), ("c", 5), ("d", -1)] {
        queue.put(waiting(name, priority), 0);
    }
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, now)).collect();
    assert_eq!(order, ["b", "c", "a", "d"]);
}

#[test]
fn who_failed_waits_for_what_could_help_and_longer_each_time() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.put(waiting("a", 0), 0);
    let uid = queue.pop(now).unwrap();
    queue.park(&uid, Changes::ROOM, now);
    queue.wake(Changes::TAINTS, now, |_, _| true);
    assert_eq!(queue.next_due(), None, "taints do not help");
    queue.wake(Changes::ROOM, now, |_, _| false);
    assert_eq!(queue.next_due(), None, "not on that node");
    queue.wake(Changes::ROOM, now, |_, _| true);
    assert_eq!(queue.next_due(), Some(now + SECOND));
    assert_eq!(pop(&mut queue, now), None);
    let later = now + SECOND;
    assert_eq!(pop(&mut queue, later).as_deref(), Some("a"));
    queue.park(&uid, Changes::ROOM, later);
    queue.wake(Changes::ROOM, later, |_, _| true);
    assert_eq!(queue.next_due(), Some(later + 2 * SECOND));
    let much_later = later + 60 * SECOND;
    assert_eq!(pop(&mut queue, much_later).as_deref(), Some("a"));
    queue.park(&uid, Changes::ROOM, much_later);
    queue.wake(Changes::ROOM, much_later + 60 * SECOND, |_, _| true);
    assert_eq!(
        pop(&mut queue, much_later + 60 * SECOND).as_deref(),
        Some("a"),
        "its pause is long over"
    );
}

#[test]
fn nobody_is_forgotten_for_ever() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.put(waiting("a", 0), 0);
    let uid = queue.pop(now).unwrap();
    queue.park(&uid, Changes::NONE, now);
    queue.sweep(now + 60 * SECOND);
    assert_eq!(pop(&mut queue, now + 60 * SECOND), None);
    queue.sweep(now + 301 * SECOND);
    assert_eq!(pop(&mut queue, now + 301 * SECOND).as_deref(), Some("a"));
}

#[test]
fn a_pod_that_changed_is_tried_at_once_and_one_that_did_not_is_left_alone() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.put(waiting("a", 0), 0);
    let uid = queue.pop(now).unwrap();
    queue.put(waiting("a", 1), 0);
    assert!(queue.is_away(&uid), "somebody is at it");
    queue.park(&uid, Changes::ROOM, now);
    queue.put(waiting("a", 1), 0);
    assert_eq!(pop(&mut queue, now), None);
    queue.put(waiting("a", 2), 0);
    assert_eq!(pop(&mut queue, now).as_deref(), Some("a"));
    queue.rest(&uid, now);
    assert!(queue.remove(&uid).is_some());
    assert_eq!((queue.next_due(), pop(&mut queue, now)), (None, None));
}

#[test]
fn a_priority_that_changes_while_it_waits_moves_it() {
    let mut queue = Queue::default();
    queue.put(waiting("a", 0), 0);
    queue.put(waiting("b", 1), 0);
    queue.put(waiting("a", 2), 0);
    let now = Instant::now();
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, now)).collect();
    assert_eq!(order, ["a", "b"]);
}

#[test]
fn who_waits_for_news_of_images_is_tried_when_they_come_and_at_the_end_in_any_case() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.put(waiting("a", 0), 0);
    let uid = queue.pop(now).unwrap();
    let until = now + 3 * SECOND;
    queue.hold(&uid, until);
    queue.wake(Changes::ROOM | Changes::NODE, now, |_, _| true);
    assert_eq!(pop(&mut queue, now), None);
    queue.release_held();
    assert_eq!(pop(&mut queue, now).as_deref(), Some("a"));
    assert_eq!(queue.get(&uid).unwrap().held_until, Some(until));
    assert_eq!(
        queue.get(&uid).unwrap().attempts,
        1,
        "it was not tried before"
    );
    queue.hold(&uid, until);
    assert_eq!(queue.next_due(), Some(until));
    assert_eq!(pop(&mut queue, until).as_deref(), Some("a"));
    // News do not shorten the pause of one that failed.
    queue.rest(&uid, until);
    queue.release_held();
    assert_eq!(pop(&mut queue, until), None);
}
