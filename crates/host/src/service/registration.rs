//! What is registered of a service, and which registrations both systems can hold.

use std::time::Duration;

use camino::Utf8PathBuf;

use super::ServiceError;

/// What is registered of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Letters, digits, `-`, `_` and `.`; the same on both systems.
    pub name: String,
    /// For people.
    pub display: String,
    pub description: String,
    /// An absolute path.
    pub program: Utf8PathBuf,
    pub arguments: Vec<String>,
    pub start: Start,
    /// Services that must run before this one.
    pub dependencies: Vec<String>,
    pub failure: FailureActions,
    /// None for the system's own account.
    pub user: Option<String>,
}

/// When a service starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At boot.
    Auto,
    /// At boot, after the services that start at once; systemd knows no such delay.
    DelayedAuto,
    /// When it is asked for.
    Manual,
}

/// What happens when a service fails: it is restarted, each time after the next delay, and after
/// the last delay from then on. Without delays it stays down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailureActions {
    pub restart_delays: Vec<Duration>,
    /// After so much time without a failure, counting starts anew.
    pub reset_after: Duration,
}

/// Why a registration is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationFault {
    #[error(
        "its name must have 1 to 80 letters, digits, `-`, `_` or `.`, and start with a letter or digit"
    )]
    Name,
    #[error("`{0}` is not a name that a service can depend on")]
    Dependency(String),
    #[error("it depends on itself")]
    SelfDependency,
    #[error("the program `{0}` is not an absolute path")]
    RelativeProgram(Utf8PathBuf),
    #[error("its {0} contains a control character")]
    ControlCharacter(&'static str),
    #[error("its display name is empty")]
    NoDisplay,
}

impl Registration {
    pub(super) fn check(&self) -> Result<(), ServiceError> {
        self.fault().map_or(Ok(()), |fault| {
            Err(ServiceError::Registration {
                name: self.name.clone(),
                fault,
            })
        })
    }

    fn fault(&self) -> Option<RegistrationFault> {
        if !is_service_name(&self.name) {
            return Some(RegistrationFault::Name);
        }
        if let Some(bad) = self.dependencies.iter().find(|name| !is_service_name(name)) {
            return Some(RegistrationFault::Dependency(bad.clone()));
        }
        if self
            .dependencies
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&self.name))
        {
            return Some(RegistrationFault::SelfDependency);
        }
        if self.display.trim().is_empty() {
            return Some(RegistrationFault::NoDisplay);
        }
        if !is_absolute(self.program.as_str()) {
            return Some(RegistrationFault::RelativeProgram(self.program.clone()));
        }
        let texts = [
            ("display name", &self.display),
            ("description", &self.description),
        ]
        .into_iter()
        .chain(self.arguments.iter().map(|argument| ("command", argument)))
        .chain(self.user.iter().map(|user| ("user", user)));
        std::iter::once(("program", self.program.as_str()))
            .chain(texts.map(|(what, text)| (what, text.as_str())))
            .find(|(_, text)| text.chars().any(char::is_control))
            .map(|(what, _)| RegistrationFault::ControlCharacter(what))
    }
}

pub(super) fn is_service_name(name: &str) -> bool {
    (1..=80).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Absolute on either system, since a registration can be made for the other one.
fn is_absolute(path: &str) -> bool {
    let drive = path.as_bytes();
    path.starts_with('/')
        || path.starts_with(r"\\")
        || (drive.len() >= 3
            && drive[0].is_ascii_alphabetic()
            && drive[1] == b':'
            && matches!(drive[2], b'\\' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Registration {
        Registration {
            name: "transom-agent".to_owned(),
            display: "Agent".to_owned(),
            description: "Runs pods".to_owned(),
            program: r"C:\Transom\bin\transom.exe".into(),
            arguments: vec!["agent".to_owned()],
            start: Start::Auto,
            dependencies: vec!["containerd".to_owned()],
            failure: FailureActions::default(),
            user: None,
        }
    }

    fn fault(change: impl FnOnce(&mut Registration)) -> Option<RegistrationFault> {
        let mut registration = good();
        change(&mut registration);
        registration.fault()
    }

    #[test]
    fn a_good_registration_has_no_fault() {
        assert_eq!(good().fault(), None);
        assert_eq!(
            fault(|r| r.program = "/opt/transom/bin/transom".into()),
            None
        );
    }

    #[test]
    fn names_that_one_system_would_misread_are_refused() {
        for bad in [
            "",
            "a b",
            "a/b",
            r"a\b",
            ".a",
            "-a",
            "ä",
            "a@b",
            &"a".repeat(81),
        ] {
            assert_eq!(
                fault(|r| r.name = bad.to_owned()),
                Some(RegistrationFault::Name),
                "{bad}"
            );
        }
    }

    #[test]
    fn each_other_fault_is_named() {
        assert_eq!(
            fault(|r| r.program = "transom.exe".into()),
            Some(RegistrationFault::RelativeProgram("transom.exe".into()))
        );
        assert_eq!(
            fault(|r| r.arguments.push("a\nExecStartPre=b".to_owned())),
            Some(RegistrationFault::ControlCharacter("command"))
        );
        assert_eq!(
            fault(|r| r.description = "a\0".to_owned()),
            Some(RegistrationFault::ControlCharacter("description"))
        );
        assert_eq!(
            fault(|r| r.dependencies.push("a b".to_owned())),
            Some(RegistrationFault::Dependency("a b".to_owned()))
        );
        assert_eq!(
            fault(|r| r.dependencies.push("TRANSOM-agent".to_owned())),
            Some(RegistrationFault::SelfDependency)
        );
        assert_eq!(
            fault(|r| r.display.clear()),
            Some(RegistrationFault::NoDisplay)
        );
    }
}
