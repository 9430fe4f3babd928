//! `transom repository sign`: metadata is renewed before it expires; a root gets its signatures.

use transom_package::repository::{RootChange, RootOutcome};

use super::keys::Keys;
use super::{Place, Validity, advise, block_on};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom repository sign                                       Renew what expires, daily from a timer
  transom repository sign --role root --key /media/a/root.pem   Add a signature to the next root
  transom repository sign --expires 12h                         Good for half a day";

/// Which metadata is signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Timestamp and snapshot, and the targets if their keys are at hand
    #[default]
    Packages,
    /// The root: a new one, or the one that waits for signatures
    Root,
}

/// Renew metadata before it expires, or add a signature to a new root
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Sign {
    /// What to sign
    #[arg(long, value_name = "ROLE", default_value = "packages")]
    role: What,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    keys: Keys,

    #[command(flatten)]
    validity: Validity,
}

impl Sign {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let keys = self.keys.load(cx, &self.place.folder()?)?;
        let expiry = self.validity.expiry();
        block_on(async {
            let mut editor = self.place.edit(cx).await?;
            match self.role {
                What::Packages => {
                    advise(editor.renew(&keys, expiry).await)?;
                    cx.out.remark("renewed");
                }
                What::Root => {
                    let outcome = if advise(editor.has_pending_root())? {
                        editor.sign_root(&keys, expiry).await
                    } else {
                        editor
                            .change_root(&RootChange::Nothing, &keys, expiry)
                            .await
                    };
                    report(cx, &advise(outcome)?);
                }
            }
            editor.close();
            Ok(Exit::Success)
        })
    }
}

/// Says what became of a root.
pub(super) fn report(cx: &Context, outcome: &RootOutcome) {
    match outcome {
        RootOutcome::Published { version } => {
            cx.out
                .remark(&format!("published version {version} of the root"));
        }
        RootOutcome::Waiting { version, old, new } => {
            cx.out.remark(&format!(
                "version {version} of the root waits for signatures: it has {} of {} by the keys \
                 before it, and {} of {} by its own",
                old.0, old.1, new.0, new.1
            ));
            cx.out.remark(
                "add more with `transom repository sign --role root --key FILE`, on any machine \
                 that has a copy of the repository",
            );
        }
    }
}
