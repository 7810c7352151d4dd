//! Lets the linker find memory.x, also when cargo is called from another directory.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-search={here}");
    println!("cargo::rerun-if-changed=memory.x");
}
