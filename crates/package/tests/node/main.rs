//! A node's software: what packages become, and what a crash leaves.

mod activation;
mod checks;
mod crash;
mod gate;
mod machine;
mod packages;
mod store;
#[cfg(target_os = "linux")]
mod vectors;
