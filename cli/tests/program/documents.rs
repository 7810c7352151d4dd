//! Every command line in README and docs runs, and prints the output that the document shows.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::compactors::StrategySpec;

use crate::samples::TARGETS;
use crate::summarizer::{Endpoint, answer};
use crate::support::*;

/// Command lines that the test skips, each with the reason.
const SKIPPED: [(&str, &str); 7] = [
    ("epitome hook", "reads an event of Claude Code; hook.rs has some"),
    ("epitome compact", "names a command without its arguments"),
    ("epitome stats", "names a command without its arguments"),
    ("epitome session ...", "names a family of commands"),
    ("epitome session .. --key-file FILE", "names an option of a family of commands"),
    ("epitome session import", "names a command without its arguments"),
    ("epitome session export", "names a command without its arguments"),
];

/// README and the files of docs.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = vec![root.join("README.md")];
    all.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    all.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    all
}

/// The command lines of a document: lines of shell blocks, and code in the text.
fn command_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, block) in text.split("```").enumerate() {
        match at % 2 {
            1 if block.starts_with("sh\n") => lines.extend(block.lines().skip(1).filter_map(command)),
            1 => {}
            _ => lines.extend(block.split('`').skip(1).step_by(2).filter_map(command)),
        }
    }
    lines
}

/// The command line of the program in `line`, if there is one.
fn command(line: &str) -> Option<String> {
    let line = line.replace('\n', " ");
    let line = line.trim().trim_start_matches("./");
    let cargo = line.strip_prefix("cargo run -p epitome-cli -- ").map(|rest| format!("epitome {rest}"));
    cargo.or_else(|| line.starts_with("epitome ").then(|| line.to_owned()))
}

/// A folder with the files that the documents name.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("examples")).unwrap();
    for name in ["examples/coding-agent.json", "run.json", "chat.json", "small.json", "FILE"] {
        fs::copy(example("coding-agent.json"), folder.path(name)).unwrap();
    }
    let export = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds/wire_chatgpt/conversations.json");
    fs::copy(export, folder.path("conversations.json")).unwrap();
    let key = folder.file("key", "ab".repeat(32));
    #[cfg(unix)]
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    #[cfg(not(unix))]
    drop(key);
    let session = folder.path(".claude/projects/p/one.jsonl");
    fs::create_dir_all(session.parent().unwrap()).unwrap();
    fs::write(
        session,
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":"Hi in a few words"}}"#,
    )
    .unwrap();
    let old = format!("sqlite:{}", text(&folder.path("old.db")));
    run(&["session", "import", text(&folder.path("run.json")), "--store", &old, "--session", "two"]).ok();
    folder
}

/// The command lines of a document that are followed by their output, with this output.
fn printed(text: &str) -> Vec<(String, &str)> {
    let blocks: Vec<&str> = text.split("```").collect();
    let of = |three: &[&'_ str]| {
        let [shell, between, _] = three else { return None };
        let line = shell.strip_prefix("sh\n").filter(|_| between.trim().is_empty())?;
        command(line)
    };
    let shells = blocks.windows(3).enumerate().filter(|(at, _)| at % 2 == 1);
    shells.filter_map(|(_, three)| Some((of(three)?, three[2].strip_prefix("text\n")?))).collect()
}

fn runs(folder: &Folder, document: &Path, line: &str) -> Done {
    let (line, comment) = line.split_once(" #").unwrap_or((line, ""));
    let words: Vec<_> =
        line.split(' ').skip(1).map(|word| word.trim_matches('"')).filter(|word| !word.is_empty()).collect();
    // Another document may have written this file.
    if let Some(out) = words.iter().skip_while(|word| **word != "-o").nth(1) {
        let _ = fs::remove_file(folder.path(out));
    }
    let mut command = program(&words);
    command.current_dir(folder.path("")).env("HOME", folder.path("")).env_remove("CLAUDE_CONFIG_DIR");
    let done = done(&mut command);
    assert_eq!(done.code, 0, "{}: `{line}` {comment}: {}", document.display(), done.err);
    done
}

/// The rows of the table of parameters: the parameter and its shorter name, its strategies, and its default.
fn parameters() -> Vec<(Vec<String>, Vec<String>, String)> {
    let text = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/program.md"));
    let rows = text.lines().skip_while(|line| !line.starts_with("| parameter |")).skip(2);
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        (names(cells[1]), names(cells[2]), cells[4].to_owned())
    };
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

/// The table has every parameter of every strategy once. To give a default explicitly changes nothing in a compaction.
#[test]
fn the_table_of_parameters_is_the_programs() {
    let rows = parameters();
    let mut listed: Vec<_> =
        rows.iter().flat_map(|(names, of, _)| of.iter().map(|of| format!("{of}:{}", names[0]))).collect();
    let known = StrategySpec::known();
    let mut known: Vec<_> =
        known.flat_map(|(of, names)| names.map(move |name| format!("{of}:{name}"))).collect();
    listed.sort();
    known.sort();
    assert_eq!(listed, known);
    let file = example("coding-agent.json");
    let compact = |spec: &str| {
        let model = Endpoint::new(vec![answer("Goal: to mend it.")]);
        let args = ["compact", text(&file), "--keep", "30%", "--json", "--strategy", spec];
        match spec.contains("summarize") {
            true => run(&[&args[..], &["--summarizer", &model.url, "--summary-model", "small"]].concat()),
            false => run(&args),
        }
    };
    // The report repeats the strategies of the command line.
    let report = |spec: &str| {
        let mut report = compact(spec).json();
        report.as_object_mut().unwrap().remove("strategies");
        report
    };
    for (names, of, default) in rows {
        for of in of {
            let needs = match of.as_str() {
                "reasoning" if names[0] != "profile" => ":profile=anthropic",
                "context-window" if names[0] != "window" => ":window=9000:max-output=100",
                _ => "",
            };
            match default.as_str() {
                "required" => {
                    let done = compact(&of);
                    assert!(done.code == 2 && done.err.contains("needs its"), "{of}: {}", done.err);
                }
                "" | "none" | "all" => {}
                default => {
                    let all = |name: &str| report(&format!("{of}{needs}:{name}={default}"));
                    let without = report(&format!("{of}{needs}"));
                    assert!(names.iter().all(|name| all(name) == without), "{of}:{names:?}={default}");
                }
            }
        }
    }
}

#[test]
fn command_lines_run() {
    let folder = folder();
    let mut found = 0;
    for document in documents() {
        for line in command_lines(&read(&document)) {
            if SKIPPED.iter().any(|(skipped, _)| *skipped == line) {
                continue;
            }
            found += 1;
            match line.contains("FORMAT") {
                true => {
                    TARGETS.iter().for_each(|to| drop(runs(&folder, &document, &line.replace("FORMAT", to))))
                }
                false => drop(runs(&folder, &document, &line)),
            }
        }
    }
    assert!(found >= 12, "{found} command lines");
}

#[test]
fn command_lines_print_what_stands_behind_them() {
    let (folder, mut found) = (folder(), 0);
    for document in documents() {
        for (line, expected) in printed(&read(&document)) {
            let done = runs(&folder, &document, &line);
            assert_eq!((done.out + &done.err).trim(), expected.trim(), "{}: `{line}`", document.display());
            found += 1;
        }
    }
    assert!(found >= 1, "README's first command");
}
