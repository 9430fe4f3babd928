//! What the graph tells to look at, what is decided, and what is waited for before.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use http_body_util::Full;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Client, api::PropagationPolicy, client::Body, discovery::ApiResource};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::{
    collector::Collector,
    graph::{FOREGROUND, Graph, Known, Node, ORPHAN},
    judge::{Duty, Owner, Verdict, duty, judge},
};
use crate::resources::Deletable;

fn resource(kind: &str, namespaced: bool) -> Arc<Deletable> {
    Arc::new(Deletable {
        api: ApiResource {
            group: "example.org".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.org/v1".to_owned(),
            kind: kind.to_owned(),
            plural: kind.to_lowercase(),
        },
        namespaced,
        watchable: true,
        collective: true,
    })
}

fn reference(uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "example.org/v1beta1".to_owned(),
        kind: "Thing".to_owned(),
        name: uid.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }
}

/// An object whose name is its uid.
fn node(uid: &str, owners: &[&str]) -> Node {
    Node {
        resource: resource("Thing", true),
        namespace: "n".to_owned(),
        name: uid.to_owned(),
        uid: uid.into(),
        version: "1".to_owned(),
        owners: owners.iter().map(|owner| reference(owner)).collect(),
        finalizers: Vec::new(),
        is_being_deleted: false,
    }
}

fn blocking(uid: &str, owner: &str) -> Node {
    let mut node = node(uid, &[owner]);
    node.owners[0].block_owner_deletion = Some(true);
    node
}

fn going(mut node: Node, finalizer: &str) -> Node {
    node.is_being_deleted = true;
    node.finalizers = vec!["other".to_owned(), finalizer.to_owned()];
    node
}

fn put(graph: &mut Graph, node: Node) -> Vec<String> {
    graph.put(node).iter().map(ToString::to_string).collect()
}

fn remove(graph: &mut Graph, uid: &str) -> Vec<String> {
    let look = graph.remove(&resource("Thing", true), uid);
    look.iter().map(ToString::to_string).collect()
}

#[test]
fn an_object_whose_owner_is_known_needs_no_look() {
    let mut graph = Graph::default();
    assert_eq!(put(&mut graph, node("owner", &[])), [""; 0]);
    assert_eq!(put(&mut graph, node("child", &["owner"])), [""; 0]);
}

#[test]
fn an_object_whose_owner_is_not_known_is_looked_at() {
    let mut graph = Graph::default();
    assert_eq!(put(&mut graph, node("child", &["owner"])), ["child"]);
    assert_eq!(put(&mut graph, node("owner", &[])), [""; 0]);
    assert_eq!(put(&mut graph, node("child", &["owner"])), [""; 0]);
}

#[test]
fn the_end_of_an_owner_is_told_to_its_dependants_only() {
    let mut graph = Graph::default();
    for one in [
        node("owner", &[]),
        node("a", &["owner"]),
        node("b", &["owner"]),
        node("c", &["a"]),
    ] {
        graph.put(one);
    }
    assert_eq!(remove(&mut graph, "owner"), ["a", "b"]);
    assert_eq!(remove(&mut graph, "owner"), [""; 0]);
    // A dependant that has another owner now is none of the old one.
    graph.put(node("b", &[]));
    graph.put(node("owner", &[]));
    assert_eq!(remove(&mut graph, "owner"), ["a"]);
}

#[test]
fn objects_that_a_list_lacks_are_gone() {
    let mut graph = Graph::default();
    for one in [
        node("owner", &[]),
        node("child", &["owner"]),
        node("other", &[]),
    ] {
        graph.put(one);
    }
    let seen = HashSet::from(["child".into(), "other".into()]);
    assert_eq!(graph.retain(&resource("Else", true), &HashSet::new()), []);
    assert_eq!(
        graph.retain(&resource("Thing", true), &seen),
        ["child".into()]
    );
    assert!(graph.get("owner").is_none() && graph.get("other").is_some());
}

