//! `transom completion`: a script that teaches a shell our command line. Invariant: made from the
//! same tree that is parsed, so it never offers what does not exist.

use clap_complete::Shell;

use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  bash          transom completion bash > /etc/bash_completion.d/transom
                or in ~/.bashrc: source <(transom completion bash)
  zsh           transom completion zsh > \"${fpath[1]}/_transom\"
  fish          transom completion fish > ~/.config/fish/completions/transom.fish
  PowerShell    transom completion powershell | Out-String | Invoke-Expression
                add that line to the file named by $PROFILE to keep it
  Elvish        eval (transom completion elvish | slurp)
                add that line to ~/.config/elvish/rc.elv to keep it

Open a new shell afterwards.";

/// Print a script that completes commands and options in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        let mut command = super::command_line();
        clap_complete::generate(self.shell, &mut command, "transom", &mut script);
        cx.out.write_bytes(&script)?;
        Ok(Exit::Success)
    }
}
