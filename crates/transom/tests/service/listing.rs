//! What the supervisor tells: tables for people, JSON for programs. Invariant: names in JSON keep
//! their meaning between releases.

use serde_json::json;

use crate::harness::{Machine, finish};
use crate::processes::program_name;

fn machine() -> Machine {
    let machine = Machine::with(&[
        (
            "web.service",
            "[Unit]\nDescription=The web\nRequires=db.service\nAfter=db.service\n[Service]\nExecStart={echo} act serve\n[Install]\nWantedBy=multi-user.target\n",
        ),
        ("db.service", "[Service]\nExecStart={echo} act serve\n"),
        (
            "bad.service",
            "[Service]\nType=oneshot\nExecStart={echo} act exit:3\n",
        ),
    ]);
    machine.ok(["start", "web"]);
    machine.service(["start", "bad"]).exits(1);
    machine
}

#[test]
fn lists_show_what_runs_what_failed_and_what_is_there() {
    let machine = machine();
    let units = machine
        .service(["list-units", "-o", "json", "--type", "service"])
        .exits(0)
        .json();
    let rows: Vec<_> = units
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["unit"].as_str().unwrap(),
                row["active"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("bad.service", "failed"),
            ("db.service", "active"),
            ("web.service", "active")
        ]
    );
    assert_eq!(units[2]["main_pid"], machine.pid("web"));
    assert_eq!(units[2]["sub"], "running");
    assert_eq!(units[2]["description"], "The web");

    assert_eq!(
        machine.ok(["list-units", "--failed", "-o", "name"]),
        "bad.service\n"
    );
    machine
        .service(["list-units"])
        .exits(0)
        .says("UNIT")
        .says("web.service");
    assert_eq!(
        machine.ok(["list-units", "-o", "name", "w*.service"]),
        "web.service\n"
    );

    let files = machine
        .service(["list-unit-files", "-o", "json", "web*"])
        .exits(0)
        .json();
    assert_eq!(files[0]["unit_file"], "web.service");
    assert_eq!(files[0]["state"], "disabled");
    machine.ok(["stop", "db"]);
    let all = machine.ok(["list-units", "--all", "-o", "name", "-t", "service"]);
    assert!(all.contains("db.service\n"), "{all}");
    let some = machine.ok(["list-units", "-o", "name", "-t", "service"]);
    assert!(!some.contains("db.service"), "{some}");
}

#[test]
fn show_and_status_tell_programs_what_they_tell_people() {
    let machine = machine();
    let pid = machine.pid("web").to_string();
    assert_eq!(
        machine.ok(["show", "-p", "Id,ActiveState", "-p", "MainPID", "web"]),
        format!("ActiveState=active\nId=web.service\nMainPID={pid}\n")
    );
    assert_eq!(
        machine
            .service(["show", "-o", "json", "-p", "Id,SubState", "web"])
            .json(),
        json!([{"Id": "web.service", "SubState": "running"}])
    );
    let status = machine
        .service(["status", "-o", "json", "web"])
        .exits(0)
        .json();
    let status = &status[0];
    assert_eq!(status["name"], "web.service");
    assert_eq!(status["active_state"], "active");
    assert_eq!(status["main_pid"].to_string(), pid);
    assert_eq!(status["dependencies"]["Requires"], json!(["db.service"]));
    assert_eq!(status["load_warnings"], json!([]));
    assert_eq!(status["processes"].as_array().unwrap().len(), 1);
    machine
        .service(["status"])
        .exits(0)
        .says("supervisor")
        .says("1 failed");
    machine
        .service(["status", "web", "bad"])
        .exits(3)
        .says("web.service")
        .says("bad.service");
}

#[test]
fn dependencies_are_a_tree_in_both_directions() {
    let machine = machine();
    machine
        .service(["list-dependencies", "web"])
        .exits(0)
        .says("db.service");
    let tree = machine
        .service(["list-dependencies", "-o", "json", "web"])
        .json();
    assert_eq!(tree["unit"], "web.service");
    assert_eq!(tree["needs"][0]["unit"], "db.service");
    machine
        .service(["list-dependencies", "--reverse", "db"])
        .exits(0)
        .says("web.service");
    machine
        .service(["list-dependencies", "--after", "web"])
        .exits(0)
        .says("db.service");
    machine
        .service(["list-dependencies", "--before", "db"])
        .exits(0)
        .says("web.service");
}

#[test]
fn cat_prints_the_files_that_make_a_unit() {
    let machine = machine();
    machine.unit(
        "web.service.d/10-more.conf",
        "[Unit]\nDescription=The other web\n",
    );
    machine
        .service(["cat", "web"])
        .exits(0)
        .says("Description=The web")
        .says("web.service.d")
        .says("Description=The other web");
}

#[test]
fn logs_show_the_last_lines_and_those_since_a_time() {
    let machine = Machine::with(&[(
        "talks.service",
        "[Service]\nType=oneshot\nExecStart={echo} act say:one say:two say:three\n",
    )]);
    machine.ok(["start", "talks"]);
    machine
        .service(["logs", "talks"])
        .exits(0)
        .says("one")
        .says("two")
        .says("three");
    assert_eq!(machine.ok(["logs", "-n", "2", "talks"]).lines().count(), 2);
    machine
        .service(["logs", "--since", "10min", "talks"])
        .exits(0)
        .says("three");
    assert_eq!(machine.ok(["logs", "--since", "2199-01-01", "talks"]), "");
    assert_eq!(machine.ok(["logs", "--until", "2001-01-01", "talks"]), "");
    machine
        .service(["logs", "--since", "half past", "talks"])
        .exits(2)
        .says("half past");
    let entries = machine.ok(["logs", "-o", "json", "talks"]);
    let spoken: Vec<String> = entries
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|entry| entry["stream"] == "output")
        .map(|entry| entry["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(spoken, ["one", "two", "three"]);
}

#[test]
fn a_copy_named_systemctl_takes_the_verbs_directly() {
    let machine = machine();
    let copy = machine.root().join("bin").join(program_name("systemctl"));
    fs_err::copy(env!("CARGO_BIN_EXE_transom"), &copy).unwrap();
    let systemctl = |words: &[&str]| finish(machine.command(&copy).args(words));
    assert_eq!(systemctl(&["is-active", "web"]).exits(0).stdout, "active\n");
    systemctl(&["stop", "web"]).exits(0);
    systemctl(&["is-active", "web"]).exits(3);
    systemctl(&["status", "nope"]).exits(4);
    systemctl(&["start", "nope"]).exits(5);
    // Without a verb systemctl lists units.
    systemctl(&[]).exits(0).says("db.service");
    systemctl(&["strat", "web"]).exits(2).says("`start`");
    systemctl(&["show", "-p", "ActiveState", "db.service"])
        .exits(0)
        .says("ActiveState=active");
}
