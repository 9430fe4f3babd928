//! What a fake can do that a machine cannot: die and come back in one process, and reuse a number.

use super::*;

fn detached(program: &str) -> Spawn {
    Spawn {
        lifetime: Lifetime::Detached,
        ..Spawn::new(program)
    }
}

fn machine() -> FakeProcesses {
    let machine = FakeProcesses::new();
    machine.install("/family", Behaviour::runs().forks(2));
    machine
}

#[test]
fn after_a_restart_of_ours_detached_groups_live_and_leftovers_are_found() {
    let machine = machine();
    let tied = Spawn::new("/family");
    let free = detached("/family");
    let tied_main = machine.spawn(&tied).unwrap().identity().clone();
    let free_main = machine.spawn(&free).unwrap().identity().clone();

    machine.restart_owner();

    assert!(machine.adopt(&tied_main, &tied.group).unwrap().is_none());
    assert_eq!(machine.leftovers(&tied.group).len(), 2);
    machine.kill_group(&tied.group, Duration::ZERO).unwrap();
    assert_eq!(machine.leftovers(&tied.group), []);

    let adopted = machine.adopt(&free_main, &free.group).unwrap().unwrap();
    assert_eq!(adopted.members().len(), 3);
    machine.end(&free_main, Exit::Code(3));
    assert_eq!(adopted.wait(None).unwrap(), Some(Exit::Unknown));
}

#[test]
fn like_windows_a_group_dies_whole_with_its_owner_and_exit_codes_are_public() {
    let machine = machine().like_windows();
    let tied = Spawn::new("/family");
    let free = detached("/family");
    machine.spawn(&tied).unwrap();
    let free_main = machine.spawn(&free).unwrap().identity().clone();

    machine.restart_owner();

    assert_eq!(machine.leftovers(&tied.group), []);
    let adopted = machine.adopt(&free_main, &free.group).unwrap().unwrap();
    machine.end(&free_main, Exit::Code(3));
    assert_eq!(adopted.wait(None).unwrap(), Some(Exit::Code(3)));
}

#[test]
fn a_recycled_number_is_another_process() {
    let machine = machine();
    let spec = detached("/family");
    let main = machine.spawn(&spec).unwrap().identity().clone();
    machine.end(&main, Exit::Code(0));
    let stranger = machine.recycle(main.pid);
    assert_eq!(machine.identify(main.pid), Some(stranger.clone()));
    assert!(machine.adopt(&main, &spec.group).unwrap().is_none());
    machine.kill_group(&spec.group, Duration::ZERO).unwrap();
    assert_eq!(machine.identify(main.pid), Some(stranger));
}

#[test]
fn what_was_started_and_which_limits_were_refused_can_be_asked() {
    let machine = machine().refusing_limits("because");
    let mut spec = Spawn::new("/family");
    spec.limits.processes = Some(5);
    let process = machine.spawn(&spec).unwrap();
    assert_eq!(process.limits().not_enforced[0].reason, "because");
    assert_eq!(machine.spawned(), [spec]);
}

#[test]
fn a_program_that_ends_by_itself_does_so_after_its_time() {
    let machine = FakeProcesses::new();
    let delay = Duration::from_secs(1);
    machine.install("/late", Behaviour::dies(11).after(delay));
    let started = std::time::Instant::now();
    let process = machine.spawn(&Spawn::new("/late")).unwrap();
    assert_eq!(process.wait(None).unwrap(), Some(Exit::Signal(11)));
    assert!(started.elapsed() >= delay, "{:?}", started.elapsed());
}
