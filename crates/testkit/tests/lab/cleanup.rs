//! Nothing of a lab is left, however its test ends: by itself, by a panic, or by `SIGKILL`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use fs_err as fs;
use transom_testkit::{Lab, eventually};

use crate::{SOON, serve};

/// Runs `ignored`, one of the tests below that is meant to be a victim, in a process of its own.
fn victim(ignored: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args([
            &format!("cleanup::{ignored}"),
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .args(["--test-threads", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(command)
}

/// A full lab for a victim: hosts of both kinds with programs, one of them paused. Returns the
/// ids of all processes.
fn full_lab(lab: &Lab) -> Result<Vec<String>> {
    let alpha = lab.linux_host("alpha")?;
    serve(&alpha)?;
    alpha
        .run(["setsid", "--fork", "sleep", "1000"])?
        .success()?;
    alpha
        .run(["mount", "-t", "tmpfs", "tmpfs", "/srv"])?
        .success()?;
    let beta = lab.windows_host("beta")?;
    let gamma = lab.linux_host("gamma")?;
    serve(&gamma)?;
    gamma.pause()?;
    let mut ids = Vec::new();
    for host in [alpha, beta, gamma] {
        ids.extend(
            host.processes()?
                .iter()
                .map(|process| process.id.to_string()),
        );
    }
    Ok(ids)
}

/// The mounts and links of the machine that look like those of a lab.
fn traces() -> Result<BTreeSet<String>> {
    let marks = ["/run/hosts", " disk-", " prefix-", "nsfs"];
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mounts = mounts
        .lines()
        .filter(|line| marks.iter().any(|mark| line.contains(mark)));
    let links = fs::read_to_string("/proc/net/dev")?;
    let links = links
        .lines()
        .filter_map(|line| line.split(':').next())
        .map(str::trim);
    let links = links.filter(|name| name.starts_with("port") || *name == "switch");
    Ok(mounts.chain(links).map(str::to_owned).collect())
}

/// The processes whose command line names the lab `name`: its keeper and its hosts' first ones.
fn keepers(name: &str) -> Result<Vec<String>> {
    let mark = format!("\0lab:{name}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // Not a process, or one that has just ended.
        let Ok(line) = fs::read(entry?.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(&mark) {
            found.push(line);
        }
    }
    Ok(found)
}

#[test]
#[ignore = "is a victim: run by `a_test_that_is_killed_leaves_nothing`"]
fn is_killed() {
    let lab = Lab::new(&format!(
        "killed-by-{}",
        std::os::unix::process::parent_id()
    ))
    .unwrap();
    let ids = full_lab(&lab).unwrap();
    println!("\nvictim {}", ids.join(" "));
    // Long enough to be killed; not for ever, should the killer be killed itself.
    std::thread::sleep(Duration::from_mins(1));
}

#[test]
fn a_test_that_is_killed_leaves_nothing() {
    let before = traces().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let name = format!("killed-by-{}", std::process::id());
    let mut child = victim("is_killed")
        .unwrap()
        .env("TMPDIR", temporary.path())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let announced = lines
        .map_while(std::result::Result::ok)
        .find(|line| line.starts_with("victim "));
    let kept = keepers(&name).unwrap().len();
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
        let kept = keepers(&name)?;
        ensure!(kept.is_empty(), "{kept:?} are left");
        let left: Vec<String> = traces()?.difference(&before).cloned().collect();
        ensure!(left.is_empty(), "{left:?} is left");
        let files = fs::read_dir(temporary.path())?.count();
        ensure!(files == 0, "{files} temporary files are left");
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
    let output = victim("panics").unwrap().output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(shown.contains("as planned"), "{shown}");
    assert!(shown.contains("stdout: listening on"), "{shown}");
    assert_eq!(keepers(&name).unwrap(), Vec::<String>::new());
}

#[test]
fn a_lab_that_is_dropped_has_ended_when_the_drop_returns() {
    let name = format!("dropped-{}", std::process::id());
    let lab = Lab::new(&name).unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let server = serve(&alpha).unwrap();
    alpha.pause().unwrap();
    assert_eq!(keepers(&name).unwrap().len(), 4, "{:?}", keepers(&name));
    drop(lab);
    assert_eq!(keepers(&name).unwrap(), Vec::<String>::new());
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
