//! A service's whole life on both systems: from `enable` over the death of everything around it to a
//! stop of which nothing is left.

use anyhow::{Result, ensure};
use transom_testkit::{Process, Running, eventually};

use crate::{NEIGHBOUR, Node, SOON, Service, WEB, mixed_lab, on_each};

#[test]
fn one_unit_file_runs_a_web_server_on_linux_and_on_windows() {
    let (_lab, nodes) = mixed_lab("one-file").unwrap();
    let [alpha, beta] = &nodes;
    assert!(alpha.has_same_file(beta, WEB).unwrap());

    let started = on_each(&nodes, Started::on).unwrap();
    on_each(&nodes, |node| {
        for other in &nodes {
            node.wait_for_page_of(other)?;
        }
        Ok(())
    })
    .unwrap();

    on_each(&started, |started| {
        let node = &started.node;
        let running = comes_back_after_its_main_process_was_killed(node)?;
        started.daemon.kill()?;
        let daemon = is_taken_over_by_the_next_supervisor(node, &running)?;
        stops_gracefully(node)?;
        started.ends_without_a_trace(&daemon)
    })
    .unwrap();
}

#[test]
fn a_service_that_died_while_no_supervisor_was_there_comes_back_with_the_next() {
    let (_lab, nodes) = mixed_lab("died-alone").unwrap();
    on_each(&nodes, |node| {
        let started = Started::on(node)?;
        node.wait_for_page_of(node)?;
        let first = node.wait_until_active(WEB)?;

        started.daemon.kill()?;
        node.kill(first.pid)?;
        eventually("the web server to be gone", SOON, || {
            ensure!(node.page_of(node).is_err(), "it answers");
            Ok(())
        })?;
        let daemon = node.start_supervisor()?;
        wait_until_restarted(node, &first)?;
        started.ends_without_a_trace(&daemon)
    })
    .unwrap();
}

/// A node with its supervisor and both services, and how it was before.
struct Started {
    node: Node,
    before: Vec<Process>,
    daemon: Running,
    neighbour: Service,
}

impl Started {
    fn on(node: &Node) -> Result<Self> {
        let before = node.host.processes()?;
        let daemon = node.start_supervisor()?;
        node.service(&["enable", "--now", WEB, NEIGHBOUR])?;
        Ok(Self {
            node: node.clone(),
            before,
            daemon,
            neighbour: node.wait_until_active(NEIGHBOUR)?,
        })
    }

    /// The other service has noticed nothing, and when the last supervisor ends, all ends.
    fn ends_without_a_trace(&self, last: &Running) -> Result<()> {
        let now = self.node.state(NEIGHBOUR)?;
        ensure!(now == self.neighbour, "{now:?}, not {:?}", self.neighbour);
        self.node.shut_down(last)?;
        self.node.wait_until_only(&self.before)
    }
}

impl AsRef<Node> for Started {
    fn as_ref(&self) -> &Node {
        &self.node
    }
}

fn comes_back_after_its_main_process_was_killed(node: &Node) -> Result<Service> {
    let first = node.wait_until_active(WEB)?;
    ensure!(first.restarts == 0, "{first:?}");
    node.kill(first.pid)?;
    wait_until_restarted(node, &first)
}

/// Waits until the web server runs again, as another process, and answers.
fn wait_until_restarted(node: &Node, first: &Service) -> Result<Service> {
    let second = eventually("the service to come back", SOON, || {
        let state = node.state(WEB)?;
        ensure!(state.active == "active" && state.restarts == 1, "{state:?}");
        ensure!(state.pid != 0 && state.pid != first.pid, "{state:?}");
        Ok(state)
    })?;
    node.wait_for_page_of(node)?;
    Ok(second)
}

/// The supervisor has just been killed, without a chance to do anything.
fn is_taken_over_by_the_next_supervisor(node: &Node, running: &Service) -> Result<Running> {
    let refused = node.try_service(&["show", WEB])?;
    ensure!(
        !refused.status.success(),
        "there is still a supervisor: {refused:?}"
    );
    let page = node.page_of(node)?;
    ensure!(page == node.host.name(), "the web server says `{page}`");

    let daemon = node.start_supervisor()?;
    let adopted = node.wait_until_active(WEB)?;
    ensure!(adopted == *running, "first {running:?}, then {adopted:?}");
    node.wait_for_page_of(node)?;
    Ok(daemon)
}

fn stops_gracefully(node: &Node) -> Result<()> {
    ensure!(
        !node.logs(WEB)?.contains(": stopping"),
        "it was never asked to stop"
    );
    node.service(&["stop", WEB])?;
    let state = node.state(WEB)?;
    ensure!(state.active == "inactive" && state.pid == 0, "{state:?}");
    let logs = node.logs(WEB)?;
    ensure!(
        logs.contains(": stopping"),
        "it was not asked to stop:\n{logs}"
    );
    ensure!(node.page_of(node).is_err(), "it still answers");
    Ok(())
}
