//! `install`, `uninstall`: the supervisor as a service of the system, so that it comes up at boot.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{self, Access, AccessError, Privacy};

use super::systemd;
use crate::commands::registration::{self, Role};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// The name under which the system knows the supervisor.
pub(super) const NAME: &str = "transom-supervisor";

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
        let role = Role {
            name: NAME,
            display: "Transom supervisor",
            description: "Runs the services of this Transom node",
        };
        let arguments = ["service", "daemon", "--registered"].map(Into::into);
        let program = registration::own_program()?;
        let wanted = registration::registration(cx.host, &role, program, arguments.to_vec());
        let manager = registration::manager(
            "have your init or container run `transom service daemon`; it needs nothing else",
        )?;
        registration::close_folders(cx)?;
        for warning in open_unit_folders(&access::Native, &cx.layout.units) {
            cx.out.warn(&warning);
        }
        registration::install(cx, &manager, &wanted, self.now)?;
        Ok(Exit::Success)
    }
}

impl Uninstall {
    #[expect(clippy::unused_self, reason = "every verb is run the same way")]
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        registration::uninstall(cx, NAME)?;
        Ok(Exit::Success)
    }
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
}
