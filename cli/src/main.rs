//! The epitome program.
fn main() {}
