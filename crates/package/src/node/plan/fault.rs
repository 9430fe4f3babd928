//! Everything that keeps a set of packages from becoming active. All faults of a set are found before
//! anything is made, and each names the packages and the path it is about.

use camino::Utf8PathBuf;
use transom_host::files::FileError;
use transom_host::files::archive::Refusal;
use transom_model::package::{GroupName, PackageId, PackageName, UserName};

use crate::info::InfoError;

/// Why a set of packages cannot become active.
#[derive(Debug, thiserror::Error)]
pub enum ActivationFault {
    #[error("package `{id}` is not on this node")]
    UnknownPackage { id: PackageId },
    #[error("package `{id}` has no readable pkginfo.json")]
    NoInfo { id: PackageId, source: FileError },
    #[error("package `{id}` has an invalid pkginfo.json")]
    InvalidInfo { id: PackageId, source: InfoError },
    #[error("package `{id}` has an invalid buildinfo.full.json")]
    InvalidBuildinfo {
        id: PackageId,
        source: serde_json::Error,
    },
    #[error("package `{id}` cannot be read")]
    Unreadable { id: PackageId, source: FileError },
    #[error("the folders of package `{id}` are nested too deeply at `{path}`")]
    TooDeep { id: PackageId, path: String },
    #[error("the node has the roles {}, and can have only one", .roles.join(", "))]
    SeveralRoles { roles: Vec<String> },
    #[error("`{first}` and `{second}` are two packages with the same name")]
    RepeatedName { first: PackageId, second: PackageId },
    #[error("package `{id}` requires `{name}`, which is not in the set")]
    UnmetRequirement { id: PackageId, name: PackageName },
    #[error("package `{id}` sets the variable `{variable}`, which belongs to the node")]
    ReservedVariable { id: PackageId, variable: String },
    #[error("the variable `{variable}` is set by both `{first}` and `{second}`")]
    RepeatedVariable {
        variable: String,
        first: PackageId,
        second: PackageId,
    },
    #[error("package `{id}` sets the variable `{variable}`, which no environment file can hold")]
    ImpossibleVariable { id: PackageId, variable: String },
    #[error("`{first}` and `{second}` set the kernel setting `{setting}` to different values")]
    ConflictingSetting {
        setting: String,
        first: PackageId,
        second: PackageId,
    },
    #[error("package `{id}` has kernel settings, but no unit file of a service")]
    SettingsWithoutService { id: PackageId },
    #[error("package `{id}` names the group `{group}` without a username")]
    GroupWithoutUser { id: PackageId, group: GroupName },
    #[error(
        "package `{id}` needs the user `{user}`, which does not exist, and accounts are made by \
         people on this node (manual_host_users)"
    )]
    MissingUser { id: PackageId, user: UserName },
    #[error("package `{id}` needs the group `{group}`, which does not exist on this node")]
    UnknownGroup { id: PackageId, group: GroupName },
    #[error("package `{id}` needs the user `{user}` in the group `{group}`, and it is not")]
    UserNotInGroup {
        id: PackageId,
        user: UserName,
        group: GroupName,
    },
    #[error("`{first}` and `{second}` want the user `{user}` in different groups")]
    UserInTwoGroups {
        user: UserName,
        first: PackageId,
        second: PackageId,
    },
    #[error("the user `{user}` could not be looked up")]
    UserLookUp {
        user: UserName,
        source: transom_host::account::AccountError,
    },
    #[error("package `{id}` has the unit `{unit}`, which belongs to the node")]
    ReservedUnit { id: PackageId, unit: String },
    #[error("package `{id}` has the folder `{path}` among its unit files")]
    UnitFolder { id: PackageId, path: String },
    #[error(
        "`{path}` is there already and was not made by us: package `{id}` has a unit of that name"
    )]
    ForeignUnit { id: PackageId, path: Utf8PathBuf },
    #[error("`{path}` is in both `{first}` and `{second}`")]
    Collision {
        path: String,
        first: PackageId,
        second: PackageId,
    },
    #[error(
        "`{first_path}` of `{first}` and `{second_path}` of `{second}` are the same file on Windows"
    )]
    CaseCollision {
        first: PackageId,
        first_path: String,
        second: PackageId,
        second_path: String,
    },
    #[error("package `{id}` has `{path}`, which the node writes itself")]
    ReservedFile { id: PackageId, path: String },
    #[error("package `{id}` has `{path}`: {reason}")]
    ImpossibleName {
        id: PackageId,
        path: String,
        reason: Refusal,
    },
    #[error("package `{id}` has the link `{path}`: a Windows node has no links to files")]
    LinkOnWindows { id: PackageId, path: String },
    #[error(
        "`{path}` is in the way: it was not made by us, and the active generation is to be there"
    )]
    OccupiedPlace { path: Utf8PathBuf },
}