#[test]
fn an_owner_must_be_what_the_reference_says_and_in_the_same_namespace() {
    let mut graph = Graph::default();
    graph.put(node("owner", &[]));
    let child = node("child", &["owner"]);
    assert_eq!(graph.owner(&child, &reference("owner")), Known::Present);
    let mut wrong = reference("owner");
    wrong.name = "other".to_owned();
    assert_eq!(graph.owner(&child, &wrong), Known::Nothing);
    wrong = reference("owner");
    wrong.api_version = "v1".to_owned();
    assert_eq!(graph.owner(&child, &wrong), Known::Nothing);
    for namespace in ["", "m"] {
        let mut child = child.clone();
        child.namespace = namespace.to_owned();
        assert_eq!(graph.owner(&child, &reference("owner")), Known::Elsewhere);
        assert_eq!(put(&mut graph, child), ["child"]);
    }
    let mut owner = node("wide", &[]);
    owner.resource = resource("Thing", false);
    owner.namespace.clear();
    graph.put(owner);
    assert_eq!(graph.owner(&child, &reference("wide")), Known::Present);
}

#[test]
fn an_owner_that_waits_is_looked_at_when_a_dependant_is_out_of_its_way() {
    let mut graph = Graph::default();
    for one in [
        node("owner", &[]),
        blocking("a", "owner"),
        blocking("b", "owner"),
    ] {
        graph.put(one);
    }
    let owner = going(node("owner", &[]), FOREGROUND);
    assert_eq!(put(&mut graph, owner.clone()), ["owner", "a", "b"]);
    assert_eq!(
        duty(&graph, &owner),
        Duty::Wait(vec!["a".into(), "b".into()])
    );
    // One that waits for its own dependants comes by itself.
    graph.put(going(blocking("b", "owner"), FOREGROUND));
    assert_eq!(duty(&graph, &owner), Duty::Wait(vec!["a".into()]));
    assert_eq!(remove(&mut graph, "a"), ["owner"]);
    // It stays a dependant, but does not block any more.
    assert_eq!(put(&mut graph, node("b", &["owner"])), ["b", "owner"]);
    assert_eq!(duty(&graph, &owner), Duty::Release);
}

#[test]
fn an_orphan_finalizer_goes_before_everything() {
    let mut graph = Graph::default();
    let child = blocking("child", "owner");
    graph.put(child.clone());
    let owner = going(node("owner", &["gone"]), ORPHAN);
    assert_eq!(duty(&graph, &owner), Duty::Orphan(vec![child]));
}

#[test]
fn what_is_deleted_already_or_has_no_owner_is_left_alone() {
    let graph = Graph::default();
    assert_eq!(
        duty(&graph, &going(node("a", &["gone"]), "more")),
        Duty::Nothing
    );
    assert_eq!(duty(&graph, &node("a", &[])), Duty::Nothing);
    assert_eq!(duty(&graph, &node("a", &["gone"])), Duty::FindOwners);
}

fn verdict(graph: &Graph, node: &Node, owners: &[Owner]) -> Verdict {
    let owners: Vec<_> = owners
        .iter()
        .enumerate()
        .map(|(index, owner)| (reference(&index.to_string()), *owner))
        .collect();
    judge(graph, node, &owners)
}

const fn delete(policy: PropagationPolicy) -> Verdict {
    Verdict::Delete {
        policy,
        unblock: false,
    }
}

#[test]
fn an_object_goes_when_all_its_owners_are_gone() {
    let graph = Graph::default();
    let node = node("a", &[]);
    let background = delete(PropagationPolicy::Background);
    assert_eq!(
        verdict(&graph, &node, &[Owner::Absent, Owner::Absent]),
        background
    );
    assert_eq!(
        verdict(&graph, &node, &[Owner::Waiting, Owner::Absent]),
        background
    );
    assert_eq!(verdict(&graph, &node, &[Owner::Present]), Verdict::Keep);
    assert_eq!(verdict(&graph, &node, &[]), Verdict::Keep);
}

#[test]
fn owners_that_are_gone_or_wait_are_taken_off_when_another_is_there() {
    let owners = [Owner::Absent, Owner::Present, Owner::Waiting];
    let lost = Verdict::Drop(vec!["0".to_owned(), "2".to_owned()]);
    assert_eq!(verdict(&Graph::default(), &node("a", &[]), &owners), lost);
}

