//! `transom doctor` on the machine that runs the tests, whatever it is: the form is checked, and that
//! the forms agree; what it finds is the probes' own affair.

use std::collections::BTreeSet;

use crate::harness::Sandbox;

fn report(sandbox: &Sandbox, arguments: &[&str]) -> serde_json::Value {
    let outcome = sandbox.run(["doctor", "-o", "json"].iter().chain(arguments));
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn this_machine_is_examined_and_every_finding_is_complete() {
    let sandbox = Sandbox::new();
    let report = report(&sandbox, &[]);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.len() > 3, "{report}");
    for finding in findings {
        assert_ne!(finding["id"], "", "{finding}");
        assert_ne!(finding["what"], "", "{finding}");
        if finding["state"] == "missing" {
            assert!(finding["way_forward"].is_string(), "{finding}");
        }
    }
    let expected = if cfg!(windows) { "windows" } else { "linux" };
    assert_eq!(report["machine"]["system"]["os"], expected);
    let counted: u64 = report["counts"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(counted, findings.len() as u64);
}

#[test]
fn people_see_the_same_findings() {
    let sandbox = Sandbox::new();
    let report = report(&sandbox, &[]);
    let outcome = sandbox.run(["doctor"]);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""));
    for finding in report["findings"].as_array().unwrap() {
        let what = finding["what"].as_str().unwrap();
        assert!(outcome.stdout.contains(what), "{what}\n{}", outcome.stdout);
    }
    assert!(outcome.stdout.contains(" ok"));
}

#[test]
fn one_area_can_be_looked_at_alone() {
    let sandbox = Sandbox::new();
    let report = report(&sandbox, &["--area", "ports"]);
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    assert!(findings.iter().all(|finding| finding["area"] == "ports"));
    let wrong = sandbox.run(["doctor", "--area", "prots"]);
    assert_eq!(wrong.code(), 2);
    assert!(
        wrong.stderr.contains("did you mean `ports`?"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn strictness_follows_the_findings() {
    let sandbox = Sandbox::new();
    let all = report(&sandbox, &[]);
    // Ports belong to whoever runs at the moment: a doctor beside this one has them while it looks.
    let areas: BTreeSet<&str> = all["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["area"].as_str().unwrap())
        .filter(|area| *area != "ports")
        .collect();
    let areas: Vec<&str> = areas
        .into_iter()
        .flat_map(|area| ["--area", area])
        .collect();
    let report = report(&sandbox, &areas);
    let counts = &report["counts"];
    let wrong = counts["warning"] != 0 || counts["missing"] != 0;
    let outcome = sandbox.run(["doctor", "--strict"].iter().chain(&areas));
    assert_eq!(outcome.code(), i32::from(wrong), "{}", outcome.stdout);
}
