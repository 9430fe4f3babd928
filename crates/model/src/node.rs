//! What a node says it is, and which images it can run. Whoever places pods asks here, so that no two of them
//! disagree.

use crate::{
    Os, Platform, labels,
    windows::{Isolation, compatibility},
};

/// What the status of a node reports, where its labels do not say it or say less.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reported<'a> {
    pub os: &'a str,
    pub arch: &'a str,
    pub kernel_version: &'a str,
}

/// The platform of a node; `None` if it does not say what it is.
pub fn platform<'a>(
    label: impl Fn(&str) -> Option<&'a str>,
    reported: Reported<'a>,
) -> Option<Platform> {
    let one_of = |new: &str, old: &str, reported: &'a str| {
        label(new)
            .or_else(|| label(old))
            .or(Some(reported))
            .filter(|value| !value.is_empty())
    };
    let os: Os = one_of(labels::OS, labels::OS_BETA, reported.os)?
        .parse()
        .ok()?;
    let arch = one_of(labels::ARCH, labels::ARCH_BETA, reported.arch)?
        .parse()
        .ok()?;
    if os != Os::Windows {
        return Some(Platform::new(os, arch));
    }
    // The kernel's version has the revision, which the label leaves out.
    let version = reported.kernel_version.parse().ok();
    let version = version.or_else(|| label(labels::WINDOWS_BUILD)?.parse().ok());
    Some(match version {
        Some(version) => Platform::windows(arch, version),
        None => Platform::new(os, arch),
    })
}

/// Whether a node can run an image that is for these platforms. What a node has, it can run: it may have made it
/// itself, under a name that others use for something else.
pub fn can_run(
    node: Option<&Platform>,
    platforms: &[Platform],
    is_host_process: bool,
    has_image: impl FnOnce() -> bool,
) -> bool {
    // A node that does not say what it is cannot be told to be wrong.
    node.is_none_or(|node| {
        platforms
            .iter()
            .any(|image| runs(image, node, is_host_process))
    }) || has_image()
}

fn runs(image: &Platform, node: &Platform, is_host_process: bool) -> bool {
    if image.os != node.os || image.arch != node.arch {
        return false;
    }
    match (image.os_version, node.os_version) {
        // The build of a program of the host does not matter.
        (Some(container), Some(host)) if image.os == Os::Windows && !is_host_process => {
            compatibility(&host, &container, Isolation::Process).runs()
        }
        _ => true,
    }
}

/// Whether all containers of a pod are processes of the host; each can say so itself, else the pod says it for them.
pub fn is_host_process(
    pod: Option<bool>,
    mut containers: impl Iterator<Item = Option<bool>>,
) -> bool {
    containers.all(|own| own.or(pod).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(labels: &[(&str, &'static str)], reported: Reported<'static>) -> Option<String> {
        let label = |name: &str| {
            let mut found = labels.iter().filter(|(key, _)| *key == name);
            found.next().map(|(_, value)| *value)
        };
        platform(label, reported).map(|platform| platform.to_string())
    }

    #[test]
    fn a_node_is_what_its_labels_say_and_else_what_it_reports() {
        let none = Reported::default();
        let windows = Reported {
            os: "windows",
            arch: "amd64",
            kernel_version: "10.0.20348.2113",
        };
        let linux = Reported {
            os: "linux",
            arch: "arm64",
            kernel_version: "6.12.0",
        };
        let build = (labels::WINDOWS_BUILD, "10.0.17763");
        let both = [(labels::OS, "windows"), (labels::ARCH, "amd64"), build];
        let old = [(labels::OS_BETA, "linux"), (labels::ARCH_BETA, "amd64")];
        for (labels, reported, expected) in [
            (&both[..], none, Some("windows(10.0.17763)/amd64")),
            (&both, windows, Some("windows(10.0.20348.2113)/amd64")),
            (&both[..2], none, Some("windows/amd64")),
            (&old, none, Some("linux/amd64")),
            (&old[..1], none, None),
            (&[], windows, Some("windows(10.0.20348.2113)/amd64")),
            (&[], linux, Some("linux/arm64")),
            (&[], none, None),
        ] {
            assert_eq!(text(labels, reported).as_deref(), expected, "{labels:?}");
        }
    }

    #[test]
    fn system_processor_and_build_decide_what_a_node_runs() {
        for (node, image, expected) in [
            ("linux/amd64", "linux/amd64", true),
            ("linux/amd64", "linux/arm64", false),
            ("linux/amd64", "windows(10.0.20348)/amd64", false),
            (
                "windows(10.0.20348.1)/amd64",
                "windows(10.0.20348.9)/amd64",
                true,
            ),
            (
                "windows(10.0.20348.1)/amd64",
                "windows(10.0.17763.9)/amd64",
                false,
            ),
            (
                "windows(10.0.20348.1)/amd64",
                "windows(10.0.26100.9)/amd64",
                false,
            ),
            ("windows(10.0.20348.1)/amd64", "windows/amd64", true),
            ("windows/amd64", "windows(10.0.17763)/amd64", true),
        ] {
            let (node, platforms) = (node.parse().unwrap(), [image.parse().unwrap()]);
            let run = can_run(Some(&node), &platforms, false, || false);
            assert_eq!(run, expected, "{node} {image}");
            assert!(can_run(Some(&node), &platforms, false, || true));
            assert!(can_run(None, &platforms, false, || false));
        }
    }

    #[test]
    fn programs_of_the_host_need_its_system_but_not_its_build() {
        let node: Platform = "windows(10.0.20348)/amd64".parse().unwrap();
        for (image, expected) in [
            ("windows(10.0.17763)/amd64", true),
            ("linux/amd64", false),
            ("windows(10.0.20348)/arm64", false),
        ] {
            let platforms = [image.parse().unwrap()];
            let run = can_run(Some(&node), &platforms, true, || false);
            assert_eq!(run, expected, "{image}");
        }
        let of =
            |pod, containers: &[Option<bool>]| is_host_process(pod, containers.iter().copied());
        assert!(of(Some(true), &[None, Some(true)]));
        assert!(of(None, &[Some(true)]));
        assert!(!of(Some(true), &[None, Some(false)]));
        assert!(!of(None, &[None]));
    }
}
