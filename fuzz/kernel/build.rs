//! Small tables, so that a short program fills them. `fuzz/src/kernel/border.rs` has the same figures.

fn main() {
    for (name, size) in [("MESSAGES", 24), ("ARENA_BYTES", 1200), ("RESULTS", 8)] {
        println!("cargo::rustc-env=EPITOME_KERNEL_{name}={size}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
