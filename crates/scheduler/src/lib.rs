//! Which node a pod goes to: a pure core that decides, and a thin loop that asks the API.
//!
//! The core knows no clock, no network and no chance: the same snapshot and the same pod give the same node.

mod changes;
mod driver;
mod explain;
pub mod extras;
mod filter;
mod images;
mod labels;
mod node;
mod place;
mod pod;
mod preempt;
mod profile;
mod quantity;
mod queue;
mod read;
mod reason;
mod resources;
mod score;
mod snapshot;
mod telemetry;
mod text;

pub use changes::Changes;
pub use driver::{Options, run};
pub use explain::{Verdict, explain};
pub use filter::Refusal;
pub use place::{Place, Placement, Placer, Unplaceable, place};
pub use pod::{DEFAULT_SCHEDULER, PodToPlace};
pub use profile::{Packing, Profile, Weights};
pub use read::{Image, ReadError, images as image_objects};
pub use reason::Reason;
pub use score::Score;
pub use snapshot::{ClaimPlan, Snapshot};
pub use telemetry::metrics;
pub use text::Text;

#[cfg(test)]
mod tests;
