//! `transom version`: what this binary is. Invariant: reads nothing, so it works on any machine in
//! any state.

use serde::Serialize;

use crate::build_info::BuildInfo;
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

const EXAMPLES: &str = "\
Examples:
  transom version             Version, commit, compiler and target
  transom version --short     The version alone
  transom version -o json     The same for programs";

/// Show what this binary was built from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Version {
    /// Print the version alone
    #[arg(long)]
    short: bool,
}

impl Version {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let info = BuildInfo::current();
        if self.short {
            cx.out.write(&format!("{}\n", info.version))?;
        } else {
            cx.out.document(&Origin(info))?;
        }
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Origin(BuildInfo);

impl Document for Origin {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let info = &self.0;
        let commit = match (info.commit, info.dirty) {
            (Some(commit), Some(true)) => format!("{commit} (with local changes)"),
            (Some(commit), _) => commit.to_owned(),
            (None, _) => "unknown (built from an archive)".to_owned(),
        };
        let or_unknown = |value: Option<&'static str>| value.unwrap_or("unknown").to_owned();
        [
            ("transom", info.version.to_owned()),
            ("commit", commit),
            ("built from", or_unknown(info.build_time)),
            ("rustc", or_unknown(info.rustc)),
            ("target", or_unknown(info.target)),
            ("profile", or_unknown(info.profile)),
        ]
        .map(|(key, value)| format!("{key:<11} {value}\n"))
        .concat()
    }

    fn names(&self) -> Vec<String> {
        vec![format!("transom/{}", self.0.version)]
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn text(info: BuildInfo) -> String {
        Origin(info).text(false, Shown::plain(Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn a_build_from_an_archive_says_so_and_invents_nothing() {
        let info = BuildInfo {
            version: "1.2.3",
            commit: None,
            dirty: None,
            build_time: None,
            rustc: Some("rustc 1.95.0"),
            target: Some("x86_64-pc-windows-gnu"),
            profile: Some("release"),
        };
        insta::assert_snapshot!(text(info.clone()), @r"
        transom     1.2.3
        commit      unknown (built from an archive)
        built from  unknown
        rustc       rustc 1.95.0
        target      x86_64-pc-windows-gnu
        profile     release
        ");
        let dirty = BuildInfo {
            commit: Some("abc"),
            dirty: Some(true),
            ..info
        };
        assert!(text(dirty).contains("abc (with local changes)"));
    }
}
