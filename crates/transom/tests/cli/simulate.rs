//! Small simulations with the real binary: what they say is consistent, and nothing stays.

use serde_json::Value;

use crate::harness::Sandbox;

/// Patient enough for a busy machine; what waits for silence is still over in seconds.
const SMALL: &[&str] = &[
    "simulate",
    "--nodes=10",
    "--pods=50",
    "--churn-time=1s",
    "--grace=12s",
    "-o=json",
];

fn simulate(sandbox: &Sandbox, more: &[&str]) -> Value {
    let outcome = sandbox.run(SMALL.iter().chain(more));
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn phase<'a>(report: &'a Value, name: &str) -> &'a Value {
    let phases = report["phases"].as_array().unwrap();
    let found = phases.iter().find(|phase| phase["name"] == name);
    found.unwrap_or_else(|| panic!("no phase {name} in {report:#}"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn pods_live_through_churn_loss_and_upgrade() {
    let sandbox = Sandbox::new();
    let report = simulate(&sandbox, &["--churn=20", "--lose=2", "--plot=plot.svg"]);
    assert_eq!(report["windowsNodes"], 3);
    assert_eq!(phase(&report, "join")["count"], 10);
    let create = phase(&report, "create");
    assert_eq!(
        (&create["count"], &create["bound"]),
        (&50.into(), &50.into())
    );
    let churn = phase(&report, "churn");
    // What is deleted is replaced, one for one.
    assert_eq!(churn["count"], churn["bound"]);
    assert!((1..=20).contains(&count(&churn["count"])));
    let loss = phase(&report, "loss");
    assert_eq!(loss["count"], loss["bound"]);
    assert!(count(&loss["count"]) > 0);
    // The lease was renewed up to a quarter of the grace before, or more on a busy machine.
    let seconds = loss["seconds"].as_f64().unwrap();
    assert!(seconds > 6.0, "silence was waited for {seconds} s");
    assert_eq!(phase(&report, "return")["count"], 2);
    assert!(count(&phase(&report, "rollout")["bound"]) >= 50);
    for one in report["phases"].as_array().unwrap() {
        assert!(count(&one["memoryBytes"]) > 1 << 20, "{one:#}");
        for times in [&one["toBound"], &one["toRunning"]] {
            let [p50, p90, p99, max] =
                ["p50", "p90", "p99", "max"].map(|name| times[name].as_f64().unwrap_or_default());
            assert!(p50 <= p90 && p90 <= p99 && p99 <= max, "{one:#}");
        }
    }
    let samples = report["samples"].as_array().unwrap();
    // They are taken from time to time, perhaps none of them at the very end.
    let most = samples.iter().map(|sample| count(&sample["running"])).max();
    assert!(most >= Some(50), "{samples:?}");
    is_well_formed(&fs_err::read_to_string(sandbox.path().join("plot.svg")).unwrap());
}

#[test]
fn nodes_are_emptied_and_pods_alone_are_counted() {
    let sandbox = Sandbox::new();
    let drained = simulate(&sandbox, &["--lose=0", "--churn=0", "--upgrade=drain"]);
    assert_eq!(phase(&drained, "drain")["count"], 10);
    assert!(count(&phase(&drained, "drain")["bound"]) >= 50);
    let alone = simulate(&sandbox, &["--make=pods", "--churn=0", "--store=memory"]);
    assert_eq!(phase(&alone, "create")["bound"], 50);
    assert_eq!(alone["phases"].as_array().unwrap().len(), 2);
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let sandbox = Sandbox::new();
    let plan = |seed: &str| {
        sandbox
            .run(["simulate", "--dry-run", "-o=json", seed])
            .stdout
    };
    assert_eq!(plan("--seed=5"), plan("--seed=5"));
    assert_ne!(plan("--seed=5"), plan("--seed=6"));
}

#[test]
fn what_cannot_be_is_refused_before_it_begins() {
    let sandbox = Sandbox::new();
    for (arguments, says) in [
        (&["--nodes=0"][..], "0 is not in"),
        (&["--windows=130%"], "at most `100%`"),
        (&["--nodes=2", "--pods=500"], "hint:"),
        (&["--make=pods", "--lose=1"], "nobody replaces"),
        (&["--lose=60%"], "at most half"),
    ] {
        let outcome = sandbox.run(["simulate"].iter().chain(arguments));
        assert_eq!(outcome.code(), 2, "{arguments:?}");
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
    sandbox.write("used/file", "");
    let outcome = sandbox.run(["simulate", "--data-dir=used"]);
    assert_eq!(outcome.code(), 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("not empty"), "{}", outcome.stderr);
}

/// Every element that is opened is closed, in order.
fn is_well_formed(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag that does not end");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in another order");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default());
        }
        assert_eq!(
            tag.matches('"').count() % 2,
            0,
            "an attribute that does not end: {tag}"
        );
    }
    assert!(open.is_empty(), "{open:?} stay open");
    assert!(svg.starts_with("<svg ") && !svg.contains("NaN") && !svg.contains("inf"));
}
