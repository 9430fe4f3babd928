//! `transom repository add`: archives and package lists become part of a repository.

use camino::Utf8PathBuf;
use transom_model::{Arch, Os};
use transom_package::download::Event;
use transom_package::repository::{Addition, Entry};

use super::keys::Keys;
use super::list::ChangeRow;
use super::{Place, Validity, advise, block_on};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom repository add web--1.tar.zst web--1.zip         For both systems, seen at once
  transom repository add 8a….package_list.json             A package list
  transom repository add --unsigned etcd--0c15….tar.xz     What DC/OS made, without a manifest
  transom repository add --key /media/stick/targets-2.pem web--1.zip";

/// Add archives and package lists
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Add {
    /// Archives (tar.zst, zip, tar.xz) and package lists (`ID.package_list.json`)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Utf8PathBuf>,

    /// Take archives that have no manifest of ours; they are marked as unsigned everywhere
    #[arg(long)]
    unsigned: bool,

    /// The system that unsigned archives are for
    #[arg(long, value_name = "SYSTEM")]
    os: Option<Os>,

    /// The architecture that the archives are for
    #[arg(long, value_name = "ARCHITECTURE")]
    arch: Option<Arch>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    keys: Keys,

    #[command(flatten)]
    validity: Validity,
}

impl Add {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let keys = self.keys.load(cx, &self.place.folder()?)?;
        let additions: Vec<Addition> = self
            .files
            .iter()
            .map(|path| Addition {
                path: path.clone(),
                unsigned: self.unsigned,
                os: self.os,
                arch: self.arch,
            })
            .collect();
        let added = block_on(async {
            let mut editor = self.place.edit(cx).await?;
            let task = cx.progress.start("adding");
            let listener = |event: Event| {
                if let Event::Progress { done, .. } = event {
                    task.step(&super::size(done));
                }
            };
            let expiry = self.validity.expiry();
            let added = editor.add(&additions, &keys, expiry, &listener).await;
            editor.close();
            advise(added)
        })?;
        for added in &added {
            if let Entry::Package(package) = &added.entry
                && package.unsigned
            {
                cx.out.warn(&format!("nobody vouched for `{}`", package.id));
            }
        }
        let rows: Vec<ChangeRow> = added
            .iter()
            .map(|added| {
                let state = if added.already {
                    "there already"
                } else {
                    "added"
                };
                ChangeRow::new(&added.entry, state)
            })
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}
