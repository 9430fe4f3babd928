//! The `transom` command: arguments in, exit code out. All work is done by the crates below.

fn main() {}
