//! A node's packages through the binary: pkgpanda's verbs, options, output and exit codes, generations, and
//! the HTTP interface.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::{Outcome, Sandbox};

/// The open examples.
const EXAMPLES: &str = include_str!("../../../package/tests/vectors/activations.json");

/// A node below a sandbox.
struct TestNode {
    sandbox: Sandbox,
}

impl TestNode {
    fn new(packages: &[(&str, Value)]) -> Self {
        let node = Self {
            sandbox: Sandbox::new(),
        };
        for (id, files) in packages {
            node.package(id, files);
        }
        fs_err::create_dir_all(node.path("conf/roles")).unwrap();
        fs_err::create_dir_all(node.path("repo")).unwrap();
        node
    }

    fn package(&self, id: &str, files: &Value) {
        self.sandbox.write(&format!("repo/{id}/pkginfo.json"), "{}");
        for (name, text) in files.as_object().unwrap() {
            let text = match text {
                Value::String(text) => text.clone(),
                json => json.to_string(),
            };
            self.sandbox.write(&format!("repo/{id}/{name}"), &text);
        }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.sandbox.path().join(below)
    }

    fn options(&self) -> Vec<String> {
        let at = |below: &str| self.path(below).to_str().unwrap().to_owned();
        vec![
            format!("--root={}", at("root")),
            format!("--repository={}", at("repo")),
            format!("--config-dir={}", at("conf")),
            format!("--state-dir-root={}", at("state")),
            "--rooted-systemd".to_owned(),
            "--no-systemd".to_owned(),
        ]
    }

    fn run(&self, verb: &[&str]) -> Outcome {
        let mut arguments = vec!["package".to_owned()];
        arguments.extend(verb.iter().map(|word| (*word).to_owned()));
        arguments.extend(self.options());
        self.sandbox.run(arguments)
    }

    fn succeed(&self, verb: &[&str]) -> Outcome {
        let outcome = self.run(verb);
        assert_eq!(outcome.code(), 0, "{verb:?}: {}", outcome.stderr);
        outcome
    }

    /// What is at a path of the active generation: through the pointer, never through a link.
    fn active(&self, below: &str) -> PathBuf {
        let pointer = fs_err::read_to_string(self.path("root/active")).unwrap();
        let pointer: Value = serde_json::from_str(&pointer).unwrap();
        self.path("root/generations")
            .join(pointer["active"].to_string())
            .join(below)
    }
}

/// The files below a folder with their content, links followed.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs_err::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                let text = fs_err::read_to_string(&path).unwrap();
                found.insert(name.replace('\\', "/"), text);
            }
        }
    }
    found
}

