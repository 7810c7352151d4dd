//! Builds anew when a size of the tables changes.

fn main() {
    for name in ["MESSAGES", "ARENA_BYTES", "RESULTS"] {
        println!("cargo::rerun-if-env-changed=EPITOME_KERNEL_{name}");
    }
}
