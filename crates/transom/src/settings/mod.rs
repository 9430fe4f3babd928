//! What holds in the end: flag over variable over file over default. Invariant: every value carries
//! where it came from, and the documentation is made from the same table that the values are.

mod describe;
mod file;
pub mod server;

pub use describe::{DESCRIPTIONS, Description, Usual};
pub use file::{FileConfig, FileError};
pub use server::ServerSettings;

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use serde::Serialize;
use transom_model::Os;
use transom_model::layout::Layout;

use crate::arguments::GlobalOptions;
use crate::environment::{self, Environment, NotText, Variable};
use crate::failure::Exit;
use crate::logging::{LogFilter, LogFormat};
use crate::output::{ColorMode, Format};
use crate::suggestion;

/// The name of the configuration file in the configuration folder.
pub const FILE_NAME: &str = "transom.yaml";

/// A value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub source: Source,
}

impl<T> Setting<T> {
    /// The same, unless a flag that only some commands have says something else.
    #[must_use]
    pub fn overruled(self, flag: Option<T>, name: &'static str) -> Self {
        match flag {
            None => self,
            Some(value) => Self {
                value,
                source: Source::Flag { name },
            },
        }
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    Flag { name: &'static str },
    Variable { name: &'static str },
    File { path: Utf8PathBuf },
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag { name } => write!(formatter, "flag {name}"),
            Self::Variable { name } => write!(formatter, "variable {name}"),
            Self::File { path } => write!(formatter, "file {path}"),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    NotText(#[from] NotText),
    #[error("the variable {name} cannot be `{value}`")]
    Variable {
        name: &'static str,
        value: String,
        hint: String,
    },
    #[error(transparent)]
    File(#[from] FileError),
}

impl SettingsError {
    /// The way forward, where one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotText(_) => None,
            Self::Variable { hint, .. } => Some(hint.clone()),
            Self::File(error) => error.hint(),
        }
    }

    /// The exit code, unless the system's own refusal says more.
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::File(FileError::Missing { .. }) => Some(Exit::NotFound),
            Self::File(FileError::Read { .. }) => None,
            Self::NotText(_) | Self::Variable { .. } | Self::File(_) => Some(Exit::Configuration),
        }
    }
}

/// All settings, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub output: Setting<Format>,
    pub color: Setting<ColorMode>,
    pub quiet: Setting<bool>,
    pub progress: Setting<bool>,
    pub log_level: Setting<LogFilter>,
    pub log_format: Setting<LogFormat>,
    pub server: ServerSettings,
    pub root: Setting<Utf8PathBuf>,
    pub config: Setting<Utf8PathBuf>,
    /// Whether the configuration file exists; only one that nobody asked for may be missing.
    pub config_exists: bool,
}

impl Settings {
    /// Decides every setting. Reads the configuration file.
    pub fn resolve(
        host: Os,
        options: &GlobalOptions,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let places = Places::resolve(host, options, environment)?;
        let file = FileConfig::read(&places.config.value, places.config_must_exist())?;
        let config_exists = file.is_some();
        let file = file.unwrap_or_default();
        let from = Sources {
            environment,
            path: &places.config.value,
        };
        let log = file.log.unwrap_or_default();
        let output = from.choose(
            (options.output, "--output"),
            (&environment::OUTPUT, choice),
            file.output,
        )?;
        let color = from.choose(
            (options.color, "--color"),
            (&environment::COLOR, choice),
            file.color,
        )?;
        let quiet = from.choose(
            (options.quiet.then_some(true), "--quiet"),
            (&environment::QUIET, switch),
            file.quiet,
        )?;
        let progress = from.choose_or(
            (options.no_progress.then_some(false), "--no-progress"),
            (&environment::PROGRESS, switch),
            file.progress,
            true,
        )?;
        let level = match LogFilter::verbose(options.verbose) {
            Some(level) => (Some(level), "--verbose"),
            None => (options.log_level.clone(), "--log-level"),
        };
        let log_level = from.choose(level, (&environment::LOG_LEVEL, filter), log.level)?;
        let log_format = from.choose(
            (options.log_format, "--log-format"),
            (&environment::LOG_FORMAT, choice),
            log.format,
        )?;
        let state = Layout::rooted(host, &places.root.value).state;
        let usual_data = file_in(host, &state, "server");
        let server = ServerSettings::resolve(&from, file.server.unwrap_or_default(), usual_data)?;
        Ok(Self {
            output,
            color,
            quiet,
            progress,
            log_level,
            log_format,
            server,
            root: places.root,
            config: places.config,
            config_exists,
        })
    }
}

