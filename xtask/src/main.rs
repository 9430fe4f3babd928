//! The project's own commands: `cargo xtask --help`.

fn main() {}
