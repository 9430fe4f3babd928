//! Packages with services: a switch of generations restarts them, and a generation whose services or checks
//! fail gives way to the one before it, by itself.

use std::path::PathBuf;

use crate::harness::{Machine, Outcome, finish, wait_until};
use crate::processes::{is_alive, program_name};

/// A machine whose packages bring the program they run.
struct Node {
    machine: Machine,
}

impl Node {
    fn new() -> Self {
        Self {
            machine: Machine::with(&[]),
        }
    }

    /// The folder of the node's software.
    fn software(&self) -> PathBuf {
        self.machine
            .place(if cfg!(windows) { "opt" } else { "opt/transom" })
    }

    /// A package with a service that does `act`.
    fn package(&self, id: &str, act: &str) -> PathBuf {
        self.package_of_type(id, "simple", act)
    }

    fn package_of_type(&self, id: &str, kind: &str, act: &str) -> PathBuf {
        let folder = self.software().join("packages").join(id);
        let wants = folder.join("dcos.target.wants");
        let bin = folder.join("bin");
        for needed in [&wants, &bin] {
            fs_err::create_dir_all(needed).unwrap();
        }
        fs_err::write(folder.join("pkginfo.json"), "{}").unwrap();
        let echo = program_name("echo");
        fs_err::copy(self.machine.root().join("bin").join(&echo), bin.join(&echo)).unwrap();
        // Run from the active generation, not from the package.
        let program = self.software().join("bin").join(&echo);
        let unit = format!(
            "[Service]\nType={kind}\nExecStart=\"{}\" act {act}\n",
            program.display()
        );
        fs_err::write(wants.join("web.service"), unit).unwrap();
        folder
    }

    fn run(&self, words: &[&str]) -> Outcome {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_transom"));
        let mut command = self.machine.command(program);
        finish(command.arg("package").args(words))
    }
}

#[test]
fn services_of_packages_run_from_the_active_generation() {
    let node = Node::new();
    node.package("web--1", "serve");
    node.package("web--2", "serve");
    node.run(&["activate", "web--1"]).exits(0);
    let first = node.machine.pid("web");
    assert!(is_alive(first));
    node.run(&["swap", "web--2"]).exits(0);
    assert!(!is_alive(first), "the old service still runs");
    let second = node.machine.pid("web");
    assert!(is_alive(second));
    node.run(&["check"]).exits(0);
    node.run(&["uninstall"]).exits(0);
    wait_until("the service to end", || !is_alive(second));
}

#[test]
fn a_generation_whose_service_fails_gives_way_to_the_one_before() {
    let node = Node::new();
    node.package("web--1", "serve");
    // One that need not say that it is ready counts as healthy after a second, and may need longer to fail.
    node.package_of_type("web--2", "notify", "exit:7");
    node.run(&["activate", "web--1"]).exits(0);
    node.run(&["swap", "web--2", "--check-timeout", "5"])
        .exits(1)
        .says("did not prove healthy")
        .says("generation 1 is active again");
    assert_eq!(node.run(&["active"]).exits(0).stdout, "web--1\n");
    assert!(is_alive(node.machine.pid("web")));
    let generations = node.run(&["generations", "-o", "json"]).exits(0).json();
    assert_eq!(generations[0]["is_active"], true);
    assert!(
        generations[1]["failure"]["reasons"].is_array(),
        "{generations}"
    );
    node.run(&["check"]).exits(0);
}

#[test]
fn a_generation_whose_check_fails_gives_way_to_the_one_before() {
    let node = Node::new();
    node.package("web--1", "serve");
    let bad = node.package("web--2", "serve");
    let check = bad.join("check");
    fs_err::create_dir_all(&check).unwrap();
    if cfg!(windows) {
        fs_err::write(check.join("sad.cmd"), "@exit /b 1\r\n").unwrap();
    } else {
        fs_err::write(check.join("sad"), "#!/bin/sh\nexit 1\n").unwrap();
        crate::processes::make_executable(&check.join("sad"));
    }
    node.run(&["activate", "web--1"]).exits(0);
    node.run(&["swap", "web--2", "--check-timeout", "2"])
        .exits(1)
        .says("sad");
    assert_eq!(node.run(&["active"]).exits(0).stdout, "web--1\n");
    assert!(is_alive(node.machine.pid("web")));
    // What failed is kept, for diagnosis.
    node.run(&["diff", "1", "2"])
        .exits(0)
        .says("~ package web 1 -> 2");
}

#[test]
fn without_a_supervisor_a_package_with_services_does_not_become_active() {
    let mut node = Node::new();
    node.package("web--1", "serve");
    node.machine.kill_daemon();
    node.run(&["activate", "web--1", "--check-timeout", "2"])
        .exits(1);
    node.run(&["active"]).exits(1);
    node.run(&["activate", "web--1", "--no-systemd"]).exits(0);
    node.machine.boot();
}
