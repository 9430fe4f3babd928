//! Linux hosts: what they share (nothing but the switch), and what can happen to them.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use fs_err as fs;
use transom_testkit::{Lab, eventually};

use crate::{ECHO, PORT, SOON, page, serve};

#[test]
fn two_hosts_reach_each_other_by_name() {
    let lab = Lab::new("reach").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.linux_host("beta").unwrap();
    serve(&alpha).unwrap();
    serve(&beta).unwrap();

    assert_eq!(page(&alpha, &beta).unwrap(), "beta\n");
    assert_eq!(page(&beta, &alpha).unwrap(), "alpha\n");
    // The same from a program of the host, which looks the name up by itself.
    let url = format!("http://alpha:{PORT}/");
    let output = beta.run([ECHO, "get", &url]).unwrap().success().unwrap();
    assert_eq!(output.stdout, "alpha\n");
    alpha.wait_for_tcp(PORT, SOON).unwrap();
}

#[test]
fn every_host_has_its_own_names_addresses_and_ids() {
    let lab = Lab::new("names").unwrap();
    let hosts = [
        lab.linux_host("alpha").unwrap(),
        lab.linux_host("beta").unwrap(),
    ];
    let seen = |file: &str| {
        hosts
            .each_ref()
            .map(|host| host.run(["cat", file]).unwrap().stdout)
    };

    assert_eq!(seen("/proc/sys/kernel/hostname"), ["alpha\n", "beta\n"]);
    assert_eq!(seen("/etc/hostname"), ["alpha\n", "beta\n"]);
    assert_ne!(hosts[0].address(), hosts[1].address());
    for file in ["/etc/machine-id", "/proc/sys/kernel/random/boot_id"] {
        let [first, second] = seen(file);
        assert_ne!(first, second, "{file}");
        assert_ne!(
            first,
            fs::read_to_string(file).unwrap_or_default(),
            "{file}"
        );
    }
    for host in &hosts {
        let shown = host
            .run(["ip", "-brief", "address", "show", "eth0"])
            .unwrap()
            .stdout;
        assert!(shown.contains(&format!("{}/24", host.address())), "{shown}");
        let links = host.run(["ls", "/sys/class/net"]).unwrap().stdout;
        assert_eq!(links, "eth0\nlo\n");
    }
}

/// The mounts of the machine, but for those in its temporary folder: tests that run at the same time have theirs there.
fn machine_mounts() -> Result<Vec<String>> {
    let temporary = std::env::temp_dir();
    let is_of_a_test = |line: &str| {
        let place = line.split(' ').nth(4).map(Path::new);
        let folder = place.and_then(Path::parent);
        folder.is_some_and(|folder| folder.starts_with(&temporary))
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mounts = mounts.lines().filter(|line| !is_of_a_test(line));
    Ok(mounts.map(str::to_owned).collect())
}

#[test]
fn what_a_host_writes_is_seen_by_no_other_and_not_by_the_machine() {
    let lab = Lab::new("private").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.linux_host("beta").unwrap();
    let before = machine_mounts().unwrap();
    let mark = format!("testkit-private-{}", std::process::id());

    let places = [
        "/run", "/tmp", "/dev", "/dev/shm", "/etc", "/var/lib", "/opt",
    ];
    for place in places {
        alpha
            .run(["touch", &format!("{place}/{mark}")])
            .unwrap()
            .success()
            .unwrap();
    }
    alpha
        .run(["mount", "-t", "tmpfs", "tmpfs", "/srv"])
        .unwrap()
        .success()
        .unwrap();

    for place in places {
        let file = format!("{place}/{mark}");
        assert!(alpha.path(&file).unwrap().exists(), "{file}");
        assert!(!beta.path(&file).unwrap().exists(), "{file}");
        assert!(!fs::exists(&file).unwrap(), "{file}");
    }
    assert_eq!(machine_mounts().unwrap(), before);
    let mounts = |host: &transom_testkit::Host| host.run(["cat", "/proc/mounts"]).unwrap().stdout;
    assert!(mounts(&alpha).contains(" /srv tmpfs"));
    assert!(!mounts(&beta).contains(" /srv tmpfs"));
    // A host has neither the lab's own storage nor the disks of the others among its mounts.
    assert!(
        !mounts(&beta)
            .lines()
            .any(|line| line.starts_with("lab ") || line.contains("alpha"))
    );
}

#[test]
fn a_host_that_is_cut_off_is_unreachable_until_it_rejoins() {
    let lab = Lab::new("cut").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.linux_host("beta").unwrap();
    serve(&alpha).unwrap();
    assert_eq!(page(&beta, &alpha).unwrap(), "alpha\n");

    alpha.cut_off().unwrap();
    let get = |timeout: &str| {
        let url = format!("http://alpha:{PORT}/");
        beta.run(["timeout", timeout, ECHO, "get", &url]).unwrap()
    };
    serve(&beta).unwrap();
    assert!(!get("1").status.success());
    // It still reaches itself: only the cable is out.
    assert_eq!(page(&alpha, &alpha).unwrap(), "alpha\n");
    let carrier = alpha
        .run(["cat", "/sys/class/net/eth0/carrier"])
        .unwrap()
        .stdout;
    assert_eq!(carrier, "0\n");

    alpha.rejoin().unwrap();
    eventually("alpha to be back", SOON, || page(&beta, &alpha)).unwrap();
}

#[test]
fn a_paused_host_answers_only_after_it_is_resumed() {
    let lab = Lab::new("pause").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.linux_host("beta").unwrap();
    let server = serve(&alpha).unwrap();
    serve(&beta).unwrap();
    let url = format!("http://alpha:{PORT}/");

    alpha.pause().unwrap();
    assert!(
        alpha
            .processes()
            .unwrap()
            .iter()
            .all(|process| process.stopped)
    );
    assert!(
        !beta
            .processes()
            .unwrap()
            .iter()
            .any(|process| process.stopped)
    );
    let client = beta.spawn([ECHO, "get", &url]).unwrap();
    assert!(client.wait(Duration::from_millis(300)).is_err());

    alpha.resume().unwrap();
    assert!(client.wait(SOON).unwrap().success());
    assert_eq!(client.stdout().unwrap(), "alpha\n");
    assert!(server.is_running().unwrap());
}

#[test]
fn turning_a_host_off_ends_its_processes_and_keeps_only_its_disk() {
    let lab = Lab::new("power").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.linux_host("beta").unwrap();
    let server = serve(&alpha).unwrap();
    assert_eq!(page(&beta, &alpha).unwrap(), "alpha\n");
    // A process that nobody waits for, in a session of its own.
    alpha
        .run(["setsid", "--fork", "sleep", "1000"])
        .unwrap()
        .success()
        .unwrap();
    alpha.write("/var/lib/kept", "kept").unwrap();
    alpha.write("/run/lost", "lost").unwrap();
    alpha.write("/tmp/lost", "lost").unwrap();
    let boot = alpha.read("/proc/sys/kernel/random/boot_id").unwrap();
    let ids: Vec<u32> = alpha
        .processes()
        .unwrap()
        .iter()
        .map(|process| process.id)
        .collect();
    assert_eq!(ids.len(), 2, "{}", lab.logs());

    alpha.stop().unwrap();
    assert!(!server.is_running().unwrap());
    for id in ids {
        assert!(
            !fs::exists(format!("/proc/{id}")).unwrap(),
            "process {id} is left"
        );
    }
    let problem = alpha.run(["true"]).unwrap_err();
    assert_eq!(problem.to_string(), "host `alpha` is off");
    assert_eq!(alpha.read_text("/var/lib/kept").unwrap(), "kept");

    alpha.start().unwrap();
    assert_eq!(alpha.read_text("/var/lib/kept").unwrap(), "kept");
    for lost in ["/run/lost", "/tmp/lost"] {
        assert!(!alpha.path(lost).unwrap().exists(), "{lost}");
    }
    assert_ne!(alpha.read("/proc/sys/kernel/random/boot_id").unwrap(), boot);
    assert!(alpha.processes().unwrap().is_empty());
    serve(&alpha).unwrap();
    assert_eq!(page(&beta, &alpha).unwrap(), "alpha\n");
}

#[test]
fn a_host_that_was_cut_off_is_so_after_it_was_off() {
    let lab = Lab::new("stays-cut").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    alpha.cut_off().unwrap();
    alpha.stop().unwrap();
    alpha.start().unwrap();
    assert_eq!(
        alpha
            .run(["cat", "/sys/class/net/eth0/carrier"])
            .unwrap()
            .stdout,
        "0\n"
    );
}

#[test]
fn nobody_gets_out_of_a_lab_and_is_told_so_instead_of_waiting() {
    let lab = Lab::new("walls").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    // An address of the range for documentation: nobody has it. The switch answers for it, so nobody waits in vain.
    let error = alpha.http_get("http://198.51.100.1/").unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("No route to host"), "{text}");
}

