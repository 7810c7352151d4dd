//! Tests of memory files: the texts for the model, the limits, the paths.

mod commands;

use std::sync::Arc;

use epitome_core::Seq;
use futures::executor::block_on;
use serde_json::{Value, json};

use super::{FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX, MemoryFolder, PATH_BYTES_MAX};
use crate::history::{MemoryStore, SessionId, Timestamp};
use crate::memory::MemoryTool;
use crate::message::{Part, ToolCall};
use crate::session::SessionErrorKind;

fn folder() -> MemoryFolder {
    MemoryFolder::new(Arc::new(MemoryStore::new()), SessionId::new("alice"))
}

/// The answer to a call; `Err` if the output is an error.
fn answer(tool: &MemoryTool, id: &str, arguments: &str) -> Result<String, String> {
    let output = block_on(tool.answer(&ToolCall::new(id, MemoryTool::NAME, arguments)));
    let [Part::Text(text)] = &output.parts[..] else { panic!("{output:?}") };
    if output.is_error { Err(text.to_string()) } else { Ok(text.to_string()) }
}

fn say(folder: &MemoryFolder, arguments: &Value) -> Result<String, String> {
    answer(&MemoryTool::new(folder.clone()), "c1", &arguments.to_string())
}

fn create(folder: &MemoryFolder, path: &str, text: &str) -> Result<String, String> {
    say(folder, &json!({"command": "create", "path": path, "file_text": text}))
}

fn changes(folder: &MemoryFolder) -> usize {
    let log = block_on(folder.store.log(folder.owner(), Seq(0)..Seq(u64::MAX), u32::MAX));
    log.map_or(0, |log| log.messages.len())
}

#[test]
fn a_listing_has_two_levels_and_their_sizes() {
    let folder = folder();
    for (path, bytes) in [
        ("b.md", 5_632),
        ("a/x.md", 1),
        ("a/deep/y.md", 1_023),
        ("a/deep/er/z.md", 2_048),
        (".hidden/h.md", 9),
        ("a/node_modules/n.js", 9),
    ] {
        create(&folder, &format!("/memories/{path}"), &"x".repeat(bytes)).unwrap();
    }
    let view = |path: &str| say(&folder, &json!({"command": "view", "path": path})).unwrap();
    let listing = view("/memories/");
    let lines: Vec<&str> = listing.lines().skip(1).collect();
    let expected = [
        "8.5K\t/memories",
        "3K\t/memories/a/",
        "2.9K\t/memories/a/deep/",
        "1B\t/memories/a/x.md",
        "5.5K\t/memories/b.md",
    ];
    assert_eq!(lines, expected);
    let expected = [
        "3K\t/memories/a",
        "2.9K\t/memories/a/deep/",
        "2K\t/memories/a/deep/er/",
        "1023B\t/memories/a/deep/y.md",
        "1B\t/memories/a/x.md",
    ];
    assert_eq!(view("/memories/a").lines().skip(1).collect::<Vec<_>>(), expected);
    // A hidden file can be read by its path.
    assert!(view("/memories/.hidden/h.md").ends_with("     1\txxxxxxxxx"));
}

#[test]
fn lines_stay_whole_and_bytes_as_they_were() {
    let insert = |text: &str, line: i64, new: &str| {
        let folder = folder();
        create(&folder, "/memories/f", text).unwrap();
        let insert =
            json!({"command": "insert", "path": "/memories/f", "insert_line": line, "insert_text": new});
        say(&folder, &insert).unwrap();
        block_on(folder.files()).unwrap().remove("/memories/f").unwrap()
    };
    assert_eq!(insert("", 0, "a"), "a\n");
    assert_eq!(insert("a", 1, "b"), "a\nb\n");
    assert_eq!(insert("a\n", 1, "b\n"), "a\nb\n");
    assert_eq!(insert("a\r\nc\r\n", 1, "b\r\n"), "a\r\nb\r\nc\r\n");
    assert_eq!(insert("日本\n語", 1, "😀\n\n"), "日本\n😀\n\n語");
}

