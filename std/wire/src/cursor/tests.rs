//! Transcripts of Cursor. The contents are made up.

use epitome_core::message::CallKind;
use epitome_core::{OpenCallTree, Profile, Validator};
use epitome_message::Part;

use crate::{Format, ReadOptions, detect, read};

const TRANSCRIPT: &str = include_str!("../../../../fuzz/seeds/wire_cursor/transcript.jsonl");

#[test]
fn calls_without_results_wait_for_none() {
    assert_eq!(detect(TRANSCRIPT).unwrap().format, Format::Cursor);
    let transcript = read(TRANSCRIPT, &ReadOptions::default()).unwrap();
    let conversation = &transcript.conversations()[0];
    assert_eq!(conversation.entries.len(), 5);
    let calls = conversation.messages().flat_map(|message| message.parts());
    let kinds: Vec<_> = calls
        .filter_map(|part| {
            if let Part::ToolCall(call) = part { Some((call.name.to_string(), call.kind)) } else { None }
        })
        .collect();
    assert_eq!(kinds, [("Shell".to_owned(), CallKind::Hosted), ("Read".to_owned(), CallKind::Function)]);
    let mut validator = Validator::<OpenCallTree>::new(Profile::Permissive);
    let mut found = 0;
    for message in conversation.messages() {
        validator.push(message, &mut |_| found += 1).unwrap();
    }
    validator.finish(&mut |_| found += 1);
    assert_eq!(found, 0);
}
