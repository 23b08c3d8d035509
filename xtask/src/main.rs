//! Repository chores: `cargo xtask <command>`.
fn main() {}