#[test]
fn a_path_that_is_not_below_the_folder_is_refused_by_each_command() {
    let folder = folder();
    create(&folder, "/memories/a", "text").unwrap();
    let hostile = [
        ("", "does not start with /memories"),
        ("memories/a", "does not start with /memories"),
        ("/etc/passwd", "does not start with /memories"),
        ("/memoriesx/a", "does not start with /memories"),
        ("/Memories/a", "does not start with /memories"),
        ("/memories/..", "has the segment . or .."),
        ("/memories/../etc/passwd", "has the segment . or .."),
        ("/memories/b/../../etc", "has the segment . or .."),
        ("/memories/./a", "has the segment . or .."),
        ("/memories//a", "has an empty segment"),
        ("/memories//", "has an empty segment"),
        ("/memories/a//", "has an empty segment"),
        ("/memories\\..\\a", "does not start with /memories"),
        ("/memories/..\\a", "has a backslash"),
        ("/memories/a\0", "has a control character"),
        ("/memories/a\nb", "has a control character"),
        ("/memories/%2e%2e/etc", "is percent-encoded"),
        ("/memories/%2E%2E%2Fetc", "is percent-encoded"),
        ("/memories/%252e%252e/etc", "is percent-encoded"),
    ];
    for (path, fault) in hostile {
        let expected = format!(
            "Error: The path {path:?} {fault}. Give a path below /memories, for example /memories/notes.md."
        );
        for command in [
            json!({"command": "view", "path": path}),
            json!({"command": "create", "path": path, "file_text": "x"}),
            json!({"command": "str_replace", "path": path, "old_str": "text", "new_str": "x"}),
            json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"}),
            json!({"command": "delete", "path": path}),
            json!({"command": "rename", "old_path": path, "new_path": "/memories/b"}),
            json!({"command": "rename", "old_path": "/memories/a", "new_path": path}),
        ] {
            assert_eq!(say(&folder, &command), Err(expected.clone()), "{command}");
        }
    }
    // Names that only resemble forbidden ones.
    for path in ["/memories/...", "/memories/a..b", "/memories/100% sure.md", "/memories/日本 😀.md"] {
        create(&folder, path, "").unwrap();
    }
    assert_eq!(changes(&folder), 5);
}

#[test]
fn a_limit_is_named_and_holds_to_the_byte() {
    let full = |folder: &MemoryFolder, refused: Result<String, String>, part: &str| {
        let (refused, before) = (refused.unwrap_err(), changes(folder));
        assert!(refused.contains(part), "{refused}");
        assert_eq!(changes(folder), before);
    };
    let of_files = folder();
    create(&of_files, "/memories/f", &"x".repeat(FILE_BYTES_MAX)).unwrap();
    let more = json!({"command": "insert", "path": "/memories/f", "insert_line": 0, "insert_text": "y"});
    full(&of_files, say(&of_files, &more), "would have 65538 bytes, and a file may have at most 65536");

    let longest = format!("/memories/{}", "n".repeat(PATH_BYTES_MAX - "/memories/".len()));
    create(&of_files, &longest, "").unwrap();
    full(
        &of_files,
        create(&of_files, &format!("{longest}n"), ""),
        "has 257 bytes, and at most 256 are allowed",
    );
    // The rename of a directory also changes the paths of its files.
    create(&of_files, "/memories/d/file", "").unwrap();
    let to =
        json!({"command": "rename", "old_path": "/memories/d", "new_path": format!("{}", &longest[..255])});
    full(&of_files, say(&of_files, &to), "at most 256 are allowed");

    let of_count = folder();
    for number in 0..FILES_MAX {
        create(&of_count, &format!("/memories/{number}"), "x").unwrap();
    }
    full(&of_count, create(&of_count, "/memories/one-more", ""), "There are 256 files, and 256 are allowed");
    block_on(of_count.write("/memories/7", "another text")).unwrap();

    let of_bytes = folder();
    let whole = "x".repeat(FILE_BYTES_MAX);
    for number in 0..FOLDER_BYTES_MAX / FILE_BYTES_MAX {
        create(&of_bytes, &format!("/memories/{number}"), &whole).unwrap();
    }
    full(&of_bytes, create(&of_bytes, "/memories/more", "y"), "would have 1048577 bytes, and 1048576");
    create(&of_bytes, "/memories/empty", "").unwrap();
    let to = json!({"command": "rename", "old_path": "/memories/0", "new_path": "/memories/first"});
    say(&of_bytes, &to).unwrap();
    let error = block_on(of_bytes.write("/memories/more", "y")).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Invalid);
    assert!(error.to_string().starts_with("All files together"), "{error}");
}

#[test]
fn an_error_repeats_no_more_than_the_beginning_of_an_argument() {
    let folder = folder();
    create(&folder, "/memories/f", &"- \n".repeat(2_000)).unwrap();
    let old = "語".repeat(5_000);
    let replace = |old: &str| {
        let replace = json!({"command": "str_replace", "path": "/memories/f", "old_str": old, "new_str": ""});
        say(&folder, &replace).unwrap_err()
    };
    assert!(replace(&old).contains(&format!("old_str `{}…` did not", "語".repeat(1_000))));
    let expected: Vec<String> = (1..=20).map(|line| line.to_string()).collect();
    assert!(replace("- ").contains(&format!("in lines: {} and others. Please ensure", expected.join(", "))));
    assert!(replace("").contains("old_str is empty"));
    let bad = json!({"command": "view", "path": "/memories/f", "view_range": old});
    assert!(say(&folder, &bad).unwrap_err().len() < 3_500);
}

