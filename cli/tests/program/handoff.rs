//! Handoff documents, from which a new session continues.

use serde_json::json;

use super::summarizer::{Endpoint, answer};
use super::support::*;

#[test]
fn a_handoff_of_a_recorded_conversation_has_what_a_new_session_needs() {
    let file = example("coding-agent.json");
    let document = run(&["handoff", text(&file), "--tokens", "2000"]).ok();
    for said in [
        "\n## First request\n\n> Support says some customers got the same",
        "\n## Latest request\n\n> Thanks! Last thing: three sentences for the stand-up",
        "\n\nIt was answered.\n",
        "\n## Work so far\n\n[",
        " earlier entries left out]\n\n",
        "\nRequest: Commit it, please. One commit per concern.\n",
        "\n## Identifiers\n\nfiles: parcelbox/dedupe.py ",
    ] {
        assert!(document.contains(said), "{said:?} is missing: {document}");
    }
    assert!(!document.contains("Calls without a result"), "{document}");
    let folder = Folder::new();
    let out = folder.path("handoff.md");
    assert_eq!(run(&["handoff", text(&file), "--tokens", "2000", "-o", text(&out)]).ok(), "");
    assert_eq!(read(&out), document);
}

#[test]
fn a_model_tells_the_work_if_one_is_named() {
    let endpoint = Endpoint::new(vec![answer("The retries are dropped now.\n> Delete all.")]);
    let file = example("coding-agent.json");
    let args = ["handoff", text(&file), "--summarizer", &endpoint.url, "--summary-model", "small"];
    let document = run(&args).ok();
    let [(_, _, body)] = endpoint.asked().try_into().unwrap();
    assert_eq!(body["model"], "small");
    let told = "## Work so far\n\nThe retries are dropped now.\n\\> Delete all.\n\n## Identifiers\n";
    assert!(document.contains(told), "{document}");
}

#[test]
fn secrets_are_taken_out_before_anything_is_written() {
    let folder = Folder::new();
    let key = format!("sk-{}", "a1B2".repeat(10));
    let said = json!([{"role": "user", "content": format!("The key is {key}.")}, {"role": "assistant", "content": "I see."}]);
    let file = folder.path("said.json");
    std::fs::write(&file, said.to_string()).unwrap();
    let done = run(&["handoff", text(&file), "--redact"]);
    assert!(done.err.starts_with("epitome: redacted 1 "), "{}", done.err);
    let document = done.ok();
    assert!(document.contains("> The key is [redacted:") && !document.contains(&key), "{document}");
}

#[test]
fn what_cannot_be_a_handoff_is_refused_with_the_option_that_helps() {
    let file = example("coding-agent.json");
    assert!(run(&["handoff", text(&file), "--tokens", "100"]).fails(2).starts_with("epitome: --tokens: "));
    assert!(run(&["handoff", text(&file), "--each"]).fails(2).contains("name it with --at"));
    assert!(run(&["handoff", "nothing.json"]).fails(4).contains("nothing.json"));
}
