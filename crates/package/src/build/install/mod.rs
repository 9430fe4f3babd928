//! The declarative way to build: rules say which files go where. Planning is pure, from a listing, so it
//! is the same on every system and for every system; copying then has no choice left.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use transom_host::files::archive::{Refusal, entry_path, key};
use transom_host::files::{FileError, Files, Kind, Staging};
use transom_model::Os;

use crate::recipe::InstallRule;

const LONGEST_PATH: usize = 4096;
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;
const CHUNK: usize = 256 * 1024;

/// Why a rule cannot be applied. Rules are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("rule {rule} of `install`: `{pattern}` is no glob")]
    Glob {
        rule: usize,
        pattern: String,
        #[source]
        source: globset::Error,
    },
    #[error("rule {rule} of `install`: `{mode}` is no mode such as 0755")]
    Mode { rule: usize, mode: String },
    #[error("rule {rule} of `install`: `{pattern}` matches no file")]
    NoMatch { rule: usize, pattern: String },
    #[error(
        "rule {rule} of `install`: `{pattern}` matches {count} files, and `{to}` is one file; a folder ends with `/`"
    )]
    SeveralIntoOne {
        rule: usize,
        pattern: String,
        count: usize,
        to: String,
    },
    #[error(
        "rule {rule} of `install`: of `{path}` nothing is left when {strip} folders are dropped"
    )]
    StrippedAway {
        rule: usize,
        path: String,
        strip: u32,
    },
    #[error("rule {rule} of `install`: `{to}` cannot be in the package: {reason}")]
    Destination {
        rule: usize,
        to: String,
        reason: Refusal,
    },
    #[error("rule {rule} of `install` writes `{to}`, which rule {first} writes already")]
    Twice {
        rule: usize,
        first: usize,
        to: String,
    },
    #[error(
        "rule {rule} of `install` writes `{to}`, which is a folder of what rule {first} writes"
    )]
    FileAndFolder {
        rule: usize,
        first: usize,
        to: String,
    },
    #[error("`{path}` cannot be copied")]
    Copy {
        path: Utf8PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Files(#[from] FileError),
}

/// What there is to copy from: a path below `/pkg`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) mode: Option<u32>,
}

/// One file to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    /// Below `/pkg`.
    pub(super) from: String,
    pub(super) kind: Kind,
    pub(super) mode: u32,
    rule: usize,
}

/// Decides what is copied where: by destination.
pub(super) fn plan_install(
    rules: &[InstallRule],
    found: &[Found],
    os: Os,
) -> Result<BTreeMap<String, Copy>, InstallError> {
    let mut plan = Plan {
        os,
        copies: BTreeMap::new(),
        claimed: BTreeMap::new(),
    };
    for (index, rule) in rules.iter().enumerate() {
        plan.rule(index + 1, rule, found)?;
    }
    plan.check_folders()?;
    Ok(plan.copies)
}

struct Plan {
    os: Os,
    copies: BTreeMap<String, Copy>,
    /// By the key of the target system: who wrote it.
    claimed: BTreeMap<String, usize>,
}

impl Plan {
    fn rule(
        &mut self,
        number: usize,
        rule: &InstallRule,
        found: &[Found],
    ) -> Result<(), InstallError> {
        let mode = rule
            .mode
            .as_ref()
            .map(|text| {
                let mode = u32::from_str_radix(text, 8).ok();
                mode.filter(|mode| *mode <= 0o777)
                    .ok_or_else(|| InstallError::Mode {
                        rule: number,
                        mode: text.clone(),
                    })
            })
            .transpose()?;
        let matches = matches(number, rule, found)?;
        if matches.is_empty() {
            return Err(InstallError::NoMatch {
                rule: number,
                pattern: rule.copy.clone(),
            });
        }
        let into_folder = rule.to.ends_with('/') || rule.to.is_empty();
        if !into_folder && matches.len() > 1 {
            return Err(InstallError::SeveralIntoOne {
                rule: number,
                pattern: rule.copy.clone(),
                count: matches.len(),
                to: rule.to.clone(),
            });
        }
        for (found, kept) in matches {
            let to = if into_folder {
                let left = strip(kept, rule.strip).ok_or_else(|| InstallError::StrippedAway {
                    rule: number,
                    path: found.path.clone(),
                    strip: rule.strip,
                })?;
                format!("{}{left}", rule.to)
            } else {
                rule.to.clone()
            };
            self.claim(number, &to, found, mode)?;
        }
        Ok(())
    }

    fn claim(
        &mut self,
        rule: usize,
        to: &str,
        found: &Found,
        mode: Option<u32>,
    ) -> Result<(), InstallError> {
        let refuse = |reason| InstallError::Destination {
            rule,
            to: to.escape_debug().to_string(),
            reason,
        };
        let to = entry_path(self.os, to.as_bytes(), LONGEST_PATH).map_err(refuse)?;
        if found.kind == Kind::Link && self.os == Os::Windows {
            return Err(refuse(Refusal::LinkNotPossible));
        }
        if let Some(first) = self.claimed.insert(key(self.os, to.as_str()), rule) {
            return Err(InstallError::Twice {
                rule,
                first,
                to: to.into_string(),
            });
        }
        let copy = Copy {
            from: found.path.clone(),
            kind: found.kind,
            mode: mode.or(found.mode).unwrap_or(FILE_MODE),
            rule,
        };
        self.copies.insert(to.into_string(), copy);
        Ok(())
    }