#[test]
fn two_labs_at_a_time_have_the_same_host_names_and_do_not_meet() {
    let labs = [Lab::new("one").unwrap(), Lab::new("two").unwrap()];
    let [first, second] = labs.each_ref().map(|lab| lab.linux_host("alpha").unwrap());
    serve(&first).unwrap();

    assert_ne!(first.address(), second.address());
    assert_eq!(page(&first, &first).unwrap(), "alpha\n");
    assert!(
        second
            .http_get(&format!("http://{}:{PORT}/", first.address()))
            .is_err()
    );
    assert_eq!(second.processes().unwrap(), []);
}

#[test]
fn a_lab_takes_no_address_that_the_machine_has_a_way_to() {
    let lab = Lab::new("routes").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    // The machine must not know the subnet better than by its default route, if it has one.
    let target = alpha.address().to_string();
    let output = std::process::Command::new("ip")
        .args(["route", "get", &target])
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let local: Vec<Ipv4Addr> = shown
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .filter(|it| *it != alpha.address())
        .collect();
    let default = std::process::Command::new("ip")
        .args(["route", "show", "default"])
        .output()
        .unwrap();
    let default = String::from_utf8(default.stdout).unwrap();
    assert!(!shown.starts_with("local"), "{shown}");
    assert!(
        shown.is_empty() || local.iter().any(|it| default.contains(&it.to_string())),
        "{shown}"
    );
}

#[test]
fn names_that_are_taken_or_unusable_are_refused() {
    let lab = Lab::new("refused").unwrap();
    lab.linux_host("alpha").unwrap();
    assert_eq!(
        lab.linux_host("alpha").unwrap_err().to_string(),
        "there is a host `alpha`"
    );
    for name in ["", "Alpha", "../alpha", "a-name-that-is-too-long"] {
        assert!(lab.linux_host(name).is_err(), "{name}");
    }
}

#[test]
fn logs_show_the_state_of_each_host_and_what_its_programs_said() {
    let lab = Lab::new("logs").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    serve(&alpha).unwrap();
    alpha.run(["sh", "-c", "echo trouble >&2; exit 3"]).unwrap();
    lab.linux_host("beta").unwrap().stop().unwrap();
    let logs = lab.logs();
    for part in [
        "lab `logs`",
        "== host `alpha`",
        "on, 1 processes",
        "stdout: listening on 0.0.0.0:8080",
        "exit status: 3",
        "stderr: trouble",
        "== host `beta`",
        ": off",
    ] {
        assert!(logs.contains(part), "`{part}` is not in\n{logs}");
    }
}
