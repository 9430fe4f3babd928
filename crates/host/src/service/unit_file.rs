//! The systemd unit of a registration, as text. A unit of ours has a section that systemd leaves
//! alone and by which we know it again.

use super::{Registration, Start};

/// The section that marks a unit as ours; systemd skips sections whose name starts with `X-`.
const MARK: &str = "[X-Transom]";

/// For every connection, watch and log; the kernel allows no process more without being told to.
const OPEN_FILES: u32 = 1 << 20;

/// The text of the unit.
pub fn render_unit(registration: &Registration) -> String {
    let mut lines = vec![
        "# Written by Transom: changes are lost with the next installation.".to_owned(),
        "[Unit]".to_owned(),
        format!("Description={}", specifiers_escaped(&registration.display)),
    ];
    if !registration.description.is_empty() {
        lines.push(format!("# {}", registration.description));
    }
    let dependencies: Vec<String> = registration
        .dependencies
        .iter()
        .map(|name| unit_name(name))
        .collect();
    // A target is a moment of the boot: one that is not reached must not keep the service down.
    let (moments, needed): (Vec<&str>, Vec<&str>) = dependencies
        .iter()
        .map(String::as_str)
        .partition(|name| name.ends_with(".target"));
    for (word, names) in [("Requires", needed), ("Wants", moments)] {
        if !names.is_empty() {
            lines.push(format!("{word}={}", names.join(" ")));
        }
    }
    if !dependencies.is_empty() {
        lines.push(format!("After={}", dependencies.join(" ")));
    }
    // Counting of failures is ours to bound: a node must come back after any number of them.
    lines.push("StartLimitIntervalSec=0".to_owned());
    lines.push(String::new());
    lines.push("[Service]".to_owned());
    lines.push("Type=notify".to_owned());
    let command: Vec<String> = std::iter::once(registration.program.as_str())
        .chain(registration.arguments.iter().map(String::as_str))
        .map(quoted)
        .collect();
    lines.push(format!("ExecStart={}", command.join(" ")));
    if let Some(user) = &registration.user {
        lines.push(format!("User={}", specifiers_escaped(user)));
    }
    lines.extend(restart_lines(registration));
    // Workloads outlive the agent that started them.
    lines.push("KillMode=process".to_owned());
    // Their cgroups are ours to make, and systemd leaves them alone.
    lines.push("Delegate=yes".to_owned());
    lines.push(format!("LimitNOFILE={OPEN_FILES}"));
    lines.push("TasksMax=infinity".to_owned());
    if registration.start != Start::Manual {
        lines.push(String::new());
        lines.push("[Install]".to_owned());
        lines.push("WantedBy=multi-user.target".to_owned());
    }
    lines.push(String::new());
    lines.push(MARK.to_owned());
    lines.push(format!("Name={}", registration.name));
    lines.push(String::new());
    lines.join("\n")
}

/// Whether the text of a unit carries our mark.
pub fn is_ours(text: &str) -> bool {
    text.lines().any(|line| line.trim() == MARK)
}

/// The file name of a service's unit.
pub fn unit_name(service: &str) -> String {
    let has_type = [
        ".service", ".target", ".socket", ".mount", ".timer", ".path",
    ]
    .iter()
    .any(|suffix| service.ends_with(suffix));
    if has_type {
        service.to_owned()
    } else {
        format!("{service}.service")
    }
}

fn restart_lines(registration: &Registration) -> Vec<String> {
    let delays = &registration.failure.restart_delays;
    let (Some(first), Some(last)) = (delays.first(), delays.last()) else {
        return Vec::new();
    };
    let mut lines = vec![
        "Restart=on-failure".to_owned(),
        format!("RestartSec={}ms", first.as_millis()),
    ];
    if last > first {
        lines.push(format!("RestartSteps={}", delays.len() - 1));
        lines.push(format!("RestartMaxDelaySec={}ms", last.as_millis()));
    }
    lines
}

