//! Each setting in words: for `config show` and for the generated reference. Invariant: the table
//! names every setting once, with its flag, its variable, its key and its default.

use camino::Utf8Path;
use clap::ValueEnum;

use super::server::{HostName, SchedulerName};
use super::{Settings, Source};
use crate::environment::{self, Variable};
use crate::suggestion;

/// A setting in words.
pub struct Description {
    /// The key in the file; `root` and `config` cannot stand there.
    pub key: &'static str,
    pub in_file: bool,
    pub flag: &'static str,
    pub variable: &'static Variable,
    pub default: Usual,
    /// What holds now, and where it came from.
    pub effective: fn(&Settings) -> (String, &Source),
}

/// What holds if nobody says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    /// As it would be written in the file.
    Value(&'static str),
    /// In words, for values that differ between systems or that cannot be written.
    Words(&'static str),
}

/// All settings.
pub const DESCRIPTIONS: &[Description] = &[
    Description {
        key: "output",
        in_file: true,
        flag: "--output",
        variable: &environment::OUTPUT,
        default: Usual::Value("table"),
        effective: |settings| (name(&settings.output.value), &settings.output.source),
    },
    Description {
        key: "color",
        in_file: true,
        flag: "--color",
        variable: &environment::COLOR,
        default: Usual::Value("auto"),
        effective: |settings| (name(&settings.color.value), &settings.color.source),
    },
    Description {
        key: "quiet",
        in_file: true,
        flag: "--quiet",
        variable: &environment::QUIET,
        default: Usual::Value("false"),
        effective: |settings| (settings.quiet.value.to_string(), &settings.quiet.source),
    },
    Description {
        key: "progress",
        in_file: true,
        flag: "--no-progress",
        variable: &environment::PROGRESS,
        default: Usual::Value("true"),
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
        default: Usual::Value("warn"),
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
        default: Usual::Value("text"),
        effective: |settings| {
            let setting = &settings.log_format;
            (name(&setting.value), &setting.source)
        },
    },
    Description {
        key: "server.dataDir",
        in_file: true,
        flag: "--data-dir",
        variable: &environment::SERVER_DATA_DIR,
        default: Usual::Words(
            "`/var/lib/transom/server` on Linux, `C:\\Transom\\var\\lib\\server` on Windows",
        ),
        effective: |settings| {
            let setting = &settings.server.data_dir;
            (setting.value.to_string(), &setting.source)
        },
    },
    Description {
        key: "server.listen",
        in_file: true,
        flag: "--listen",
        variable: &environment::SERVER_LISTEN,
        default: Usual::Value("0.0.0.0:6443"),
        effective: |settings| {
            let setting = &settings.server.listen;
            (setting.value.to_string(), &setting.source)
        },
    },
    Description {
        key: "server.names",
        in_file: true,
        flag: "--name",
        variable: &environment::SERVER_NAMES,
        default: Usual::Words("none"),
        effective: |settings| {
            let setting = &settings.server.names;
            (
                suggestion::list(setting.value.iter().map(HostName::as_str)),
                &setting.source,
            )
        },
    },
    Description {
        key: "server.store",
        in_file: true,
        flag: "--store",
        variable: &environment::SERVER_STORE,
        default: Usual::Value("local"),
        effective: |settings| {
            let setting = &settings.server.store;
            (setting.value.to_string(), &setting.source)
        },
    },
    Description {
        key: "server.etcd.ca",
        in_file: true,
        flag: "--etcd-ca",
        variable: &environment::SERVER_ETCD_CA,
        default: Usual::Words("none"),
        effective: |settings| {
            let setting = &settings.server.etcd_ca;
            (path(setting.value.as_deref()), &setting.source)
        },
    },
    Description {
        key: "server.etcd.cert",
        in_file: true,
        flag: "--etcd-cert",
        variable: &environment::SERVER_ETCD_CERT,
        default: Usual::Words("none"),
        effective: |settings| {
            let setting = &settings.server.etcd_cert;
            (path(setting.value.as_deref()), &setting.source)
        },
    },
    Description {
        key: "server.etcd.key",
        in_file: true,
        flag: "--etcd-key",
        variable: &environment::SERVER_ETCD_KEY,
        default: Usual::Words("none"),
        effective: |settings| {
            let setting = &settings.server.etcd_key;
            (path(setting.value.as_deref()), &setting.source)
        },
    },
    Description {
        key: "server.maxConnections",
        in_file: true,
        flag: "--max-connections",
        variable: &environment::SERVER_MAX_CONNECTIONS,
        default: Usual::Value("10000"),
        effective: |settings| {
            let setting = &settings.server.max_connections;
            (setting.value.to_string(), &setting.source)
        },
    },
    Description {
        key: "server.registries",
        in_file: true,
        flag: "--registries",
        variable: &environment::SERVER_REGISTRIES,
        default: Usual::Words("none"),
        effective: |settings| {
            let setting = &settings.server.registries;
            (path(setting.value.as_deref()), &setting.source)
        },
    },
    Description {
        key: "server.schedulers",
        in_file: true,
        flag: "--scheduler",
        variable: &environment::SERVER_SCHEDULERS,
        default: Usual::Words("none"),
        effective: |settings| {
            let setting = &settings.server.schedulers;
            let texts: Vec<&str> = setting.value.iter().map(SchedulerName::as_str).collect();
            (texts.join(" "), &setting.source)
        },
    },
    Description {
        key: "root",
        in_file: false,
        flag: "--root",
        variable: &environment::ROOT,
        default: Usual::Words("`/` on Linux, `C:\\` on Windows"),
        effective: |settings| (settings.root.value.to_string(), &settings.root.source),
    },
    Description {
        key: "config",
        in_file: false,
        flag: "--config",
        variable: &environment::CONFIG,
        default: Usual::Words(
            "`/etc/transom/transom.yaml` on Linux, `C:\\Transom\\etc\\transom.yaml` on Windows",
        ),
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

/// Nothing for a file that nobody named.
fn path(path: Option<&Utf8Path>) -> String {
    path.map(ToString::to_string).unwrap_or_default()
}
