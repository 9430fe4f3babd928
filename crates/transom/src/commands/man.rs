//! `transom man`: manual pages. Invariant: no date inside, so equal sources give equal pages.

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use clap_mangen::Man as Page;

use crate::build_info::BuildInfo;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

const EXAMPLES: &str = "\
Examples:
  transom man | man -l -                              Read the first page
  transom man --dir /usr/local/share/man/man1         Install all pages
  transom man --dir man                               Write all pages to a folder";

/// Print the manual page, or write all pages to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Man {
    /// Write a page for each command here; the folder is made if need be
    #[arg(long, value_name = "DIR")]
    dir: Option<Utf8PathBuf>,
}

impl Man {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let pages = pages()?;
        match &self.dir {
            None => cx.out.write_bytes(&pages[0].1)?,
            Some(folder) => {
                write_all(folder, &pages).hint("name a folder that you may write to")?;
                cx.out
                    .remark(&format!("{} pages written to {folder}", pages.len()));
            }
        }
        Ok(Exit::Success)
    }
}

/// File names and contents, the page of `transom` itself first.
fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut root = super::command_line();
    root.build();
    super::tree::walk(&root)
        .into_iter()
        .map(|(name, command)| {
            let name = name.replace(' ', "-");
            // Pages are found by their full name.
            let command = command
                .clone()
                .name(name.clone())
                // What `-h` leaves out for brevity belongs in a manual.
                .mut_args(|argument| argument.hide_short_help(false));
            let mut page = Vec::new();
            Page::new(command)
                .title(name.to_uppercase())
                .date("")
                .manual("Transom Manual")
                .source(format!("transom {}", BuildInfo::current().version))
                .render(&mut page)
                .with_context(|| format!("could not render the page of `{name}`"))?;
            Ok((format!("{name}.1"), page))
        })
        .collect()
}

fn write_all(folder: &Utf8Path, pages: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
    fs_err::create_dir_all(folder)
        .with_context(|| format!("could not make the folder `{folder}`"))?;
    for (name, page) in pages {
        let path = folder.join(name);
        fs_err::write(&path, page).with_context(|| format!("could not write `{path}`"))?;
    }
    Ok(())
}
