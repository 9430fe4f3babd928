//! `show`: properties of units as `Name=value`, for scripts.

use std::collections::BTreeMap;

use serde::Serialize;
use transom_supervisor::control::protocol::UnitStatus;

use super::{inspect, resolve, systemd};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

/// Print properties of units for programs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service show web\n  transom service show -p MainPID --value web\n  transom service show -o json web"
)]
pub(super) struct Show {
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,

    /// Only these properties; may be repeated, or separated by commas
    #[arg(short, long, value_delimiter = ',', value_name = "NAME")]
    property: Vec<String>,

    /// Print the values without the names
    #[arg(long)]
    value: bool,
}

impl Show {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let properties: Vec<String> = self
                .property
                .iter()
                .map(|name| format!("--property={name}"))
                .collect();
            let mut flags: Vec<&str> = properties.iter().map(String::as_str).collect();
            flags.extend(self.value.then_some("--value"));
            return systemd::systemctl("show", &flags, &self.units);
        }
        let units = inspect(cx, &resolve(cx, &self.units)?)?;
        let properties = units.into_iter().map(|unit| self.chosen(unit)).collect();
        cx.out.document(&Properties {
            units: properties,
            value: self.value,
        })?;
        Ok(Exit::Success)
    }

    fn chosen(&self, unit: UnitStatus) -> BTreeMap<String, String> {
        let mut properties = unit.properties;
        if !self.property.is_empty() {
            properties.retain(|name, _| self.property.contains(name));
        }
        properties
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Properties {
    units: Vec<BTreeMap<String, String>>,
    #[serde(skip)]
    value: bool,
}

impl Document for Properties {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let unit = |properties: &BTreeMap<String, String>| -> String {
            properties
                .iter()
                .map(|(name, value)| {
                    if self.value {
                        format!("{value}\n")
                    } else {
                        format!("{name}={value}\n")
                    }
                })
                .collect()
        };
        self.units.iter().map(unit).collect::<Vec<_>>().join("\n")
    }

    fn names(&self) -> Vec<String> {
        self.units
            .iter()
            .filter_map(|unit| unit.get("Id").cloned())
            .collect()
    }
}
