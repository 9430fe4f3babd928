//! `transom server keys rotate`: a new key in front of the others.

use transom_api::server::{KeyCare, KeyPurpose};

use super::{DataFolder, Purpose, explained, options, word};
use crate::context::Context;
use crate::failure::Exit;

/// Make a new key; what the older ones made stays good
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server keys rotate secrets\n  transom server keys rotate tokens --data-dir /srv/transom --dry-run\n\nThe server must not run; it uses the new key when it starts again, and encrypts all secrets with it then.\nWith a new authority, whoever trusts only the old one does not know the server any more: give them\npki/ca.pem of the data folder first."
)]
pub(super) struct Rotate {
    /// What the key is for
    #[arg(value_enum)]
    purpose: Purpose,

    #[command(flatten)]
    data: DataFolder,

    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Rotate {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let options = options(cx, &self.data, None)?;
        let purpose = self.purpose.key();
        let care = explained(KeyCare::open(&options))?;
        let of = word(purpose);
        if self.dry_run {
            let older = explained(care.older(purpose))?.len();
            cx.out.remark(&format!(
                "a new key for {of} would be made; {} before it would stay good",
                older + 1
            ));
            return Ok(Exit::Success);
        }
        explained(care.rotate(purpose))?;
        cx.out.remark(&format!("there is a new key for {of}"));
        cx.out.remark(match purpose {
            KeyPurpose::Secrets => {
                "start the server: it encrypts all secrets with it; then retire the older keys"
            }
            KeyPurpose::Tokens => {
                "start the server: new tokens are signed with it; retire the older keys when all tokens are new"
            }
            KeyPurpose::Authority => {
                "start the server, and give pki/ca.pem of the data folder to nodes and users"
            }
        });
        Ok(Exit::Success)
    }
}
