//! What an agent on a node may see and do.
//!
//! A node sees what the pods bound to it use, and nothing of the others: a stolen node is not a stolen cluster.

mod audience;
mod authorizer;
mod graph;
mod references;
pub mod restriction;
#[cfg(test)]
mod tests;

pub use graph::NodeGraph;
