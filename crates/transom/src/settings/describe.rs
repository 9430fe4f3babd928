//! Each setting in words: for `config show` and for the generated reference. Invariant: the table
//! names every setting once, with its flag, its variable, its key and its default.

use clap::ValueEnum;

use super::{Settings, Source};
use crate::environment::{self, Variable};

/// A setting in words.
pub struct Description {
    /// The key in the file; `root` and `config` cannot stand there.
    pub key: &'static str,
    pub in_file: bool,
    pub flag: &'static str,
    pub variable: &'static Variable,
    pub default: &'static str,
    /// What holds now, and where it came from.
    pub effective: fn(&Settings) -> (String, &Source),
}

/// All settings.
pub const DESCRIPTIONS: &[Description] = &[
    Description {
        key: "output",
        in_file: true,
        flag: "--output",
        variable: &environment::OUTPUT,
        default: "table",
        effective: |settings| (name(&settings.output.value), &settings.output.source),
    },
    Description {
        key: "color",
        in_file: true,
        flag: "--color",
        variable: &environment::COLOR,
        default: "auto",
        effective: |settings| (name(&settings.color.value), &settings.color.source),
    },
    Description {
        key: "quiet",
        in_file: true,
        flag: "--quiet",
        variable: &environment::QUIET,
        default: "false",
        effective: |settings| (settings.quiet.value.to_string(), &settings.quiet.source),
    },
    Description {
        key: "progress",
        in_file: true,
        flag: "--no-progress",
        variable: &environment::PROGRESS,
        default: "true",
        effective: |settings| {
            let setting = &settings.progress;
            (setting.value.to_string(), &setting.source)
        },
    },
    Description {
        key: "log.level",
        in_file: true,
        flag: "--log-level",
        variable: &environment::LOG_LEVEL,
        default: "warn",
        effective: |settings| {
            let setting = &settings.log_level;
            (setting.value.to_string(), &setting.source)
        },
    },
    Description {
        key: "log.format",
        in_file: true,
        flag: "--log-format",
        variable: &environment::LOG_FORMAT,
        default: "text",
        effective: |settings| {
            let setting = &settings.log_format;
            (name(&setting.value), &setting.source)
        },
    },
    Description {
        key: "root",
        in_file: false,
        flag: "--root",
        variable: &environment::ROOT,
        default: "`/` on Linux, `C:\\` on Windows",
        effective: |settings| (settings.root.value.to_string(), &settings.root.source),
    },
    Description {
        key: "config",
        in_file: false,
        flag: "--config",
        variable: &environment::CONFIG,
        default: "`/etc/transom/transom.yaml` on Linux, `C:\\Transom\\etc\\transom.yaml` on Windows",
        effective: |settings| (settings.config.value.to_string(), &settings.config.source),
    },
];

/// The word for a choice, as flags and files spell it.
fn name(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}
