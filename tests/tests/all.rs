//! Nearly all tests of the workspace as a whole, in one program: it is linked once, and its tests run in parallel.
//!
//! Tests that need a process of their own are separate programs: a subscriber of events (`traced.rs`), an allocator
//! that counts (`untriggered.rs`).

mod bounded;
mod clearing;
mod corpus;
mod edits;
mod engine;
mod found;
mod grid;
mod history;
mod interleaved;
mod invariants;
mod large;
mod lazy;
mod managed;
mod mutants;
mod openai_server;
mod parity;
mod parts;
mod sessions;
mod supersede;
mod transcripts;
mod twin;
mod validity_sweep;
mod words;

/// Each test file belongs to a program. The tests of any other file would never run, and no failure would show it.
#[test]
fn each_file_is_in_a_program() {
    let programs = concat!(include_str!("all.rs"), include_str!("../Cargo.toml"));
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let path = file.unwrap().path();
        let Some("rs") = path.extension().and_then(|extension| extension.to_str()) else { continue };
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_named = [format!("\nmod {name};\n"), format!("\nname = \"{name}\"\n")];
        assert!(is_named.iter().any(|named| programs.contains(named)), "no program has {name}.rs");
    }
}
