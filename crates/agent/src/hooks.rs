//! Hooks of containers: what they want done after their start and before their end.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use transom_runtime::{ContainerId, Exec, RuntimeError};

use crate::{
    probes::{self, Target},
    site::Site,
};

/// How long a request of a hook may take.
const REQUEST: Duration = Duration::from_mins(1);
/// More output of a program than this is not kept.
const OUTPUT: u64 = 16 << 10;
/// How long output may keep coming after a program has ended.
const REST: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("the program ended with {code}: {output}")]
    Exit { code: i32, output: String },
    #[error("{0}")]
    Request(String),
}

pub(crate) async fn run(
    site: &Site,
    container: &Container,
    id: &ContainerId,
    hook: &LifecycleHandler,
    addresses: &[String],
) -> Result<(), HookError> {
    if let Some(exec) = &hook.exec {
        let command = exec.command.clone().unwrap_or_default();
        return match execute(site, id, command).await? {
            (0, _) => Ok(()),
            (code, output) => Err(HookError::Exit { code, output }),
        };
    }
    if let Some(sleep) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(sleep.seconds.max(0).unsigned_abs())).await;
        return Ok(());
    }
    if let Some(get) = &hook.http_get {
        let host = addresses.first().map(String::as_str).unwrap_or_default();
        let target = Target { container, host };
        return probes::http_get(target, get, REQUEST)
            .await
            .map(drop)
            .map_err(HookError::Request);
    }
    Ok(())
}

/// Runs a program in a container and gives its exit code with what it printed.
pub(crate) async fn execute(
    site: &Site,
    id: &ContainerId,
    command: Vec<String>,
) -> Result<(i32, String), RuntimeError> {
    let exec = Exec {
        command,
        stdout: true,
        stderr: true,
        ..Exec::default()
    };
    let session = site.options.runtime.exec(id, &exec).await?;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let reading = async {
        tokio::join!(
            read(session.output, &mut output),
            read(session.errors, &mut errors)
        );
    };
    let mut ended = session.ended;
    let mut reading = Box::pin(reading);
    let code = tokio::select! {
        () = &mut reading => ended.await,
        code = &mut ended => {
            // Somebody it left behind may hold its output open.
            if tokio::time::timeout(REST, &mut reading).await.is_err() {
                tracing::debug!("output of a program that has ended was cut off");
            }
            code
        }
    };
    drop(reading);
    output.extend(errors);
    Ok((code?, String::from_utf8_lossy(&output).into_owned()))
}

/// Keeps the beginning of a stream and takes the rest of it too, so that nobody waits.
async fn read(stream: Option<Box<dyn AsyncRead + Send + Unpin>>, bytes: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    let kept = (&mut stream).take(OUTPUT).read_to_end(bytes).await;
    let rest = match kept {
        Ok(_) => tokio::io::copy(&mut stream, &mut tokio::io::sink()).await,
        Err(error) => Err(error),
    };
    if let Err(error) = rest {
        tracing::debug!(%error, "output of a program could not be read");
    }
}
