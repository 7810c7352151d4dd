//! Summaries by a model, and digests without one.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::support::*;

/// A request: its first line, headers and body.
pub(crate) type Asked = (String, Vec<String>, Value);

/// An endpoint that answers each request with the next status and body, and records the requests.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    served: JoinHandle<Vec<Asked>>,
}

impl Endpoint {
    pub(crate) fn new(answers: Vec<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let serve = |(status, answer): &(u16, String)| {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    lines.push(line.trim().to_lowercase());
                }
                let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.unwrap().parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close", answer.len());
                write!(reader.get_mut(), "{head}\r\n\r\n{answer}").unwrap();
                (lines.remove(0), lines, serde_json::from_slice(&body).unwrap())
            };
            answers.iter().map(serve).collect()
        });
        Self { url, served }
    }

    pub(crate) fn asked(self) -> Vec<Asked> {
        self.served.join().unwrap()
    }
}

pub(crate) fn answer(text: &str) -> (u16, String) {
    let message = json!({"role": "assistant", "content": text});
    (200, json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}).to_string())
}

/// An answer without its end.
fn cut_off(finish_reason: &str) -> (u16, String) {
    let choice =
        json!({"message": {"role": "assistant", "content": "Goal: to"}, "finish_reason": finish_reason});
    (200, json!({"choices": [choice]}).to_string())
}

const SUMMARIZE: &[&str] = &["--keep", "40%", "--strategy", "summarize:recent=1", "--summary-model", "small"];

#[test]
fn a_summary_stands_in_the_place_of_the_oldest_turns() {
    let endpoint = Endpoint::new(vec![answer("Goal: to mend it.")]);
    let (file, folder) = (example("coding-agent.json"), tempfile::tempdir().unwrap());
    let out = folder.path().join("out.json");
    let args =
        [&["compact", text(&file), "-o", text(&out), "--json", "--summarizer", &endpoint.url], SUMMARIZE]
            .concat();
    let mut command = program(&args);
    let report = done(command.env("EPITOME_SUMMARIZER_KEY", "k-123")).json();
    // Exactly the documented request: a model, and two messages.
    let [(line, headers, body)] = endpoint.asked().try_into().unwrap();
    assert_eq!(line, "post /v1/chat/completions http/1.1");
    assert!(headers.contains(&"authorization: bearer k-123".to_owned()));
    assert!(headers.contains(&"content-type: application/json".to_owned()));
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["messages", "model"]);
    assert_eq!(body["model"], "small");
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
    let asked = body["messages"][1]["content"].as_str().unwrap();
    assert!(asked.starts_with("<transcript>\n") && asked.ends_with("</transcript>"));

    let written = json_of(&out);
    let messages = written["messages"].as_array().unwrap();
    let is_summary = |message: &&Value| {
        message["content"]
            .as_str()
            .is_some_and(|text| text.starts_with("[Conversation Summary]\nGoal: to mend it."))
    };
    let summary = messages.iter().position(|message| is_summary(&message)).unwrap();
    assert_eq!(
        (&messages[summary]["role"], summary),
        (&json!("assistant"), 2),
        "behind the first user message"
    );
    assert_eq!(messages.len() as u64, report["messages_after"]);
    assert!(report["verdicts"].as_str().unwrap().contains("RR"));
    assert_eq!(report["stable_prefix_messages"], 2);
    // The written messages have the size that is reported.
    assert_eq!(report_of(&out)["tokens_before"], report["tokens_after"]);
    let of_groups = report["groups_detail"].as_array().unwrap().iter();
    assert_eq!(
        of_groups.map(|group| group["tokens_after"].as_u64().unwrap()).sum::<u64>(),
        report["tokens_after"]
    );
    run(&["validate", text(&out)]).ok();
}

fn report_of(file: &std::path::Path) -> Value {
    report(file, &["--keep", "100%"])
}

#[test]
fn a_digest_needs_no_model() {
    let (file, folder) = (example("coding-agent.json"), tempfile::tempdir().unwrap());
    let out = folder.path().join("out.json");
    let args =
        ["compact", text(&file), "-o", text(&out), "--json", "--keep", "40%", "--strategy", "tool-digest"];
    let report = run(&args).json();
    assert!(report["groups"]["replaced"].as_u64().unwrap() > 1);
    assert!(read(&out).contains("[Conversation Summary]\\n<call name="));
    assert_eq!(report_of(&out)["tokens_before"], report["tokens_after"]);
    run(&["validate", text(&out)]).ok();
}

#[test]
fn an_endpoint_that_fails_leaves_the_transcript_as_it_is() {
    let error = json!({"error": {"message": format!("you said {SECRET}"), "type": "rate_limit"}}).to_string();
    for (answers, said) in [
        (vec![(429, error)], "status 429 (rate_limit)"),
        (vec![(200, "<html>".to_owned())], "not JSON"),
        (vec![(200, "{}".to_owned())], "no choices[0].message"),
        (vec![cut_off("length")], "the answer is cut off: the endpoint allows no longer one"),
        (vec![cut_off("content_filter")], "the endpoint's content filter"),
        (vec![answer(" ")], "the summary is empty"),
        (vec![answer("<tool_call>{}</tool_call>")], "the summary calls a tool"),
        (vec![answer(&"much ".repeat(20_000)), answer(&"much ".repeat(20_000))], "tokens, of at most"),
    ] {
        let endpoint = Endpoint::new(answers);
        let (file, folder) = (example("coding-agent.json"), tempfile::tempdir().unwrap());
        let out = folder.path().join("out.json");
        let args =
            [&["compact", text(&file), "-o", text(&out), "--summarizer", &endpoint.url], SUMMARIZE].concat();
        let message = run(&args).fails(4);
        assert!(message.starts_with("epitome: --summarizer: ") && message.contains(said), "{message}");
        assert!(!out.exists(), "{said}");
        endpoint.asked();
    }
    // No server listens there.
    let file = example("coding-agent.json");
    let args = [&["compact", text(&file), "--summarizer", "http://127.0.0.1:1"], SUMMARIZE].concat();
    let message = run(&args).fails(4);
    assert!(message.starts_with("epitome: --summarizer: the summary of messages 2 to "), "{message}");
    assert!(message.contains(": the summarizer failed: "), "{message}");
}

