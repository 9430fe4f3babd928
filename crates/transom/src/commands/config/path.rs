//! `transom config path`: where the configuration file is looked for. Invariant: prints the path
//! whether or not the file exists, so that it can be created there.

use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom config path                 Where the file is, or would be
  ${EDITOR} \"$(transom config path)\"  Change it";

/// Print where the configuration file is looked for
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Path {}

impl Path {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let Self {} = self;
        let path = &cx.settings.config.value;
        cx.out.write(&format!("{path}\n"))?;
        if !cx.settings.config_exists {
            cx.out
                .remark("there is no such file yet; the defaults hold");
        }
        Ok(Exit::Success)
    }
}
