//! What the facts of a machine mean for a cluster. Pure: a fact goes in, a finding comes out.

mod linux;
mod windows;

pub use linux::judge_linux;
pub use windows::judge_windows;

use super::{Area, Finding, PORTS, PortState, Purpose, State};

/// A finding without a way forward; most need none.
fn finding(id: &str, area: Area, what: &str, state: State, detail: impl Into<String>) -> Finding {
    Finding {
        id: id.to_owned(),
        area,
        what: what.to_owned(),
        state,
        detail: detail.into(),
        way_forward: None,
        needed_for: Vec::new(),
    }
}

impl Finding {
    fn needed_for(self, purposes: &[Purpose]) -> Self {
        Self {
            needed_for: purposes.to_vec(),
            ..self
        }
    }

    /// Says what to do, unless there is nothing to do.
    fn otherwise(self, way_forward: &str) -> Self {
        let way_forward =
            matches!(self.state, State::Missing | State::Warning).then(|| way_forward.to_owned());
        Self {
            way_forward,
            ..self
        }
    }
}

/// The state of something that is there, is not there, or could not be seen.
const fn presence(seen: Option<bool>, absent: State) -> State {
    match seen {
        Some(true) => State::Ok,
        Some(false) => absent,
        None => State::Unknown,
    }
}

const fn yes_no(seen: Option<bool>) -> &'static str {
    match seen {
        Some(true) => "yes",
        Some(false) => "no",
        None => "could not be seen",
    }
}

fn judge_ports(ports: &[(u16, PortState)]) -> impl Iterator<Item = Finding> {
    ports.iter().map(|(port, state)| {
        let (usage, purpose) = PORTS
            .iter()
            .find(|(known, _, _)| known == port)
            .map_or(("a service", Purpose::Node), |(_, usage, purpose)| {
                (*usage, *purpose)
            });
        let (state, detail) = match state {
            PortState::Free => (State::Ok, "free".to_owned()),
            PortState::Taken => (State::Warning, "another program listens on it".to_owned()),
            PortState::Unknown(why) => (State::Unknown, why.clone()),
        };
        let what = format!("TCP port {port} for {usage}");
        finding(&format!("port-{port}"), Area::Ports, &what, state, detail)
            .needed_for(&[purpose])
            .otherwise(
                "stop that program, or choose another port; if it is Transom itself, all is well",
            )
    })
}
