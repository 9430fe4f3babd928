//! What the facts of a Windows machine mean for a cluster.

use transom_model::windows::{Isolation, Product, compatibility, release};

use super::super::{Area, Finding, Purpose, State, WindowsFacts, WindowsService};
use super::{finding, judge_ports, presence, yes_no};
use crate::service::ServiceStatus;

/// The oldest build whose nodes Kubernetes still takes: Windows Server 2022.
const OLDEST_NODE: u32 = 20348;

/// Services, what they do, what for, and how to get them.
const SERVICES: &[(&str, &str, Purpose, &str)] = &[
    (
        "hns",
        "host network service",
        Purpose::PodNetwork,
        "install the feature `Containers` and restart the machine",
    ),
    (
        "vmcompute",
        "host compute service",
        Purpose::Containers,
        "install the feature `Containers` and restart the machine",
    ),
    (
        "vmms",
        "Hyper-V management",
        Purpose::HyperVContainers,
        "install the role `Hyper-V`, if containers shall have a kernel of their own",
    ),
    (
        "containerd",
        "container runtime containerd",
        Purpose::Containers,
        "let `transom` install it, or install containerd 1.7 or later as a service",
    ),
    (
        "docker",
        "container runtime Docker",
        Purpose::Containers,
        "nothing to do if containerd is used",
    ),
];

/// What the facts mean, in the order in which a person would ask.
pub fn judge_windows(facts: &WindowsFacts) -> Vec<Finding> {
    let mut findings = vec![build(facts), wine(facts), elevated(facts)];
    findings.extend(SERVICES.iter().filter_map(|(name, what, purpose, way)| {
        let service = facts
            .services
            .iter()
            .find(|service| service.name == *name)?;
        Some(judge_service(service, what, *purpose, way))
    }));
    findings.extend(facts.libraries.iter().map(|(name, there)| {
        finding(
            &format!("library-{name}"),
            Area::Runtimes,
            &format!("library {name}"),
            presence(Some(*there), State::Missing),
            yes_no(Some(*there)),
        )
        .needed_for(&[Purpose::Containers])
        .otherwise("install the feature `Containers` and restart the machine")
    }));
    findings.extend(conveniences(facts));
    findings.extend(judge_ports(&facts.ports));
    findings
}

fn build(facts: &WindowsFacts) -> Finding {
    let Some(version) = facts.version else {
        return finding(
            "windows-build",
            Area::System,
            "Windows build",
            State::Unknown,
            "could not be seen",
        );
    };
    let product = match facts.installation.as_deref() {
        Some("Client") => Product::Client,
        _ => Product::Server,
    };
    let name = release(version.build, product)
        .map_or("a build that is not known here", |release| release.name);
    let detail = format!("{name}, {version}");
    // A host that cannot run containers of its own build has no containers at all.
    let has_containers = compatibility(&version, &version, Isolation::Process).runs();
    let state = if !has_containers {
        State::Missing
    } else if version.build < OLDEST_NODE || product == Product::Client {
        State::Warning
    } else {
        State::Ok
    };
    finding(
        "windows-build",
        Area::System,
        "Windows build",
        state,
        detail,
    )
    .needed_for(&[Purpose::Node, Purpose::Containers])
    .otherwise("use Windows Server 2022 or 2025; older builds and desktops serve for tests only")
}

fn wine(facts: &WindowsFacts) -> Finding {
    match &facts.wine {
        None => finding("wine", Area::System, "real Windows", State::Ok, "yes"),
        Some(version) => finding(
            "wine",
            Area::System,
            "real Windows",
            State::Warning,
            format!("this is Wine {version}"),
        )
        .needed_for(&[Purpose::Containers, Purpose::PodNetwork, Purpose::Limits])
        .otherwise("use it for tests of host processes only"),
    }
}

fn elevated(facts: &WindowsFacts) -> Finding {
    finding(
        "elevated",
        Area::Security,
        "rights of an administrator",
        presence(facts.elevated, State::Missing),
        yes_no(facts.elevated),
    )
    .needed_for(&[Purpose::Node, Purpose::Services])
    .otherwise("start it again with \"Run as administrator\"")
}

fn judge_service(service: &WindowsService, what: &str, purpose: Purpose, way: &str) -> Finding {
    // Either runtime will do, and Hyper-V is for those who want it.
    let absent = match service.name.as_str() {
        "hns" | "vmcompute" => State::Missing,
        _ => State::Warning,
    };
    let (state, detail) = match service.status {
        None => (State::Unknown, "the service manager does not answer"),
        Some(ServiceStatus::NotInstalled) => (absent, "not installed"),
        Some(ServiceStatus::Running { .. }) => (State::Ok, "runs"),
        Some(ServiceStatus::Starting) => (State::Ok, "starts"),
        // The compute services start when they are asked for.
        Some(ServiceStatus::Stopped { .. }) => (State::Ok, "installed, does not run now"),
        Some(ServiceStatus::Stopping) => (State::Warning, "stops"),
    };
    finding(
        &format!("service-{}", service.name),
        Area::Runtimes,
        what,
        state,
        detail,
    )
    .needed_for(&[purpose])
    .otherwise(way)
}

fn conveniences(facts: &WindowsFacts) -> Vec<Finding> {
    let (powershell, place) = match &facts.powershell {
        Some(path) => (State::Ok, path.to_string()),
        None => (State::Missing, "not found".to_owned()),
    };
    vec![
        finding(
            "long-paths",
            Area::System,
            "paths of more than 260 characters",
            presence(facts.long_paths, State::Warning),
            yes_no(facts.long_paths),
        )
        .needed_for(&[Purpose::Node])
        .otherwise("set `LongPathsEnabled` to 1 below HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem, for programs other than Transom"),
        finding(
            "developer-mode",
            Area::System,
            "developer mode",
            State::Ok,
            match facts.developer_mode {
                Some(true) => "on: every user can make symbolic links",
                Some(false) => "off: administrators can make symbolic links",
                None => "could not be seen",
            },
        ),
        finding("powershell", Area::System, "PowerShell", powershell, place)
            .needed_for(&[Purpose::PodNetwork])
            .otherwise("install Windows PowerShell: firewall rules are made with it"),
    ]
}