    /// No file may have the name of a folder that another one needs.
    fn check_folders(&self) -> Result<(), InstallError> {
        for (path, copy) in &self.copies {
            for (end, _) in path.match_indices('/') {
                let folder = key(self.os, &path[..end]);
                if let Some(rule) = self.claimed.get(&folder) {
                    return Err(InstallError::FileAndFolder {
                        rule: *rule,
                        first: copy.rule,
                        to: path[..end].to_owned(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// The files that a rule means, each with the part of its path that is kept.
fn matches<'a>(
    number: usize,
    rule: &InstallRule,
    found: &'a [Found],
) -> Result<Vec<(&'a Found, &'a str)>, InstallError> {
    let bad = |pattern: &str| {
        let pattern = pattern.to_owned();
        move |source| InstallError::Glob {
            rule: number,
            pattern,
            source,
        }
    };
    let pattern = rule.copy.trim_start_matches("./").trim_end_matches('/');
    let matcher: Option<GlobMatcher> = is_glob(pattern)
        .then(|| glob(pattern))
        .transpose()
        .map_err(bad(pattern))?
        .map(|glob| glob.compile_matcher());
    let mut excluded = GlobSetBuilder::new();
    for exclude in &rule.exclude {
        let exclude = exclude.trim_end_matches('/');
        excluded.add(glob(exclude).map_err(bad(exclude))?);
        // What is below an excluded folder is excluded too.
        let below = format!("{exclude}/**");
        excluded.add(glob(&below).map_err(bad(exclude))?);
    }
    let excluded: GlobSet = excluded.build().map_err(bad(&rule.copy))?;
    let fixed = fixed_part(pattern);
    Ok(found
        .iter()
        .filter(|found| found.kind != Kind::Dir && !excluded.is_match(&found.path))
        .filter_map(|found| {
            let kept = match &matcher {
                Some(matcher) => {
                    let hit = matcher.is_match(&found.path);
                    hit.then(|| &found.path[fixed..])
                }
                None if found.path == pattern => {
                    let name = found.path.rfind('/').map_or(0, |at| at + 1);
                    Some(&found.path[name..])
                }
                None => found
                    .path
                    .strip_prefix(pattern)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            kept.map(|kept| (found, kept))
        })
        .collect())
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
}

fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// How many bytes of a pattern are folders without a wildcard.
fn fixed_part(pattern: &str) -> usize {
    let wildcard = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    pattern[..wildcard].rfind('/').map_or(0, |at| at + 1)
}

fn strip(path: &str, folders: u32) -> Option<&str> {
    let mut rest = path;
    for _ in 0..folders {
        rest = rest.split_once('/')?.1;
    }
    Some(rest)
}

/// Lists what is below `/pkg`: `src` and `extra`.
pub(super) fn list_found(
    files: &dyn Files,
    folders: &[(&str, &Utf8Path)],
) -> Result<Vec<Found>, FileError> {
    let mut found = Vec::new();
    let mut todo: Vec<(String, Utf8PathBuf)> = folders
        .iter()
        .map(|(name, folder)| ((*name).to_owned(), (*folder).to_owned()))
        .collect();
    while let Some((below, folder)) = todo.pop() {
        for entry in files.list(&folder)? {
            // The history of a repository is no part of its content.
            if entry.name == ".git" {
                continue;
            }
            let path = format!("{below}/{}", entry.name);
            if entry.metadata.kind == Kind::Dir {
                todo.push((path.clone(), entry.path));
            }
            found.push(Found {
                path,
                kind: entry.metadata.kind,
                mode: entry.metadata.mode,
            });
        }
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Copies as planned. `place` says where a path below `/pkg` is.
pub(super) fn copy(
    files: &dyn Files,
    copies: &BTreeMap<String, Copy>,
    place: &dyn Fn(&str) -> Utf8PathBuf,
    destination: &Utf8Path,
) -> Result<(), InstallError> {
    let mut staging = files.stage(destination)?;
    let mut made = std::collections::BTreeSet::new();
    for (to, copy) in copies {
        for (end, _) in to.match_indices('/') {
            if made.insert(to[..end].to_owned()) {
                staging.make_dir(to[..end].into(), FOLDER_MODE)?;
            }
        }
        let from = place(&copy.from);
        if copy.kind == Kind::Link {
            staging.symlink(files.read_link(&from)?.as_str(), to.as_str().into())?;
        } else {
            copy_file(&staging, &from, to, copy.mode)?;
        }
    }
    Ok(staging.commit()?)
}

fn copy_file(
    staging: &Staging<'_>,
    from: &Utf8Path,
    to: &str,
    mode: u32,
) -> Result<(), InstallError> {
    use std::io::Read as _;
    let failed = |source| InstallError::Copy {
        path: from.to_owned(),
        source,
    };
    let mut source = fs_err::File::open(from).map_err(failed)?;
    let mut target = staging.create_file(to.into(), mode)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        match source.read(&mut chunk).map_err(failed)? {
            0 => return Ok(target.finish()?),
            count => target.write_all(&chunk[..count])?,
        }
    }
}

#[cfg(test)]
mod tests;
