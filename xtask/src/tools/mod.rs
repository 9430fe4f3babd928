//! The tools that the project's commands need. Each knows how to see that it is there (fast, from
//! files), how to install itself, and what a person without root should type instead. Installing is
//! idempotent, one run at a time, and an interrupted install starts over: everything is built beside
//! its place and renamed into it.

mod apt;
mod cargo_install;
mod lock;
mod python;
mod stamp;
mod windows_std;
pub(crate) mod wine;

use std::time::Instant;

use anyhow::{Result, bail};

pub(crate) use stamp::remove as remove_folder;

use crate::console;
use crate::workspace::Workspace;

/// What a command needs tools for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Purpose {
    /// Tests on this machine
    Linux,
    /// Cross-compiling for Windows
    WindowsBuild,
    /// Running Windows programs
    Wine,
    /// The checks of `cargo xtask ci`
    Checks,
}

impl Purpose {
    pub(crate) const ALL: [Self; 4] = [Self::Linux, Self::WindowsBuild, Self::Wine, Self::Checks];
}

/// Whether a tool can be used as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Present,
    /// With the reason, for people.
    Missing(String),
}

/// One thing to have.
pub(crate) trait Tool {
    fn name(&self) -> String;
    fn state(&self) -> Result<State>;
    /// Whether only root can install it.
    fn needs_root(&self) -> bool;
    /// Called under the lock, and only when the tool is missing.
    fn install(&self) -> Result<()>;
    /// What somebody with root should type where we have no right to install it.
    fn by_hand(&self) -> String;
}

/// Every tool for `purposes`, each after the ones that it is made with.
pub(crate) fn registry<'w>(
    workspace: &'w Workspace,
    purposes: &[Purpose],
) -> Vec<Box<dyn Tool + 'w>> {
    let wants = |purpose| purposes.contains(&purpose);
    let mut tools: Vec<Box<dyn Tool + 'w>> = Vec::new();
    let packages = apt::packages_for(purposes);
    if !packages.is_empty() {
        tools.push(Box::new(apt::Packages::new(workspace, packages)));
    }
    if wants(Purpose::WindowsBuild) {
        tools.push(Box::new(windows_std::WindowsStd::new(workspace)));
        tools.push(Box::new(windows_std::RustupLink::new(workspace)));
    }
    if wants(Purpose::Wine) {
        tools.push(Box::new(wine::install::Wine::new(workspace)));
        tools.push(Box::new(wine::template::Template::new(workspace)));
        tools.push(Box::new(wine::winrun::Winrun::new(workspace)));
    }
    if wants(Purpose::Linux) {
        tools.push(Box::new(python::Python::new(workspace)));
    }
    if wants(Purpose::Linux) || wants(Purpose::Wine) {
        tools.push(Box::new(cargo_install::CargoTool::nextest(workspace)));
    }
    if wants(Purpose::Checks) {
        tools.push(Box::new(cargo_install::CargoTool::deny(workspace)));
    }
    tools
}

/// Installs whatever is missing, or says exactly what to type.
pub(crate) fn ensure(workspace: &Workspace, purposes: &[Purpose]) -> Result<()> {
    ensure_tools(workspace, &registry(workspace, purposes))
}

fn ensure_tools(workspace: &Workspace, tools: &[Box<dyn Tool + '_>]) -> Result<()> {
    if missing(tools)?.is_empty() {
        return Ok(());
    }
    let _lock = lock::Lock::take(&workspace.tools)?;
    // Somebody else may have installed it while we waited.
    for missing in missing(tools)? {
        // A tool may be there now because one before it brought it.
        let State::Missing(why) = missing.state()? else {
            continue;
        };
        if missing.needs_root() && !workspace.is_root {
            bail!(refusal(tools)?);
        }
        console::heading(&format!("installing {} ({why})", missing.name()));
        let started = Instant::now();
        missing.install()?;
        if let State::Missing(why) = missing.state()? {
            bail!(
                "{} was installed and is still not usable: {why}",
                missing.name()
            );
        }
        console::line(&format!(
            "  installed in {}",
            console::duration(started.elapsed())
        ));
    }
    Ok(())
}

/// Shows what is there and what is not.
pub(crate) fn show(workspace: &Workspace) -> Result<()> {
    let mut rows = Vec::new();
    for tool in registry(workspace, &Purpose::ALL) {
        let state = match tool.state()? {
            State::Present => "present".to_owned(),
            State::Missing(why) => format!("missing: {why}"),
        };
        rows.push(vec![tool.name(), state]);
    }
    console::table(&["tool", "state"], &rows);
    Ok(())
}

fn missing<'t>(tools: &'t [Box<dyn Tool + '_>]) -> Result<Vec<&'t dyn Tool>> {
    let mut missing = Vec::new();
    for tool in tools {
        if tool.state()? != State::Present {
            missing.push(&**tool as &dyn Tool);
        }
    }
    Ok(missing)
}

/// What to tell somebody who is not root: all commands at once, in order.
fn refusal(tools: &[Box<dyn Tool + '_>]) -> Result<String> {
    let mut text = String::from("tools are missing and only root can install them; run:\n");
    for tool in missing(tools)?.into_iter().filter(|tool| tool.needs_root()) {
        text.push_str("\n    ");
        text.push_str(&tool.by_hand());
    }
    text.push_str("\n\nand then the same command again");
    Ok(text)
}

#[cfg(test)]
mod tests;
