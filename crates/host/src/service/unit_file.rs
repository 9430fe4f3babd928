//! The systemd unit of a registration, as text. A unit of ours has a section that systemd leaves
//! alone and by which we know it again.

use super::{Registration, Start};

/// The section that marks a unit as ours; systemd skips sections whose name starts with `X-`.
const MARK: &str = "[X-Transom]";

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
    if !dependencies.is_empty() {
        let dependencies = dependencies.join(" ");
        lines.push(format!("Requires={dependencies}"));
        lines.push(format!("After={dependencies}"));
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

fn specifiers_escaped(text: &str) -> String {
    text.replace('%', "%%")
}
