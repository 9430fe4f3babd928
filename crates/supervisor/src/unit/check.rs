//! What only the whole unit shows: values that depend on each other, and combinations that cannot
//! work.

use camino::{Utf8Path, Utf8PathBuf};

use super::directives::{Draft, Written};
use super::name::{UnitName, UnitType};
use super::problem::{Problem, Severity};
use super::service::{NotifyAccess, Restart, ServiceType};

impl Draft {
    /// Notes where a directive was last set.
    pub(super) fn remember(&mut self, directive: &'static str, path: &Utf8Path, line: u32) {
        self.lines.insert(directive, (path.to_owned(), line));
    }

    fn problem(&self, severity: Severity, directive: &str, message: impl Into<String>) -> Problem {
        let place: Option<&(Utf8PathBuf, u32)> = self.lines.get(directive);
        Problem {
            file: place.map(|(path, _)| path.clone()),
            line: place.map(|(_, line)| *line),
            severity,
            directive: Some(directive.to_owned()),
            message: message.into(),
            hint: None,
        }
    }
}

/// Fills in what follows from other values, and reports what cannot work.
pub(super) fn settle(name: &UnitName, draft: &mut Draft, problems: &mut Vec<Problem>) {
    match name.unit_type() {
        UnitType::Service => {
            settle_service(draft);
            check_service(draft, problems);
        }
        UnitType::Timer => {
            if !draft.timer.has_trigger() {
                let message = "the timer has no OnCalendar=, OnActiveSec= or other trigger";
                problems.push(Problem::of_unit(Severity::Error, message));
            }
            if draft.timer.unit.is_none() {
                draft.timer.unit = name.with_type(UnitType::Service).ok();
            }
        }
        UnitType::Target => {}
    }
    if !name.is_template() && name.instance().is_none() && draft.install.default_instance.is_some()
    {
        let message = "only templates have instances; it has no effect";
        problems.push(draft.problem(Severity::Warning, "DefaultInstance", message));
    }
}

fn settle_service(draft: &mut Draft) {
    let service = &mut draft.service;
    // Without ExecStart= there is nothing to wait for: systemd takes it as oneshot.
    if !draft.type_is_written && service.exec_start.is_empty() && !service.exec_stop.is_empty() {
        service.service_type = ServiceType::Oneshot;
    }
    service.timeout_start = match draft.timeout_start {
        Written::As(timeout) => timeout,
        // A oneshot may take as long as it takes.
        Written::Not if service.service_type == ServiceType::Oneshot => None,
        Written::Not => service.timeout_start,
    };
    let needs_notifications = matches!(
        service.service_type,
        ServiceType::Notify | ServiceType::NotifyReload
    ) || service.watchdog_sec.is_some();
    if needs_notifications && service.notify_access == NotifyAccess::None {
        service.notify_access = NotifyAccess::Main;
    }
}

fn check_service(draft: &Draft, problems: &mut Vec<Problem>) {
    let service = &draft.service;
    let is_oneshot = service.service_type == ServiceType::Oneshot;
    let mut refuse = |directive: &str, message: &str| {
        problems.push(draft.problem(Severity::Error, directive, message));
    };
    if service.exec_start.is_empty() {
        if service.exec_stop.is_empty() {
            refuse(
                "ExecStart",
                "the service has neither ExecStart= nor ExecStop=",
            );
        } else if !is_oneshot {
            refuse(
                "ExecStart",
                "only a service of Type=oneshot may go without ExecStart=",
            );
        } else if !service.remain_after_exit {
            refuse(
                "ExecStop",
                "a service without ExecStart= needs RemainAfterExit=yes",
            );
        }
    }
    if !is_oneshot && service.exec_start.len() > 1 {
        refuse(
            "ExecStart",
            "only a service of Type=oneshot may have more than one ExecStart= command",
        );
    }
    if is_oneshot && matches!(service.restart, Restart::Always | Restart::OnSuccess) {
        refuse(
            "Restart",
            "a oneshot service that ended well cannot be restarted for it: always and on-success do not work here",
        );
    }
    if is_oneshot && service.exec_start.is_empty() && service.restart != Restart::No {
        refuse(
            "Restart",
            "a service without ExecStart= cannot be restarted",
        );
    }
    if let ServiceType::Forking | ServiceType::Dbus = service.service_type {
        let reason = match service.service_type {
            ServiceType::Forking => "a daemon that leaves its first process cannot be followed",
            _ => "there is no D-Bus",
        };
        let message = format!("this type is not supported: {reason}");
        let hint = "run the program in the foreground with Type=simple, exec or notify";
        problems.push(Problem {
            hint: Some(hint.to_owned()),
            ..draft.problem(Severity::Error, "Type", message)
        });
    }
    let mut warn = |directive: &str, message: &str| {
        problems.push(draft.problem(Severity::Warning, directive, message));
    };
    if service.service_type == ServiceType::NotifyReload && !service.exec_reload.is_empty() {
        warn(
            "ExecReload",
            "these commands reload the service, so Type=notify-reload sends no signal",
        );
    }
    let needs_notifications = matches!(
        service.service_type,
        ServiceType::Notify | ServiceType::NotifyReload
    );
    if needs_notifications
        && draft.notify_access_is_written
        && draft.lines.contains_key("NotifyAccess")
        && service.notify_access == NotifyAccess::None
    {
        warn(
            "NotifyAccess",
            "without access no notification arrives, so it is taken as main",
        );
    }
    if service.restart_steps > 0 && service.restart_max_delay_sec.is_none() {
        warn(
            "RestartSteps",
            "it has no effect without RestartMaxDelaySec=",
        );
    }
    if service.restart_max_delay_sec.is_some() && service.restart_steps == 0 {
        warn(
            "RestartMaxDelaySec",
            "it has no effect without RestartSteps=",
        );
    }
}