/// One word of a command line: systemd reads C escapes, variables and specifiers in it.
fn quoted(word: &str) -> String {
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' | '$' => quoted.extend([c, c]),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A plain value: systemd reads specifiers in it, and a backslash at its end as a line to go on.
fn specifiers_escaped(text: &str) -> String {
    let mut escaped = text.replace('%', "%%");
    if escaped.ends_with('\\') {
        escaped.push(' ');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::service::FailureActions;

    fn agent() -> Registration {
        Registration {
            name: "transom-agent".to_owned(),
            display: "Transom agent, 100% ours".to_owned(),
            description: "Runs the pods of this node".to_owned(),
            program: "/opt/transom/current/bin/transom".into(),
            arguments: ["agent", "--label", "a b=\"$HOME\\%h\""]
                .map(ToOwned::to_owned)
                .to_vec(),
            start: Start::Auto,
            dependencies: vec!["containerd".to_owned(), "network-online.target".to_owned()],
            failure: FailureActions {
                restart_delays: vec![
                    Duration::from_secs(1),
                    Duration::from_secs(5),
                    Duration::from_secs(30),
                ],
                reset_after: Duration::from_hours(1),
            },
            user: Some("root".to_owned()),
        }
    }

    #[test]
    fn a_unit_has_everything_that_was_registered() {
        insta::assert_snapshot!(render_unit(&agent()), @r#"
# Written by Transom: changes are lost with the next installation.
[Unit]
Description=Transom agent, 100%% ours
# Runs the pods of this node
Requires=containerd.service
Wants=network-online.target
After=containerd.service network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart="/opt/transom/current/bin/transom" "agent" "--label" "a b=\"$$HOME\\%%h\""
User=root
Restart=on-failure
RestartSec=1000ms
RestartSteps=2
RestartMaxDelaySec=30000ms
KillMode=process
Delegate=yes
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target

[X-Transom]
Name=transom-agent
"#);
    }

    #[test]
    fn a_service_for_hand_use_is_wanted_by_nobody() {
        let unit = render_unit(&Registration {
            start: Start::Manual,
            failure: FailureActions::default(),
            dependencies: Vec::new(),
            user: None,
            ..agent()
        });
        for absent in ["[Install]", "Restart=", "Requires=", "User="] {
            assert!(!unit.contains(absent), "{absent} in {unit}");
        }
        assert!(is_ours(&unit));
    }

    #[test]
    fn a_unit_without_our_section_is_not_ours() {
        assert!(!is_ours("[Unit]\nDescription=[X-Transom]\n"));
        assert!(!is_ours(""));
    }

    #[test]
    fn a_display_name_cannot_swallow_the_next_line() {
        let unit = render_unit(&Registration {
            display: "ends with \\".to_owned(),
            ..agent()
        });
        assert!(!unit.lines().any(|line| line.ends_with('\\')), "{unit}");
    }

    proptest! {
        #[test]
        fn no_argument_changes_another_line(argument in "\\PC{0,30}", display in "\\PC{1,30}") {
            let unit = render_unit(&Registration {
                arguments: vec![argument.clone()],
                display,
                ..agent()
            });
            prop_assert_eq!(unit.lines().count(), render_unit(&agent()).lines().count());
            let command = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
            let word = command.split_once("\" ").unwrap().1;
            prop_assert_eq!(read_as_systemd(word), argument);
        }
    }

    /// Reads one quoted word back: escapes, then doubled specifiers and variables.
    fn read_as_systemd(word: &str) -> String {
        let inner = word.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        let mut text = String::new();
        let mut characters = inner.chars();
        while let Some(c) = characters.next() {
            match c {
                '\\' => text.extend(characters.next()),
                '%' | '$' => {
                    assert_eq!(characters.next(), Some(c), "not doubled in {word}");
                    text.push(c);
                }
                '"' => panic!("the word ends early in {word}"),
                _ => text.push(c),
            }
        }
        text
    }
}
