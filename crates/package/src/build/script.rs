//! Where and how a build script runs: what it sees, and what it is told. Pure: the same values on every
//! system, to be run on the system that the package is for.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::sandbox::{Mount, Root, Sandbox};
use transom_model::package::PackageId;

use super::dependencies::ROOT;
use crate::tree::TreePackage;

/// The first moment that a zip file can name. Tools take it for the time of what they make.
const SOURCE_DATE_EPOCH: &str = "315532800";
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The folders of one build.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) script: Utf8PathBuf,
    pub(super) sources: Utf8PathBuf,
    pub(super) extra: Utf8PathBuf,
    /// The required packages, activated.
    pub(super) dependencies: Utf8PathBuf,
    /// Where each of them is unpacked.
    pub(super) unpacked: BTreeMap<PackageId, Utf8PathBuf>,
    pub(super) output: Utf8PathBuf,
    pub(super) workspace: Utf8PathBuf,
    pub(super) log: Utf8PathBuf,
}

/// Where a package is on a node, and while it is built.
pub(super) fn home(id: &PackageId) -> Utf8PathBuf {
    format!("{ROOT}/packages/{id}").into()
}

/// A script for bash, in a world of its own.
pub(super) fn bash(
    package: &TreePackage,
    places: &Places,
    root: Root,
    cores: usize,
    time_limit: Duration,
) -> Sandbox {
    let mount = |from: &Utf8Path, to: &str, writable| Mount {
        from: from.to_owned(),
        to: to.into(),
        writable,
    };
    let mut mounts = vec![
        mount(&places.sources, "/pkg/src", true),
        mount(&places.extra, "/pkg/extra", false),
        mount(&places.script, "/pkg/build", false),
        mount(&places.dependencies, ROOT, false),
    ];
    for (id, unpacked) in &places.unpacked {
        mounts.push(mount(unpacked, home(id).as_str(), false));
    }
    let home = home(&package.id);
    mounts.push(mount(&places.output, home.as_str(), true));
    let mut environment = variables(package, home.as_str(), cores);
    for (name, value) in [
        ("PATH", SEARCH_PATH),
        ("HOME", "/tmp"),
        ("LANG", "C.UTF-8"),
        ("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH),
    ] {
        environment.insert(name.to_owned(), value.to_owned());
    }
    let arguments = [
        "-o",
        "nounset",
        "-o",
        "pipefail",
        "-o",
        "errexit",
        "/pkg/build",
    ];
    Sandbox {
        root,
        workspace: places.workspace.clone(),
        mounts,
        program: "/bin/bash".into(),
        arguments: arguments.map(str::to_owned).to_vec(),
        environment,
        directory: "/pkg/src".into(),
        log: places.log.clone(),
        time_limit,
    }
}

/// A script for PowerShell. Nothing can be put elsewhere on Windows, so variables tell where it is.
pub(super) fn powershell(
    package: &TreePackage,
    places: &Places,
    program: &Utf8Path,
    base: &BTreeMap<String, String>,
    cores: usize,
    time_limit: Duration,
) -> Sandbox {
    let mut environment = base.clone();
    environment.extend(variables(package, places.output.as_str(), cores));
    for (name, value) in [
        ("PKG_SRC", &places.sources),
        ("PKG_EXTRA", &places.extra),
        ("PKG_DEPENDENCIES", &places.dependencies),
    ] {
        environment.insert(name.to_owned(), value.to_string());
    }
    environment.insert("SOURCE_DATE_EPOCH".to_owned(), SOURCE_DATE_EPOCH.to_owned());
    let mut arguments = [
        "-NoProfile",
        "-NonInteractive",
        "-ExecutionPolicy",
        "Bypass",
        "-File",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(places.script.to_string());
    Sandbox {
        root: Root::Machine,
        workspace: places.workspace.clone(),
        mounts: Vec::new(),
        program: program.to_owned(),
        arguments,
        environment,
        directory: places.sources.clone(),
        log: places.log.clone(),
        time_limit,
    }
}

/// What every script is told.
fn variables(package: &TreePackage, path: &str, cores: usize) -> BTreeMap<String, String> {
    let variant = match package.recipe.variant.as_str() {
        "" => "<default>",
        name => name,
    };
    [
        ("PKG_NAME", package.id.name_str()),
        ("PKG_VERSION", package.id.version_str()),
        ("PKG_ID", package.id.as_str()),
        ("PKG_PATH", path),
        ("PKG_VARIANT", variant),
        ("NUM_CORES", &cores.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use serde_json::json;
    use transom_model::Os;

    use super::*;
    use crate::recipe::Recipe;

    fn package(variant: &str) -> TreePackage {
        let recipe = Recipe {
            name: "tool".parse().unwrap(),
            variant: variant.parse().unwrap(),
            os: Os::Windows,
            folder: "/tree/tool".into(),
            sources: BTreeMap::new(),
            requires: Vec::new(),
            docker: String::new(),
            script: None,
            install: Vec::new(),
            environment: BTreeMap::new(),
            state_directory: false,
            username: None,
            group: None,
            sysctl: BTreeMap::new(),
            hashed: BTreeMap::new(),
        };
        TreePackage {
            recipe,
            id: "tool--1".parse().unwrap(),
            requires: BTreeSet::new(),
            closure: BTreeSet::new(),
            build_ids: json!({}),
            extra_source: None,
        }
    }

    fn places(root: &str, unpacked: &[&str]) -> Places {
        let at = |name: &str| Utf8PathBuf::from(format!("{root}{name}"));
        Places {
            script: at("script"),
            sources: at("src"),
            extra: at("extra"),
            dependencies: at("dependencies"),
            unpacked: unpacked
                .iter()
                .map(|id| (id.parse().unwrap(), at(id)))
                .collect(),
            output: at("output"),
            workspace: at("root"),
            log: at("log"),
        }
    }

    #[test]
    fn powershell_is_told_all_places_by_variables() {
        let base = BTreeMap::from([("PATH".to_owned(), r"C:\Windows".to_owned())]);
        let sandbox = powershell(
            &package("windows"),
            &places(r"D:\work\", &[]),
            Utf8Path::new(r"C:\ps\powershell.exe"),
            &base,
            4,
            Duration::from_mins(1),
        );
        assert!(sandbox.mounts.is_empty());
        let mut shown = format!("{} {}\n", sandbox.program, sandbox.arguments.join(" "));
        for (name, value) in &sandbox.environment {
            let _ = writeln!(shown, "{name}={value}");
        }
        insta::assert_snapshot!(shown, @r"
        C:\ps\powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -File D:\work\script
        NUM_CORES=4
        PATH=C:\Windows
        PKG_DEPENDENCIES=D:\work\dependencies
        PKG_EXTRA=D:\work\extra
        PKG_ID=tool--1
        PKG_NAME=tool
        PKG_PATH=D:\work\output
        PKG_SRC=D:\work\src
        PKG_VARIANT=windows
        PKG_VERSION=1
        SOURCE_DATE_EPOCH=315532800
        ");
    }

    #[test]
    fn bash_finds_everything_at_its_usual_place() {
        let sandbox = bash(
            &package("default"),
            &places("/job/", &["dep--2"]),
            Root::Machine,
            4,
            Duration::from_mins(1),
        );
        let mut shown = format!("{} {}\n", sandbox.program, sandbox.arguments.join(" "));
        for mount in &sandbox.mounts {
            let how = if mount.writable { "rw" } else { "ro" };
            let _ = writeln!(shown, "{} at {} {how}", mount.from, mount.to);
        }
        insta::assert_snapshot!(shown, @r"
        /bin/bash -o nounset -o pipefail -o errexit /pkg/build
        /job/src at /pkg/src rw
        /job/extra at /pkg/extra ro
        /job/script at /pkg/build ro
        /job/dependencies at /opt/mesosphere ro
        /job/dep--2 at /opt/mesosphere/packages/dep--2 ro
        /job/output at /opt/mesosphere/packages/tool--1 rw
        ");
        assert_eq!(sandbox.environment["PKG_VARIANT"], "<default>");
    }
}
