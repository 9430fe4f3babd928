//! `transom repository init`: an empty repository and its keys.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use serde::Serialize;
use transom_package::repository::{Editor, KeyRing, Keyholders, Overview, RoleType};

use super::keys::{Holder, ensure_folder, ensure_keys};
use super::{Place, Validity, advise, advise_read, block_on, downloader, now, usual_key_folder};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

const EXAMPLES: &str = "\
Examples:
  transom repository init                                  Here, with one key per role
  transom repository init --keys 3 --threshold 2           Two of three people must sign packages
  transom repository init --root-key /media/stick/root.pem Keep the most precious key elsewhere";

/// Make an empty repository and its keys
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    #[command(flatten)]
    place: Place,

    /// How many keys sign packages, and roots
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    keys: u8,

    /// How many of them must sign
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    threshold: u8,

    /// The folder for the keys; usually beside the repository, with `.keys` behind its name
    #[arg(long, value_name = "DIR")]
    key_folder: Option<Utf8PathBuf>,

    /// A file for a root key, made if it is not there; can be repeated, then these are the root keys
    #[arg(long = "root-key", value_name = "FILE")]
    root_keys: Vec<Utf8PathBuf>,

    #[command(flatten)]
    validity: Validity,
}

impl Init {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.place.folder()?;
        let key_folder = self
            .key_folder
            .clone()
            .unwrap_or_else(|| usual_key_folder(&folder));
        for path in self.root_keys.iter().chain([&key_folder]) {
            anyhow::ensure!(
                !camino::absolute_utf8(path)?.starts_with(&folder),
                "`{path}` lies inside the repository, where everybody could fetch the keys"
            );
        }
        let count = self.root_keys.len().max(usize::from(self.keys));
        anyhow::ensure!(
            usize::from(self.threshold) <= count && self.threshold > 0,
            "a threshold of {} cannot be reached with {count} keys",
            self.threshold
        );
        ensure_folder(cx, &key_folder)?;
        let threshold = u64::from(self.threshold);
        let several = |role: &str| -> Vec<Utf8PathBuf> {
            (1..=self.keys)
                .map(|number| key_folder.join(format!("{role}-{number}.pem")))
                .collect()
        };
        let roots = if self.root_keys.is_empty() {
            several("root")
        } else {
            self.root_keys.clone()
        };
        let mut holders = Keyholders::default();
        let mut all = Vec::new();
        let mut shown = Vec::new();
        for (role, paths, threshold) in [
            (RoleType::Root, roots, threshold),
            (
                RoleType::Targets,
                several("targets"),
                threshold.min(u64::from(self.keys)),
            ),
            (
                RoleType::Snapshot,
                vec![key_folder.join("snapshot-1.pem")],
                1,
            ),
            (
                RoleType::Timestamp,
                vec![key_folder.join("timestamp-1.pem")],
                1,
            ),
        ] {
            let (keys, lines) = ensure_keys(cx, role, &paths)?;
            holders = holders.with(role, &keys, threshold);
            all.extend(keys);
            shown.extend(lines);
        }
        let keys = KeyRing::new(all);
        let expiry = self.validity.expiry();
        let root_sha256 = block_on(async {
            let downloader = downloader()?;
            let made = Editor::create(&folder, &downloader, now(cx), &holders, &keys, expiry).await;
            advise(made)?.close();
            Ok(advise_read(Overview::read(&folder, &downloader).await)?.root_sha256)
        })?;
        cx.out.document(&Made {
            repository: folder,
            root_sha256,
            keys: shown,
        })?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct Made {
    repository: Utf8PathBuf,
    /// What nodes pin.
    root_sha256: String,
    keys: Vec<Holder>,
}

impl Document for Made {
    fn text(&self, wide: bool, _shown: Shown) -> String {
        let mut text = format!("made the repository {}\n", self.repository);
        for Holder { role, key, path } in &self.keys {
            // Writing to a string cannot fail.
            let _ = if wide {
                writeln!(text, "  {role:<9} {path} {key}")
            } else {
                writeln!(text, "  {role:<9} {path}")
            };
        }
        let _ = writeln!(text, "nodes trust it by the digest {}", self.root_sha256);
        text
    }

    fn names(&self) -> Vec<String> {
        vec![self.repository.to_string()]
    }
}
