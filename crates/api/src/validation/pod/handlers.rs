//! Probes and life-cycle hooks: what is done to a container, and how often.

use serde_json::Value;

use super::Context;
use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        formats,
        read::Read,
    },
};

const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

/// The hooks and the three probes of one container.
pub(super) fn all(faults: &mut Faults, context: &Context<'_>, container: &Value, path: &Path) {
    for hook in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][hook];
        if !handler.is_null() {
            let path = path.child("lifecycle").child(hook);
            self::handler(faults, context, handler, &path);
        }
    }
    if container["lifecycle"].has("stopSignal") {
        stop_signal(faults, context, container, &path.child("lifecycle"));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container.has(name) {
            continue;
        }
        let probe = &container[name];
        let path = path.child(name);
        self::probe(faults, context, probe, &path);
        if name == "readinessProbe" {
            if probe.has("terminationGracePeriodSeconds") {
                faults.invalid(
                    &path.child("terminationGracePeriodSeconds"),
                    probe["terminationGracePeriodSeconds"].clone(),
                    "must not be set for readinessProbes",
                );
            }
        } else if probe.number("successThreshold") != 1 {
            faults.invalid(
                &path.child("successThreshold"),
                probe.number("successThreshold"),
                "must be 1",
            );
        }
    }
}

/// A signal of its own is only for pods that say for which system they are.
fn stop_signal(faults: &mut Faults, context: &Context<'_>, container: &Value, path: &Path) {
    let path = path.child("stopSignal");
    let signal = container["lifecycle"].text("stopSignal");
    match context.spec["os"].text("name") {
        "" => faults.forbidden(
            &path,
            "may not be set for containers with empty `spec.os.name`",
        ),
        "windows" if !matches!(signal, "SIGTERM" | "SIGKILL") => {
            faults.push(FieldError::not_supported(
                &path,
                signal,
                &["SIGKILL", "SIGTERM"],
            ));
        }
        _ if !signal.starts_with("SIG") => {
            faults.invalid(&path, signal, "must be the name of a signal");
        }
        _ => {}
    }
}

fn probe(faults: &mut Faults, context: &Context<'_>, probe: &Value, path: &Path) {
    handler(faults, context, probe, path);
    faults.not_negative(probe, path, &COUNTS);
    if let Some(seconds) = probe.maybe_number("terminationGracePeriodSeconds")
        && seconds <= 0
    {
        faults.invalid(
            &path.child("terminationGracePeriodSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
}

/// Exactly one way of asking or telling.
fn handler(faults: &mut Faults, context: &Context<'_>, handler: &Value, path: &Path) {
    let mut count = 0;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        if !handler.has(name) {
            continue;
        }
        let action = &handler[name];
        let path = path.child(name);
        count += 1;
        if count > 1 {
            faults.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        match name {
            "exec" => {
                if action.items("command").is_empty() {
                    faults.required(&path.child("command"), "");
                }
            }
            "httpGet" => http_get(faults, action, &path),
            "sleep" => sleep(faults, context, action, &path),
            _ => port(faults, &action["port"], &path.child("port")),
        }
    }
    if count == 0 {
        faults.required(path, "must specify a handler type");
    }
}

fn http_get(faults: &mut Faults, action: &Value, path: &Path) {
    if action.text("path").is_empty() {
        faults.required(&path.child("path"), "");
    }
    port(faults, &action["port"], &path.child("port"));
    let scheme = action.text("scheme");
    if !["HTTP", "HTTPS"].contains(&scheme) {
        faults.push(FieldError::not_supported(
            &path.child("scheme"),
            scheme,
            &["HTTP", "HTTPS"],
        ));
    }
    for header in action.items("httpHeaders") {
        let name = header.text("name");
        faults.messages(&path.child("httpHeaders"), name, formats::header_name(name));
    }
}

fn sleep(faults: &mut Faults, context: &Context<'_>, action: &Value, path: &Path) {
    let seconds = action.number("seconds");
    if let Some(grace) = context.grace_period()
        && !(0..=grace).contains(&seconds)
    {
        faults.invalid(
            path,
            seconds,
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})"),
        );
    }
}

/// A port by number or by name.
pub(crate) fn port(faults: &mut Faults, port: &Value, path: &Path) {
    match port {
        Value::String(name) => {
            faults.messages(path, name.as_str(), formats::port_name(name));
        }
        _ => {
            let number = port.as_i64().unwrap_or_default();
            faults.messages(path, number, formats::port_number(number));
        }
    }
}