#[test]
fn nothing_is_sent_where_it_would_not_be_redacted_or_is_only_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = Arc::clone(&asked);
    // The server accepts connections, and never answers.
    std::thread::spawn(move || listener.incoming().for_each(|_| _ = asks.fetch_add(1, Ordering::SeqCst)));
    let (file, folder) = (example("coding-agent.json"), tempfile::tempdir().unwrap());
    let out = folder.path().join("out.json");
    let list = folder.path().join("list.txt");
    std::fs::write(&list, SECRET).unwrap();
    for (args, said) in [
        (&["--redact"][..], "--redact does not reach what is sent"),
        (&["--redact-list", text(&list)], "--redact does not reach what is sent"),
        (&["--dry-run"], "--dry-run sends nothing to anybody"),
        (&["--dry-run", "--redact"], "--dry-run sends nothing to anybody"),
    ] {
        let compact = ["compact", text(&file), "-o", text(&out), "--summarizer", &url];
        let message = run(&[&compact, SUMMARIZE, args].concat()).fails(2);
        assert!(message.contains(said) && message.contains("or --summarizer"), "{message}");
        assert!(!out.exists(), "{args:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // Without these options, the endpoint would receive a request.
    let message = run(&[&["compact", text(&file), "--summarizer", &url], SUMMARIZE].concat()).fails(4);
    assert!(message.contains("the summarizer failed") && asked.load(Ordering::SeqCst) > 0, "{message}");
}

#[test]
fn what_is_missing_is_asked_for() {
    let file = example("coding-agent.json");
    for (args, said) in [
        (&["--strategy", "summarize"][..], "name one with --summarizer URL"),
        (&["--strategy", "summarize", "--summarizer", "http://h"], "--summary-model M"),
        (
            &["--strategy", "summarize", "--summarizer", "h", "--summary-model", "m"],
            "expected an address like",
        ),
        (&["--summary-model", "m"], "--summarizer"),
    ] {
        let message = run(&[&["compact", text(&file)], args].concat()).fails(2);
        assert!(message.contains(said), "{message}");
    }
}

/// A store with a session from `file`, and a function that runs a command on it.
fn stored(file: &std::path::Path) -> (Folder, impl Fn(&str, &[&str]) -> Done + use<>) {
    let folder = Folder::new();
    let url = format!("sqlite:{}", text(&folder.path("store.db")));
    let session = move |command: &str, args: &[&str]| {
        run(&[&["session", command, "--store", &url, "--session", "s"], args].concat())
    };
    session("import", &[text(file)]).ok();
    (folder, session)
}

#[test]
fn a_stored_session_is_given_digests_and_summaries() {
    let file = example("coding-agent.json");
    let (_folder, session) = stored(&file);
    let digest = ["--keep", "60%", "--strategy", "tool-digest", "--json"];
    let dry = session("compact", &[&digest[..], &["--dry-run"]].concat()).json();
    let report = session("compact", &digest).json();
    assert_eq!(dry, report);
    assert!(report["groups"]["replaced"].as_u64().unwrap() > 1, "{report}");
    let shown = session("show", &[]).ok();
    assert!(shown.contains("<call name="), "{shown}");
    assert_eq!(
        session("compact", &[&digest[..], &["--dry-run"]].concat()).json()["unchanged_reason"],
        "at_goal"
    );

    let endpoint = Endpoint::new(vec![answer("Goal: to mend it.")]);
    let summarize = [SUMMARIZE, &["--summarizer", &endpoint.url]].concat();
    session("compact", &summarize).ok();
    assert!(session("show", &[]).ok().contains("Goal: to mend it."));
    // A session at its goal needs no further request to the model.
    session("compact", &summarize).ok();
    assert_eq!(endpoint.asked().len(), 1);
    session("verify", &[]).ok();
    session("uncompact", &[]).ok();
    assert!(!session("show", &[]).ok().contains("Goal: to mend it."));
}

#[test]
fn a_stored_session_is_as_it_was_if_its_summary_fails() {
    let (_folder, session) = stored(&example("coding-agent.json"));
    let before = session("show", &[]).ok();
    let endpoint = Endpoint::new(vec![(500, "{}".to_owned())]);
    let summarize = [SUMMARIZE, &["--summarizer", &endpoint.url]].concat();
    assert!(session("compact", &summarize).fails(4).contains("status 500"));
    assert_eq!(session("show", &[]).ok(), before);
    endpoint.asked();
    let message = session("compact", &["--strategy", "summarize"]).fails(2);
    assert!(message.contains("name one with --summarizer URL"), "{message}");
    let message =
        session("compact", &[SUMMARIZE, &["--summarizer", "http://h", "--dry-run"]].concat()).fails(2);
    assert!(message.contains("--dry-run sends nothing to anybody"), "{message}");
}
