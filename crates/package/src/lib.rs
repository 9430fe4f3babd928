//! Packages: from a recipe to a node's active generation. Recipes make trees, trees are built into
//! archives, archives live in signed repositories, and a node turns a set of them into a generation.
//! Invariant: what is active changes in one instant, and only to something that was complete before.

pub mod archive;
pub mod build;
mod command;
pub mod download;
pub mod fault;
pub mod hash;
pub mod info;
pub mod json;
pub mod node;
pub mod recipe;
pub mod repository;
pub mod tree;
