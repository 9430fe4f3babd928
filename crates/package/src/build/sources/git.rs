//! Sources from git, by the system's own git. Repositories are mirrored in the cache and fetched only
//! when a commit is missing. No address and no name is ever taken for an option or a program, and the
//! bytes of a checkout are those of the commit, on every system.

use std::time::Duration;

use camino::Utf8Path;
use transom_host::files::{Files, Native};
use uuid::Uuid;

use super::SourceError;
use crate::command::{self, CommandError};
use crate::hash::sha1_hex;

/// A large repository over a slow line.
const TRANSFER: Duration = Duration::from_hours(2);
const LOCAL: Duration = Duration::from_mins(10);

/// Said to every git. Only transports that carry data, no questions, no line ends changed, no hooks.
const ENVIRONMENT: [(&str, &str); 11] = [
    ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_0", "core.autocrlf"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "core.eol"),
    ("GIT_CONFIG_VALUE_2", "lf"),
    ("GIT_CONFIG_KEY_3", "advice.detachedHead"),
    ("GIT_CONFIG_VALUE_3", "false"),
];

fn git(
    arguments: &[&str],
    folder: Option<&Utf8Path>,
    limit: Duration,
) -> Result<String, CommandError> {
    command::run_with("git", arguments, &ENVIRONMENT, folder, limit)
}

/// Lays out a commit of a repository. Returns where `origin` is now, if that is another commit.
pub(super) fn check_out(
    cache: &Utf8Path,
    work: &Utf8Path,
    url: &str,
    commit: &str,
    origin: &str,
    destination: &Utf8Path,
) -> Result<Option<String>, SourceError> {
    let files = Native;
    let folder = cache.join("sources/git");
    files.create_dir_all(&folder)?;
    let mirror = folder.join(sha1_hex(url.as_bytes()));
    // Several packages may come from one repository.
    let lock = files.lock(
        &folder.join(format!("{}.lock", sha1_hex(url.as_bytes()))),
        TRANSFER,
    )?;
    if files.metadata(&mirror).is_err() {
        let new = work.join(format!("mirror-{}", Uuid::new_v4().simple()));
        git(
            &["clone", "--quiet", "--mirror", "--", url, new.as_str()],
            None,
            TRANSFER,
        )?;
        files.rename_dir(&new, &mirror)?;
    }
    if !has(&mirror, commit) {
        git(
            &["fetch", "--quiet", "--prune", "origin"],
            Some(&mirror),
            TRANSFER,
        )?;
    }
    if !has(&mirror, commit) {
        return Err(SourceError::NoCommit {
            commit: commit.to_owned(),
            url: super::without_secrets(url),
        });
    }
    let now = resolve(&mirror, origin);
    check_out_local(&mirror, commit, destination)?;
    drop(lock);
    Ok(now.filter(|now| !now.eq_ignore_ascii_case(commit)))
}

/// Lays out a commit of a repository on this machine.
pub(super) fn check_out_local(
    repository: &Utf8Path,
    commit: &str,
    destination: &Utf8Path,
) -> Result<(), SourceError> {
    let (from, to) = (repository.as_str(), destination.as_str());
    git(
        &["clone", "--quiet", "--no-checkout", "--", from, to],
        None,
        LOCAL,
    )?;
    git(
        &["checkout", "--quiet", "--force", "--detach", commit],
        Some(destination),
        LOCAL,
    )?;
    Ok(())
}

fn has(mirror: &Utf8Path, commit: &str) -> bool {
    let object = format!("{commit}^{{commit}}");
    git(&["cat-file", "-e", &object], Some(mirror), LOCAL).is_ok()
}

/// The commit that a branch or a tag stands for, if there is one of that name.
fn resolve(mirror: &Utf8Path, name: &str) -> Option<String> {
    let object = format!("{name}^{{commit}}");
    let arguments = [
        "rev-parse",
        "--quiet",
        "--verify",
        "--end-of-options",
        &object,
    ];
    let commit = git(&arguments, Some(mirror), LOCAL).ok()?;
    // Old ones print the separator too.
    commit.lines().last().map(|line| line.trim().to_owned())
}
