//! Which runtime a node has. Invariant: what was chosen is used or refused with a reason, never replaced.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use transom_host::access::{Access as _, Native};
use transom_host::machine::{self, Machine as _};
use transom_model::{Arch, Os};
use transom_runtime::images::{BuildFile, BuildKind, ImageSettings, Images, Platform, Registries};
use transom_runtime::oci::{self, BridgeSettings, OciSettings, Opened};
use transom_runtime::process::{self, ProcessRuntime};
use transom_runtime::{Runtime, RuntimeError};

use super::{OWN_IMAGE, Selection, Settings, other_program};
use crate::failure::{Advice as _, Exit};
use crate::registries;

/// The runtime as a flag names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Choice {
    /// Containers, run by this program itself; Linux, as root
    Oci,
    /// Host processes, on Windows those of `HostProcess` pods
    Process,
}

impl Choice {
    /// As flags spell it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Oci => "oci",
            Self::Process => "process",
        }
    }

    /// What a machine can do without anybody's help.
    pub(crate) fn usual(host: Os) -> Self {
        let is_root = || Native.is_elevated().unwrap_or(false);
        if host == Os::Linux && is_root() {
            Self::Oci
        } else {
            Self::Process
        }
    }
}

/// What a keeper and a shim are started with; not commands for people.
const ATTENDANT: &str = "agent";
const KEEPER: [&str; 2] = [ATTENDANT, "keeper"];
const SHIM: [&str; 2] = [ATTENDANT, "shim"];

/// The mode of the program in its image.
const EXECUTABLE: u32 = 0o755;

/// A runtime that is open, and the images it has, if it has any of its own.
pub(crate) struct Ready {
    pub(crate) runtime: Arc<dyn Runtime>,
    images: Option<Arc<Images>>,
}

impl Ready {
    /// Makes [`OWN_IMAGE`] out of this program, so that there is something to run without a registry. A runtime of
    /// host processes needs none: the program is on the machine.
    pub(crate) async fn make_own_image(&self) -> anyhow::Result<()> {
        if let Some(images) = self.images.clone() {
            let made = tokio::task::spawn_blocking(move || make_own_image(&images)).await?;
            made.context("could not make an image of this program")?;
        }
        Ok(())
    }
}

/// Opens the runtime of a node, which takes over what runs already.
pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Ready> {
    let registries = registries(settings)?;
    match &settings.runtime {
        Selection::Own(Choice::Process) => Ok(Ready {
            runtime: open_process(&settings.data, settings.environment.clone()).await?,
            images: None,
        }),
        Selection::Own(Choice::Oci) => {
            let opened = open_oci(&settings.data, registries).await?;
            Ok(Ready {
                runtime: opened.runtime,
                images: Some(opened.images),
            })
        }
        Selection::Cri(_) | Selection::Docker(_) => Ok(Ready {
            runtime: other_program::open(settings).await?,
            images: None,
        }),
    }
}

/// Where images come from. Only a runtime that pulls them itself can be told.
fn registries(settings: &Settings) -> anyhow::Result<Registries> {
    match (&settings.registries, &settings.runtime) {
        (None, _) => Ok(Registries::default()),
        (Some(file), Selection::Own(Choice::Oci)) => registries::load(file),
        (Some(_), other) => Err(anyhow::anyhow!(
            "--registries is for the runtime oci, and this is {other}"
        ))
        .hint("containerd and Docker have settings of their own; host processes have no registry")
        .exit(Exit::Usage),
    }
}

/// Removes all pods below `data`, of whatever runtime, with all that was made for them.
pub(crate) async fn clear(data: &Utf8Path) -> anyhow::Result<()> {
    if process_folder(data).exists() {
        remove_pods(&*open_process(data, BTreeMap::new()).await?).await?;
    }
    if oci_folder(data).exists() {
        let opened = open_oci(data, Registries::default()).await?;
        remove_pods(&*opened.runtime).await?;
        oci::remove_all(&oci_settings(data)?, &bridge(data)).await?;
    }
    Ok(())
}

