//! What goes wrong: files, names, places, neighbours. Invariant: each mistake has a message that names
//! it, an exit code that is not 0, and no effect on anything else.

use std::io::Write as _;
use std::path::Path;

use crate::harness::{Machine, finish};

const WEB: (&str, &str) = ("web.service", "[Service]\nExecStart={echo} act serve\n");

#[cfg(unix)]
fn connect(endpoint: &str) -> std::os::unix::net::UnixStream {
    let stream = std::os::unix::net::UnixStream::connect(endpoint).expect("the supervisor listens");
    stream
        .set_write_timeout(Some(std::time::Duration::from_secs(2)))
        .expect("a socket takes a time limit");
    stream
}

/// A pipe has no time limit for writing, so a thread does it, which ends when the other side hangs up.
#[cfg(windows)]
fn connect(endpoint: &str) -> impl std::io::Write {
    let (sender, pieces) = std::sync::mpsc::channel::<Vec<u8>>();
    let mut pipe = crate::harness::wait_for("a free end of the pipe", || {
        fs_err::OpenOptions::new()
            .read(true)
            .write(true)
            .open(endpoint)
            .ok()
    });
    std::thread::spawn(move || {
        for piece in pieces {
            let _ = pipe.write_all(&piece);
        }
    });
    Aside(sender)
}

#[cfg(windows)]
struct Aside(std::sync::mpsc::Sender<Vec<u8>>);

#[cfg(windows)]
impl std::io::Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_unknown_directive_is_reported_with_its_line_and_ignored() {
    let machine = Machine::with(&[]);
    machine.unit(
        "odd.service",
        "[Unit]\nDescription=Odd\n\n[Service]\nFrobnicate=3\nPrivateTmp=yes\nExecStart={echo} act serve\n[Oddities]\nA=b\n",
    );
    machine
        .service(["daemon-reload"])
        .exits(0)
        .says("odd.service:5: Frobnicate=")
        .says("odd.service:6: PrivateTmp=")
        .says("odd.service:8: ");
    machine.ok(["start", "odd"]);
    machine
        .service(["status", "odd"])
        .exits(0)
        .says("odd.service:5: Frobnicate=");
}

#[test]
fn a_broken_unit_file_is_refused_with_the_reason() {
    let machine = Machine::with(&[
        WEB,
        ("broken.service", "[Service]\n\nExecStart=relative/path x\n"),
        (
            "type.service",
            "[Service]\nType=sometimes\nExecStart={echo} act serve\n",
        ),
        ("empty.service", "[Unit]\nDescription=Nothing to do\n"),
        ("quote.service", "[Service]\nExecStart={echo} \"act\n"),
        ("binary.service", "\u{0}\u{1}\u{2}[[[\n=\n"),
        ("when.timer", "[Timer]\nOnCalendar=whenever\n"),
    ]);
    machine
        .service(["start", "broken"])
        .exits(1)
        .says("broken.service:3")
        .says("relative/path");
    assert_eq!(machine.property("broken", "LoadState"), "bad-setting");
    machine
        .service(["status", "broken"])
        .exits(3)
        .says("bad-setting")
        .says("broken.service:3");
    machine
        .service(["start", "type"])
        .exits(1)
        .says("type.service:2")
        .says("sometimes");
    machine
        .service(["start", "empty"])
        .exits(1)
        .says("ExecStart=");
    machine
        .service(["start", "quote"])
        .exits(1)
        .says("quote.service:2");
    machine
        .service(["start", "binary"])
        .exits(1)
        .says("binary.service");
    machine.service(["start", "when.timer"]).exits(1);
    machine
        .service(["status", "when.timer"])
        .exits(3)
        .says("when.timer:2")
        .says("whenever");
    // The mistake of one is not the others' problem.
    machine.ok(["start", "web"]);
    machine.unit("broken.service", WEB.1);
    machine.ok(["daemon-reload"]);
    machine.ok(["start", "broken"]);
}

#[test]
fn a_running_service_survives_that_its_file_breaks_or_goes() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    let pid = machine.pid("web");
    let path = machine.unit("web.service", "[Service\nExecStart=\n");
    machine
        .service(["daemon-reload"])
        .exits(0)
        .says("web.service:1");
    assert_eq!(machine.pid("web"), pid);
    fs_err::remove_file(path).unwrap();
    machine.ok(["daemon-reload"]);
    assert_eq!(machine.pid("web"), pid);
    machine.ok(["stop", "web"]);
    machine.wait_until_empty();
    machine.service(["start", "web"]).exits(5);
}

