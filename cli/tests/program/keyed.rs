//! `session` in encrypted stores: keys from files and from the environment, and the errors for a wrong key.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::support::*;

/// A key, and the part of it that must never show.
const KEY: &str = "5EC2E70123456789abcdef0123456789abcdef0123456789abcdef0123456789";
const OTHER: &str = "5ec2e7ffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

/// Runs the program with `EPITOME_KEY`, or without it.
fn run_keyed(key: Option<&str>, args: &[&str]) -> Done {
    let mut command = program(args);
    match key {
        Some(key) => command.env("EPITOME_KEY", key),
        None => command.env_remove("EPITOME_KEY"),
    };
    let done = done(&mut command);
    assert!(
        !done.err.to_lowercase().contains("5ec2e7") && !done.out.to_lowercase().contains("5ec2e7"),
        "{done:?}"
    );
    done
}

fn urls(folder: &Folder, name: &str) -> [String; 2] {
    ["sqlite", "jsonl"].map(|kind| format!("{kind}:{}", text(&folder.path(&format!("{name}-{kind}")))))
}

/// True if a file in this folder or below contains `part`.
fn has(folder: &Folder, part: &str) -> bool {
    let mut folders = vec![folder.path("")];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if String::from_utf8_lossy(&fs::read(path).unwrap()).contains(part) {
                return true;
            }
        }
    }
    false
}

#[test]
fn a_store_is_encrypted_with_the_key_that_its_first_import_was_given() {
    let folder = Folder::new();
    let keys = Folder::new();
    let file = private(keys.file("key.txt", format!(" {KEY}\n")));
    let said = keys.file("said.jsonl", jsonl(&messages(3)));
    for url in urls(&folder, "store") {
        let session = |key: Option<&str>, command: &str, more: &[&str]| {
            run_keyed(key, &[&["session", command, "--store", &url, "--session", "one"], more].concat())
        };
        session(Some(KEY), "import", &[text(&said)]).ok();
        assert!(!has(&folder, SECRET), "{url}");
        // The key file holds the same digits as the variable, and takes precedence over it.
        let from_file = ["--key-file", text(&file), "--json"];
        let shown = session(None, "show", &from_file).ok();
        assert_eq!(session(Some(KEY), "show", &["--json"]).ok(), shown);
        assert_eq!(session(Some(OTHER), "show", &from_file).ok(), shown);
        for command in ["show", "log", "verify", "export", "compact", "clear", "erase"] {
            let output: &[&str] = if command == "export" { &["-o", "-"] } else { &[] };
            let none = session(None, command, output).fails(2);
            let expected = "is encrypted; open the store with its key; --key-file FILE or the environment variable \
                            EPITOME_KEY has it\n";
            assert!(none.ends_with(expected), "{none}");
            let other = session(Some(OTHER), command, output).fails(2);
            assert!(
                other.ends_with("was encrypted with another key; open the store with that one\n"),
                "{other}"
            );
        }
        let list = ["session", "list", "--store", &url];
        assert!(run_keyed(None, &list).fails(2).contains("--key-file FILE"));
        assert_eq!(session(Some(KEY), "show", &["--json"]).ok(), shown);
    }
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let folder = Folder::new();
    let [url, other] = urls(&folder, "store");
    let said = folder.file("said.jsonl", jsonl(&messages(3)));
    let file = folder.file("key.txt", KEY);
    let import = |option: &str| {
        let import =
            ["session", "import", text(&said), "--store", &url, "--session", "one", option, text(&file)];
        run_keyed(None, &import)
    };
    for mode in [0o644, 0o640, 0o604, 0o622] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let refused = import("--key-file").fails(2);
        assert!(
            refused.starts_with(&format!("epitome: --key-file: {} can be read by others", text(&file))),
            "{refused}"
        );
        assert!(refused.contains("chmod 600") && !refused.contains(KEY), "{refused}");
        assert_eq!(folder.names().len(), 2);
    }
    private(file.clone());
    import("--key-file").ok();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let copy = [
        "session",
        "copy",
        "--store",
        &url,
        "--session",
        "one",
        "--to",
        &other,
        "--to-key-file",
        text(&file),
    ];
    assert!(run_keyed(Some(KEY), &copy).fails(2).starts_with("epitome: --to-key-file: "));
}

/// Restricts the file to its owner (mode 600).
fn private(file: PathBuf) -> PathBuf {
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file
}

