//! Lets the linker find memory.x and device.x, also when cargo is called from another directory.

fn main() {
    println!("cargo::rustc-link-search={}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=device.x");
}
