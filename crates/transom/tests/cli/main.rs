//! Runs the real binary and looks at what a user would see. Invariant: the same expectations hold on
//! Linux and on Windows; whatever differs is filtered by name.

mod config;
#[cfg(test)]
mod console;
#[cfg(test)]
mod doctor;
mod errors;
mod generated;
mod guides;
#[cfg(test)]
mod harness;
mod help;
#[cfg(test)]
mod package_crash;
#[cfg(test)]
mod package_node;
#[cfg(test)]
mod package_tree;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod simulate;
mod streams;
mod version;
