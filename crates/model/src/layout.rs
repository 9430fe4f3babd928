//! Where things live on a node of either system. Every path of ours is derived here, so a test host
//! or an image build can move all of them with one root.

use camino::{Utf8Path, Utf8PathBuf};

use crate::os::Os;

/// The places of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Software: generations, packages, the active pointer.
    pub software: Utf8PathBuf,
    /// Configuration written by people or by the installer.
    pub config: Utf8PathBuf,
    /// State that must survive a reboot.
    pub state: Utf8PathBuf,
    /// State that must not survive a reboot: sockets, process records.
    pub run: Utf8PathBuf,
    /// Logs.
    pub logs: Utf8PathBuf,
    /// Where unit files are looked for, most important first.
    pub units: Vec<Utf8PathBuf>,
}

impl Layout {
    /// The places on a real node.
    pub fn standard(os: Os) -> Self {
        match os {
            Os::Linux => Self::rooted(os, Utf8Path::new("/")),
            Os::Windows => Self::rooted(os, Utf8Path::new(r"C:\")),
        }
    }

    /// The places below `root`, which stands for `/` or `C:\`.
    pub fn rooted(os: Os, root: &Utf8Path) -> Self {
        let below = |path: &str| -> Utf8PathBuf { join(os, root, path) };
        match os {
            Os::Linux => Self {
                software: below("opt/transom"),
                config: below("etc/transom"),
                state: below("var/lib/transom"),
                run: below("run/transom"),
                logs: below("var/log/transom"),
                units: [
                    "etc/systemd/system",
                    "run/systemd/system",
                    "usr/local/lib/systemd/system",
                    "usr/lib/systemd/system",
                ]
                .map(below)
                .to_vec(),
            },
            Os::Windows => Self {
                software: below("Transom/opt"),
                config: below("Transom/etc"),
                state: below("Transom/var/lib"),
                run: below("Transom/run"),
                logs: below("Transom/var/log"),
                units: [
                    "Transom/etc/systemd/system",
                    "Transom/run/systemd/system",
                    "Transom/lib/systemd/system",
                ]
                .map(below)
                .to_vec(),
            },
        }
    }
}

/// Joins with the separator of the node's system, which need not be ours.
fn join(os: Os, root: &Utf8Path, path: &str) -> Utf8PathBuf {
    match os {
        Os::Linux => format!("{}/{path}", root.as_str().trim_end_matches('/')).into(),
        Os::Windows => format!(
            r"{}\{}",
            root.as_str().trim_end_matches('\\'),
            path.replace('/', r"\")
        )
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linux_node_has_the_places_of_the_file_system_hierarchy() {
        let layout = Layout::standard(Os::Linux);
        assert_eq!(layout.software, "/opt/transom");
        assert_eq!(layout.config, "/etc/transom");
        assert_eq!(layout.state, "/var/lib/transom");
        assert_eq!(layout.run, "/run/transom");
        assert_eq!(layout.logs, "/var/log/transom");
        assert_eq!(layout.units[0], "/etc/systemd/system");
    }

    #[test]
    fn a_windows_node_keeps_everything_below_one_folder() {
        let layout = Layout::standard(Os::Windows);
        assert_eq!(layout.software.as_str(), r"C:\Transom\opt");
        assert_eq!(layout.logs.as_str(), r"C:\Transom\var\log");
        assert_eq!(layout.units[0].as_str(), r"C:\Transom\etc\systemd\system");
        for place in places(&layout) {
            assert!(place.as_str().starts_with(r"C:\Transom\"), "{place}");
            assert!(!place.as_str().contains('/'), "{place}");
        }
    }

    #[test]
    fn one_root_moves_every_place() {
        for (os, root) in [(Os::Linux, "/srv/host 1/"), (Os::Windows, r"D:\hosts\one\")] {
            let layout = Layout::rooted(os, Utf8Path::new(root));
            for place in places(&layout) {
                assert!(place.as_str().starts_with(root), "{place}");
            }
        }
    }

    #[test]
    fn no_two_places_are_the_same() {
        for os in Os::ALL {
            let layout = Layout::standard(os);
            let mut all = places(&layout);
            let count = all.len();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }

    fn places(layout: &Layout) -> Vec<&Utf8Path> {
        [
            &layout.software,
            &layout.config,
            &layout.state,
            &layout.run,
            &layout.logs,
        ]
        .into_iter()
        .chain(&layout.units)
        .map(Utf8PathBuf::as_path)
        .collect()
    }
}