async fn remove_pods(runtime: &dyn Runtime) -> anyhow::Result<()> {
    for pod in runtime.pods().await? {
        runtime
            .remove_pod(&pod.id)
            .await
            .with_context(|| format!("could not remove pod {}/{}", pod.namespace, pod.name))?;
    }
    Ok(())
}

fn process_folder(data: &Utf8Path) -> Utf8PathBuf {
    data.join("process")
}

fn oci_folder(data: &Utf8Path) -> Utf8PathBuf {
    data.join("oci")
}

fn program() -> anyhow::Result<Utf8PathBuf> {
    let program = env::current_exe().context("could not find this program")?;
    Utf8PathBuf::try_from(program).context("the path of this program is not text")
}

async fn open_process(
    data: &Utf8Path,
    environment: BTreeMap<String, String>,
) -> anyhow::Result<Arc<dyn Runtime>> {
    let runtime = ProcessRuntime::open(process::Config {
        folder: process_folder(data),
        images: data.join("images"),
        keeper_program: program()?,
        keeper_arguments: KEEPER.map(str::to_owned).to_vec(),
        environment,
    })
    .await
    .context("could not open the process runtime")?;
    Ok(Arc::new(runtime))
}

async fn open_oci(data: &Utf8Path, registries: Registries) -> anyhow::Result<Opened> {
    let system = machine::Native.system()?;
    let platform = Platform {
        os: system.os.as_str().to_owned(),
        architecture: system.arch.map_or("unknown", Arch::as_str).to_owned(),
        os_version: None,
    };
    let opened = oci::open(
        &oci_settings(data)?,
        &data.join("images"),
        platform,
        registries,
        &bridge(data),
    )
    .await;
    opened
        .context("could not open the oci runtime")
        .hint("host processes need less: --runtime process")
        .exit(Exit::Denied)
}

fn oci_settings(data: &Utf8Path) -> anyhow::Result<OciSettings> {
    let program = program()?;
    let shim = std::iter::once(program.as_str()).chain(SHIM);
    Ok(OciSettings {
        state: oci_folder(data),
        shim: shim.map(str::to_owned).collect(),
        cgroup: bridge(data).name,
    })
}

/// A bridge for the folder of a node: two nodes on one machine have two, with subnets that are hardly the same.
fn bridge(data: &Utf8Path) -> BridgeSettings {
    let digest = Sha256::digest(data.as_str());
    let [first, second, third, fourth] = [digest[0], digest[1], digest[2], digest[3]];
    BridgeSettings {
        name: format!("tr{first:02x}{second:02x}{third:02x}{fourth:02x}"),
        subnet: format!("10.{}.{second}.0/24", 64 + first % 64),
    }
}

/// An image with nothing in it but this program and what it needs.
fn make_own_image(images: &Images) -> Result<(), RuntimeError> {
    let parts = transom_host::program::parts()
        .map_err(|error| RuntimeError::io("look at this program", error))?;
    let file = |path: &str, file: Utf8PathBuf| BuildFile {
        path: path.to_owned(),
        kind: BuildKind::File(file),
        mode: EXECUTABLE,
    };
    let mut files = vec![file("/transom", parts.program)];
    files.extend(
        parts
            .besides
            .into_iter()
            .map(|part| file(part.path.as_str(), part.file)),
    );
    let settings = ImageSettings {
        entrypoint: vec!["/transom".to_owned()],
        ..ImageSettings::default()
    };
    images.build(OWN_IMAGE, &files, &settings, Timestamp::now())?;
    Ok(())
}

/// Keeps a host process or the containers of a pod, if that is what this process was started for. Nothing else of
/// the program is set up for it: it is small, it has one thread, and what it would log is not the container's to say.
pub(crate) fn attend(arguments: &[OsString]) -> Option<Exit> {
    let [first, second, rest @ ..] = arguments else {
        return None;
    };
    let attend = match (first.to_str()?, second.to_str()?) {
        (ATTENDANT, "keeper") => process::keeper_main,
        (ATTENDANT, "shim") => oci::shim_main,
        _ => return None,
    };
    let rest: Vec<String> = rest
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // Nobody reads the code but to see whether it is zero.
    Some(if attend(&rest) == ExitCode::SUCCESS {
        Exit::Success
    } else {
        Exit::Failure
    })
}
