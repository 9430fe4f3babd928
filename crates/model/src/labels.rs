//! Names of labels that Kubernetes gives a meaning to, and of annotations that several of our parts share. Such
//! a name is written here once and nowhere else.

/// The operating system of a node: `linux` or `windows`.
pub const OS: &str = "kubernetes.io/os";
/// The older spelling of [`OS`], which manifests written before 2019 still select by.
pub const OS_BETA: &str = "beta.kubernetes.io/os";
/// The architecture of a node: `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// The older spelling of [`ARCH`].
pub const ARCH_BETA: &str = "beta.kubernetes.io/arch";
/// The build of a Windows node as `major.minor.build`, without the revision.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// The host name of a node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Annotation of a pod: at which address of the node its ports are. The scheduler writes it, the agent reads it.
pub const POD_ADDRESS: &str = "scheduler.transom.dev/address";
/// Stands in [`POD_ADDRESS`] until an address is found.
pub const ANY_ADDRESS: &str = "auto";
