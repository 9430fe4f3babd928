//! Whether a container of one Windows build runs on a host of another. The rules are a table of
//! builds and four comparisons; they never ask what either side is called.

use std::fmt;

use super::release::{Product, release};
use super::version::WindowsVersion;

/// How a Windows container is kept apart from its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Shares the host's kernel.
    Process,
    /// Has a kernel of its own in a small virtual machine.
    HyperV,
}

impl Isolation {
    pub const ALL: [Self; 2] = [Self::Process, Self::HyperV];
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Process => "process",
            Self::HyperV => "hyperv",
        })
    }
}

/// Whether a container runs on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Compatible,
    /// It runs, and the operator should know something about it.
    CompatibleWithNote(String),
    Incompatible {
        reason: Reason,
        needs: HostNeed,
    },
}

impl Verdict {
    /// Whether the container may be placed on the host.
    pub const fn runs(&self) -> bool {
        !matches!(self, Self::Incompatible { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compatible => f.write_str("compatible"),
            Self::CompatibleWithNote(note) => write!(f, "compatible: {note}"),
            Self::Incompatible { reason, needs } => write!(f, "{reason}: {needs}"),
        }
    }
}

/// Why a container does not run on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Windows before Server 2016 and Windows 10, version 1607, has no containers.
    HostWithoutContainers { host: WindowsVersion },
    /// No such base image exists.
    NotAContainerVersion { container: WindowsVersion },
    /// The container asks for a newer kernel than the host, or its tools, can give.
    ContainerNewer { host: u32, container: u32 },
    /// The container is older than what the host's kernel still serves.
    ContainerTooOld { host: u32, container: u32 },
    /// Server 2016 serves only containers with the same updates.
    OtherRevision {
        host: WindowsVersion,
        container: WindowsVersion,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostWithoutContainers { host } => {
                write!(f, "the host's Windows {host} has no containers")
            }
            Self::NotAContainerVersion { container } => {
                write!(f, "no container can have the version {container}")
            }
            Self::ContainerNewer { host, container } => write!(
                f,
                "the container's build {container} is newer than the host's build {host}"
            ),
            Self::ContainerTooOld { host, container } => write!(
                f,
                "the container's build {container} cannot use the kernel of the host's build {host}"
            ),
            Self::OtherRevision { host, container } => write!(
                f,
                "the container's {container} and the host's {host} have different updates"
            ),
        }
    }
}

/// What a host must be to run a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostNeed {
    /// Exactly this version, updates included.
    Version(WindowsVersion),
    /// Exactly this build.
    Build(u32),
    /// Any build between the two, both included.
    BuildBetween { least: u32, most: u32 },
    /// This build or a newer one.
    BuildAtLeast(u32),
    /// No host can run it.
    OtherImage,
}

impl HostNeed {
    /// Whether a host of this version satisfies the need.
    pub fn is_met_by(&self, host: &WindowsVersion) -> bool {
        let ten = (host.major, host.minor) == MODERN;
        match *self {
            Self::Version(version) => *host == version,
            Self::Build(build) => ten && host.build == build,
            Self::BuildBetween { least, most } => ten && (least..=most).contains(&host.build),
            Self::BuildAtLeast(build) => ten && host.build >= build,
            Self::OtherImage => false,
        }
    }
}

impl fmt::Display for HostNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(
                    f,
                    "needs a host with exactly version {version}{}",
                    Named(version.build)
                )
            }
            Self::Build(build) => write!(f, "needs a host with build {build}{}", Named(*build)),
            Self::BuildBetween { least, most } => write!(
                f,
                "needs a host with a build from {least}{} to {most}{}",
                Named(*least),
                Named(*most)
            ),
            Self::BuildAtLeast(build) => {
                write!(
                    f,
                    "needs a host with build {build}{} or newer",
                    Named(*build)
                )
            }
            Self::OtherImage => f.write_str("needs another image"),
        }
    }
}

/// A build's name in parentheses, or nothing for a build we do not know.
struct Named(u32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match release(self.0, Product::Server) {
            Some(release) => write!(f, " ({})", release.name),
            None => Ok(()),
        }
    }
}