#[test]
fn the_open_examples_of_activation_hold_under_pkgpandas_options() {
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap();
    for (name, example) in examples.as_object().unwrap() {
        let node = TestNode::new(&[]);
        for (file, text) in example["repo"].as_object().unwrap() {
            node.sandbox
                .write(&format!("repo/{file}"), text.as_str().unwrap());
        }
        for role in example["roles"].as_array().unwrap() {
            node.sandbox
                .write(&format!("conf/roles/{}", role.as_str().unwrap()), "");
        }
        let mut verb = vec!["activate", "--silent"];
        verb.extend(
            example["ids"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| id.as_str().unwrap()),
        );
        let outcome = node.run(&verb);
        let expected = example["activate"]["rc"].as_i64().unwrap();
        assert_eq!(
            i64::from(outcome.code()),
            expected,
            "{name}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.stdout, "", "{name}");
        assert_eq!(outcome.stderr.is_empty(), expected == 0, "{name}");
        let active = node.run(&["active"]);
        assert_eq!(
            i64::from(active.code()),
            example["active"]["rc"].as_i64().unwrap(),
            "{name}"
        );
        assert_eq!(
            active.stdout,
            example["active"]["stdout"].as_str().unwrap(),
            "{name}"
        );
        if expected != 0 {
            assert!(!node.path("root/generations").exists(), "{name}: debris");
            continue;
        }
        for (path, kind) in example["root"].as_object().unwrap() {
            let kind = kind.as_str().unwrap();
            // Rooted unit files stand beside the generations.
            let is_unit = path.ends_with(".service");
            let found = if is_unit {
                node.path("root").join(path)
            } else {
                node.active(path.trim_end_matches('/'))
            };
            if let Some(target) = kind.strip_prefix("-> <D>/") {
                let target = node.path(target);
                if target.is_dir() {
                    assert!(found.is_dir() || cfg!(windows), "{name}: {path}");
                } else {
                    assert_eq!(
                        fs_err::read(&found).unwrap(),
                        fs_err::read(&target).unwrap(),
                        "{name}: {path}"
                    );
                }
            } else {
                assert_eq!(found.is_dir(), kind == "dir", "{name}: {path}");
            }
        }
        let root = node.path("root").to_str().unwrap().to_owned();
        for (file, text) in example["files"].as_object().unwrap() {
            // On Windows the lists of folders are written as Windows writes them.
            if cfg!(windows) && file.starts_with("environment") {
                continue;
            }
            let expected = text.as_str().unwrap().replace("<D>/root", &root);
            let found = fs_err::read_to_string(node.active(file)).unwrap();
            assert_eq!(found, expected, "{name}: {file}");
        }
        for state in example["state"].as_array().unwrap() {
            assert!(
                node.path("state").join(state.as_str().unwrap()).is_dir(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_node_goes_through_its_generations() {
    let node = TestNode::new(&[
        ("a--1", json!({"bin/tool": "one"})),
        ("a--2", json!({"bin/tool": "two"})),
        ("b--1", json!({"etc/b.conf": "b"})),
    ]);
    node.succeed(&["activate", "a--1"]);
    let dry = node.succeed(&["activate", "a--2", "b--1", "--dry-run"]);
    assert!(dry.stdout.contains("~ package a 1 -> 2"), "{}", dry.stdout);
    assert!(dry.stdout.contains("+ package b--1"), "{}", dry.stdout);
    assert_eq!(node.succeed(&["active"]).stdout, "a--1\n");

    node.succeed(&["activate", "a--2", "b--1"]);
    assert_eq!(content(&node.active("bin"))["tool"], "two");
    assert_eq!(content(&node.active("etc"))["b.conf"], "b");
    assert_eq!(node.succeed(&["list"]).stdout, "a:\n  1\n  2\nb--1\n");

    let again = node.succeed(&["activate", "a--2", "b--1"]);
    assert!(again.stderr.contains("active already"), "{}", again.stderr);

    node.succeed(&["rollback"]);
    assert_eq!(content(&node.active("bin"))["tool"], "one");
    node.succeed(&["swap", "a--2"]);
    node.succeed(&["pin", "1"]);
    let generations = node.succeed(&["generations", "-o", "json"]);
    let generations: Value = serde_json::from_str(&generations.stdout).unwrap();
    assert_eq!(generations.as_array().unwrap().len(), 3);
    assert_eq!(generations[2]["is_active"], true);
    assert_eq!(generations[0]["is_pinned"], true);

    let diff = node.succeed(&["diff", "2", "3"]);
    assert!(diff.stdout.contains("- package b--1"), "{}", diff.stdout);
    let refused = node.run(&["remove", "a--2"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("is active"), "{}", refused.stderr);

    let would = node.succeed(&["gc", "--keep", "1", "--dry-run"]);
    assert!(would.stdout.contains("generation 2"), "{}", would.stdout);
    node.succeed(&["gc", "--keep", "1"]);
    assert_eq!(node.succeed(&["list"]).stdout, "a:\n  1\n  2\n");
    assert_eq!(node.run(&["check"]).code(), 0);
    node.succeed(&["uninstall"]);
    assert!(!node.path("root").exists());
}

#[test]
fn a_dry_run_changes_nothing_at_all() {
    let node = TestNode::new(&[("a--1", json!({"bin/x": ""}))]);
    for verb in [
        &["activate", "a--1", "--dry-run"][..],
        &["remove", "a--1", "--dry-run"],
        &["gc", "--dry-run"],
        &["setup", "--dry-run"],
        &["uninstall", "--dry-run"],
    ] {
        node.succeed(verb);
        assert!(!node.path("root").exists(), "{verb:?}");
    }
    node.succeed(&["activate", "a--1"]);
    let refused = node.run(&["remove", "a--1", "--dry-run"]);
    assert!(refused.stderr.contains("is active"), "{}", refused.stderr);
    node.succeed(&["pin", "--dry-run"]);
    let pinned = node.succeed(&["generations", "-o", "json"]).stdout;
    assert!(pinned.contains("\"is_pinned\": false"), "{pinned}");
    assert_eq!(node.run(&["unpin", "7", "--dry-run"]).code(), 1);
}

#[test]
fn every_reason_against_an_activation_is_told_at_once() {
    let node = TestNode::new(&[
        (
            "a--1",
            json!({"bin/x": "", "pkginfo.json": {"requires": ["zz"]}}),
        ),
        (
            "b--1",
            json!({"bin/x": "", "pkginfo.json": {"environment": {"PATH": "1"}}}),
        ),
    ]);
    let outcome = node.run(&["activate", "a--1", "b--1", "c--1"]);
    assert_eq!(outcome.code(), 1);
    for expected in ["zz", "PATH", "c--1", "bin/x"] {
        assert!(
            outcome.stderr.contains(expected),
            "{expected}: {}",
            outcome.stderr
        );
    }
    assert!(!node.path("root/generations").exists());
}

#[test]
fn checks_of_active_packages_are_listed_and_run() {
    let script = if cfg!(windows) { "a.cmd" } else { "a" };
    let node = TestNode::new(&[("a--1", json!({"check/readme.txt": "no program"}))]);
    let check = node.sandbox.write(
        &format!("repo/a--1/check/{script}"),
        if cfg!(windows) {
            "@exit /b 3\r\n"
        } else {
            "#!/bin/sh\necho sad; exit 3\n"
        },
    );
    executable(&check);
    node.succeed(&["activate", "a--1"]);
    let list = node.succeed(&["check", "--list"]);
    assert_eq!(list.stdout, format!("a--1\n - {script}\n"));
    assert!(
        list.stderr.contains("`readme.txt` is not executable"),
        "{}",
        list.stderr
    );
    let outcome = node.run(&["check"]);
    assert_eq!(outcome.code(), 1);
    assert!(outcome.stdout.contains(script), "{}", outcome.stdout);
}

#[cfg(unix)]
fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[cfg(windows)]
fn executable(_path: &Path) {}

#[test]
fn a_link_by_the_name_of_pkgpanda_serves_scripts_in_the_places_of_dcos() {
    let node = TestNode::new(&[]);
    let program = node.path(if cfg!(windows) {
        "pkgpanda.exe"
    } else {
        "pkgpanda"
    });
    fs_err::copy(env!("CARGO_BIN_EXE_transom"), &program).unwrap();
    executable(&program);
    node.sandbox
        .write("opt/mesosphere/packages/a--1/pkginfo.json", "{}");
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command
            .args(words)
            .args(["--no-systemd", "--rooted-systemd"])
            .env("TRANSOM_ROOT", node.sandbox.path())
            .current_dir(node.sandbox.path());
        node.sandbox.finish(&mut command)
    };
    assert_eq!(run(&["active"]).code(), 1);
    assert_eq!(run(&["list"]).stdout, "a--1\n");
    assert_eq!(run(&["activate", "a--1"]).code(), 0);
    assert_eq!(run(&["active"]).stdout, "a--1\n");
    assert!(node.path("opt/mesosphere/active").is_file());
}

#[test]
fn what_a_crashed_command_left_is_put_right_by_setup() {
    let node = TestNode::new(&[
        ("a--1", json!({"bin/x": ""})),
        ("a--2", json!({"bin/x": ""})),
    ]);
    node.succeed(&["activate", "a--1"]);
    let mut command = node.sandbox.command();
    command
        .args(["package", "activate", "a--2"])
        .args(node.options());
    command.env("TRANSOM_FAULT", "die@40");
    node.sandbox.finish(&mut command);
    node.succeed(&["setup"]);
    assert_eq!(node.run(&["check"]).code(), 0);
    let active = node.succeed(&["active"]).stdout;
    assert!(["a--1\n", "a--2\n"].contains(&active.as_str()), "{active}");
}

#[test]
fn the_first_boot_makes_active_what_the_installer_asked_for() {
    let node = TestNode::new(&[(
        "a--1",
        json!({"dcos.target.wants/a.service": "[Service]\nExecStart=x\n"}),
    )]);
    node.sandbox.write("root/bootstrap", "");
    node.sandbox
        .write("conf/setup-flags/active.json", r#"["a--1", "b--1"]"#);
    let missing = node.run(&["setup"]);
    assert_eq!(missing.code(), 1);
    assert!(
        missing.stderr.contains("repository-url"),
        "{}",
        missing.stderr
    );
    assert!(node.path("root/bootstrap").exists());

    node.package("b--1", &json!({}));
    node.succeed(&["setup"]);
    assert_eq!(node.succeed(&["active"]).stdout, "a--1\nb--1\n");
    assert!(!node.path("root/bootstrap").exists());
    assert!(node.path("root/dcos.target").is_file());

    node.sandbox.write("root/bootstrap", "");
    node.sandbox
        .write("conf/setup-flags/late-config.yaml", "{}");
    let late = node.run(&["setup"]);
    assert!(late.stderr.contains("not supported"), "{}", late.stderr);
}

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(node: &TestNode) -> Self {
        let mut child = node
            .sandbox
            .command()
            .args(["package", "serve", "--listen", "127.0.0.1:0"])
            .args(node.options())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stderr = child.stderr.take().unwrap();
        BufReader::new(stderr).read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { child, address }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_http_interface_answers_as_pkgpandas_did() {
    let node = TestNode::new(&[
        ("a--1", json!({})),
        ("a--2", json!({})),
        ("b--1", json!({"pkginfo.json": {"requires": ["zz"]}})),
    ]);
    let server = Server::start(&node);
    let ask = |method: &str, path: &str, body: &str| server.ask(method, path, body);
    assert_eq!(
        ask("GET", "/repository/", ""),
        (200, json!(["a--1", "a--2", "b--1"]))
    );
    assert_eq!(
        ask("GET", "/repository/a--1", ""),
        (200, json!({"id": "a--1", "name": "a", "version": "1"}))
    );
    assert_eq!(ask("GET", "/repository/zz--1", "").0, 404);
    assert_eq!(ask("GET", "/repository/bad", "").0, 404);
    assert_eq!(ask("GET", "/active/", ""), (200, json!([])));
    assert_eq!(ask("PUT", "/active/", "{}").0, 400);
    let (status, body) = ask("PUT", "/active/", r#"["a--1", "zz--1"]"#);
    assert_eq!(
        (status, &body["missing_packages"]),
        (409, &json!(["zz--1"]))
    );
    assert_eq!(ask("PUT", "/active/", r#"["b--1"]"#).0, 409);
    assert_eq!(ask("PUT", "/active/", r#"["a--1"]"#).0, 204);
    assert_eq!(ask("GET", "/active/", ""), (200, json!(["a--1"])));
    assert_eq!(ask("GET", "/active/a--1", "").0, 200);
    assert_eq!(ask("GET", "/active/a--2", "").0, 404);
    assert_eq!(ask("DELETE", "/repository/a--1", "").0, 409);
    assert_eq!(ask("DELETE", "/repository/a--2", "").0, 204);
    assert_eq!(ask("DELETE", "/repository/a--2", "").0, 404);
    assert_eq!(ask("POST", "/repository/c--1", "[]").0, 400);
    let url = r#"{"repository_url": "http://127.0.0.1:9"}"#;
    assert_eq!(ask("POST", "/repository/bad", url).0, 400);
    assert_eq!(ask("POST", "/repository/c--1", url).0, 500);
}

#[test]
fn the_http_interface_listens_to_nobody_from_outside() {
    let node = TestNode::new(&[]);
    let outcome = node.run(&["serve", "--listen", "0.0.0.0:8087"]);
    assert_eq!(outcome.code(), 2);
    assert!(outcome.stderr.contains("loopback"), "{}", outcome.stderr);
}
