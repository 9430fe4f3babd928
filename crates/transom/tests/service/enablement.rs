//! enable, disable, mask, and the boot that follows. Invariant: what is enabled survives a restart of
//! the machine's supervisor, what is masked cannot run.

use crate::harness::Machine;

const WEB: (&str, &str) = (
    "web.service",
    "[Service]\nExecStart={echo} act serve\n[Install]\nWantedBy=multi-user.target\n",
);

#[test]
fn an_enabled_unit_starts_at_boot_and_a_disabled_one_does_not() {
    let mut machine = Machine::with(&[WEB]);
    assert_eq!(
        machine.service(["is-enabled", "web"]).exits(1).stdout,
        "disabled\n"
    );
    machine.ok(["enable", "web"]);
    assert_eq!(machine.ok(["is-enabled", "web"]), "enabled\n");
    machine.service(["is-active", "web"]).exits(3);

    machine.ok(["shutdown"]);
    machine.wait_for_daemon();
    machine.boot();
    machine.wait_for_state("web", "active");

    machine.ok(["disable", "web"]);
    machine.service(["is-enabled", "web"]).exits(1);
    machine.service(["is-active", "web"]).exits(0);
    machine.ok(["shutdown"]);
    machine.wait_for_daemon();
    machine.boot();
    machine.wait_for_state("multi-user.target", "active");
    machine.service(["is-active", "web"]).exits(3);
}

#[test]
fn now_starts_and_stops_too() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["enable", "--now", "web"]);
    machine.service(["is-active", "web"]).exits(0);
    machine.ok(["enable", "web"]);
    machine.ok(["disable", "--now", "web"]);
    machine.service(["is-active", "web"]).exits(3);
    machine.service(["is-enabled", "web"]).exits(1);
}

#[test]
fn enabling_works_on_a_machine_that_is_off() {
    let mut machine = Machine::off();
    machine.unit(WEB.0, WEB.1);
    machine.ok(["enable", "web"]);
    assert_eq!(machine.ok(["is-enabled", "web"]), "enabled\n");
    machine.boot();
    machine.wait_for_state("web", "active");
}

#[test]
fn a_masked_unit_cannot_be_started_until_it_is_unmasked() {
    let machine = Machine::with(&[]);
    // Below the machine's own folder, as a package brings it.
    let path = machine.unit(WEB.0, WEB.1);
    machine.ok(["daemon-reload"]);
    machine
        .service(["mask", "web"])
        .exits(1)
        .says("already exists");
    fs_err::remove_file(path).unwrap();

    machine.ok(["mask", "web"]);
    assert_eq!(
        machine.service(["is-enabled", "web"]).exits(1).stdout,
        "masked\n"
    );
    machine.service(["start", "web"]).exits(1).says("masked");
    assert_eq!(machine.property("web", "LoadState"), "masked");
    machine.service(["enable", "web"]).exits(1).says("masked");

    machine.ok(["unmask", "web"]);
    machine.unit(WEB.0, WEB.1);
    machine.ok(["daemon-reload"]);
    machine.ok(["start", "web"]);
}

#[test]
fn a_static_unit_is_said_to_be_static() {
    let machine = Machine::with(&[("plain.service", "[Service]\nExecStart={echo} act serve\n")]);
    assert_eq!(machine.ok(["is-enabled", "plain"]), "static\n");
    machine
        .service(["enable", "plain"])
        .exits(0)
        .says("no installation config");
    assert_eq!(
        machine.service(["is-enabled", "nope"]).exits(4).stdout,
        "not-found\n"
    );
}

#[test]
fn an_alias_is_another_name_of_the_same_unit() {
    let machine = Machine::with(&[(
        "web.service",
        "[Service]\nExecStart={echo} act serve\n[Install]\nAlias=www.service\n",
    )]);
    machine.ok(["enable", "web"]);
    machine.ok(["start", "www"]);
    assert_eq!(machine.pid("www"), machine.pid("web"));
    assert_eq!(machine.property("www", "Id"), "web.service");
    machine.ok(["stop", "web"]);
    machine.service(["is-active", "www"]).exits(3);
}

#[test]
fn a_template_is_enabled_by_instance() {
    let mut machine = Machine::off();
    machine.unit(
        "job@.service",
        "[Service]\nExecStart={echo} act say:instance-%i serve\n[Install]\nWantedBy=multi-user.target\n",
    );
    machine.ok(["enable", "job@seven"]);
    machine.boot();
    machine.wait_for_log("job@seven", "instance-seven");
    machine.wait_for_state("job@seven", "active");
}
