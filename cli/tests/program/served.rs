//! `session inspect`: the answers of the server, and the requests that it refuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::support::*;

/// A server that ends with the test.
struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    /// `/TOKEN/`.
    path: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn new(store: &str, more: &[&str]) -> Self {
        let mut command = program(&[&["session", "inspect", "--store", store], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim_end().strip_prefix("http://").unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        Self { child, host: host.to_owned(), path: format!("/{path}") }
    }

    fn send(&self, method: &str, path: &str, host: &str) -> Reply {
        let mut stream = TcpStream::connect(&*self.host).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, what: &str) -> Reply {
        self.send("GET", &format!("{}{what}", self.path), &self.host)
    }

    fn json(&self, what: &str) -> Value {
        let reply = self.get(what);
        assert_eq!(reply.status, 200, "{what}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    fn refuses(&self, what: &str) -> String {
        let reply = self.get(what);
        assert_eq!(reply.status, 400, "{what}: {}", reply.body);
        serde_json::from_str::<Value>(&reply.body).unwrap()["error"].as_str().unwrap().to_owned()
    }
}

/// A store with a session "one" of the example, and a function that runs `session` commands on it.
fn stored(folder: &Folder) -> (String, impl Fn(&[&str]) -> Done) {
    let store = format!("sqlite:{}", text(&folder.path("s.db")));
    let with = store.clone();
    let session = move |args: &[&str]| {
        let (command, more) = args.split_first().unwrap();
        run(&[&["session", command, "--store", &with, "--session", "one"], more].concat())
    };
    session(&["import", text(&example("coding-agent.json"))]).ok();
    (store, session)
}

#[test]
fn it_says_what_the_other_commands_say() {
    let folder = Folder::new();
    let (store, session) = stored(&folder);
    session(&["compact", "--keep", "15%", "--strategy", "agent"]).ok();
    session(&["clear"]).ok();
    session(&["uncompact"]).ok();
    let server = Server::new(&store, &["--session", "one"]);
    assert_eq!(server.json("sessions"), run(&["session", "list", "--store", &store, "--json"]).json());
    assert_eq!(server.json("head?session=one"), json!({"messages": 74, "revision": 3}));

    let page = server.json("messages?session=one&number=0");
    let log = session(&["log", "--json"]).ok();
    let log: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = page["messages"].as_array().unwrap();
    assert_eq!((rows.len(), &page["next"]), (74, &Value::Null));
    for (row, logged) in rows.iter().zip(&log) {
        for key in ["seq", "anchor", "turn", "tokens", "hidden_by", "edited_by"] {
            assert_eq!(row[key], logged[key], "{key}");
        }
        assert_eq!(row["role"], logged["message"]["role"]);
        assert_eq!(row["revision"], 0);
    }
    assert_eq!(server.json("messages?session=one&number=70")["messages"].as_array().unwrap()[..], rows[70..]);

    // Each revision, with its changes.
    let about = server.json("session?session=one");
    let said: Vec<_> =
        about["revisions"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert!(said[0] == "uncompact" && said[1] == "clear" && said.len() == 3, "{said:?}");
    assert_eq!(about["revisions"][1]["undone_by"], 3);
    assert_eq!(about["revisions"][0]["undoes"], 2);
    let difference = server.json("difference?session=one&from=0&to=1");
    let numbers =
        |key: &str| rows.iter().filter(|row| row[key] == 1).map(|row| row["seq"].clone()).collect::<Vec<_>>();
    assert_eq!(difference["shortened"], json!(numbers("edited_by")));
    let is_in = |seq: u64| {
        let mut ranges = difference["hidden"].as_array().unwrap().iter();
        ranges.any(|range| range[0].as_u64().unwrap() <= seq && seq <= range[1].as_u64().unwrap())
    };
    let hidden: Vec<_> = (0..74).filter(|seq| is_in(*seq)).map(Value::from).collect();
    assert_eq!(hidden, numbers("hidden_by"));
    assert!(!hidden.is_empty() && !numbers("edited_by").is_empty());
    assert_eq!(server.json("difference?session=one&from=1&to=3")["hidden"], json!([]));
    // The summary of the hidden messages, with its text.
    let [summary] = &difference["summaries"].as_array().unwrap()[..] else { panic!("{difference}") };
    assert_eq!((&summary["is_new"], &summary["revision"]), (&json!(true), &json!(1)));
    assert_eq!(summary["text"], about["summaries"][0]["text"]);
    assert_eq!(about["summaries"][0]["key"], summary["key"]);
    assert!(about["summaries"][0]["text"].as_str().unwrap().contains("parcelbox/"), "{about}");

    // The original message, and its form in the next request.
    let cut = numbers("edited_by")[0].as_u64().unwrap();
    let message = server.json(&format!("message?session=one&number={cut}"));
    let [whole, shown] = ["text", "shown"].map(|key| message[key].as_str().unwrap());
    assert!(whole.starts_with(&format!("#{cut}  turn ")) && shown.len() < whole.len(), "{message}");
    assert_eq!(server.json("message?session=one&number=0")["shown"], Value::Null);
    let found = server.json("found?session=one&words=DEDUPE_TTL_SECONDS");
    assert!(found.as_array().unwrap().contains(&json!(25)), "{found}");

    // The server shows the writes of other processes.
    session(&["import", text(&example("coding-agent.json")), "--append"]).ok();
    session(&["rewind", "--turns", "1"]).ok();
    assert_eq!(server.json("head?session=one"), json!({"messages": 148, "revision": 4}));
    assert_eq!(server.json("messages?session=one&number=74")["messages"][0]["revision"], 3);
    assert_eq!(server.json("session?session=one")["revisions"][0]["what"], "rewind:at=146");
    session(&["prune", "--all"]).ok();
    assert!(server.json("session?session=one")["revisions"][0]["deleted"].as_u64().unwrap() > 0);
    session(&["erase"]).ok();
    assert!(server.refuses("head?session=one").contains("there is no session \"one\""));
}

#[test]
fn only_who_knows_the_address_is_answered() {
    let folder = Folder::new();
    let (store, _) = stored(&folder);
    let server = Server::new(&store, &[]);
    let (host, path) = (&*server.host, &*server.path);
    let page = server.send("GET", path, host);
    assert_eq!(page.status, 200);
    for header in [
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "x-frame-options: DENY",
        "content-security-policy: default-src 'none'; ",
    ] {
        assert!(page.head.contains(header), "{}", page.head);
    }
    assert_eq!(server.send("GET", path, &host.replace("127.0.0.1", "localhost")).status, 200);
    let other = Server::new(&store, &[]);
    assert_ne!(other.path, server.path);
    let sessions = format!("{path}sessions");
    assert_eq!(server.send("GET", &sessions, host).status, 200);
    let port = host.rsplit_once(':').unwrap().1;
    for (path, host) in [
        ("/", host),
        ("//sessions", host),
        (&*format!("{}sessions", other.path), host),
        (&*sessions.to_lowercase(), host),
        // A page of another origin whose name resolves to this machine.
        (&*sessions, &*format!("evil.example:{port}")),
        (&*sessions, "127.0.0.1"),
        (&*sessions, ""),
    ] {
        let reply = server.send("GET", path, host);
        assert_eq!((reply.status, &*reply.body), (404, ""), "{path} at {host:?}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        assert_eq!(server.send(method, &sessions, host).status, 405, "{method}");
    }
    assert_eq!(server.get("nothing").status, 404);
}

#[test]
fn a_wrong_question_is_answered_with_its_fault() {
    let folder = Folder::new();
    let (store, session) = stored(&folder);
    session(&["compact", "--keep", "30%"]).ok();
    let server = Server::new(&store, &[]);
    for (what, part) in [
        ("session?session=two", "there is no session \"two\""),
        ("messages?session=two&number=0", "there is no session \"two\""),
        ("message?session=one&number=74", "there is no message 74"),
        ("difference?session=one&from=1&to=0", "the newest revision is 1"),
        ("difference?session=one&from=0&to=2", "the newest revision is 1"),
        ("difference?session=two&from=0&to=0", "there is no session \"two\""),
    ] {
        let error = server.refuses(what);
        assert!(error.contains(part), "{what}: {error}");
    }
    for what in [
        "session",
        "head?session",
        "message?session=one&number=-1",
        "difference?session=one&from=0&to=99999999999999999999",
    ] {
        assert_eq!(server.get(what).status, 400, "{what}");
    }
    assert_eq!(
        server.json("messages?session=one&number=18446744073709551615"),
        json!({"messages": [], "next": null})
    );
    assert_eq!(server.json("found?session=one&words="), json!([]));
    assert_eq!(server.json("found?session=one&words=...%20%22%27"), json!([]));

    let port = server.host.rsplit_once(':').unwrap().1;
    assert!(run(&["session", "inspect", "--store", &store, "--port", port]).fails(4).contains("--port 0"));
    assert!(
        run(&["session", "inspect", "--store", "sqlite:/nowhere/s.db"])
            .fails(2)
            .contains("there is no /nowhere")
    );
    assert!(
        run(&["session", "inspect", "--store", &store, "--session", "two"])
            .fails(2)
            .contains("there is no session")
    );
    let refused = epitome_cli::call(["session", "inspect", "--store", &*store], "");
    assert_eq!(refused.exit_code, 2);
    assert!(String::from_utf8_lossy(&refused.diagnostics).contains("runs until it is interrupted"));
}

#[test]
fn secrets_are_taken_out_of_all_that_is_answered() {
    let folder = Folder::new();
    let key = "ghp_0123456789abcdefABCDEF0123456789abcd";
    let long = format!("the token is {key}. ").repeat(200);
    let mut all = vec![json!({"role": "user", "content": format!("remember {key}")})];
    all.extend(messages(4));
    all.insert(3, json!({"role": "assistant", "content": long}));
    let file = folder.file("in.json", json!({"messages": all}).to_string());
    let store = format!("sqlite:{}", text(&folder.path("s.db")));
    let of = ["--store", &*store, "--session", "one"];
    run(&[&["session", "import", text(&file)], &of[..]].concat()).ok();
    run(&[&["session", "compact", "--keep", "40%", "--strategy", "ledger"], &of[..]].concat()).ok();
    let server = Server::new(&store, &["--redact"]);
    let mut found = 0;
    for what in [
        "messages?session=one&number=0",
        "message?session=one&number=0",
        "message?session=one&number=3",
        "session?session=one",
        "difference?session=one&from=0&to=1",
        &format!("session?session={key}"),
        &format!("found?session=one&words={key}"),
    ] {
        let reply = server.get(what);
        assert!(!reply.body.contains(key), "{what}: {}", reply.body);
        found += usize::from(reply.body.contains("[redacted:"));
    }
    assert!(found >= 4, "{found}");
}
