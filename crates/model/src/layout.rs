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
