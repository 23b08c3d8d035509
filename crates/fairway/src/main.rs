//! The `fairway` command.
fn main() {}