#[test]
fn a_call_of_a_run_is_executed_once() {
    let folder = folder();
    create(&folder, "/memories/f", "").unwrap();
    let tool = |run: &str| MemoryTool::new(folder.clone()).with_run_token(run);
    let insert = |text: &str| {
        json!({"command": "insert", "path": "/memories/f", "insert_line": 0, "insert_text": text}).to_string()
    };
    let lines = || block_on(folder.files()).unwrap()["/memories/f"].clone();
    for _ in 0..3 {
        answer(&tool("run-1"), "call_0", &insert("one")).unwrap();
    }
    assert_eq!(lines(), "one\n");
    // The call ids of some providers start anew with each run, or with each answer.
    answer(&tool("run-2"), "call_0", &insert("one")).unwrap();
    answer(&tool("run-2"), "call_0", &insert("two")).unwrap();
    answer(&tool("run-2"), "call_1", &insert("two")).unwrap();
    assert_eq!(lines(), "two\ntwo\none\none\n");
    // A repeated call gets its first answer, although the text no longer exists.
    let replace =
        json!({"command": "str_replace", "path": "/memories/f", "old_str": "two\ntwo", "new_str": "2"});
    let first = answer(&tool("run-3"), "c", &replace.to_string());
    assert_eq!(first, Ok("The memory file has been edited.\n     1\t2\n     2\tone\n     3\tone".into()));
    assert_eq!(answer(&tool("run-3"), "c", &replace.to_string()), first);
    assert_eq!(changes(&folder), 6);
    // Without a run id, each call is new.
    for _ in 0..2 {
        answer(&MemoryTool::new(folder.clone()), "call_0", &insert("again")).unwrap();
    }
    assert_eq!(lines(), "again\nagain\n2\none\none\n");
}

#[test]
fn a_version_has_its_text_and_its_time() {
    let store = Arc::new(MemoryStore::new());
    let at = |time: u64| {
        MemoryFolder::new(Arc::<MemoryStore>::clone(&store), SessionId::new("alice"))
            .with_clock(move || Timestamp(time))
    };
    block_on(at(10).write("/memories/a", "one")).unwrap();
    block_on(at(20).write("/memories/b", "other")).unwrap();
    say(&at(30), &json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/c"}))
        .unwrap();
    let versions = block_on(at(0).versions("/memories/a")).unwrap();
    let facts: Vec<_> = versions.iter().map(|it| (it.number.0, it.bytes, it.time.unwrap().0)).collect();
    assert_eq!(facts, [(0, Some(3), 10), (2, None, 30)]);
    let read = |path: &str, number: u64| block_on(at(0).read_version(path, Seq(number)));
    assert_eq!(read("/memories/c", 2).unwrap(), "one");
    for (path, number, why) in [
        ("/memories/a", 2, "the file was deleted"),
        ("/memories/a", 1, "that change was one of other files"),
        ("/memories/a", 9, "the folder has no such change"),
    ] {
        let error = read(path, number).unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::NotFound);
        assert!(error.to_string().contains(why), "{error}");
    }
    block_on(at(40).restore("/memories/a", Seq(0))).unwrap();
    assert_eq!(block_on(at(0).files()).unwrap()["/memories/a"], "one");
    assert_eq!(block_on(at(0).versions("/memories/a")).unwrap().len(), 3);

    let empty = folder();
    assert_eq!(block_on(empty.versions("/memories/a")).unwrap(), []);
    assert_eq!(
        block_on(empty.read_version("/memories/a", Seq(0))).unwrap_err().kind(),
        SessionErrorKind::NotFound
    );
}

#[test]
fn the_definition_has_each_command_and_each_argument() {
    let parameters = MemoryTool::definition().parameters;
    let commands = parameters["properties"]["command"]["enum"].as_array().unwrap().clone();
    assert_eq!(commands.len(), 6);
    let folder = folder();
    for command in commands {
        let mut missing = Vec::new();
        let mut arguments = json!({"command": command});
        // Each refusal names the next argument that is missing.
        while let Err(refusal) = say(&folder, &arguments) {
            let Some((_, named)) = refusal.split_once("missing field `") else { break };
            let name = named.split('`').next().unwrap().to_owned();
            arguments[&name] = if name == "insert_line" { json!(0) } else { json!("/memories") };
            missing.push(name);
        }
        assert!(!missing.is_empty(), "{command} needs arguments");
        assert!(missing.iter().all(|name| parameters["properties"].get(name).is_some()), "{missing:?}");
    }
}