/// The two settings that decide where the others are read from.
struct Places {
    root: Setting<Utf8PathBuf>,
    config: Setting<Utf8PathBuf>,
}

impl Places {
    fn resolve(
        host: Os,
        options: &GlobalOptions,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let from = Sources {
            environment,
            path: Utf8Path::new(""),
        };
        let root = from.choose_or(
            (options.root.clone(), "--root"),
            (&environment::ROOT, path),
            None,
            standard_root(host),
        )?;
        let standard = file_in(host, &Layout::rooted(host, &root.value).config, FILE_NAME);
        let config = from.choose_or(
            (options.config.clone(), "--config"),
            (&environment::CONFIG, path),
            None,
            standard,
        )?;
        Ok(Self { root, config })
    }

    fn config_must_exist(&self) -> bool {
        self.config.source != Source::Default
    }
}

fn standard_root(host: Os) -> Utf8PathBuf {
    match host {
        Os::Linux => "/".into(),
        Os::Windows => r"C:\".into(),
    }
}

/// Joined as the host writes it, which need not be how we would.
fn file_in(host: Os, folder: &Utf8Path, name: &str) -> Utf8PathBuf {
    match host {
        Os::Linux => format!("{folder}/{name}").into(),
        Os::Windows => format!(r"{folder}\{name}").into(),
    }
}

/// Where values below the flags come from.
struct Sources<'a> {
    environment: &'a Environment,
    path: &'a Utf8Path,
}

impl Sources<'_> {
    fn choose<T: Default>(
        &self,
        flag: (Option<T>, &'static str),
        variable: (&'static Variable, Parse<T>),
        file: Option<T>,
    ) -> Result<Setting<T>, SettingsError> {
        self.choose_or(flag, variable, file, T::default())
    }

    fn choose_or<T>(
        &self,
        (flag, flag_name): (Option<T>, &'static str),
        (variable, parse): (&'static Variable, Parse<T>),
        file: Option<T>,
        default: T,
    ) -> Result<Setting<T>, SettingsError> {
        // A wrong variable is an error even when a flag overrules it: it would bite later.
        let text = self.environment.text(variable)?;
        let parsed = text.map(|text| {
            parse(text).map_err(|hint| SettingsError::Variable {
                name: variable.name,
                value: text.to_owned(),
                hint,
            })
        });
        let parsed = parsed.transpose()?;
        let (value, source) = if let Some(value) = flag {
            (value, Source::Flag { name: flag_name })
        } else if let Some(value) = parsed {
            let name = variable.name;
            (value, Source::Variable { name })
        } else if let Some(value) = file {
            let path = self.path.to_owned();
            (value, Source::File { path })
        } else {
            (default, Source::Default)
        };
        Ok(Setting { value, source })
    }
}

/// Reads a variable's text, or says what it may be.
type Parse<T> = fn(&str) -> Result<T, String>;

fn choice<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, true).map_err(|_| {
        let values: Vec<_> = T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .collect();
        suggestion::hint(
            text,
            values.iter().map(clap::builder::PossibleValue::get_name),
        )
    })
}

fn switch(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("possible values: 1, 0, true, false, yes, no, on, off".to_owned()),
    }
}

fn filter(text: &str) -> Result<LogFilter, String> {
    text.parse::<LogFilter>().map_err(|error| error.to_string())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one shape for all kinds of variables"
)]
fn path(text: &str) -> Result<Utf8PathBuf, String> {
    Ok(text.into())
}

#[cfg(test)]
mod tests;
