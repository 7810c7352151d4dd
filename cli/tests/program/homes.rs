//! `sessions` and `latest`: the sessions that agents have left in a home folder.

use core::time::Duration;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::support::*;

/// The variables that name the folders of agents' sessions.
const VARIABLES: [&str; 7] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "CONTINUE_GLOBAL_DIR",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "PI_CODING_AGENT_DIR",
    "XDG_CONFIG_HOME",
];

/// A home folder with the folder of a project.
pub(crate) struct Home {
    pub(crate) folder: Folder,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir_all(folder.path("work/shop")).unwrap();
        fs::create_dir_all(folder.path("idle")).unwrap();
        Self { folder }
    }

    pub(crate) fn project(&self) -> PathBuf {
        fs::canonicalize(self.folder.path("work/shop")).unwrap()
    }

    /// Writes a file with a modification time of `written` seconds after 1970.
    pub(crate) fn file(&self, name: &str, content: &str, written: u64) -> PathBuf {
        let path = self.folder.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(written)).unwrap();
        path
    }

    /// Runs the program in `folder`, with this home folder.
    pub(crate) fn run_in(&self, folder: &Path, args: &[&str]) -> Done {
        done(self.program(args).current_dir(folder))
    }

    /// The program with this home folder.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = program(args);
        command.env("HOME", self.folder.path(""));
        for name in VARIABLES {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.run_in(&self.folder.path("idle"), args)
    }
}

pub(crate) fn claude(cwd: &Path, said: &[&str]) -> String {
    let line = |(at, said): (usize, &&str)| {
        let parent = at.checked_sub(1).map(|before| format!("u{before}"));
        let message = json!({"role": "user", "content": said});
        let line = json!({"parentUuid": parent, "isSidechain": false, "cwd": cwd, "sessionId": "claude-session",
            "type": "user", "message": message, "uuid": format!("u{at}"), "timestamp": "2026-01-01T00:00:00Z"});
        format!("{line}\n")
    };
    said.iter().enumerate().map(line).collect()
}

