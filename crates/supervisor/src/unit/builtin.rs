//! Targets that exist on every machine, so that unit files written for systemd find what they name.
//! A file of the same name takes their place.

use super::name::UnitName;

/// Name, description, and what else its file would say.
const TARGETS: [(&str, &str, &str); 13] = [
    (
        "basic.target",
        "Basic System",
        "Requires=sysinit.target\nAfter=sysinit.target\n",
    ),
    ("local-fs.target", "Local File Systems", ""),
    (
        "multi-user.target",
        "Multi-User System",
        "Requires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n",
    ),
    (
        "network-online.target",
        "Network is Online",
        "After=network.target\n",
    ),
    ("network-pre.target", "Preparation for Network", ""),
    ("network.target", "Network", "After=network-pre.target\n"),
    ("nss-lookup.target", "Host and Network Name Lookups", ""),
    ("remote-fs.target", "Remote File Systems", ""),
    (
        "shutdown.target",
        "System Shutdown",
        "DefaultDependencies=no\nRefuseManualStart=yes\n",
    ),
    ("sockets.target", "Socket Units", ""),
    ("sysinit.target", "System Initialization", ""),
    ("time-sync.target", "System Time Synchronized", ""),
    (
        "timers.target",
        "Timer Units",
        "DefaultDependencies=no\nConflicts=shutdown.target\nBefore=shutdown.target\n",
    ),
];

/// Names that mean a target of the table unless a file says otherwise.
const ALIASES: [(&str, &str); 2] = [
    ("default.target", "multi-user.target"),
    ("graphical.target", "multi-user.target"),
];

/// The text of a built-in unit file.
pub(super) fn text(name: &UnitName) -> Option<String> {
    TARGETS
        .iter()
        .find(|(known, ..)| *known == name.as_str())
        .map(|(_, description, rest)| format!("[Unit]\nDescription={description}\n{rest}"))
}

pub(super) fn alias(name: &UnitName) -> Option<UnitName> {
    let (_, target) = ALIASES.iter().find(|(known, _)| *known == name.as_str())?;
    UnitName::new(target).ok()
}

pub(super) fn names() -> impl Iterator<Item = UnitName> {
    TARGETS
        .iter()
        .filter_map(|(name, ..)| UnitName::new(name).ok())
}

pub(super) fn aliases() -> impl Iterator<Item = UnitName> {
    ALIASES
        .iter()
        .filter_map(|(name, _)| UnitName::new(name).ok())
}