#[test]
fn a_missing_program_fails_the_start_and_is_named() {
    let machine = Machine::with(&[
        ("gone.service", "[Service]\nExecStart={root}{/}no-program\n"),
        (
            "exec.service",
            "[Service]\nType=exec\nExecStart={root}{/}no-program\n",
        ),
    ]);
    machine
        .service(["start", "gone"])
        .exits(1)
        .says("no-program");
    assert_eq!(machine.property("gone", "ExecMainStatus"), "203");
    machine
        .service(["status", "gone"])
        .exits(3)
        .says("no-program");
    machine
        .service(["start", "exec"])
        .exits(1)
        .says("no-program");
    machine.wait_until_empty();
}

#[test]
fn unknown_units_are_told_apart_from_stopped_ones_by_exit_codes() {
    let machine = Machine::with(&[WEB]);
    for verb in ["start", "stop", "restart", "reload"] {
        machine
            .service([verb, "nope"])
            .exits(5)
            .says("nope.service");
    }
    machine
        .service(["status", "nope"])
        .exits(4)
        .says("nope.service");
    assert_eq!(
        machine.service(["is-active", "nope"]).exits(4).stdout,
        "inactive\n"
    );
    machine.service(["is-active", "nope", "web"]).exits(3);
    machine.service(["is-failed", "nope"]).exits(1);
    assert_eq!(machine.property("nope", "LoadState"), "not-found");
    assert_ne!(machine.service(["cat", "nope"]).code, 0);
    assert_ne!(machine.service(["enable", "nope"]).code, 0);
    assert_ne!(machine.service(["start", "bad/name"]).code, 0);
    let error = finish(
        machine
            .command(Path::new(env!("CARGO_BIN_EXE_transom")))
            .args(["service", "-o", "json", "start", "nope"]),
    );
    let json: serde_json::Value = serde_json::from_str(&error.stderr).unwrap();
    assert_eq!(json["error"]["code"], 5);
    machine.ok(["start", "web"]);
    machine.service(["start", "web", "nope"]).exits(5);
}

#[test]
fn a_misspelt_verb_is_answered_with_the_right_one() {
    let machine = Machine::off();
    machine.service(["strat", "web"]).exits(2).says("`start`");
    machine
        .service(["reset-faild"])
        .exits(2)
        .says("`reset-failed`");
    machine.service(["start"]).exits(2).says("UNIT");
}

#[test]
fn without_a_supervisor_every_verb_says_so() {
    let machine = Machine::off();
    machine.unit(WEB.0, WEB.1);
    for verb in ["start", "stop", "status", "is-active"] {
        let outcome = machine
            .service([verb, "web"])
            .says("no supervisor is running");
        assert_ne!(outcome.code, 0, "{outcome}");
    }
}

#[test]
fn a_place_that_cannot_be_written_ends_the_supervisor_with_a_message() {
    for place in ["run", "var"] {
        let mut machine = Machine::off();
        let path = machine.place(place);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "in the way").unwrap();
        machine.spawn_daemon();
        assert!(!machine.wait_for_daemon().success());
        let log = machine.daemon_log();
        assert!(log.contains(&path.display().to_string()), "{log}");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "in the way");
    }
}

#[test]
fn a_second_supervisor_is_refused_and_the_first_one_goes_on() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    machine
        .service(["daemon"])
        .exits(1)
        .says("another supervisor is running");
    machine.service(["is-active", "web"]).exits(0);
}

#[test]
fn garbage_at_the_control_endpoint_hurts_nobody() {
    let mut machine = Machine::off();
    machine.unit(WEB.0, WEB.1);
    // The message that nobody is there names the endpoint.
    let message = machine.service(["status", "web"]).stderr;
    let (_, rest) = message.split_once("listens at `").unwrap();
    let (endpoint, _) = rest.split_once('`').unwrap();
    machine.boot();
    machine.ok(["start", "web"]);

    let mut held = Vec::new();
    for bytes in [
        Vec::new(),
        b"\n\n\n".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        b"{\"verb\":".to_vec(),
        b"{}\nnull\n[[[[\n".to_vec(),
        vec![0xff; 100_000],
        vec![b'['; 3_000_000],
    ] {
        let mut stream = connect(endpoint);
        // It may hang up before it has read everything.
        let _ = stream.write_all(&bytes);
        held.push(stream);
        machine.service(["is-active", "web"]).exits(0);
    }
    drop(held);
    machine.ok(["stop", "web"]);
}

#[test]
fn a_log_that_cannot_be_written_does_not_hang_a_service() {
    let machine = Machine::with(&[WEB]);
    let logs = machine.place("var/log/transom/units");
    fs_err::create_dir_all(logs.join("web.service.log")).unwrap();
    let started = machine.service(["start", "web"]);
    // Either it runs without a log, or it fails with a reason; it is never left in between.
    if started.code == 0 {
        machine.service(["is-active", "web"]).exits(0);
    } else {
        started.exits(1).says("web.service");
    }
    machine.ok(["stop", "web"]);
    machine.wait_until_empty();
}
