//! The proxies of the environment variables are used. Environment variables belong to a process, so the test starts a
//! process of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use epitome::compactors::managed::anthropic::AnthropicCompaction;
use epitome::compactors::managed::openai::OpenAiCompaction;
use epitome::compactors::managed::{CompactionService, ServiceRequest};
use epitome::message::Message;

use crate::managed::support::block_on;

/// A proxy with these answers. Returns its address, and a thread that returns the requested URLs.
fn proxy(answers: &[&str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(ToString::to_string).collect();
    let asked = std::thread::spawn(move || {
        let each = |answer: String| {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.to_ascii_lowercase().split_once(':') {
                    Some(("content-length", value)) => length = value.trim().parse().unwrap(),
                    Some(_) => {}
                    None => break,
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).unwrap();
            first.split(' ').nth(1).unwrap().to_owned()
        };
        answers.into_iter().map(each).collect()
    });
    (at, asked)
}

#[test]
fn proxies_of_the_environment_are_used() {
    let (at, asked) = proxy(&[
        r#"{"object":"response.compaction","output":[{"type":"compaction","id":"c","encrypted_content":"s"}]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"compaction","content":"So far.","signature":"s"}],"stop_reason":"compaction"}"#,
    ]);
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child.args(["--exact", "managed::proxy::asks_where_nobody_is", "--ignored"]);
    for name in ["NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "REQUEST_METHOD"] {
        child.env_remove(name);
    }
    let child = child.env("HTTP_PROXY", &at).env("http_proxy", &at).output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let asked = asked.join().unwrap();
    assert_eq!(asked, ["http://openai.invalid/v1/responses/compact", "http://anthropic.invalid/v1/messages"]);
}

#[test]
#[ignore = "of use only with a proxy: the test above runs it"]
fn asks_where_nobody_is() {
    let messages = [Message::user("Hi"), Message::assistant("Hello.")];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told);
    block_on(async {
        let openai = OpenAiCompaction::new("sk-test".into())
            .unwrap()
            .with_base_url("http://openai.invalid/v1")
            .with_plain_http();
        assert_eq!(openai.compact(&request).await.unwrap().part.opaque.as_deref(), Some("s"));
        let anthropic = AnthropicCompaction::new("m", "sk-test".into()).unwrap();
        let anthropic = anthropic.with_base_url("http://anthropic.invalid").with_plain_http();
        assert_eq!(anthropic.compact(&request).await.unwrap().text().as_str(), "So far.");
    });
}
