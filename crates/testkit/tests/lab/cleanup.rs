//! Nothing of a lab is left, however its test ends: by itself, by a panic, or by `SIGKILL`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::ensure;
use fs_err as fs;
use transom_testkit::{Lab, eventually};

use crate::{SOON, serve};

/// Runs `ignored`, one of the tests below that is meant to be a victim, in a process of its own.
fn victim(ignored: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            &format!("cleanup::{ignored}"),
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .args(["--test-threads", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A full lab for a victim: hosts of both kinds with programs, one of them paused. Returns the
/// ids of all processes and the namespaces they are in.
fn full_lab(lab: &Lab) -> Vec<String> {
    let alpha = lab.linux_host("alpha").unwrap();
    serve(&alpha).unwrap();
    alpha
        .run(["setsid", "--fork", "sleep", "1000"])
        .unwrap()
        .success()
        .unwrap();
    alpha
        .run(["mount", "-t", "tmpfs", "tmpfs", "/srv"])
        .unwrap()
        .success()
        .unwrap();
    let beta = lab.windows_host("beta").unwrap();
    let gamma = lab.linux_host("gamma").unwrap();
    serve(&gamma).unwrap();
    gamma.pause().unwrap();
    [alpha, beta, gamma]
        .iter()
        .flat_map(|host| host.processes().unwrap())
        .map(|process| process.id.to_string())
        .collect()
}

/// What the machine has that a lab could leave behind, outside of `/proc`.
fn traces() -> BTreeSet<String> {
    let mut traces = BTreeSet::new();
    for folder in ["/tmp", "/run", "/run/netns", "/var/run", "/dev/shm"] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if ["lab", "wine", "transom", "testkit"]
                .iter()
                .any(|part| name.contains(part))
            {
                traces.insert(format!("{folder}/{name}"));
            }
        }
    }
    for file in ["/proc/self/mountinfo", "/proc/net/dev"] {
        let text = fs::read_to_string(file).unwrap();
        traces.extend(text.lines().filter_map(|line| {
            let name = line.split(':').next()?.trim();
            let mount = line.contains("/run/hosts") || line.contains("overlay");
            (mount || name.starts_with("port") || name == "switch").then(|| line.to_owned())
        }));
    }
    for entry in fs::read_dir("/sys/fs/cgroup/freezer")
        .into_iter()
        .flatten()
        .flatten()
    {
        traces.insert(entry.path().display().to_string());
    }
    traces
}

/// The processes whose command line names the lab `name`: its keeper and its hosts' first ones.
fn keepers(name: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.contains(&format!("\0lab:{name}")))
        .collect()
}

#[test]
#[ignore = "is a victim: run by `a_test_that_is_killed_leaves_nothing`"]
fn is_killed() {
    let lab = Lab::new(&format!(
        "killed-by-{}",
        std::os::unix::process::parent_id()
    ))
    .unwrap();
    let ids = full_lab(&lab);
    println!("\nvictim {}", ids.join(" "));
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_test_that_is_killed_leaves_nothing() {
    let before = traces();
    let name = format!("killed-by-{}", std::process::id());
    let mut child = victim("is_killed").spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let announced = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("victim "));
    let kept = keepers(&name).len();
    child.kill().unwrap();
    child.wait().unwrap();

    let announced = announced.expect("the victim did not get its lab");
    let ids: Vec<&str> = announced.split(' ').skip(1).collect();
    assert!(
        ids.len() > 8,
        "two web servers, a sleeper and a whole Windows: {announced}"
    );
    assert!(kept >= 4, "{kept}");
    eventually("the end of all that the victim had", SOON, || {
        for id in &ids {
            ensure!(!fs::exists(format!("/proc/{id}"))?, "process {id} is left");
        }
        ensure!(keepers(&name).is_empty(), "{:?} are left", keepers(&name));
        let left: Vec<String> = traces().difference(&before).cloned().collect();
        ensure!(left.is_empty(), "{left:?} is left");
        Ok(())
    })
    .unwrap();
}

#[test]
#[ignore = "is a victim: run by `a_test_that_panics_shows_its_logs_and_leaves_nothing`"]
fn panics() {
    let lab = Lab::new(&format!(
        "panics-by-{}",
        std::os::unix::process::parent_id()
    ))
    .unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    serve(&alpha).unwrap();
    panic!("as planned");
}

#[test]
fn a_test_that_panics_shows_its_logs_and_leaves_nothing() {
    let name = format!("panics-by-{}", std::process::id());
    let output = victim("panics").output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(shown.contains("as planned"), "{shown}");
    assert!(shown.contains("stdout: listening on"), "{shown}");
    assert_eq!(keepers(&name), Vec::<String>::new());
}

#[test]
fn a_lab_that_is_dropped_has_ended_when_the_drop_returns() {
    let name = format!("dropped-{}", std::process::id());
    let lab = Lab::new(&name).unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let server = serve(&alpha).unwrap();
    alpha.pause().unwrap();
    assert_eq!(keepers(&name).len(), 4, "{:?}", keepers(&name));
    drop(lab);
    assert_eq!(keepers(&name), Vec::<String>::new());
    assert!(!server.is_running().unwrap());
    assert!(
        server.stdout().unwrap().contains("listening"),
        "logs can still be read"
    );
    assert_eq!(
        alpha.run(["true"]).unwrap_err().to_string(),
        "host `alpha` is off"
    );
    assert!(alpha.start().is_err());
}
