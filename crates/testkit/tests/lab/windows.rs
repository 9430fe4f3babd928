//! Windows hosts: the same things, with programs for Windows.

use anyhow::Result;
use transom_testkit::{Host, Lab, Running, eventually, windows_echo_program};

use crate::{ECHO, PORT, SOON, page, serve};

const WINDOWS_ECHO: &str = r"C:\Program Files\Testkit\testkit-echo.exe";

/// Starts the web server on a Windows host and waits until it answers.
fn serve_on_windows(host: &Host) -> Result<Running> {
    host.put_file(&windows_echo_program()?, WINDOWS_ECHO)?;
    let port = PORT.to_string();
    let server = host.spawn([
        WINDOWS_ECHO,
        "serve",
        "--port",
        &port,
        "--name",
        host.name(),
    ])?;
    server.wait_for_output("listening on", SOON)?;
    Ok(server)
}

#[test]
fn linux_and_windows_hosts_reach_each_other() {
    let lab = Lab::new("mixed").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.windows_host("beta").unwrap();
    serve(&alpha).unwrap();
    let server = serve_on_windows(&beta).unwrap();

    assert_eq!(page(&alpha, &beta).unwrap(), "beta\n");
    let to_beta = format!("http://beta:{PORT}/");
    assert_eq!(
        alpha
            .run([ECHO, "get", &to_beta])
            .unwrap()
            .success()
            .unwrap()
            .stdout,
        "beta\n"
    );
    let to_alpha = format!("http://alpha:{PORT}/");
    let output = beta
        .run([WINDOWS_ECHO, "get", &to_alpha])
        .unwrap()
        .success()
        .unwrap();
    assert_eq!(output.stdout.trim_end(), "alpha");
    beta.wait_for_tcp(PORT, SOON).unwrap();

    server.terminate().unwrap();
    assert!(server.wait(SOON).unwrap().success());
    assert!(
        server.stdout().unwrap().contains("stopping"),
        "{}",
        lab.logs()
    );
}

#[test]
fn a_windows_host_has_its_own_name_drive_and_exit_codes() {
    let lab = Lab::new("windows").unwrap();
    let beta = lab.windows_host("beta").unwrap();
    let cmd = |line: &str| {
        beta.run([r"C:\windows\system32\cmd.exe", "/c", line])
            .unwrap()
    };

    assert_eq!(
        beta.run(["hostname"]).unwrap().stdout.trim().to_lowercase(),
        "beta"
    );
    assert_eq!(
        cmd("echo %COMPUTERNAME%").stdout.trim().to_lowercase(),
        "beta"
    );
    assert_eq!(cmd("exit 7").status.code(), Some(7));
    beta.write(r"C:\Data\In.txt", "from outside").unwrap();
    assert_eq!(cmd(r"type C:\data\in.TXT").stdout.trim(), "from outside");
    cmd(r"echo from inside>C:\data\out.txt").success().unwrap();
    assert_eq!(
        beta.read_text(r"c:/DATA/OUT.TXT").unwrap().trim(),
        "from inside"
    );
    let names: Vec<String> = beta
        .processes()
        .unwrap()
        .into_iter()
        .map(|process| process.name)
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("wineserver")),
        "{names:?}"
    );
    assert!(names.iter().any(|name| name == "services.exe"), "{names:?}");
}

#[test]
fn a_windows_host_survives_pause_and_power_off_with_its_disk() {
    let lab = Lab::new("winpower").unwrap();
    let alpha = lab.linux_host("alpha").unwrap();
    let beta = lab.windows_host("beta").unwrap();
    let server = serve_on_windows(&beta).unwrap();
    beta.pause().unwrap();
    // One that ended at that moment is there until the one who collects it goes on.
    assert!(
        beta.processes()
            .unwrap()
            .iter()
            .all(|process| process.stopped || process.ended)
    );
    beta.resume().unwrap();
    assert_eq!(page(&alpha, &beta).unwrap(), "beta\n");

    beta.cut_off().unwrap();
    assert!(
        alpha
            .run([
                "timeout",
                "1",
                "bash",
                "-c",
                &format!("</dev/tcp/beta/{PORT}")
            ])
            .unwrap()
            .success()
            .is_err()
    );
    beta.rejoin().unwrap();
    eventually("beta to be back", SOON, || page(&alpha, &beta)).unwrap();

    beta.write(r"C:\Data\kept.txt", "kept").unwrap();
    beta.stop().unwrap();
    assert!(!server.is_running().unwrap());
    assert_eq!(beta.read_text(r"C:\Data\kept.txt").unwrap(), "kept");
    beta.start().unwrap();
    assert_eq!(beta.read_text(r"C:\data\kept.txt").unwrap(), "kept");
    serve_on_windows(&beta).unwrap();
    assert_eq!(page(&alpha, &beta).unwrap(), "beta\n");
}

#[test]
fn the_registry_of_a_windows_host_outlasts_power_cuts() {
    let lab = Lab::new("registry").unwrap();
    let beta = lab.windows_host("beta").unwrap();
    let key = r"HKLM\Software\Testkit";
    let reg = |words: &[&str]| {
        let line = ["reg"].iter().chain(words).copied();
        beta.run(line).unwrap().success().unwrap().stdout
    };
    reg(&["add", key, "/v", "first", "/d", "kept"]);
    beta.stop().unwrap();
    beta.start().unwrap();
    assert!(reg(&["query", key]).contains("kept"));

    reg(&["add", key, "/v", "second", "/d", "kept too"]);
    beta.pause().unwrap();
    beta.stop().unwrap();
    beta.start().unwrap();
    assert!(reg(&["query", key]).contains("kept too"));
}