#[test]
fn an_object_whose_owner_cannot_be_found_is_kept() {
    let owners = [Owner::Absent, Owner::Unfit];
    assert_eq!(
        verdict(&Graph::default(), &node("a", &[]), &owners),
        Verdict::Keep
    );
}

#[test]
fn what_was_said_about_dependants_before_counts() {
    let graph = Graph::default();
    for (finalizer, policy) in [
        (ORPHAN, PropagationPolicy::Orphan),
        (FOREGROUND, PropagationPolicy::Foreground),
    ] {
        let mut node = node("a", &[]);
        node.finalizers = vec![finalizer.to_owned()];
        assert_eq!(verdict(&graph, &node, &[Owner::Absent]), delete(policy));
    }
}

#[test]
fn dependants_of_a_dependant_go_before_it_and_a_circle_is_broken() {
    let mut graph = Graph::default();
    graph.put(node("child", &["a"]));
    let a = node("a", &["owner"]);
    let foreground = delete(PropagationPolicy::Foreground);
    assert_eq!(verdict(&graph, &a, &[Owner::Waiting]), foreground);
    graph.put(going(node("child", &["a"]), FOREGROUND));
    let broken = Verdict::Delete {
        policy: PropagationPolicy::Foreground,
        unblock: true,
    };
    assert_eq!(verdict(&graph, &a, &[Owner::Waiting]), broken);
}

/// A collector that is told of two kinds, `Thing` and `Other`, and what it asks an API that has nothing.
fn collector() -> (Collector, UnboundedReceiver<String>) {
    let (sender, requests) = unbounded_channel();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let _ = sender.send(format!("{} {}", request.method(), request.uri().path()));
        let answer = Full::from(r#"{"kind":"Status","status":"Failure","code":404}"#);
        let mut answer = http::Response::new(answer);
        *answer.status_mut() = http::StatusCode::NOT_FOUND;
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let collector = Collector::new(Client::new(service, "default"));
    let kinds = [resource("Thing", true), resource("Other", true)];
    collector.set_kinds(&kinds.iter().cloned().collect(), &kinds);
    (collector, requests)
}

/// The first request of a collector at work, if it makes one.
async fn first_request(
    collector: &Collector,
    requests: &mut UnboundedReceiver<String>,
    patience: Duration,
) -> Option<String> {
    let stop = CancellationToken::new();
    let work = collector
        .queue
        .drive("tests", 1, &stop, |uid| collector.look(uid));
    let request = tokio::time::timeout(patience, requests.recv());
    tokio::select! {
        () = work => None,
        request = request => request.ok().flatten(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_does_not_hold_up_an_owner_for_ever() {
    for finalizer in [ORPHAN, FOREGROUND] {
        let (collector, mut requests) = collector();
        collector.seen_all(&resource("Thing", true), &HashSet::new());
        collector.put(going(node("owner", &[]), finalizer));
        let at_once = first_request(&collector, &mut requests, Duration::from_secs(5)).await;
        assert_eq!(at_once, None, "a dependant may be of the other kind");
        let later = first_request(&collector, &mut requests, Duration::from_mins(5)).await;
        let release = "PATCH /apis/example.org/v1/namespaces/n/thing/owner";
        assert_eq!(later.as_deref(), Some(release));
    }
}

#[tokio::test(start_paused = true)]
async fn owners_are_looked_for_as_soon_as_their_kind_is_known_whatever_other_kinds_are_not() {
    let (collector, mut requests) = collector();
    collector.put(node("child", &["gone"]));
    let early = first_request(&collector, &mut requests, Duration::from_secs(5)).await;
    assert_eq!(
        early, None,
        "the owner may be in the list that is on its way"
    );
    collector.seen_all(&resource("Thing", true), &HashSet::from(["child".into()]));
    let then = first_request(&collector, &mut requests, Duration::from_secs(5)).await;
    let look = "GET /apis/example.org/v1/namespaces/n/thing/child";
    assert_eq!(then.as_deref(), Some(look));
}