#[test]
fn keys_that_are_none() {
    let folder = Folder::new();
    let [url, _] = urls(&folder, "store");
    let list = ["session", "list", "--store", &url];
    let chat = example("support-chat.jsonl");
    let import = ["session", "import", text(&chat), "--store", &url, "--session", "one"];
    let wrong = "a key has 64 hexadecimal digits; `openssl rand -hex 32` makes one\n";
    // An invalid key never causes unencrypted output.
    for digits in ["", " ", &KEY[1..], &format!("{KEY}00"), &KEY.replace('9', "g"), &KEY.repeat(100)] {
        assert_eq!(run_keyed(Some(digits), &import).fails(2), format!("epitome: EPITOME_KEY: {wrong}"));
        let file = private(folder.file("key", digits));
        let said = run_keyed(Some(KEY), &[&import[..], &["--key-file", text(&file)]].concat()).fails(2);
        assert_eq!(said, format!("epitome: --key-file: {}: {wrong}", text(&file)));
    }
    let bytes = OsString::from_vec(vec![0xff; 64]);
    let said = done(program(&import).env("EPITOME_KEY", bytes)).fails(2);
    assert_eq!(said, format!("epitome: EPITOME_KEY: {wrong}"));
    assert_eq!(folder.names(), ["key"]);
    for (file, part) in [("missing", "No such file"), ("", "Is a directory")] {
        let path = folder.path(file);
        let said = run_keyed(None, &[&list[..], &["--key-file", text(&path)]].concat());
        let said = said.fails(4);
        assert!(said.starts_with("epitome: --key-file: ") && said.contains(part), "{said}");
    }
    run_keyed(None, &import).ok();
    let said = run_keyed(Some(KEY), &list).fails(2);
    assert!(said.contains("is not encrypted; open the store without a key"), "{said}");
    for server in ["postgres://user:hunter2-SECRET-text@host/db", "redis://user:hunter2-SECRET-text@host"] {
        let said = run_keyed(Some(KEY), &["session", "list", "--store", server]).fails(2);
        assert!(said.contains("only `jsonl:DIR` and `sqlite:PATH` are encrypted"), "{said}");
    }
}

#[test]
fn a_copy_of_what_is_encrypted_is_plain_only_on_demand() {
    let folder = Folder::new();
    let keys = Folder::new();
    let said = keys.file("said.jsonl", jsonl(&messages(2)));
    let other = private(keys.file("other", OTHER));
    let [from, _] = urls(&folder, "from");
    let session = |key: Option<&str>, command: &str, url: &str, more: &[&str]| {
        run_keyed(key, &[&["session", command, "--store", url, "--session", "one"], more].concat())
    };
    session(Some(KEY), "import", &from, &[text(&said)]).ok();
    let shown = session(Some(KEY), "show", &from, &["--json"]).ok();
    for to in urls(&folder, "to") {
        let asked = session(Some(KEY), "copy", &from, &["--to", &to]).fails(2);
        assert!(asked.contains("--to-key-file FILE has its key; --plain says that it is not"), "{asked}");
        session(Some(KEY), "copy", &from, &["--to", &to, "--to-key-file", text(&other)]).ok();
        assert!(!has(&folder, SECRET), "{to}");
        assert_eq!(session(Some(OTHER), "show", &to, &["--json"]).ok(), shown);
        session(Some(KEY), "copy", &from, &["--to", &to, "--plain"]).fails(2);
        // From a store that is not encrypted into one that is, and back into one that is not.
        let plain = format!("{to}-plain");
        session(Some(OTHER), "copy", &to, &["--to", &plain, "--plain"]).ok();
        assert_eq!(session(None, "show", &plain, &["--json"]).ok(), shown);
        assert!(has(&folder, SECRET), "{plain}");
        let sealed = format!("{to}-sealed");
        session(None, "copy", &plain, &["--to", &sealed, "--to-key-file", text(&other)]).ok();
        assert_eq!(session(Some(OTHER), "show", &sealed, &["--json"]).ok(), shown);
        session(None, "erase", &plain, &[]).ok();
        assert!(!has(&folder, SECRET), "{plain}");
    }
    // All sessions of a store have the same key.
    session(Some(KEY), "copy", &from, &["--as", "two"]).ok();
    session(Some(KEY), "copy", &from, &["--to", &from, "--as", "three"]).ok();
    let list = run_keyed(Some(KEY), &["session", "list", "--store", &from, "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 3);
    assert!(session(None, "copy", &from, &["--plain"]).fails(2).contains("--to"));
}
