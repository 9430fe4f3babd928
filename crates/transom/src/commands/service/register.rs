//! `install`, `uninstall`: the supervisor as a service of the system, so that it comes up at boot.

use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{self, Access, AccessError, Privacy, Restricted};
use transom_host::files::{self, Files as _};
use transom_host::service::{
    FailureActions, Native, Registration, ServiceError, ServiceManager as _, Start,
};
use transom_model::Os;
use transom_model::layout::Layout;

use super::systemd;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// The name under which the system knows the supervisor.
pub(super) const NAME: &str = "transom-supervisor";

/// What has to run first: services listen and connect.
const DEPENDENCIES: [&str; 2] = ["Tcpip", "Afd"];

const START_LIMIT: Duration = Duration::from_mins(1);

/// Register the supervisor with the system, so that it comes up at boot
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service install --now\n\nRegisters a Windows service that is restarted when it fails. On Linux with systemd there is\nnothing to install: systemd does the work."
)]
pub(super) struct Install {
    /// Start it now, too
    #[arg(long)]
    now: bool,
}

/// Take the registration of the supervisor away
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service uninstall\n\nStops the supervisor, and with it all units."
)]
pub(super) struct Uninstall {}

impl Install {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return Err(anyhow::anyhow!(
                "systemd looks after the services of this machine"
            ))
            .hint("use `transom service enable UNIT`: it drives systemd here");
        }
        let program = std::env::current_exe().context("could not find this program's own file")?;
        let program = Utf8PathBuf::from_path_buf(program)
            .map_err(|path| anyhow::anyhow!("the path `{}` is not Unicode", path.display()))?;
        let registration = Registration {
            name: NAME.to_owned(),
            display: "Transom supervisor".to_owned(),
            description: "Runs the services of this Transom node".to_owned(),
            program,
            arguments: ["service", "daemon", "--registered"]
                .map(Into::into)
                .to_vec(),
            start: Start::Auto,
            dependencies: DEPENDENCIES.map(Into::into).to_vec(),
            failure: FailureActions {
                restart_delays: [1, 5, 30].map(Duration::from_secs).to_vec(),
                reset_after: Duration::from_hours(1),
            },
            user: None,
        };
        let manager = advise(Native::connect())?;
        close_folders(cx)?;
        advise(manager.install(&registration))?;
        cx.out
            .remark(&format!("{NAME} is registered and comes up at boot"));
        if self.now {
            advise(manager.start(NAME, START_LIMIT))?;
            cx.out.remark(&format!("{NAME} runs"));
        }
        Ok(Exit::Success)
    }
}

impl Uninstall {
    #[expect(clippy::unused_self, reason = "every verb is run the same way")]
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        advise(advise(Native::connect())?.uninstall(NAME))?;
        cx.out.remark(&format!("{NAME} is not registered any more"));
        Ok(Exit::Success)
    }
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

/// Sees to it that nobody else can give the supervisor, which may do everything, a unit to run.
fn close_folders(cx: &Context) -> anyhow::Result<()> {
    if let Some(root) = root_folder(cx.host, &cx.layout) {
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
    }
    for warning in open_unit_folders(&access::Native, &cx.layout.units) {
        cx.out.warn(&warning);
    }
    Ok(())
}

/// A warning for each unit folder that others may put units into, or that cannot be judged. Of a
/// folder that is missing, the first one above it counts: who may write there could make it.
fn open_unit_folders(access: &dyn Access, units: &[Utf8PathBuf]) -> Vec<String> {
    let mut warnings: Vec<String> = units
        .iter()
        .filter_map(|folder| {
            let (place, found) = nearest(access, folder)?;
            let why = match found {
                Ok(Privacy::Private) => return None,
                Ok(Privacy::Exposed { who }) => format!("{} may change it", who.join(", ")),
                Ok(Privacy::Unknown { why }) => format!("who may change it is not known: {why}"),
                Err(error) => format!("who may change it is not known: {error}"),
            };
            Some(format!(
                "units are taken from `{folder}`; `{place}` is not closed: {why}"
            ))
        })
        .collect();
    warnings.dedup();
    warnings
}

/// The first folder that is there, from `folder` upwards, and who may change it.
fn nearest<'a>(
    access: &dyn Access,
    folder: &'a Utf8Path,
) -> Option<(&'a Utf8Path, Result<Privacy, AccessError>)> {
    folder
        .ancestors()
        .find_map(|place| match access.check_unchangeable(place) {
            Err(AccessError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                None
            }
            found => Some((place, found)),
        })
}

fn advise<T>(result: Result<T, ServiceError>) -> anyhow::Result<T> {
    match result {
        Err(error @ ServiceError::NoServiceManager) => Err(error).hint(
            "have your init or container run `transom service daemon`; it needs nothing else",
        ),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use transom_host::access::fake::FakeAccess;

    use super::*;

    #[test]
    fn a_unit_folder_that_others_may_write_to_is_named_with_them() {
        let access = FakeAccess::default();
        let units: Vec<Utf8PathBuf> = ["/srv/etc/units", "/srv/run/units", "/none/units"]
            .map(Into::into)
            .to_vec();
        assert!(open_unit_folders(&access, &units).is_empty());
        access.add_file("/srv/etc/units");
        // The second folder is missing, and everyone could make it.
        access.add_file("/srv");
        let warnings = open_unit_folders(&access, &units);
        assert_eq!(
            warnings,
            [
                "units are taken from `/srv/etc/units`; `/srv/etc/units` is not closed: everyone may change it",
                "units are taken from `/srv/run/units`; `/srv` is not closed: everyone may change it",
            ]
        );
        for path in ["/srv", "/srv/etc/units"] {
            let _ = access.restrict_to_owner(path.into()).unwrap();
        }
        assert!(open_unit_folders(&access, &units).is_empty());
    }

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
