//! This program as a service of the system: what is registered, for whichever of its roles.
//!
//! Invariant: nothing secret stands in a command line; and what is registered is printed by a dry run as it is.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{self, Access as _, Restricted};
use transom_host::files::{self, Files as _};
use transom_host::service::unit_file::{render_unit, unit_name};
use transom_host::service::{
    FailureActions, Native, Registration, ServiceError, ServiceManager, Start,
};
use transom_model::Os;
use transom_model::layout::Layout;

use crate::context::Context;
use crate::failure::Advice as _;
use crate::settings::{Setting, Source};

const START_LIMIT: Duration = Duration::from_mins(1);

/// A service of ours, in the words of people.
pub(super) struct Role<'a> {
    pub(super) name: &'a str,
    pub(super) display: &'a str,
    pub(super) description: &'a str,
}

/// What is registered for a role. It starts with the machine, after the network, and again when it fails.
pub(super) fn registration(
    os: Os,
    role: &Role<'_>,
    program: Utf8PathBuf,
    arguments: Vec<String>,
) -> Registration {
    let dependencies: &[&str] = match os {
        Os::Linux => &["network-online.target"],
        Os::Windows => &["Tcpip", "Afd"],
    };
    Registration {
        name: role.name.to_owned(),
        display: role.display.to_owned(),
        description: role.description.to_owned(),
        program,
        arguments,
        start: Start::Auto,
        dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        failure: FailureActions {
            restart_delays: [1, 5, 30].map(Duration::from_secs).to_vec(),
            reset_after: Duration::from_hours(1),
        },
        user: None,
    }
}

/// The file of this program.
pub(super) fn own_program() -> anyhow::Result<Utf8PathBuf> {
    let program = std::env::current_exe().context("could not find this program's own file")?;
    Utf8PathBuf::from_path_buf(program)
        .map_err(|path| anyhow::anyhow!("the path `{}` is not Unicode", path.display()))
}

/// What would be registered, as people read it on that system.
pub(super) fn render(os: Os, registration: &Registration) -> String {
    match os {
        Os::Linux => format!(
            "# /etc/systemd/system/{}\n{}",
            unit_name(&registration.name),
            render_unit(registration)
        ),
        Os::Windows => {
            let words: Vec<String> = std::iter::once(registration.program.to_string())
                .chain(registration.arguments.clone())
                .map(|word| format!("\"{word}\""))
                .collect();
            let mut text = format!("service {}\n", registration.name);
            for (key, value) in [
                ("display name", registration.display.clone()),
                ("description", registration.description.clone()),
                ("command", words.join(" ")),
                ("starts", "with the machine".to_owned()),
                ("after", registration.dependencies.join(", ")),
                ("account", "LocalSystem".to_owned()),
                ("when it fails", restarts(&registration.failure)),
            ] {
                // Writing to a text cannot fail.
                let _ = writeln!(text, "  {key}: {value}");
            }
            text
        }
    }
}

fn restarts(failure: &FailureActions) -> String {
    let delays = failure.restart_delays.iter();
    let delays: Vec<String> = delays
        .map(|delay| format!("{}s", delay.as_secs()))
        .collect();
    format!("restarted after {}", delays.join(", "))
}

/// The service manager of this machine.
pub(super) fn manager(instead: &str) -> anyhow::Result<Native> {
    match Native::connect() {
        Err(error @ ServiceError::NoServiceManager) => Err(error).hint(instead),
        other => Ok(other?),
    }
}

/// Registers, and starts what is to run now. Says so.
pub(super) fn install(
    cx: &Context,
    manager: &dyn ServiceManager,
    registration: &Registration,
    now: bool,
) -> anyhow::Result<()> {
    let name = &registration.name;
    manager.install(registration)?;
    cx.out
        .remark(&format!("{name} is registered and comes up at boot"));
    if now {
        manager.start(name, START_LIMIT)?;
        cx.out.remark(&format!("{name} runs"));
    }
    Ok(())
}

/// Takes a registration away. Where there is no service manager there is none.
pub(super) fn uninstall(cx: &Context, name: &str) -> anyhow::Result<()> {
    match Native::connect() {
        Err(ServiceError::NoServiceManager) => {}
        manager => manager?.uninstall(name)?,
    }
    cx.out.remark(&format!("{name} is not registered any more"));
    Ok(())
}

/// The folder that holds all of ours and inherits the access of the drive, which every user may write
/// to. Linux has its places already, closed by the system.
fn root_folder(os: Os, layout: &Layout) -> Option<Utf8PathBuf> {
    match os {
        Os::Linux => None,
        Os::Windows => {
            let (above, _) = layout.config.as_str().rsplit_once('\\')?;
            Some(above.into())
        }
    }
}

/// Sees to it that nobody else can change what a service, which may do everything, reads.
pub(super) fn close_folders(cx: &Context) -> anyhow::Result<()> {
    let Some(root) = root_folder(cx.host, &cx.layout) else {
        return Ok(());
    };
    files::Native.create_dir_all(&root)?;
    let restricted = access::Native
        .restrict_to_owner(&root)
        .with_context(|| format!("could not close `{root}` to other users"))
        .hint("run this as an administrator")?;
    if let Restricted::NotVerified { why } = restricted {
        cx.out.warn(&format!(
            "`{root}` may be open to other users, who could then run programs as the system: {why}"
        ));
    }
    Ok(())
}

/// The words of a command line that says again what was said here.
#[derive(Debug, Default)]
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn add(&mut self, flag: &str, values: impl IntoIterator<Item = String>) {
        let words = values.into_iter().map(|value| format!("{flag}={value}"));
        self.0.extend(words);
    }

    /// A path, wherever the service manager starts us.
    pub(super) fn path(&mut self, flag: &str, path: Option<&Utf8Path>) -> anyhow::Result<()> {
        let path = path.map(camino::absolute_utf8).transpose()?;
        self.add(flag, path.map(Utf8PathBuf::into_string));
        Ok(())
    }

    /// The options of every command that say where things are.
    pub(super) fn places(&mut self, cx: &Context) -> anyhow::Result<()> {
        let given = |setting: &Setting<Utf8PathBuf>| {
            let is_given = matches!(
                setting.source,
                Source::Flag { .. } | Source::Variable { .. }
            );
            is_given.then(|| setting.value.clone())
        };
        self.path("--root", given(&cx.settings.root).as_deref())?;
        self.path("--config", given(&cx.settings.config).as_deref())
    }

    pub(super) fn done(self) -> Vec<String> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_windows_one_folder_holds_all_of_ours() {
        let layout = Layout::standard(Os::Windows);
        let root = root_folder(Os::Windows, &layout).unwrap();
        assert_eq!(root, r"C:\Transom");
        let places = [&layout.software, &layout.state, &layout.run, &layout.logs];
        for place in places.into_iter().chain(&layout.units) {
            assert!(place.as_str().starts_with(r"C:\Transom\"), "{place}");
        }
        let linux = Layout::standard(Os::Linux);
        assert_eq!(root_folder(Os::Linux, &linux), None);
    }
}
