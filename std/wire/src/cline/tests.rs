//! Conversations of Cline and Roo Code. The forms are those of their sources; the contents are made up.

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::Message;

use crate::openai_chat::tests::shown;
use crate::tests::support::transcript_of;
use crate::{Format, ReadOptions, Transcript, read, write_back};

const SESSION: &str = include_str!("../../../../fuzz/seeds/wire_cline/session.messages.json");
const HISTORY: &str = include_str!("../../../../fuzz/seeds/wire_cline/history.json");
const ROO: &str = include_str!("../../../../fuzz/seeds/wire_cline/roo.json");

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::Cline)
}

fn sources(transcript: &Transcript) -> Vec<SourceKind> {
    transcript.conversations()[0].messages().map(|message| message.attribution().source).collect()
}

#[test]
fn a_session_has_calls_results_files_and_usage() {
    let transcript = transcript(SESSION);
    let conversation = &transcript.conversations()[0];
    let said: Vec<_> = conversation.messages().map(|message| shown(message).join(" | ")).collect();
    let roles: Vec<_> = conversation.messages().map(Message::role).collect();
    let (user, model, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(roles, [Role::System, user, model, tool, tool, model], "{said:#?}");
    assert!(said[1].contains("let x = 1;") && said[3].contains("\"query\""), "{said:#?}");
    assert_eq!(conversation.id.as_str(), "s1");
    let usage = conversation.usage.iter().next().unwrap();
    assert_eq!((usage.at, usage.usage.input_total, usage.usage.output_total), (2, Some(100), Some(5)));
}

#[test]
fn what_a_tool_returned_in_the_users_place_is_no_request() {
    let (asked, tool) = (SourceKind::Caller, SourceKind::Tool);
    let transcript = transcript(HISTORY);
    let model = transcript.conversations()[0].entries[1].message().attribution().source;
    assert_eq!(sources(&transcript), [asked, model, tool, model, asked]);
}

#[test]
fn what_roo_code_hides_is_a_compaction() {
    let mut transcript = transcript(ROO);
    let conversation = &transcript.conversations()[0];
    let said: Vec<_> = conversation.messages().map(|message| shown(message).join(" | ")).collect();
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said[0].contains("Conversation Summary"), "{said:#?}");
    let compaction = conversation.compactions.iter().next().unwrap();
    assert_eq!((compaction.at, compaction.dropped), (0, Some(3)));
    // Without the summary the hidden messages would be sent again, so they are removed with it.
    transcript.conversations_mut()[0].entries.remove(0);
    let mut out = Vec::new();
    write_back(&transcript, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(!out.contains("condenseParent") && !out.contains("isSummary"), "{out}");
    assert_eq!(self::transcript(&out).conversations()[0].entries.len(), 3);
}

#[test]
fn what_a_marker_of_a_truncation_hides_is_not_sent() {
    let text = r#"[{"role":"user","ts":1,"content":"<user_message>\nGo\n</user_message>"},
      {"role":"assistant","ts":2,"content":"a","truncationParent":"t"},
      {"role":"user","ts":3,"content":"b","truncationParent":"gone"},
      {"role":"user","ts":4,"content":"cut","isTruncationMarker":true,"truncationId":"t"},
      {"role":"assistant","ts":5,"content":"c"}]"#;
    let transcript = transcript(text);
    let conversation = &transcript.conversations()[0];
    assert_eq!(conversation.entries.len(), 4);
    let compaction = conversation.compactions.iter().next().unwrap();
    assert_eq!((compaction.at, compaction.dropped), (2, Some(1)));
    let mut out = Vec::new();
    write_back(&transcript, &mut out).unwrap();
    assert_eq!(out, text.as_bytes());
}

#[test]
fn each_marker_hides_its_own_messages() {
    let text = r#"[{"role":"user","ts":1,"content":"<user_message>a","truncationParent":"t"},
      {"role":"user","ts":2,"content":"one","isTruncationMarker":true,"truncationId":"t"},
      {"role":"assistant","ts":3,"content":"b","truncationParent":"u"},
      {"role":"user","ts":4,"content":"two","isTruncationMarker":true,"truncationId":"u"},
      {"role":"assistant","ts":5,"content":"c"}]"#;
    for gone in 0..2 {
        let mut transcript = transcript(text);
        let compactions: Vec<_> =
            transcript.conversations()[0].compactions.iter().map(|one| (one.at, one.dropped)).collect();
        assert_eq!(compactions, [(0, Some(1)), (1, Some(1))]);
        transcript.conversations_mut()[0].entries.remove(gone);
        let mut out = Vec::new();
        write_back(&transcript, &mut out).unwrap();
        let again =
            read(String::from_utf8(out).unwrap(), &ReadOptions::default().with_from(Format::Cline)).unwrap();
        let said: Vec<_> =
            again.conversations()[0].messages().map(|message| shown(message).join("")).collect();
        assert_eq!(said, [["text two", "text one"][gone], "text c"]);
    }
}
