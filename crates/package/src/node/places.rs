//! Where a node keeps its software, in the spelling of its system. Every path of this module comes
//! from here, so nothing is written anywhere else.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::path;
use transom_model::os::Os;
use transom_model::package::PackageId;

/// The folder of a package, and of a generation, whose entries are unit files.
pub const WANTS: &str = "dcos.target.wants";
/// The folders of all packages that become one.
pub const MERGED: [&str; 4] = ["bin", "etc", "include", "lib"];
/// What every process of the node may rely on: written by the node, not by a package.
pub const SERVICE_CONFIGURATION: &str = "etc/dcos-service-configuration.json";
pub(super) const ENVIRONMENT: &str = "environment";
pub(super) const ENVIRONMENT_EXPORT: &str = "environment.export";
pub(super) const ENVIRONMENT_PS1: &str = "environment.ps1";
pub(super) const ENVIRONMENT_EXPORT_PS1: &str = "environment.export.ps1";
pub(super) const BUILDINFO: &str = "active.buildinfo.full.json";
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const SERVICES: &str = "services";
pub(super) const ACTIVE_PACKAGES: &str = "active";

/// The names below the root that lead into the active generation, as scripts for DC/OS know them.
pub(super) const FAMILIAR: [&str; 7] = [
    "bin",
    "etc",
    "include",
    "lib",
    ENVIRONMENT,
    ENVIRONMENT_EXPORT,
    BUILDINFO,
];

/// The places of one node. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub root: Utf8PathBuf,
    /// Unpacked packages, one folder each.
    pub repository: Utf8PathBuf,
    /// What the installer and people wrote: roles, `manual_host_users`.
    pub config_dir: Utf8PathBuf,
    /// Below it each package that asks for one has its folder for state.
    pub state_dir: Utf8PathBuf,
    /// Where unit files go; the root itself if services are rooted.
    pub unit_dir: Utf8PathBuf,
    /// The system of the node, whose rules the packages follow.
    pub os: Os,
}

impl Places {
    /// The usual places around a root: packages below it, the rest as given.
    pub fn new(
        os: Os,
        root: impl Into<Utf8PathBuf>,
        config_dir: impl Into<Utf8PathBuf>,
        state_dir: impl Into<Utf8PathBuf>,
        unit_dir: impl Into<Utf8PathBuf>,
    ) -> Self {
        let root = root.into();
        Self {
            repository: path::join(os, &root, "packages"),
            root,
            config_dir: config_dir.into(),
            state_dir: state_dir.into(),
            unit_dir: unit_dir.into(),
            os,
        }
    }

    /// A path below the root; `below` is of names joined by `/`.
    pub fn in_root(&self, below: &str) -> Utf8PathBuf {
        path::join(self.os, &self.root, below)
    }

    /// The pointer file: what it names is active.
    pub fn pointer(&self) -> Utf8PathBuf {
        self.in_root("active")
    }

    /// The link derived from the pointer.
    pub fn current(&self) -> Utf8PathBuf {
        self.in_root("current")
    }

    pub fn generations(&self) -> Utf8PathBuf {
        self.in_root("generations")
    }

    pub fn generation(&self, number: u64) -> Utf8PathBuf {
        path::join(self.os, &self.generations(), &number.to_string())
    }

    pub fn lock(&self) -> Utf8PathBuf {
        self.in_root("lock")
    }

    /// Says that an uninstallation has begun and must be ended.
    pub fn uninstalling(&self) -> Utf8PathBuf {
        self.in_root("uninstalling")
    }

    pub fn package(&self, id: &PackageId) -> Utf8PathBuf {
        path::join(self.os, &self.repository, id.as_str())
    }

    pub fn unit(&self, name: &str) -> Utf8PathBuf {
        path::join(self.os, &self.unit_dir, name)
    }

    pub fn wants(&self) -> Utf8PathBuf {
        self.unit(WANTS)
    }

    pub fn wanted(&self, name: &str) -> Utf8PathBuf {
        path::join(self.os, &self.wants(), name)
    }

    pub fn target(&self) -> Utf8PathBuf {
        self.unit("dcos.target")
    }

    /// What the link `current` says. A junction needs the whole path.
    pub(super) fn current_target(&self, generation: u64) -> Utf8PathBuf {
        match self.os {
            Os::Linux => format!("generations/{generation}").into(),
            Os::Windows => self.generation(generation),
        }
    }

    /// Whether a name directly below the root is the node's own.
    pub(super) fn is_of_root(name: &str) -> bool {
        const OTHERS: [&str; 11] = [
            "active",
            "current",
            "generations",
            "packages",
            "lock",
            "uninstalling",
            "bootstrap",
            "install_progress",
            "downloads",
            "repositories",
            WANTS,
        ];
        FAMILIAR.contains(&name) || OTHERS.contains(&name)
    }

    /// The first of the places that is not absolute.
    pub(super) fn relative(&self) -> Option<&Utf8Path> {
        [
            &self.root,
            &self.repository,
            &self.config_dir,
            &self.state_dir,
            &self.unit_dir,
        ]
        .into_iter()
        .find(|place| !path::is_absolute(self.os, place))
        .map(Utf8PathBuf::as_path)
    }
}
