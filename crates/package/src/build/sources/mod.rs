//! Sources: fetched once into the cache, checked against their pin, and laid out for a build. Invariant:
//! what a build sees is exactly what the recipe names, or there is no build.

mod extract;
mod fetch;
mod git;

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::archive::ExtractError;
use transom_host::files::{Access, FileError, Files, Native};

use crate::archive::{FormatError, Origin, Pin};
use crate::command::CommandError;
use crate::download::DownloadError;
use crate::recipe::{Recipe, Source};
use crate::tree::{LocalSources, SourceFailure, Sources};

/// How long another process may be fetching the same tree.
const LOCK_WAIT: Duration = Duration::from_hours(1);
const LARGEST_STAMP: u64 = 64 * 1024;

/// Why a source is not there.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("the source `{name}` cannot be had")]
    Named {
        name: String,
        #[source]
        source: Box<Self>,
    },
    #[error("`{url}` is no address that sources can come from")]
    Address { url: String },
    #[error("`{url}` could not be fetched")]
    Download {
        url: String,
        #[source]
        source: Box<DownloadError>,
    },
    #[error(transparent)]
    Git(#[from] CommandError),
    #[error("the commit {commit} is not in `{url}`")]
    NoCommit { commit: String, url: String },
    #[error("the repository `{path}` cannot be used")]
    Local {
        path: Utf8PathBuf,
        #[source]
        source: SourceFailure,
    },
    #[error("`{path}` is no archive")]
    Format {
        path: Utf8PathBuf,
        #[source]
        source: FormatError,
    },
    #[error("`{path}` cannot be unpacked")]
    Extract {
        path: Utf8PathBuf,
        #[source]
        source: ExtractError,
    },
    #[error("an archive must have exactly one folder at its top, and has {found}")]
    NotOneFolder { found: String },
    #[error("`{path}` cannot be opened")]
    Open {
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the file `{path}` has no name that a file can have")]
    NoName { path: String },
    #[error(transparent)]
    Files(#[from] FileError),
}

/// Fetches sources.
#[derive(Debug)]
pub struct Fetcher {
    /// Where what was fetched is kept: `<packages>/cache`.
    cache: Utf8PathBuf,
    /// What is doubtful and stops nothing.
    warnings: Mutex<Vec<String>>,
}

impl Fetcher {
    pub fn new(cache: &Utf8Path) -> Self {
        Self {
            cache: cache.to_owned(),
            warnings: Mutex::new(Vec::new()),
        }
    }

    /// Lays out all sources of a recipe below `destination`, each in the folder of its name. `work` is a
    /// folder on the same file system for what is half done.
    pub(super) fn lay_out(
        &self,
        recipe: &Recipe,
        work: &Utf8Path,
        destination: &Utf8Path,
        step: &dyn Fn(&str),
    ) -> Result<(), SourceError> {
        for (name, source) in &recipe.sources {
            step(&format!("fetching {name}"));
            self.place(source, &recipe.folder, work, &destination.join(name))
                .map_err(|source| SourceError::Named {
                    name: name.clone(),
                    source: Box::new(source),
                })?;
        }
        Ok(())
    }

    /// Makes one source appear at `destination`, which must be free.
    fn place(
        &self,
        source: &Source,
        base: &Utf8Path,
        work: &Utf8Path,
        destination: &Utf8Path,
    ) -> Result<(), SourceError> {
        let files = Native;
        match source {
            Source::Git {
                url,
                commit,
                origin,
            } => {
                let moved = git::check_out(&self.cache, work, url, commit, origin, destination)?;
                if let Some(now) = moved {
                    self.warn(format!(
                        "`{origin}` of {} is at {now}, and the recipe takes {commit}",
                        without_secrets(url)
                    ));
                }
                Ok(())
            }
            Source::GitLocal { path } => {
                let repository = base.join(path);
                let commit = local_commit(&repository)?;
                git::check_out_local(&repository, &commit, destination)
            }
            Source::Url { url, sha1 } => {
                let cached = fetch::fetch(&self.cache, base, url, sha1)?;
                let name = fetch::file_name(url)?;
                files.create_dir_all(destination)?;
                let copy = destination.join(name);
                fs_err::copy(&cached, &copy)
                    .map(|_| ())
                    .map_err(|source| SourceError::Open { path: copy, source })
            }
            Source::UrlExtract { url, sha1 } => {
                let cached = fetch::fetch(&self.cache, base, url, sha1)?;
                extract::extract(&cached, work, destination)
            }
        }
    }

    fn warn(&self, warning: String) {
        tracing::debug!(warning, "a source is doubtful");
        self.warnings
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(warning);
    }

    /// Takes the warnings that came up.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self
            .warnings
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::take(&mut *warnings)
    }
}

/// For trees that lie on top of another one.
impl Sources for Fetcher {
    fn commit(&self, repository: &Utf8Path) -> Result<String, SourceFailure> {
        LocalSources.commit(repository)
    }

    fn check_out(
        &self,
        source: &Source,
        base: &Utf8Path,
        cache: &Utf8Path,
        destination: &Utf8Path,
    ) -> Result<(), SourceFailure> {
        self.keep_checked_out(source, base, cache, destination)
            .map_err(|error| SourceFailure::CheckOut(crate::fault::sentence(&error)))
    }
}

impl Fetcher {
    /// Leaves what is there alone if it is the same already: others may be reading it.
    fn keep_checked_out(
        &self,
        source: &Source,
        base: &Utf8Path,
        cache: &Utf8Path,
        destination: &Utf8Path,
    ) -> Result<(), SourceError> {
        let files = Native;
        files.create_dir_all(cache)?;
        // Of its own: commands that only read a tree do not wait for a build.
        let _lock = files.lock(&cache.join("upstream.lock"), LOCK_WAIT)?;
        let wanted = pin_text(source, base)?;
        let stamp = Utf8PathBuf::from(format!("{destination}.source"));
        let found = files.read(&stamp, LARGEST_STAMP);
        if found.is_ok_and(|found| found == wanted.as_bytes())
            && files.metadata(destination).is_ok()
        {
            return Ok(());
        }
        let work = cache.join("upstream-work");
        files.remove_file(&stamp)?;
        files.remove_tree(destination)?;
        files.remove_tree(&work)?;
        files.create_dir_all(&work)?;
        if let Some(parent) = destination.parent() {
            files.create_dir_all(parent)?;
        }
        self.place(source, base, &work, destination)?;
        files.write_durable(&stamp, wanted.as_bytes(), Access::Public)?;
        Ok(files.remove_tree(&work)?)
    }
}

/// What a source is, to the last commit.
fn pin_text(source: &Source, base: &Utf8Path) -> Result<String, SourceError> {
    Ok(match source {
        Source::Git { url, commit, .. } => format!("git {url} {commit}\n"),
        Source::GitLocal { path } => {
            let repository = base.join(path);
            let commit = local_commit(&repository)?;
            format!("git_local {repository} {commit}\n")
        }
        Source::Url { url, sha1 } => format!("url {url} {sha1}\n"),
        Source::UrlExtract { url, sha1 } => format!("url_extract {url} {sha1}\n"),
    })
}

fn local_commit(repository: &Utf8Path) -> Result<String, SourceError> {
    LocalSources
        .commit(repository)
        .map_err(|source| SourceError::Local {
            path: repository.to_owned(),
            source,
        })
}

/// Where the sources of a recipe come from, for the bill of materials. `pins` are the resolved ones.
pub(super) fn origins(recipe: &Recipe, pins: &serde_json::Value) -> Vec<Origin> {
    let pin = |name: &str, key: &str| {
        let text = pins["sources"][name][key].as_str();
        text.unwrap_or_default().to_owned()
    };
    let origin = |(name, source): (&String, &Source)| {
        let (url, pin) = match source {
            Source::Git { url, commit, .. } => (without_secrets(url), Pin::Commit(commit.clone())),
            Source::GitLocal { path } => (path.clone(), Pin::Commit(pin(name, "commit"))),
            Source::Url { url, sha1 } | Source::UrlExtract { url, sha1 } => {
                (without_secrets(url), Pin::Sha1(sha1.to_ascii_lowercase()))
            }
        };
        Origin {
            name: name.clone(),
            url,
            pin,
        }
    };
    recipe.sources.iter().map(origin).collect()
}

/// An address that can be shown: without a user, a password and a query.
fn without_secrets(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(mut url) => {
            // Fails only for addresses that have neither.
            let _ = url.set_password(None);
            let _ = url.set_username("");
            url.set_query(None);
            url.to_string()
        }
        // `user@host:path` of ssh, where the user is no secret, or a path.
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (address, shown) in [
            (
                "https://user:pass@example.com/a?token=x",
                "https://example.com/a",
            ),
            ("git@example.com:a/b.git", "git@example.com:a/b.git"),
            ("https://example.com/a.git", "https://example.com/a.git"),
        ] {
            assert_eq!(without_secrets(address), shown);
        }
    }
}
