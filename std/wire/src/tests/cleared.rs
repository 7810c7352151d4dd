//! Parts that a compaction clears, and the notes that it adds, in every format that is written.

use std::fs;
use std::path::Path;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use epitome_message::{Attribution, Message, Part, ToolResult};

use crate::{Format, ReadOptions, Relation, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

fn seeds(format: Format) -> Vec<String> {
    let folder = format!("../../fuzz/seeds/wire_{}", format.as_str().replace('-', "_"));
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
    files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

fn parts(transcript: &Transcript, conversation: usize) -> Vec<Vec<Part>> {
    transcript.conversations()[conversation].messages().map(|message| message.parts().to_vec()).collect()
}

/// The part as a compaction clears it; `None` if no compaction does. A part is cleared if its note is shorter.
fn shortened(message: &[Part], part: usize) -> Option<Part> {
    match &message[part] {
        Part::Media(_) => Some(Part::Text(NOTE.into())),
        Part::Text(text) if text.len() > TEXT_BYTES => Some(Part::Text(NOTE.into())),
        Part::ToolCall(call) if call.arguments.len() > 2 => {
            let mut cleared = call.clone();
            cleared.arguments = "{}".into();
            Some(Part::ToolCall(cleared))
        }
        Part::ToolResult(result) if result.parts != [Part::Text(NOTE.into())] => {
            // The result of the provider's own call stays with this call.
            let is_hosted = |part: &Part| matches!(part, Part::ToolCall(call) if call.id == result.call_id);
            if result.parts.is_empty() || message.iter().any(is_hosted) {
                return None;
            }
            let mut cleared = ToolResult::new(result.call_id.clone(), vec![Part::Text(NOTE.into())]);
            cleared.is_error = result.is_error;
            Some(Part::ToolResult(cleared))
        }
        _ => None,
    }
}

const NOTE: &str = "[cleared]";

/// Only texts above this size are cleared. The seeds have no texts as large as those of an agent.
const TEXT_BYTES: usize = 24;

/// A text with one changed message: its transcript, the number of the conversation, and the parts of this conversation.
type Changed = (Transcript, usize, Vec<Vec<Part>>);

/// The texts of a format, each with one of its messages in another form; `forms` returns the forms of a message.
fn changed(format: Format, forms: impl Fn(&[Part]) -> Vec<Vec<Part>>) -> Vec<Changed> {
    let mut found = Vec::new();
    for text in seeds(format) {
        let fresh = || read(text.as_str(), &ReadOptions::default().with_from(format));
        let Ok(before) = fresh() else { continue };
        // A branch that has ended is not changed.
        let is_open = |one: &usize| !matches!(before.conversations()[*one].relation, Relation::Branch(_));
        for one in (0..before.conversations().len()).filter(is_open) {
            let said = parts(&before, one);
            let changes = said.iter().enumerate();
            for (at, form) in
                changes.flat_map(|(at, parts)| forms(parts).into_iter().map(move |form| (at, form)))
            {
                let mut expected = said.clone();
                expected[at] = form;
                let mut new = fresh().unwrap();
                let entry = &mut new.conversations_mut()[one].entries[at];
                *entry = entry.clone().with_message(entry.message().clone().with_parts(expected[at].clone()));
                found.push((new, one, expected));
            }
        }
    }
    found
}

/// The message with each of its parts cleared, one at a time.
fn cleared(message: &[Part]) -> Vec<Vec<Part>> {
    let with = |part: usize| {
        let mut form = message.to_vec();
        form[part] = shortened(message, part)?;
        Some(form)
    };
    (0..message.len()).filter_map(with).collect()
}

/// Writes each of these texts, reads it again, and compares the parts.
fn are_read_again(format: Format, changed: Vec<Changed>) {
    let is_read_only = matches!(format, Format::ChatGpt | Format::ClaudeAi);
    for (new, one, expected) in changed {
        let mut out = Vec::new();
        let written = write_back(&new, &mut out).map_err(|error| error.kind());
        if is_read_only {
            assert_eq!(written, Err(WireErrorKind::Unsupported), "{format}");
            continue;
        }
        written.unwrap_or_else(|kind| panic!("{format}: {kind:?}"));
        let again = read(String::from_utf8(out).unwrap(), &ReadOptions::default().with_from(format)).unwrap();
        assert_eq!(parts(&again, one), expected, "{format}");
    }
}

#[test]
fn each_part_that_a_compaction_clears_is_read_again() {
    for format in Format::ALL {
        let found = changed(format, cleared);
        assert!(!found.is_empty(), "{format}");
        are_read_again(format, found);
    }
}

fn is_thought(part: &Part) -> bool {
    matches!(part, Part::Reasoning(_))
}

/// The message without its thoughts, and the same with each of its parts cleared.
fn without_thoughts(message: &[Part]) -> Vec<Vec<Part>> {
    let others: Vec<_> = message.iter().filter(|part| !is_thought(part)).cloned().collect();
    if others.is_empty() || others.len() == message.len() {
        return Vec::new();
    }
    let cleared = cleared(&others);
    core::iter::once(others).chain(cleared).collect()
}

#[test]
fn a_message_without_its_thoughts_is_read_again() {
    let mut formats = 0;
    for format in Format::ALL {
        let found = changed(format, without_thoughts);
        formats += usize::from(!found.is_empty());
        are_read_again(format, found);
    }
    assert!(formats > 10, "{formats}");
}

/// Thoughts in several places of a content can be left out. A thought within a part cannot.
#[test]
fn thoughts_in_a_content_are_left_out_and_signed_parts_are_refused() {
    let of_langchain = r#"[{"type":"human","content":"a"},{"type":"ai","content":[{"type":"thinking","thinking":"h","signature":"s"},
        {"type":"text","text":"b"}],"additional_kwargs":{"reasoning_content":"r","refusal":null},"tool_calls":[]}]"#;
    let of_gemini = |content: &str| {
        format!(
            r#"{{"sessionId":"s","projectHash":"p","messages":[{{"id":"1","type":"user","content":"a"}},
            {{"id":"2","type":"gemini","content":{content},"thoughts":[{{"subject":"h","description":"i"}}],"toolCalls":[]}}]}}"#
        )
    };
    let cases = [
        (Format::LangChain, of_langchain.to_owned(), true),
        (Format::GeminiCli, of_gemini(r#"[{"text":"h","thought":true},{"text":"b"}]"#), true),
        (Format::GeminiCli, of_gemini(r#""b""#), true),
        (Format::GeminiCli, of_gemini(r#"[{"text":"b","thoughtSignature":"S"},{"text":"c"}]"#), false),
    ];
    for (format, text, is_written) in cases {
        let from = ReadOptions::default().with_from(format);
        let mut new = read(text.as_str(), &from).unwrap();
        let others: Vec<Part> = parts(&new, 0)[1].iter().filter(|part| !is_thought(part)).cloned().collect();
        let mut expected = parts(&new, 0);
        assert!(others.len() < expected[1].len(), "{text}");
        expected[1].clone_from(&others);
        let entry = &mut new.conversations_mut()[0].entries[1];
        *entry = entry.clone().with_message(entry.message().clone().with_parts(others));
        let mut out = Vec::new();
        assert_eq!(write_back(&new, &mut out).is_ok(), is_written, "{text}");
        if is_written {
            let out = String::from_utf8(out).unwrap();
            assert_eq!(parts(&read(out.as_str(), &from).unwrap(), 0), expected, "{out}");
        }
    }
}

#[test]
fn a_note_is_put_behind_the_first_request() {
    // Exports are only read, a request of Copilot Chat is a question with its answer, and the text of SWE-agent has no request.
    let without = [Format::ChatGpt, Format::ClaudeAi, Format::CopilotChat, Format::SweAgent];
    for format in Format::ALL {
        let mut put = 0;
        for text in seeds(format) {
            let from = ReadOptions::default().with_from(format);
            let Ok(mut new) = read(text.as_str(), &from) else { continue };
            let mut expected = parts(&new, 0);
            let first = new.conversations()[0].messages().position(|message| message.role() == Role::User);
            let Some(at) = first.map(|first| first + 1) else { continue };
            let by = Attribution::new("x", SourceKind::Compaction, Authority::Assistant);
            // A ledger is a message of the model, a summary is a message of the user.
            for note in [Message::assistant("[ledger]"), Message::user("[summary]")] {
                let note = note.with_attribution(by.clone());
                expected.insert(at, note.parts().to_vec());
                new.conversations_mut()[0].entries.insert(at, TranscriptEntry::new(note));
            }
            let mut out = Vec::new();
            if let Err(error) = write_back(&new, &mut out) {
                assert_eq!(error.kind(), WireErrorKind::Unsupported, "{format}");
                continue;
            }
            let out = String::from_utf8(out).unwrap();
            let again = read(out.as_str(), &from).unwrap_or_else(|error| panic!("{format}: {error}: {out}"));
            // Some formats give a call an id by its place.
            let said = |messages: Vec<Vec<Part>>| -> Vec<Vec<String>> {
                let text =
                    |part: Part| if let Part::Text(text) = part { text.to_string() } else { String::new() };
                messages.into_iter().map(|parts| parts.into_iter().map(text).collect()).collect()
            };
            let (again, expected) = (said(parts(&again, 0)), said(expected));
            match format {
                // Its notes are joined with their neighbours: see the tests of its module.
                Format::BedrockConverse => assert_eq!(again.concat(), expected.concat(), "{format}: {out}"),
                _ => assert_eq!(again, expected, "{format}: {out}"),
            }
            put += 1;
        }
        assert_eq!(put == 0, without.contains(&format), "{format}");
    }
}