/// Every Windows with containers calls itself version 10.0.
const MODERN: (u32, u32) = (10, 0);
/// Server 2016: the first build with containers, and the only one that ties them to its updates.
const FIRST_WITH_CONTAINERS: u32 = 14393;
/// From Server 2019 on, host and container may have different updates.
const REVISION_IS_FREE_FROM: u32 = 17763;
/// Long-term releases with a stable interface between containers and kernel, oldest first. A host
/// runs containers from the newest of these that is older than itself up to its own build.
const STABLE_INTERFACE: &[u32] = &[20348, 26100];
/// The updates of 11 February 2020 changed how 32-bit programs enter the kernel: a host and a
/// container on different sides of it do not run such programs.
const KERNEL_ENTRY_CHANGED: &[(u32, u32)] = &[(17763, 1039), (18362, 657), (18363, 657)];

/// Whether a container of one version runs on a host of another.
pub fn compatibility(
    host: &WindowsVersion,
    container: &WindowsVersion,
    isolation: Isolation,
) -> Verdict {
    let incompatible = |reason, needs| Verdict::Incompatible { reason, needs };
    if !has_containers(container) {
        return incompatible(
            Reason::NotAContainerVersion {
                container: *container,
            },
            HostNeed::OtherImage,
        );
    }
    let needs = need(container, isolation);
    if !has_containers(host) {
        return incompatible(Reason::HostWithoutContainers { host: *host }, needs);
    }
    let (host_build, container_build) = (host.build, container.build);
    if container_build > host_build {
        return incompatible(
            Reason::ContainerNewer {
                host: host_build,
                container: container_build,
            },
            needs,
        );
    }
    match isolation {
        Isolation::HyperV => Verdict::Compatible,
        Isolation::Process if container_build < oldest_container(host_build) => incompatible(
            Reason::ContainerTooOld {
                host: host_build,
                container: container_build,
            },
            needs,
        ),
        Isolation::Process if host_build == container_build => same_build(host, container),
        Isolation::Process => note_of_client(host_build),
    }
}

fn has_containers(version: &WindowsVersion) -> bool {
    (version.major, version.minor) == MODERN && version.build >= FIRST_WITH_CONTAINERS
}

/// The oldest container whose processes the kernel of a host serves.
fn oldest_container(host: u32) -> u32 {
    STABLE_INTERFACE
        .iter()
        .rev()
        .copied()
        .find(|stable| *stable < host)
        .unwrap_or(host)
}

/// The newest host that serves a container: the first stable release after it ends its time.
fn need(container: &WindowsVersion, isolation: Isolation) -> HostNeed {
    let build = container.build;
    if isolation == Isolation::HyperV {
        return HostNeed::BuildAtLeast(build);
    }
    if build == FIRST_WITH_CONTAINERS && container.revision.is_some() {
        return HostNeed::Version(*container);
    }
    if STABLE_INTERFACE.first().is_some_and(|first| build < *first) {
        return HostNeed::Build(build);
    }
    match STABLE_INTERFACE.iter().find(|stable| **stable > build) {
        Some(most) => HostNeed::BuildBetween {
            least: build,
            most: *most,
        },
        None => HostNeed::BuildAtLeast(build),
    }
}

/// Judges the updates of a host and a container of the same build.
fn same_build(host: &WindowsVersion, container: &WindowsVersion) -> Verdict {
    let build = host.build;
    let (Some(on_host), Some(in_container)) = (host.revision, container.revision) else {
        return if build < REVISION_IS_FREE_FROM {
            Verdict::CompatibleWithNote(format!(
                "build {build} wants the same updates on host and container, and one of the revisions is not known"
            ))
        } else {
            note_of_client(build)
        };
    };
    if on_host == in_container {
        return note_of_client(build);
    }
    if build == FIRST_WITH_CONTAINERS {
        return Verdict::Incompatible {
            reason: Reason::OtherRevision {
                host: *host,
                container: *container,
            },
            needs: HostNeed::Version(*container),
        };
    }
    if build < REVISION_IS_FREE_FROM {
        return Verdict::CompatibleWithNote(format!(
            "different updates on host and container are not guaranteed to work with build {build}"
        ));
    }
    match KERNEL_ENTRY_CHANGED.iter().find(|(of, _)| *of == build) {
        Some((_, change)) if (on_host >= *change) != (in_container >= *change) => {
            Verdict::CompatibleWithNote(
                "32-bit programs fail: only one of host and container has the updates of February 2020"
                    .to_owned(),
            )
        }
        _ => note_of_client(build),
    }
}

/// A desktop host runs process-isolated containers for development only.
fn note_of_client(host: u32) -> Verdict {
    match release(host, Product::Server) {
        Some(release) if release.product == Product::Client => {
            Verdict::CompatibleWithNote(format!(
                "{} runs process-isolated containers for development and test only",
                release.name
            ))
        }
        _ => Verdict::Compatible,
    }
}
