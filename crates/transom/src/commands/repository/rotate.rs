//! `transom repository rotate`: new keys take the place of old ones, in a new root.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Files as _, Native};
use transom_package::repository::{Keyholders, RoleType, RootChange};

use super::keys::{Keys, ensure_folder, ensure_keys};
use super::sign::report;
use super::{Place, Validity, advise, block_on};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom repository rotate --role timestamp                    A new key for the daily signature
  transom repository rotate --role targets --keys 3 --threshold 2
  transom repository rotate --role root --new-key /media/b/root.pem --key /media/a/root.pem";

/// A role whose keys can be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// Says whose signatures count
    Root,
    /// Vouches for packages
    Targets,
    /// Vouches for the state as a whole
    Snapshot,
    /// Vouches that the state is the newest
    Timestamp,
}

impl From<Role> for RoleType {
    fn from(role: Role) -> Self {
        match role {
            Role::Root => Self::Root,
            Role::Targets => Self::Targets,
            Role::Snapshot => Self::Snapshot,
            Role::Timestamp => Self::Timestamp,
        }
    }
}

/// Replace keys
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rotate {
    /// Whose keys are replaced
    #[arg(long, value_name = "ROLE")]
    role: Role,

    /// How many new keys are made
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    keys: u8,

    /// How many of them must sign
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    threshold: u8,

    /// A file for a new key, made if it is not there; can be repeated, then these are the new keys
    #[arg(long = "new-key", value_name = "FILE")]
    new_keys: Vec<Utf8PathBuf>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    at_hand: Keys,

    #[command(flatten)]
    validity: Validity,
}

impl Rotate {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.place.folder()?;
        let role = RoleType::from(self.role);
        let count = self.new_keys.len().max(usize::from(self.keys));
        anyhow::ensure!(
            usize::from(self.threshold) <= count && self.threshold > 0,
            "a threshold of {} cannot be reached with {count} keys",
            self.threshold
        );
        // The old keys may be anywhere, so they are looked for before new ones are made.
        let mut keys = self.at_hand.load(cx, &folder)?;
        block_on(async {
            let mut editor = self.place.edit(cx).await?;
            let key_folder = self.at_hand.folder(&folder);
            let paths = if self.new_keys.is_empty() {
                ensure_folder(cx, &key_folder)?;
                free_names(&key_folder, role, usize::from(self.keys))
            } else {
                self.new_keys.clone()
            };
            let (new, holders) = ensure_keys(cx, role, &paths)?;
            let change = Keyholders::default().with(role, &new, u64::from(self.threshold));
            for key in new {
                keys.insert(key);
            }
            let change = RootChange::Keys(change);
            let outcome = editor.change_root(&change, &keys, self.validity.expiry());
            report(cx, &advise(outcome.await)?);
            editor.close();
            for holder in holders {
                cx.out.remark(&format!("{} {}", holder.role, holder.path));
            }
            Ok(Exit::Success)
        })
    }
}

/// Names for keys of a role that no file has yet.
fn free_names(folder: &Utf8Path, role: RoleType, count: usize) -> Vec<Utf8PathBuf> {
    (1..)
        .map(|number: u32| folder.join(format!("{role}-{number}.pem")))
        .filter(|path| Native.metadata(path).is_err())
        .take(count)
        .collect()
}
