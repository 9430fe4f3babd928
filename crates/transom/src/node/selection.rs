//! Which runtime an agent is told to use, as flags spell it: `oci`, `process`, `cri[=ENDPOINT]`, `docker[=ENDPOINT]`.
//!
//! Invariant: an endpoint is a socket or a pipe of this machine. Others would run containers where no node is.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum as _;
use transom_model::Os;

use super::Choice;

/// The runtime of a node, and where it is if it is another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// One that is in this program.
    Own(Choice),
    /// Another program behind the container runtime interface.
    Cri(Option<String>),
    /// Docker, or what speaks its language.
    Docker(Option<String>),
}

impl Selection {
    /// What a machine can do without anybody's help.
    pub(crate) fn usual(host: Os) -> Self {
        Self::Own(Choice::usual(host))
    }
}

impl From<Choice> for Selection {
    fn from(own: Choice) -> Self {
        Self::Own(own)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, endpoint) = match self {
            Self::Own(own) => (own.word(), None),
            Self::Cri(endpoint) => ("cri", endpoint.as_ref()),
            Self::Docker(endpoint) => ("docker", endpoint.as_ref()),
        };
        formatter.write_str(word)?;
        endpoint.map_or(Ok(()), |endpoint| write!(formatter, "={endpoint}"))
    }
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (word, endpoint) = match text.split_once('=') {
            Some((word, endpoint)) => (word, Some(checked(endpoint)?)),
            None => (text, None),
        };
        let own = Choice::from_str(word, false);
        match (word, own, endpoint) {
            ("cri", _, endpoint) => Ok(Self::Cri(endpoint)),
            ("docker", _, endpoint) => Ok(Self::Docker(endpoint)),
            (_, Ok(own), None) => Ok(Self::Own(own)),
            (_, Ok(_), Some(_)) => Err(format!("`{word}` is in this program and has no endpoint")),
            _ => Err("expected oci, process, cri[=ENDPOINT] or docker[=ENDPOINT]".to_owned()),
        }
    }
}

fn checked(endpoint: &str) -> Result<String, String> {
    let is_path = endpoint.starts_with('/') || endpoint.starts_with(r"\\");
    let bare = ["unix://", "npipe://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme));
    if is_path || bare.is_some_and(|path| path.starts_with('/')) {
        return Ok(endpoint.to_owned());
    }
    Err("expected a socket or a pipe of this machine, as unix:///run/docker.sock or npipe:////./pipe/docker_engine".to_owned())
}

/// Where a runtime usually listens, the likeliest first.
pub(super) fn usual_endpoints(selection: &Selection, host: Os) -> &'static [&'static str] {
    match (selection, host) {
        (Selection::Own(_), _) => &[],
        (Selection::Cri(_), Os::Linux) => &[
            "unix:///run/containerd/containerd.sock",
            "unix:///run/crio/crio.sock",
        ],
        (Selection::Cri(_), Os::Windows) => &["npipe:////./pipe/containerd-containerd"],
        (Selection::Docker(_), Os::Linux) => &["unix:///run/docker.sock"],
        (Selection::Docker(_), Os::Windows) => &["npipe:////./pipe/docker_engine"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_a_word_and_perhaps_an_endpoint() {
        for (text, expected) in [
            ("oci", Selection::Own(Choice::Oci)),
            ("process", Selection::Own(Choice::Process)),
            ("cri", Selection::Cri(None)),
            (
                "docker=/run/d.sock",
                Selection::Docker(Some("/run/d.sock".to_owned())),
            ),
            (
                "cri=npipe:////./pipe/containerd-containerd",
                Selection::Cri(Some("npipe:////./pipe/containerd-containerd".to_owned())),
            ),
        ] {
            let parsed: Selection = text.parse().unwrap();
            assert_eq!(parsed, expected);
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_runtime_is_answered_with_what_is() {
        for (text, expected) in [
            ("containerd", "expected oci"),
            ("", "expected oci"),
            ("oci=/run/x.sock", "has no endpoint"),
            ("cri=", "expected a socket"),
            ("docker=tcp://10.0.0.1:2375", "expected a socket"),
            ("docker=unix://run/docker.sock", "expected a socket"),
        ] {
            let fault = text.parse::<Selection>().unwrap_err();
            assert!(fault.contains(expected), "{text}: {fault}");
        }
    }

    #[test]
    fn every_other_program_has_a_usual_place_on_every_system() {
        for selection in [Selection::Cri(None), Selection::Docker(None)] {
            for host in [Os::Linux, Os::Windows] {
                for endpoint in usual_endpoints(&selection, host) {
                    assert!(checked(endpoint).is_ok(), "{endpoint}");
                }
            }
        }
    }
}
