//! A node's software: what packages become, and what a crash leaves.

mod activation;
mod crash;
mod machine;
#[cfg(target_os = "linux")]
mod vectors;