pub(crate) fn codex(cwd: &Path) -> String {
    let item =
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "codex asks"}]});
    let lines = [
        json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "codex-session", "cwd": cwd}}),
        json!({"timestamp": "t", "type": "response_item", "payload": item}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

fn gemini() -> String {
    let message = json!({"id": "1", "timestamp": "t", "type": "user", "content": "gemini asks"});
    let head = r#"{"sessionId": "gemini-session", "projectHash": "h", "startTime": "t", "lastUpdated": "t", "messages": "#;
    format!("{head}[{message}]}}")
}

const CODEX: &str = ".codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-codex-session.jsonl";

/// A session of Gemini CLI as newer versions write it: a line for each record.
fn gemini_lines() -> String {
    let lines = [
        json!({"sessionId": "newer", "projectHash": "h", "startTime": "t", "lastUpdated": "t", "kind": "main"}),
        json!({"id": "1", "timestamp": "t", "type": "user", "content": [{"text": "gemini asks"}]}),
        json!({"$set": {"lastUpdated": "t"}}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// A session of each agent, with that of Gemini CLI as the newest; and files that are no sessions.
pub(crate) fn three(home: &Home) -> [PathBuf; 3] {
    let shop = home.project();
    home.file(".claude/projects/-work-shop/agent-1.jsonl", &claude(&shop, &["sub-agent"]), 9_000);
    home.file(".claude/projects/-work-shop/deep/x.jsonl", &claude(&shop, &["too deep"]), 9_000);
    home.file(".claude/projects/-work-shop/notes.txt", "no session", 9_000);
    home.file(".gemini/tmp/abc/logs.json", "[]", 9_000);
    home.file(".codex/sessions/2026/01/02/other.jsonl", "{}", 9_000);
    home.file(".gemini/tmp/abc/.project_root", "/elsewhere\n", 9_000);
    [
        home.file(".gemini/tmp/abc/chats/session-1.json", &gemini(), 3_000),
        home.file(CODEX, &codex(Path::new("/elsewhere/part")), 2_000),
        home.file(".claude/projects/-work-shop/c.jsonl", &claude(&shop, &["one", "two"]), 1_000),
    ]
}

#[test]
fn newer_sessions_of_gemini_are_listed_and_compacted() {
    let home = Home::new();
    let path = home.file(".gemini/tmp/shop/chats/session-2.jsonl", &gemini_lines(), 3_000);
    let rows = home.run(&["sessions", "--json"]).json();
    let row = ["tool", "project", "id", "messages"].map(|name| rows[0][name].clone());
    assert_eq!(row, [json!("gemini-cli"), json!("shop"), json!("newer"), json!(1)]);
    let out = home.folder.path("out.jsonl");
    let said = |at: usize| {
        let kind = if at.is_multiple_of(2) { "gemini" } else { "user" };
        format!("{}\n", json!({"id": format!("m{at}"), "type": kind, "content": "word ".repeat(200)}))
    };
    let lines = format!("{}{}", gemini_lines(), (0..7).map(said).collect::<String>());
    home.file(".gemini/tmp/shop/chats/session-2.jsonl", &lines, 4_000);
    home.run(&["compact", text(&path), "--keep", "50%", "-o", text(&out)]).ok();
    let written = fs::read_to_string(&out).unwrap();
    assert!(written.starts_with(&lines) && written.matches("\"$set\"").count() == 2, "{written}");
    let stats = home.run(&["stats", text(&out), "--json"]).json();
    let dropped = stats["session"]["compactions"][0]["messages_dropped"].as_u64().unwrap();
    assert!(dropped > 0 && stats["messages"].as_u64().unwrap() + dropped == 8, "{stats}");
}

/// A session of an agent: its name, the path in the home, the text, and the project, id and messages in a list.
type Left = (&'static str, String, String, String, &'static str, u64);

/// A session of each agent that is not among [`three`], all about `needle`; and files that are no sessions.
fn others(home: &Home) -> Vec<Left> {
    let shop = text(&home.project()).to_owned();
    let slug = shop.trim_start_matches('/').replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let lines = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let user = json!({"role": "user", "content": [{"type": "text", "text": "the needle"}]});
    let pi = lines(&[
        json!({"type": "session", "id": "pi-session", "timestamp": "t", "cwd": shop}),
        json!({"type": "message", "id": "a", "parentId": null, "timestamp": "t", "message": user}),
    ]);
    let copilot = |id: &str| {
        let start =
            json!({"sessionId": id, "version": 1, "producer": "copilot-agent", "context": {"cwd": shop}});
        lines(&[
            json!({"type": "session.start", "data": start, "id": "e0", "timestamp": "t", "parentId": null}),
            json!({"type": "user.message", "data": {"content": "the needle"}, "id": "e1", "timestamp": "t"}),
        ])
    };
    let query = json!({"content": [{"type": "text", "text": "<user_query>\nthe needle\n</user_query>"}]});
    let cursor = lines(&[json!({"role": "user", "message": query})]);
    let uri = format!("file://{}", shop.replace('o', "%6F"));
    let message = json!({"message": {"role": "user", "content": "the needle"}, "contextItems": []});
    let of_continue = format!(
        "{{\n  \"sessionId\": \"continue-session\",\n  \"title\": \"t\",\n  \"workspaceDirectory\": {},\n  \"history\": {}\n}}",
        json!(uri),
        json!([message])
    );
    let task = json!([{"role": "user", "content": [{"type": "text", "text": "<task>\nthe needle\n</task>"}], "ts": 1}]);
    let extensions = ".config/Code/User/globalStorage";
    home.file(".continue/sessions/sessions.json", "[]", 9_000);
    home.file(&format!(".cursor/projects/{slug}/agent-transcripts/c2/subagents/s.jsonl"), &cursor, 9_000);
    home.file(".copilot/session-state/new-copilot/workspace.yaml", "id: 1", 9_000);
    let left = [
        ("pi", ".pi/agent/sessions/--shop--/2026_pi.jsonl".to_owned(), pi, &shop, "pi-session"),
        (
            "copilot-cli",
            ".copilot/session-state/d/events.jsonl".to_owned(),
            copilot("new-copilot"),
            &shop,
            "new-copilot",
        ),
        (
            "copilot-cli",
            ".copilot/session-state/old.jsonl".to_owned(),
            copilot("old-copilot"),
            &shop,
            "old-copilot",
        ),
        (
            "cursor",
            format!(".cursor/projects/{slug}/agent-transcripts/c1.jsonl"),
            cursor.clone(),
            &slug,
            "c1",
        ),
        ("cursor", format!(".cursor/projects/{slug}/agent-transcripts/c2/c2.jsonl"), cursor, &slug, "c2"),
        ("continue", ".continue/sessions/x.json".to_owned(), of_continue, &shop, "continue-session"),
        (
            "cline",
            format!("{extensions}/saoudrizwan.claude-dev/tasks/17/api_conversation_history.json"),
            task.to_string(),
            &String::new(),
            "17",
        ),
        (
            "cline",
            format!("{extensions}/rooveterinaryinc.roo-cline/tasks/18/api_conversation_history.json"),
            task.to_string(),
            &String::new(),
            "18",
        ),
    ];
    left.map(|(tool, path, text, project, id)| (tool, path, text, project.clone(), id, 1)).into()
}

#[test]
fn sessions_of_every_agent_are_listed_found_and_read() {
    let home = Home::new();
    let others = others(&home);
    let mut wanted = Vec::new();
    for (at, (tool, path, text, project, id, messages)) in (0..).zip(&others) {
        let path = home.file(path, text, 5_000 - at);
        wanted.push(json!([tool, path, project, id, messages]));
    }
    let rows = home.run(&["sessions", "--json"]).json();
    let row =
        |row: &Value| json!(["tool", "path", "project", "id", "messages"].map(|name| row[name].clone()));
    assert_eq!(rows.as_array().unwrap().iter().map(row).collect::<Vec<_>>(), wanted, "{rows}");

    // All sessions except those without a recorded project.
    let shop = home.run_in(&home.folder.path("work"), &["sessions", "--json", "--project", "./shop"]).json();
    assert_eq!(shop.as_array().unwrap().iter().map(row).collect::<Vec<_>>(), wanted[..6], "{shop}");

    for (tool, _, _, _, id, _) in &others {
        let found = home.run(&["search", "needle", "--session", id, "--json"]).json();
        assert_eq!((&found[0]["tool"], &found[0]["session"]), (&json!(tool), &json!(id)), "{found}");
        assert!(found[0]["text"].as_str().unwrap().contains("the needle"), "{found}");
    }
    let latest = home.run(&["show", "latest"]);
    assert!(latest.err.contains("(pi)") && latest.out.contains("the needle"), "{}{}", latest.err, latest.out);
}

#[test]
fn sessions_are_listed_newest_first() {
    let home = Home::new();
    let paths = three(&home);
    let rows = home.run(&["sessions", "--json"]).json();
    let row = |at: usize| {
        ["tool", "project", "id", "messages", "last_written", "path"].map(|name| rows[at][name].clone())
    };
    let row_of = |tool, project: &str, id, messages: u64, written, path: &Path| {
        [json!(tool), json!(project), json!(id), json!(messages), json!(written), json!(path)]
    };
    assert_eq!(rows.as_array().unwrap().len(), 3, "{rows}");
    let (time, shop) = (|minute| format!("1970-01-01T00:{minute}Z"), home.project());
    assert_eq!(row(0), row_of("gemini-cli", "/elsewhere", "gemini-session", 1, time("50:00"), &paths[0]));
    assert_eq!(row(1), row_of("codex", "/elsewhere/part", "codex-session", 1, time("33:20"), &paths[1]));
    assert_eq!(row(2), row_of("claude-code", text(&shop), "claude-session", 2, time("16:40"), &paths[2]));

    let said = home.run(&["sessions", "--limit", "1"]).ok();
    assert!(
        said.starts_with("1970-01-01 00:50  gemini-cli         1 message  /elsewhere\n    gemini-session\n"),
        "{said}"
    );
    assert!(said.ends_with("; 2 older: --limit 0 lists all\n"), "{said}");
    let ids = |project: &str| {
        let rows = home.run(&["sessions", "--json", "--project", project]).json();
        rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("/elsewhere"), ["gemini-session", "codex-session"]);
    assert_eq!(
        (ids("part"), ids("shop"), ids("../work/shop")),
        (
            vec!["codex-session".to_owned()],
            vec!["claude-session".to_owned()],
            vec!["claude-session".to_owned()],
        )
    );
}

#[test]
fn conversations_that_do_not_go_on_are_counted_apart() {
    let home = Home::new();
    let shop = home.project();
    let asked_anew = claude(&shop, &["one", "two"]) + &claude(&shop, &["other"]).replace("\"u0\"", "\"u2\"");
    home.file(".claude/projects/-work-shop/c.jsonl", &asked_anew, 1_000);
    home.file(CODEX, &codex(&shop), 2_000);
    let rows = home.run(&["sessions", "--json"]).json();
    let counted = |at: usize| ["messages", "other_conversations"].map(|name| rows[at][name].clone());
    assert_eq!((counted(0), counted(1)), ([json!(1), json!(0)], [json!(1), json!(1)]), "{rows}");
}

#[test]
fn a_file_that_cannot_be_read_is_listed_as_such() {
    let home = Home::new();
    three(&home);
    let broken = home.file(".claude/projects/p\u{1b}[31m/b.jsonl", &format!("{{\"{SECRET}\n{SECRET}"), 5_000);
    let rows = home.run(&["sessions", "--json"]).json();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["path"]), (4, &json!(broken)));
    assert_eq!(rows[0]["messages"], Value::Null);
    assert!(rows[0]["error"].as_str().unwrap().contains("line 1"), "{rows}");
    let said = home.run(&["sessions"]).ok();
    assert!(said.contains("unreadable  (no project)\n    b\n"), "{said}");
    assert!(said.contains("␛[31m") && !said.contains('\u{1b}') && !said.contains(SECRET), "{said}");
}

#[test]
fn an_unfinished_last_line_is_no_message_of_a_list() {
    let home = Home::new();
    let said = claude(&home.project(), &["one", "two"]);
    home.file(".claude/projects/-work-shop/c.jsonl", &format!("{said}{{\"parentUuid\":\"u1\",\"mess"), 5_000);
    let row = &home.run(&["sessions", "--json"]).json()[0];
    assert_eq!((&row["messages"], &row["error"]), (&json!(2), &Value::Null));
}

#[test]
fn a_home_without_sessions_is_told() {
    let home = Home::new();
    let said = home.run(&["sessions"]).fails(1);
    for part in
        ["no sessions in ", ".claude/projects", ".codex/sessions", ".gemini/tmp", ".config; ", "CODEX_HOME"]
    {
        assert!(said.contains(part), "{said}");
    }
    let said = home.run(&["stats", "latest"]).fails(2);
    assert!(said.starts_with("epitome: latest: no sessions in "), "{said}");
    three(&home);
    let said = home.run(&["sessions", "--project", "nowhere"]).fails(1);
    assert!(said.contains("no sessions of the project nowhere in"), "{said}");
}

#[test]
fn latest_is_the_newest_of_the_project_or_of_all() {
    let home = Home::new();
    let [gemini, codex, claude] = three(&home);
    let took = |done: Done, path: &Path, said: &str| {
        assert!(done.err.starts_with(&format!("epitome: latest is {} (", text(path))), "{}", done.err);
        assert!(done.out.contains(said), "{}{}", done.err, done.out);
        assert_eq!(done.code, 0);
    };
    took(home.run(&["show", "latest"]), &gemini, "gemini asks");
    took(home.run_in(&home.project(), &["show", "latest"]), &claude, "two");
    took(home.run(&["show", "latest", "--project", "/elsewhere/part"]), &codex, "codex asks");
    took(home.run(&["stats", "latest", "--project", "shop"]), &claude, "2 messages, ");
    took(home.run(&["bench", "latest", "--project", "shop"]), &claude, "2 messages in ");
    took(home.run(&["convert", "latest", "--to", "openai-chat"]), &gemini, "gemini asks");
    took(home.run(&["compact", "latest", "--keep", "50%"]), &gemini, "was       1 message");

    let own = home.file("idle/latest", r#"[{"role":"user","content":"a file of that name"}]"#, 1);
    took(home.run(&["show", "latest"]), &gemini, "gemini asks");
    let said = home.run(&["show", "./latest"]).ok();
    assert!(said.contains("a file of that name"));
    let said = home.run(&["show", text(&own), "--project", "shop"]).fails(2);
    assert!(said.contains("give `latest` as FILE"), "{said}");
}

#[test]
fn agents_may_have_other_homes() {
    let home = Home::new();
    three(&home);
    let other = Home::new();
    other.file("projects/p/o.jsonl", &claude(&other.project(), &["other"]), 7_000);
    other.file("sessions/2026/01/02/rollout-1.jsonl", &codex(Path::new("/o")), 6_000);
    other.file(".gemini/tmp/p/chats/session-2.json", &gemini(), 5_000);
    for (_, path, left, ..) in others(&other) {
        for folder in [".pi/agent/", ".copilot/", ".continue/", ".config/"] {
            if let Some(path) = path.strip_prefix(folder) {
                other.file(path, &left, 4_000);
            }
        }
    }
    let mut command = program(&["sessions", "--json"]);
    for name in VARIABLES {
        command.env(name, other.folder.path(""));
    }
    let rows = done(command.env("HOME", home.folder.path(""))).json();
    let all = rows.as_array().unwrap();
    let inside = |row: &Value| row["path"].as_str().unwrap().starts_with(text(&other.folder.path("")));
    assert!(all.len() == 9 && all.iter().all(inside), "{rows}");
    assert_eq!(all[2]["project"], "p", "without a note, the folder's name");
}

#[test]
fn what_is_no_regular_file_is_listed_and_never_opened() {
    let home = Home::new();
    let said = claude(&home.project(), &["go"]);
    home.file(".claude/projects/shop/one.jsonl", &said, 10);
    fs::create_dir_all(home.folder.path(".gemini/tmp/shop/chats")).unwrap();
    for name in [".claude/projects/shop/pipe.jsonl", ".gemini/tmp/shop/.project_root"] {
        let made = Command::new("mkfifo").arg(home.folder.path(name)).status().unwrap();
        assert!(made.success());
    }
    let session =
        r#"{"sessionId":"g","projectHash":"p","messages":[{"id":"1","type":"user","content":"go"}]}"#;
    home.file(".gemini/tmp/shop/chats/session-1.json", session, 5);
    symlink("/dev/zero", home.folder.path(".claude/projects/shop/zero.jsonl")).unwrap();
    let rows = home.run(&["sessions", "--json"]).json();
    let of = |name: &str| {
        let is = |row: &&Value| row["path"].as_str().unwrap().ends_with(name);
        rows.as_array().unwrap().iter().find(is).unwrap().clone()
    };
    for name in ["pipe.jsonl", "zero.jsonl"] {
        assert!(of(name)["error"].as_str().unwrap().starts_with("not a regular file"), "{rows}");
    }
    assert_eq!((&of("one.jsonl")["messages"], &of("session-1.json")["messages"]), (&json!(1), &json!(1)));
    let latest = home.run(&["show", "latest"]).ok();
    assert!(latest.contains("go"), "{latest}");
}

#[test]
fn a_file_that_is_too_large_for_a_list_says_so() {
    let home = Home::new();
    let path =
        home.file(".gemini/tmp/shop/chats/session-1.json", r#"{"sessionId":"s","projectHash":"p"}"#, 5);
    File::options().write(true).open(path).unwrap().set_len((256 << 20) + 1).unwrap();
    let rows = home.run(&["sessions", "--json"]).json();
    assert_eq!(rows[0]["error"], "larger than 256.00 MiB: only a command that is given it as FILE reads it");
}

#[test]
fn a_line_that_is_too_long_for_a_list_says_so() {
    let home = Home::new();
    let project = home.project();
    for (name, size, line) in [("empty", 3 << 30, 1), ("begun", 64 << 20, 2)] {
        let begin = if line == 1 {
            String::new()
        } else {
            claude(&project, &["Hi."]).lines().next().unwrap().to_owned() + "\n"
        };
        let path = home.file(&format!(".claude/projects/shop/{name}.jsonl"), &begin, 5);
        File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
        let rows = home.run(&["sessions", "--json"]).json();
        let said = rows[0]["error"].as_str().unwrap();
        let wanted = format!("line {line} is longer than the 33554432 bytes that a line may have: ");
        assert!(said.contains(&wanted), "{said}");
        assert!(said.ends_with("; to read it all the same, give it as FILE"), "{said}");
        fs::remove_file(path).unwrap();
    }
}
