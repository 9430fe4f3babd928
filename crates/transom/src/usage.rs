//! Wrong command lines, in the same words as all other failures. Invariant: what the parser knows
//! about the mistake (the similar word, the possible values, the usage) is never lost.

use std::ffi::OsString;

use clap::ValueEnum as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::environment::{self, Environment};
use crate::failure::{Exit, Failure};
use crate::output::{ColorMode, Format};

impl Failure {
    /// Reads an error of the parser.
    pub fn from_usage(error: &clap::Error) -> Self {
        if is_bare(error) {
            return Self {
                message: "a command is needed".to_owned(),
                causes: Vec::new(),
                hint: Some("try --help".to_owned()),
                exit: Exit::Usage,
                usage: usage(error),
            };
        }
        let rendered = error.render().to_string();
        let text = rendered.strip_prefix("error: ").unwrap_or(&rendered);
        let paragraph = text.split("\n\n").next().unwrap_or(text);
        // Possible values stand below the message; they become the hint.
        let message: Vec<&str> = paragraph
            .lines()
            .filter(|line| !line.trim_start().starts_with("[possible values:"))
            .map(str::trim)
            .collect();
        Self {
            message: message.join(" "),
            causes: Vec::new(),
            hint: hint(error).or_else(|| Some("try --help".to_owned())),
            exit: Exit::Usage,
            usage: usage(error),
        }
    }
}

fn usage(error: &clap::Error) -> Option<String> {
    let usage = error.get(ContextKind::Usage)?.to_string();
    Some(usage.trim_end().to_owned())
}

/// Whether the mistake is that there is no command at all.
pub fn is_bare(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

fn hint(error: &clap::Error) -> Option<String> {
    let suggested = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .flat_map(|kind| texts(error, kind))
    .map(|text| format!("`{text}`"))
    .collect::<Vec<_>>();
    if !suggested.is_empty() {
        return Some(format!("did you mean {}?", suggested.join(" or ")));
    }
    let valid: Vec<String> = [ContextKind::ValidValue, ContextKind::ValidSubcommand]
        .into_iter()
        .flat_map(|kind| texts(error, kind))
        .collect();
    (!valid.is_empty()).then(|| format!("possible values: {}", valid.join(", ")))
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        _ => Vec::new(),
    }
}

/// Whether the parser only wants to show help or the version.
pub fn is_request(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    )
}

/// What can be said about the wanted form before the command line is understood: enough to complain
/// in the right form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    pub json: bool,
    pub color: ColorMode,
}

impl Early {
    /// Flags over variables; whatever makes no sense is left for the real parser to refuse.
    pub fn scan(arguments: &[OsString], environment: &Environment) -> Self {
        let variable = |variable| environment.text(variable).ok().flatten();
        let output = flag(arguments, "--output", Some("-o"))
            .or_else(|| variable(&environment::OUTPUT).map(ToOwned::to_owned));
        let color = flag(arguments, "--color", None)
            .or_else(|| variable(&environment::COLOR).map(ToOwned::to_owned));
        let format = output.and_then(|text| Format::from_str(&text, true).ok());
        let color = color.and_then(|text| ColorMode::from_str(&text, true).ok());
        Self {
            json: format == Some(Format::Json),
            color: color.unwrap_or_default(),
        }
    }
}

/// The last value of an option, in any of the spellings that the parser takes.
fn flag(arguments: &[OsString], long: &str, short: Option<&str>) -> Option<String> {
    let texts: Vec<_> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy())
        .take_while(|text| text != "--")
        .collect();
    let mut found = None;
    for (index, text) in texts.iter().enumerate() {
        let attached = text
            .strip_prefix(long)
            .and_then(|rest| rest.strip_prefix('='))
            .or_else(|| {
                let rest = text.strip_prefix(short?).filter(|rest| !rest.is_empty())?;
                Some(rest.strip_prefix('=').unwrap_or(rest))
            });
        if let Some(value) = attached {
            found = Some(value.to_owned());
        } else if text == long || Some(text.as_ref()) == short {
            found = texts.get(index + 1).map(ToString::to_string);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use transom_model::os::Os;

    use super::*;

    fn scan(arguments: &[&str], variables: &[(&str, &str)]) -> Early {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let environment = Environment::new(Os::Linux, variables.iter().copied());
        Early::scan(&arguments, &environment)
    }

    #[test]
    fn the_wanted_form_is_seen_in_every_spelling() {
        for spelling in [
            &["-o", "json", "bogus"][..],
            &["-ojson"],
            &["-o=json"],
            &["bogus", "--output", "json"],
            &["--output=JSON"],
            &["-o", "yaml", "-o", "json"],
        ] {
            assert!(scan(spelling, &[]).json, "{spelling:?}");
        }
    }

    #[test]
    fn what_is_not_an_option_is_not_taken_for_one() {
        for spelling in [
            &["--", "-o", "json"][..],
            &["-o"],
            &["-o", "yaml"],
            &["json"],
            &["--outputjson"],
        ] {
            assert!(!scan(spelling, &[]).json, "{spelling:?}");
        }
    }

    #[test]
    fn a_flag_is_stronger_than_a_variable() {
        let json = [("TRANSOM_OUTPUT", "json")];
        assert!(scan(&[], &json).json);
        assert!(!scan(&["-o", "table"], &json).json);
        let color = scan(&["--color=never"], &[("TRANSOM_COLOR", "always")]).color;
        assert_eq!(color, ColorMode::Never);
    }
}
