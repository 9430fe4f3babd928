//! Crash walks: every operation is stopped before every single step it does to the disk, and after a
//! recovery the node is entirely as before or entirely as after. On imaginary machines, where a power
//! failure loses what was not synced, and on this one, where the process is killed.

mod imaginary;
mod native;
mod scenario;
