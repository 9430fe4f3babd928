//! `cat`: the files of units as they are on disk.

use transom_supervisor::unit::UnitName;
use transom_supervisor::unit::load::LoadOutcome;

use super::enable::unit_store;
use super::{NO_SUCH_UNIT, systemd};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Print the files of units, drop-ins included
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service cat web")]
pub(super) struct Cat {
    /// Units, such as web, web.service or 'web*'
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,
}

impl Cat {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::systemctl("cat", &[], &self.units);
        }
        let store = unit_store(cx)?;
        for word in &self.units {
            let name = UnitName::from_command_line(word).exit(Exit::Usage)?;
            let mut paths = Vec::new();
            match store.get(&name) {
                LoadOutcome::Loaded(unit) => {
                    paths.extend(unit.source.clone());
                    paths.extend(unit.drop_ins.iter().cloned());
                }
                LoadOutcome::Bad(bad) => paths.extend(bad.source),
                LoadOutcome::Masked => {
                    cx.out.write(&format!("# Unit {name} is masked.\n"))?;
                    continue;
                }
                LoadOutcome::NotFound => {
                    return Err(anyhow::anyhow!("unit {name} not found"))
                        .exit(NO_SUCH_UNIT)
                        .hint("see the units there are with `transom service list-unit-files`");
                }
            }
            if paths.is_empty() {
                cx.out.write(&format!("# {name} is built in.\n"))?;
            }
            for path in paths {
                let text = fs_err::read(&path)?;
                cx.out.write(&format!("# {path}\n"))?;
                cx.out.write_bytes(&text)?;
                if text.last() != Some(&b'\n') {
                    cx.out.write("\n")?;
                }
                cx.out.write("\n")?;
            }
        }
        Ok(Exit::Success)
    }
}
