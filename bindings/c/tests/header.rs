//! The committed header is that of the code.

#![cfg(test)]

use std::fs;
use std::path::Path;

use cbindgen::{Builder, Config};

#[test]
fn the_header_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::from_file(root.join("cbindgen.toml")).unwrap();
    let made = Builder::new().with_config(config).with_src(root.join("src/lib.rs")).generate().unwrap();
    let mut text = Vec::new();
    made.write(&mut text);
    // In C the conditions of safety are the conditions of a call.
    let text = String::from_utf8(text).unwrap().replace("// # Safety\n", "// Conditions:\n");
    let place = root.join("include/epitome.h");
    if std::env::var_os("EPITOME_BLESS").is_some() {
        fs::write(&place, &text).unwrap();
    }
    let header = fs::read_to_string(&place).unwrap();
    assert!(header == text, "include/epitome.h is not up to date: EPITOME_BLESS=1 cargo test -p epitome-c");
}
