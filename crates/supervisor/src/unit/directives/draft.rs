//! A unit while it is read, and one value with everything needed to understand it.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use crate::unit::name::{UnitName, UnitNameError};
use crate::unit::paths::{has_parent_step, is_absolute};
use crate::unit::problem::Severity;
use crate::unit::service::Service;
use crate::unit::signal::Signal;
use crate::unit::specifier::{self, SpecifierContext};
use crate::unit::timer::Timer;
use crate::unit::values::{ValueError, parse_boolean, parse_time_span};
use crate::unit::{Condition, Dependencies, Install, StartLimit, words};

/// What has been read so far. Fields that need to know whether they were set are `Option`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) description: Option<String>,
    pub(crate) documentation: Vec<String>,
    pub(crate) dependencies: Dependencies,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) asserts: Vec<Condition>,
    pub(crate) no_default_dependencies: bool,
    pub(crate) start_limit: StartLimit,
    pub(crate) refuse_manual_start: bool,
    pub(crate) refuse_manual_stop: bool,
    pub(crate) stop_when_unneeded: bool,
    pub(crate) job_timeout: Option<Duration>,
    pub(crate) install: Install,
    pub(crate) service: Service,
    pub(crate) timer: Timer,
    /// Written in the file; otherwise the type decides.
    pub(crate) timeout_start: Written<Option<Duration>>,
    pub(crate) notify_access_is_written: bool,
    pub(crate) type_is_written: bool,
    /// The line that set `Restart=`, `Type=` …, for checks of the whole.
    pub(crate) lines: std::collections::BTreeMap<&'static str, (Utf8PathBuf, u32)>,
}

/// A value that may not have been written at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Written<T> {
    #[default]
    Not,
    As(T),
}

/// One value on its way into a draft.
pub(crate) struct Input<'a> {
    pub(crate) raw: &'a str,
    pub(crate) name: &'a UnitName,
    pub(crate) fragment: Option<&'a Utf8Path>,
    pub(crate) specifiers: &'a SpecifierContext,
    /// Findings that do not make the whole value useless.
    pub(crate) remarks: Vec<(Severity, String, Option<String>)>,
}

impl Input<'_> {
    pub(crate) fn os(&self) -> Os {
        self.specifiers.os
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.remarks.push((Severity::Warning, message.into(), None));
    }

    pub(crate) fn warn_about(&mut self, error: ValueError) {
        self.remarks.push((
            Severity::Warning,
            format!("{}; it is ignored", error.reason),
            error.hint,
        ));
    }

    /// A text with its specifiers expanded.
    pub(crate) fn expand(&self, text: &str) -> Result<String, ValueError> {
        specifier::expand(text, self.name, self.fragment, self.specifiers)
            .map_err(|error| ValueError::new(error.to_string()))
    }

    pub(crate) fn text(&self) -> Result<String, ValueError> {
        self.expand(self.raw)
    }

    pub(crate) fn boolean(&self) -> Result<bool, ValueError> {
        parse_boolean(self.raw)
    }

    /// A span that must end.
    pub(crate) fn span(&self) -> Result<Duration, ValueError> {
        parse_time_span(self.raw)?.ok_or_else(|| ValueError::new("infinity makes no sense here"))
    }

    /// A span where `infinity` is no limit.
    pub(crate) fn span_or_infinity(&self) -> Result<Option<Duration>, ValueError> {
        parse_time_span(self.raw)
    }

    /// A span where `0` and `infinity` are no limit.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, ValueError> {
        Ok(parse_time_span(self.raw)?.filter(|span| !span.is_zero()))
    }

    pub(crate) fn signal(&self) -> Result<Signal, ValueError> {
        Signal::parse(self.raw)
    }

    /// One of a fixed list of words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ValueError> {
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == self.raw) {
            return Ok(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let error = format!("`{}` is not one of {}", self.raw, names.join(", "));
        Err(match super::nearest(self.raw, names) {
            Some(near) => ValueError::with_hint(error, format!("did you mean {near}?")),
            None => ValueError::new(error),
        })
    }

    pub(crate) fn number<T: std::str::FromStr>(&self) -> Result<T, ValueError> {
        self.raw
            .parse()
            .map_err(|_| ValueError::new(format!("`{}` is not a number that fits here", self.raw)))
    }

    /// Words with quotes and escapes, specifiers expanded.
    pub(crate) fn words(&mut self) -> Result<Vec<String>, ValueError> {
        let split = words::split(self.raw, self.os())
            .map_err(|error| ValueError::new(error.to_string()))?;
        for escape in &split.unknown_escapes {
            self.warn(format!("`{escape}` is not an escape and is kept as it is"));
        }
        split
            .into_texts()
            .iter()
            .map(|word| self.expand(word))
            .collect()
    }

    /// Accepts `text` if it is an absolute path.
    pub(crate) fn check_path(&self, text: &str) -> Result<Utf8PathBuf, ValueError> {
        if !is_absolute(text, self.os()) {
            return Err(ValueError::new(format!("`{text}` is not an absolute path")));
        }
        if has_parent_step(text, self.os()) {
            return Err(ValueError::new(format!("`{text}` must not contain `..`")));
        }
        Ok(Utf8PathBuf::from(text))
    }

    /// Names of units. Those that cannot be are reported one by one, the others count.
    pub(crate) fn unit_names(&mut self) -> Result<Vec<UnitName>, ValueError> {
        let mut names = Vec::new();
        for word in self.words()? {
            match UnitName::new(&word) {
                Ok(name) if name.is_template() => {
                    // In a template or instance, `foo@.service` means the same instance.
                    match self
                        .name
                        .instance()
                        .map(|instance| name.with_instance(instance))
                    {
                        Some(Ok(instance)) => names.push(instance),
                        _ => self.warn(format!(
                            "`{name}` is a template and not a unit; it is ignored"
                        )),
                    }
                }
                Ok(name) => names.push(name),
                Err(error @ UnitNameError::UnsupportedType { .. }) => {
                    self.warn(format!("{error}; the dependency is ignored"));
                }
                Err(error) => self.warn(format!("{error}; it is ignored")),
            }
        }
        Ok(names)
    }
}

/// Sets one field. An empty value brings back the default, as in systemd.
pub(crate) fn set<'i, T>(
    draft: &mut Draft,
    input: &Input<'i>,
    field: fn(&mut Draft) -> &mut T,
    parse: impl FnOnce(&Input<'i>) -> Result<T, ValueError>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        let mut fresh = Draft::default();
        std::mem::swap(field(draft), field(&mut fresh));
        return Ok(());
    }
    *field(draft) = parse(input)?;
    Ok(())
}
