//! `transom repository`: making, signing, checking and carrying repositories. Everything that changes
//! one takes its lock and is seen by readers completely or not at all.

mod add;
mod export;
mod gc;
mod import;
mod init;
mod keys;
mod list;
mod remove;
mod rotate;
mod show;
mod sign;
mod verify;

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use transom_package::download::{Downloader, Policy};
use transom_package::repository::{BundleError, EditError, Editor, Expiry, RepositoryError};

use crate::context::Context;
use crate::failure::{Advice as _, Exit};

const EXAMPLES: &str = "\
Examples:
  transom repository init                        Make a repository and its keys, here
  transom repository add web--1.tar.zst          Put a package into it
  transom repository list                        What it has
  transom repository sign                        Renew what expires
  transom repository verify                      Check every signature and digest
  transom repository export site.bundle          One file for a place without a network
  transom repository import site.bundle          And there: take it in

A repository is a folder that any web server can serve. All verbs work on the current folder, or on
the one named by --repository.";

const HOUR: Duration = Duration::from_hours(1);

/// Make, sign, check and carry repositories of packages
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(super) struct Repository {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Init(init::Init),
    Add(add::Add),
    Remove(remove::Remove),
    List(list::List),
    Show(show::Show),
    Sign(sign::Sign),
    Rotate(rotate::Rotate),
    Verify(verify::Verify),
    Export(export::Export),
    Import(import::Import),
    Gc(gc::Gc),
}

impl Repository {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Init(verb) => verb.run(cx),
            Verb::Add(verb) => verb.run(cx),
            Verb::Remove(verb) => verb.run(cx),
            Verb::List(verb) => verb.run(cx),
            Verb::Show(verb) => verb.run(cx),
            Verb::Sign(verb) => verb.run(cx),
            Verb::Rotate(verb) => verb.run(cx),
            Verb::Verify(verb) => verb.run(cx),
            Verb::Export(verb) => verb.run(cx),
            Verb::Import(verb) => verb.run(cx),
            Verb::Gc(verb) => verb.run(cx),
        }
    }
}

/// Which repository.
#[derive(Debug, Clone, clap::Args)]
struct Place {
    /// The folder of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    repository: Utf8PathBuf,
}

impl Place {
    /// The folder, whatever becomes of the current one.
    fn folder(&self) -> anyhow::Result<Utf8PathBuf> {
        Ok(camino::absolute_utf8(&self.repository)?)
    }

    async fn edit(&self, cx: &Context) -> anyhow::Result<Editor> {
        advise(Editor::open(&self.folder()?, &downloader()?, now(cx)).await)
    }
}

/// How long metadata that is signed now is good.
#[derive(Debug, Clone, clap::Args)]
struct Validity {
    /// How long packages can be read before somebody signs again, such as 12h, 30d or 4w
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_duration)]
    expires: Duration,

    /// The same for the root metadata, which says whose signatures count
    #[arg(long, value_name = "TIME", default_value = "365d", value_parser = parse_duration)]
    root_expires: Duration,
}

impl Validity {
    fn expiry(&self) -> Expiry {
        Expiry {
            root: self.root_expires,
            others: self.expires,
        }
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is not a time such as 12h, 30d or 4w");
    let (number, hours) = match text.char_indices().last() {
        Some((at, 'h')) => (&text[..at], 1),
        Some((at, 'd')) => (&text[..at], 24),
        Some((at, 'w')) => (&text[..at], 24 * 7),
        _ => return Err(refused()),
    };
    let number: u32 = number.parse().map_err(|_| refused())?;
    match HOUR
        .checked_mul(hours)
        .and_then(|unit| unit.checked_mul(number))
    {
        Some(duration) if number > 0 => Ok(duration),
        _ => Err(refused()),
    }
}

fn now(cx: &Context) -> Timestamp {
    cx.out.shown().now
}

fn downloader() -> anyhow::Result<Downloader> {
    Ok(Downloader::new(Policy::default())?)
}

/// Runs what a verb does to its end.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// Adds the way forward to what can go wrong.
fn advise<T>(result: Result<T, EditError>) -> anyhow::Result<T> {
    let error = match result {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let hint = match &error {
        EditError::Unsigned { .. } => {
            "pass --unsigned if you trust where it comes from; everybody who looks will see that \
             nobody vouched for it"
        }
        EditError::TooFewKeys { .. } => {
            "name the missing keys with --key, or the folder that has them with --key-folder"
        }
        EditError::Different { .. } => {
            "an id has one content for ever: build it under another version"
        }
        EditError::Needed { .. } => "pass --force to take it out all the same",
        EditError::Exists { .. } => "add packages to it with `transom repository add`",
        EditError::NothingPending => {
            "begin with `transom repository rotate`, or with `transom repository sign --role root`"
        }
        EditError::UselessKeys => "see which keys count with `transom repository show`",
        EditError::Repository { source } => return advise_reading(error_hint(source), error),
        _ => return Err(error.into()),
    };
    Err(error).hint(hint)
}

fn advise_reading<T>(
    advice: Option<(&'static str, Exit)>,
    error: impl Into<anyhow::Error>,
) -> anyhow::Result<T> {
    let error: anyhow::Result<T> = Err(error.into());
    match advice {
        Some((hint, exit)) => error.hint(hint).exit(exit),
        None => error,
    }
}

fn error_hint(error: &RepositoryError) -> Option<(&'static str, Exit)> {
    match error {
        RepositoryError::NoRepository { .. } => Some((
            "name its folder with --repository, or make one with `transom repository init`",
            Exit::NotFound,
        )),
        RepositoryError::NotInRepository { .. } | RepositoryError::NoSuchList { .. } => Some((
            "see what there is with `transom repository list`",
            Exit::NotFound,
        )),
        RepositoryError::Expired { .. } => Some((
            "whoever has the keys renews it with `transom repository sign`",
            Exit::Failure,
        )),
        RepositoryError::Rollback { .. } => Some((
            "somebody may be showing you an old state; get the newest from where it is made",
            Exit::Failure,
        )),
        _ => None,
    }
}

/// The same for reading only.
fn advise_read<T>(result: Result<T, RepositoryError>) -> anyhow::Result<T> {
    result.or_else(|error| advise_reading(error_hint(&error), error))
}

/// The same for bundles.
fn advise_bundle<T>(result: Result<T, BundleError>) -> anyhow::Result<T> {
    let error = match result {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match &error {
        BundleError::NoRoot { .. } => Err(error).hint(
            "say whom to trust with --trusted-root FILE or --root-sha256 DIGEST; \
             `transom repository show` prints the digest where the bundle was made",
        ),
        BundleError::Repository { source } => advise_reading(error_hint(source), error),
        _ => Err(error.into()),
    }
}

/// The size of something, for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut rest = bytes;
    let mut shown = format!("{bytes} B");
    for unit in UNITS {
        if rest < 1024 {
            break;
        }
        let tenths = rest % 1024 * 10 / 1024;
        rest /= 1024;
        shown = format!("{rest}.{tenths} {unit}");
    }
    shown
}

/// The folder of the keys, unless another is named: beside the repository and never inside it, where a
/// web server would hand them out.
fn usual_key_folder(repository: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{repository}.keys"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(parse_duration("12h"), Ok(HOUR * 12));
        assert_eq!(parse_duration("30d"), Ok(HOUR * 720));
        assert_eq!(parse_duration("2w"), Ok(HOUR * 336));
        for text in ["", "d", "30", "0d", "-1d", "3 d", "1ä", "99999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(300 << 20), "300.0 MiB");
    }
}
