//! Runtimes that are other programs, found by their sockets. Invariant: a node starts only with one that answers; the
//! error of one that does not names every place that was tried.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use transom_host::machine::{self, Machine as _};
use transom_model::Os;
use transom_runtime::cri::{self, CriRuntime};
use transom_runtime::docker::{self, DockerRuntime};
use transom_runtime::{Runtime, RuntimeError, Version};

use super::selection::usual_endpoints;
use super::{Selection, Settings};
use crate::failure::{Advice as _, Exit};

/// What holds a pod in Docker on Windows, if nobody names another image: there it takes a program of Windows.
const WINDOWS_SANDBOX: &str = "mcr.microsoft.com/oss/kubernetes/pause:3.9";

/// Finds the program that runs the containers of this node.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Arc<dyn Runtime>> {
    let selection = &settings.runtime;
    let system = machine::Native.system()?;
    let endpoints: Vec<&str> = match selection {
        Selection::Cri(Some(endpoint)) | Selection::Docker(Some(endpoint)) => vec![endpoint],
        _ => usual_endpoints(selection, system.os).to_vec(),
    };
    let mut refusals = Vec::new();
    for endpoint in endpoints {
        let runtime = prepare(settings, endpoint, system.os)?;
        match runtime.version().await {
            Ok(Version { name, version }) => {
                tracing::info!(endpoint, name, version, "the container runtime answers");
                return Ok(runtime);
            }
            Err(error) => refusals.push(format!("{endpoint}: {}", cause(&error))),
        }
    }
    Err(anyhow!("{}", refusals.join("; ")))
        .context("no container runtime answers")
        .hint(way_forward(selection, system.os))
        .exit(Exit::NotRunning)
}

fn prepare(settings: &Settings, endpoint: &str, os: Os) -> anyhow::Result<Arc<dyn Runtime>> {
    let address = endpoint.to_owned();
    match &settings.runtime {
        Selection::Own(own) => Err(anyhow!("{} is no other program", own.word())),
        Selection::Cri(_) => {
            let processors = machine::Native.processors()?.logical;
            Ok(Arc::new(CriRuntime::new(cri::Config {
                address,
                os,
                processors: u32::try_from(processors).unwrap_or(u32::MAX),
            })))
        }
        Selection::Docker(_) => {
            let usual = (os == Os::Windows).then(|| WINDOWS_SANDBOX.to_owned());
            Ok(Arc::new(DockerRuntime::new(docker::Config {
                address,
                os,
                sandbox_image: settings.sandbox_image.clone().or(usual),
            })))
        }
    }
}

/// Why it does not answer, without saying again that it does not.
fn cause(error: &RuntimeError) -> String {
    match error {
        RuntimeError::Unavailable { cause, .. } => cause.clone(),
        error => error.to_string(),
    }
}

fn way_forward(selection: &Selection, os: Os) -> String {
    let (program, word) = match selection {
        Selection::Docker(_) => ("docker", "docker"),
        Selection::Own(_) | Selection::Cri(_) => ("containerd", "cri"),
    };
    let (start, endpoint) = match os {
        Os::Linux => (
            format!("systemctl start {program}"),
            format!("unix:///PATH/{program}.sock"),
        ),
        Os::Windows => (
            format!("Start-Service {program}"),
            "npipe:////./pipe/NAME".to_owned(),
        ),
    };
    format!("start it (`{start}`), or say where it is: --runtime {word}={endpoint}")
}
