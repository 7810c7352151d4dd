//! Files of `-o`: written completely or not at all.

use std::fs;
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::*;

fn compact_to(input: &Path, out: &Path) -> Done {
    run(&["compact", text(input), "--keep", "25%", "-o", text(out)])
}

fn orphan() -> serde_json::Value {
    serde_json::json!({"role": "tool", "tool_call_id": "none", "content": SECRET})
}

fn input(folder: &Folder) -> std::path::PathBuf {
    folder.file("in.json", serde_json::to_string(&messages(10)).unwrap())
}

#[test]
fn the_output_may_be_the_input() {
    let folder = Folder::new();
    for name in ["in.json", "in.jsonl"] {
        let content = if name == "in.json" {
            serde_json::to_string(&messages(10)).unwrap()
        } else {
            jsonl(&messages(10))
        };
        let file = folder.file(name, &content);
        let other = folder.path("other");
        compact_to(&file, &other).ok();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        compact_to(&file, &file).ok();
        assert_eq!(read(&file), read(&other));
        assert!(read(&file).len() < content.len());
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640, "permissions stay");
    }
    assert_eq!(folder.names(), ["in.json", "in.jsonl", "other"]);
}

#[test]
fn a_link_stays_a_link() {
    let folder = Folder::new();
    let file = input(&folder);
    let target = folder.file("target.json", "old");
    let link = folder.path("link.json");
    symlink(&target, &link).unwrap();
    compact_to(&file, &link).ok();
    assert!(link.is_symlink() && !target.is_symlink());
    assert_eq!(read(&target), read(&link));
    assert_ne!(read(&target), "old");
    // Also a link to a file that does not exist yet, and a link with a relative target.
    let dangling = folder.path("dangling.json");
    symlink("new.json", &dangling).unwrap();
    compact_to(&file, &dangling).ok();
    assert!(dangling.is_symlink());
    assert_eq!(read(&folder.path("new.json")), read(&target));
}

#[test]
fn a_new_file_has_the_usual_permissions() {
    let folder = Folder::new();
    let (file, out) = (input(&folder), folder.path("out.json"));
    compact_to(&file, &out).ok();
    assert_eq!(out.metadata().unwrap().mode(), file.metadata().unwrap().mode());
}

#[test]
fn places_that_cannot_be_written() {
    let folder = Folder::new();
    let file = input(&folder);
    let missing = compact_to(&file, &folder.path("no/out.json")).fails(4);
    assert!(
        missing.contains("no/out.json: there is no folder ") && missing.contains("; create it"),
        "{missing}"
    );
    assert!(!missing.contains(".half"), "{missing}");
    fs::create_dir(folder.path("sub")).unwrap();
    let folder_itself = compact_to(&file, &folder.path("sub")).fails(4);
    assert!(folder_itself.contains("sub: is a directory"), "{folder_itself}");
    let below_file = compact_to(&file, &file.join("x")).fails(4);
    assert!(below_file.contains("in.json/x: "), "{below_file}");
    let full = compact_to(&file, Path::new("/dev/full")).fails(4);
    assert!(full.contains("/dev/full: No space left on device"), "{full}");
    assert_eq!(folder.names(), ["in.json", "sub"]);
    assert_eq!(fs::read_dir(folder.path("sub")).unwrap().count(), 0);
}

#[test]
fn a_device_is_written_not_replaced() {
    let folder = Folder::new();
    compact_to(&input(&folder), Path::new("/dev/null")).ok();
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn a_full_disk_leaves_the_old_output() {
    let folder = Folder::new();
    let file = folder.file("in.jsonl", jsonl(&messages(400)));
    let disk = folder.path("disk");
    fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none", text(&disk)];
    let mounted = Command::new("mount").args(mount).stderr(Stdio::null()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("skipped: this user cannot mount a small disk");
        return;
    }
    let old = "old ".repeat(1_000);
    let out = disk.join("out.jsonl");
    fs::write(&out, &old).unwrap();
    let done = run(&["compact", text(&file), "--keep", "90%", "-o", text(&out)]);
    let (now, files) = (read(&out), fs::read_dir(&disk).unwrap().count());
    let unmounted = Command::new("umount").arg(&disk).status().unwrap().success();
    assert!(unmounted);
    assert!(done.fails(4).contains("No space left on device"));
    assert_eq!((now == old, files), (true, 1), "the old output is whole, and no half file is left");
}

#[test]
fn readers_and_listeners_may_go_away() {
    let folder = Folder::new();
    let file = folder.file("in.jsonl", jsonl(&messages(1_000)));
    let store = format!("sqlite:{}", text(&folder.path("s.db")));
    run(&["session", "import", text(&file), "--store", &store, "--session", "s"]).ok();
    let mut long = messages(1);
    long[1]["content"] = serde_json::json!(format!("{SECRET} ").repeat(500));
    let many = folder.file("many.json", serde_json::json!([messages(12), long]).to_string());
    let orphans = folder.file("orphans.jsonl", jsonl(&vec![orphan(); 3_000]));
    let commands = [
        (0, vec!["compact", text(&file), "--json"]),
        (0, vec!["stats", text(&file)]),
        (0, vec!["validate", text(&file)]),
        (0, vec!["session", "log", "--store", &store, "--session", "s", "--json"]),
        (0, vec!["session", "list", "--store", &store]),
        (0, vec!["--help"]),
        // The result of a report is also the program's exit code.
        (1, vec!["validate", text(&orphans)]),
        (3, vec!["compact", text(&many), "--each", "--window", "1500"]),
        // A transcript counts as not written if its reader stops before the end.
        (4, vec!["compact", text(&file), "-o", "-"]),
    ];
    for (code, args) in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = program(&args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(code), ""), "{args:?}");
    }
    // A full standard error changes neither the exit code nor the transcript.
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let output = program(&["compact", "missing"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let output =
        program(&["compact", text(&file), "--keep", "50%", "-o", "-"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    // A full standard output is a failure.
    let output = program(&["compact", text(&file)]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(output.stderr, b"epitome: standard output: No space left on device (os error 28)\n");
}
