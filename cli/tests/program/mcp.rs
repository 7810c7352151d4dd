//! `mcp`: the functions of the program for agents, over the Model Context Protocol.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::homes::{Home, three};
use super::support::*;

/// A client after the initialization of the connection.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    fn new(mut command: std::process::Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, stdin, stdout, asked: 0 };
        let client_info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info});
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "epitome", "{answer}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
        self.stdin.flush().unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer
    }

    /// The text of a result, and whether it is an error.
    fn call(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let result = self.ask("tools/call", json!({"name": name, "arguments": arguments}))["result"].clone();
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        (text, result["isError"] == true)
    }

    fn ok(&mut self, name: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(name, arguments);
        assert!(!is_error, "{text}");
        text
    }

    fn fails(&mut self, name: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(name, arguments);
        assert!(is_error, "{text}");
        text
    }

    /// Closes the connection, and returns the exit code.
    fn end(self) -> Option<i32> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().unwrap().code()
    }
}

#[test]
fn an_agent_searches_reads_and_previews() {
    let home = Home::new();
    let [_, codex, _] = three(&home);
    let before = read(&codex);
    let mut client = Client::new(home.program(&["mcp"]));
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["recall_history", "list_sessions", "session_stats", "preview_compaction"]);
    assert!(
        tools.as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true),
        "{tools}"
    );

    let found = client.ok("recall_history", json!({"query": "codex asks", "limit": 1}));
    assert!(
        found.starts_with("[recalled: the nearest of 4 messages in 3 sessions. This is a record"),
        "{found}"
    );
    assert!(
        found.contains("\ncodex-session #0 (codex, /elsewhere/part, 1970-01-01) user: codex asks\n"),
        "{found}"
    );
    let told = client.ok("recall_history", json!({"session": "codex-session", "messages": 0}));
    assert!(told.contains("\n#0 user: codex asks\n"), "{told}");
    let listed = client.ok("list_sessions", json!({}));
    assert!(listed.contains("codex-session") && listed.contains("gemini-session"), "{listed}");
    assert!(!client.ok("list_sessions", json!({"limit": 1})).contains("codex-session"));
    let stats = client.ok("session_stats", json!({"session": "codex-session"}));
    assert!(stats.starts_with("1 message, 1 turn"), "{stats}");
    let preview = client
        .ok("preview_compaction", json!({"session": "codex-session", "keep": "50%", "strategy": "truncate"}));
    assert!(preview.contains("strategy  truncate"), "{preview}");
    assert_eq!(read(&codex), before);
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_wrong_call_is_told_what_to_do_and_reaches_nothing_else() {
    let home = Home::new();
    three(&home);
    let out = home.folder.path("out");
    let secret = home.file("secret.json", &json!(messages(1)).to_string(), 1);
    let secret = text(&secret);
    let mut client = Client::new(home.program(&["mcp", "--project", "shop"]));
    for (name, arguments, expected) in [
        (
            "recall_history",
            json!({}),
            "give \"query\", words to search for, or \"session\" and \"messages\" to read",
        ),
        ("recall_history", json!({"query": "  "}), "give \"query\""),
        ("recall_history", json!({"query": {"a": 1}}), "\"query\" is a text"),
        ("recall_history", json!({"messages": "1"}), "\"session\" is missing"),
        (
            "recall_history",
            json!({"session": "claude-session", "messages": "x"}),
            "expected the number of a message",
        ),
        (
            "recall_history",
            json!({"query": "one", "role": "root"}),
            "invalid value 'root' for '--role <ROLE>'",
        ),
        (
            "recall_history",
            json!({"query": "one", "project": "/other"}),
            "there is no argument \"project\": recall_history has ",
        ),
        (
            "preview_compaction",
            json!({"session": "claude-session", "output": "x"}),
            "there is no argument \"output\"",
        ),
        ("session_stats", json!({}), "\"session\" is missing: list_sessions and recall_history tell it"),
        // Sessions of another project, and files, are not accessible.
        ("session_stats", json!({"session": "codex-session"}), "there is no session \"codex-session\" here"),
        ("session_stats", json!({"session": secret}), "there is no session"),
        ("preview_compaction", json!({"session": secret}), "there is no session"),
        ("preview_compaction", json!({"session": "claude-session", "keep": "all"}), "expected a share"),
        ("preview_compaction", json!({"session": "claude-session", "strategy": "nope"}), "nope"),
    ] {
        let error = client.fails(name, arguments.clone());
        assert!(error.contains(expected), "{name} {arguments}: {error}");
    }
    let listed = client.ok("list_sessions", json!({}));
    assert!(listed.contains("claude-session") && !listed.contains("codex-session"), "{listed}");
    // An option in a text has no effect, and unknown options are not evaluated.
    let option = format!("--output={}", text(&out));
    client.ok("recall_history", json!({"query": option}));
    // Models fill in optional arguments without need.
    client.ok("recall_history", json!({"query": "one", "from": 0, "messages": "", "session": null}));
    client
        .ok("recall_history", json!({"query": "", "session": "claude-session", "messages": "0", "limit": 8}));
    client.fails(
        "preview_compaction",
        json!({"session": "claude-session", "strategy": format!("truncate {option}")}),
    );
    assert!(!out.exists());
    let none = client.ok("recall_history", json!({"query": "codex"}));
    assert_eq!(none, "None of 2 messages in 1 session has these words.");
    // A request with an unknown tool or method, or without JSON, does not end the server.
    assert!(
        client.ask("tools/call", json!({"name": "erase", "arguments": {}}))["error"]["message"].is_string()
    );
    assert!(client.ask("nobody/knows", json!({}))["error"]["code"].is_i64());
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn the_sessions_of_a_store_are_served_without_its_secrets() {
    let folder = Folder::new();
    let store = format!("jsonl:{}", folder.path("store").display());
    let secret = "ghp_0123456789abcdefABCDEF0123456789abcd";
    let mut said = messages(6);
    said.push(json!({"role": "user", "content": format!("remember the token {secret}\u{e0041}")}));
    let file = folder.file("one", serde_json::to_string(&said).unwrap());
    run(&["session", "import", text(&file), "--store", &store, "--session", "one"]).ok();
    run(&["session", "import", text(&file), "--store", &store, "--session", &format!("two {secret}")]).ok();
    let mut client = Client::new(program(&["mcp", "--store", &store, "--redact"]));
    let found = client.ok("recall_history", json!({"query": "token", "role": "user"}));
    assert!(found.contains("remember the token [redacted:") && !found.contains(secret), "{found}");
    // A model never receives invisible characters.
    assert!(!found.contains('\u{e0041}'), "{found}");
    assert!(client.ok("list_sessions", json!({})).contains("one"));
    assert!(!client.ok("list_sessions", json!({"limit": 1})).contains("two"));
    assert!(!client.ok("list_sessions", json!({})).contains(secret));
    assert_eq!(client.ok("recall_history", json!({"query": "token", "role": "user", "age": "1h"})), found);
    let preview = client.ok("preview_compaction", json!({"session": "one", "keep": "30%"}));
    assert!(preview.contains("tokens"), "{preview}");
    assert!(client.fails("session_stats", json!({"session": "one"})).contains("list_sessions has the sizes"));
    assert_eq!(client.end(), Some(0));
    // Nothing was compacted.
    let listed = run(&["session", "list", "--store", &store, "--json"]).json();
    assert_eq!(listed[0]["messages"], listed[0]["live_messages"]);
    assert!(run(&["mcp", "--redact-list", "/nowhere"]).fails(4).contains("/nowhere"));
    assert!(run(&["mcp", "--store", "sqlite:/nowhere/s.db"]).fails(2).contains("--store: there is no "));
    // A client that disconnects without a request.
    assert_eq!(run(&["mcp"]).ok(), "");
}
