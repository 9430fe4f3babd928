//! Crash walks: every operation is stopped before every single step it does to the disk, and after a
//! recovery the node is entirely as before or entirely as after. On imaginary machines, where a power
//! failure loses what was not synced, and on this one, where the process is killed.

// It has nothing of the machine that it runs on.
#[cfg(target_os = "linux")]
mod imaginary;
mod native;
mod scenario;

/// How many points were tried is part of what is proved.
#[expect(clippy::print_stdout, reason = "the output of a test")]
fn say(text: &str) {
    println!("{text}");
}
