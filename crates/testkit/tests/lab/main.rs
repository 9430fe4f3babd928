//! The lab proved on itself: hosts that are really apart, that reach each other, that can be cut
//! off, paused and turned off, and of which nothing is left. One binary, so that it links once.
#![cfg(target_os = "linux")]

mod cleanup;
mod hosts;
mod programs;
mod windows;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use transom_testkit::{Host, Running};

/// How long something may take that takes no time on an idle machine; CI's is often busy.
pub(crate) const SOON: Duration = Duration::from_mins(1);
/// Where tests have the web server on a Linux host.
pub(crate) const ECHO: &str = "/opt/testkit-echo";
pub(crate) const PORT: u16 = 8080;

/// Starts the web server on a Linux host and waits until it answers.
pub(crate) fn serve(host: &Host) -> Result<Running> {
    host.put_file(Path::new(env!("CARGO_BIN_EXE_testkit-echo")), ECHO)?;
    let port = PORT.to_string();
    let server = host.spawn([ECHO, "serve", "--port", &port, "--name", host.name()])?;
    server.wait_for_output("listening on", SOON)?;
    Ok(server)
}

/// Gets the page of `server`'s web server from `client`, by name.
pub(crate) fn page(client: &Host, server: &Host) -> Result<String> {
    Ok(client
        .http_get(&format!("http://{}:{PORT}/", server.name()))?
        .body)
}
