//! Formats that are written through slots: each part can be changed, and each message left out, or the refusal gives
//! the reason.

use std::fs;
use std::path::Path;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Message, Part, ToolCall, ToolResult};

use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

const FORMATS: [Format; 6] =
    [Format::Goose, Format::AiSdk, Format::BedrockConverse, Format::OtelGenai, Format::Cline, Format::Cursor];

fn samples() -> impl Iterator<Item = (Format, String)> {
    FORMATS.into_iter().flat_map(|format| {
        let folder = format!("../../fuzz/seeds/wire_{}", format.as_str().replace('-', "_"));
        let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
        files.map(move |file| (format, fs::read_to_string(file.unwrap().path()).unwrap()))
    })
}

fn transcript(text: &str, format: Format) -> Transcript {
    read(text, &ReadOptions::default().with_from(format)).unwrap()
}

fn said(transcript: &Transcript) -> Vec<(String, Vec<Part>)> {
    // Compares calls without their kind: a call of Cursor without a result has another kind.
    let of_kind = |part: &Part| match part {
        Part::ToolCall(call) => {
            Part::ToolCall(ToolCall::new(call.id.clone(), call.name.clone(), call.arguments.clone()))
        }
        part => part.clone(),
    };
    let of = |message: &Message| {
        (message.role().as_str().to_owned(), message.parts().iter().map(of_kind).collect())
    };
    transcript.conversations()[0].messages().map(of).collect()
}

fn written(transcript: &Transcript) -> Result<String, WireErrorKind> {
    let mut out = Vec::new();
    write_back(transcript, &mut out).map_err(|error| error.kind())?;
    Ok(String::from_utf8(out).unwrap())
}

/// The part as a compaction shortens it; `None` if a compaction does not shorten such a part.
fn shortened(part: &Part) -> Option<Part> {
    match part {
        Part::Text(_) | Part::Media(_) => Some(Part::Text("[short \"日\"]".into())),
        Part::ToolResult(result) => {
            let mut short = ToolResult::new(result.call_id.clone(), vec![Part::Text("[cleared]".into())]);
            short.is_error = result.is_error;
            Some(Part::ToolResult(short))
        }
        _ => None,
    }
}

#[test]
fn every_shortened_part_is_read_again_and_nothing_else_changes() {
    let mut changed = 0;
    for (format, text) in samples() {
        let before = said(&transcript(&text, format));
        for (at, (_, parts)) in before.iter().enumerate() {
            for (place, part) in parts.iter().enumerate() {
                let Some(short) = shortened(part) else { continue };
                let mut new = transcript(&text, format);
                let mut parts = parts.clone();
                parts[place] = short.clone();
                let entry = &mut new.conversations_mut()[0].entries[at];
                *entry = entry.clone().with_message(entry.message().clone().with_parts(parts));
                let out = written(&new).unwrap_or_else(|kind| panic!("{format}: {kind:?} for {part:?}"));
                let mut expected = before.clone();
                expected[at].1[place] = short;
                assert_eq!(said(&transcript(&out, format)), expected, "{format}");
                changed += 1;
            }
        }
    }
    assert!(changed > 60, "{changed}");
}

#[test]
fn a_message_is_left_out_or_the_refusal_says_that_the_form_has_no_way() {
    let (mut left_out, mut refused) = (0, 0);
    for (format, text) in samples() {
        let before = said(&transcript(&text, format));
        for at in 0..before.len() {
            let mut new = transcript(&text, format);
            new.conversations_mut()[0].entries.remove(at);
            match written(&new) {
                Ok(out) => {
                    let mut expected = before.clone();
                    expected.remove(at);
                    // A text that consists of this message alone reads as empty without it.
                    let again = read(out.as_str(), &ReadOptions::default().with_from(format)).unwrap();
                    assert_eq!(said(&again), expected, "{format}: {out}");
                    left_out += 1;
                }
                Err(kind) => {
                    assert_eq!(kind, WireErrorKind::Unsupported, "{format}: {:?}", before[at]);
                    refused += 1;
                }
            }
        }
    }
    assert!(left_out > 20 && refused > 0, "{left_out} left out, {refused} refused");
}

#[test]
fn reasoning_is_left_out_of_its_message() {
    let mut left_out = 0;
    for (format, text) in samples() {
        let before = said(&transcript(&text, format));
        for (at, (_, parts)) in before.iter().enumerate() {
            let rest: Vec<_> =
                parts.iter().filter(|part| !matches!(part, Part::Reasoning(_))).cloned().collect();
            if rest.len() == parts.len() || rest.is_empty() {
                continue;
            }
            let mut new = transcript(&text, format);
            let entry = &mut new.conversations_mut()[0].entries[at];
            *entry = entry.clone().with_message(entry.message().clone().with_parts(rest.clone()));
            let mut expected = before.clone();
            expected[at].1 = rest;
            assert_eq!(said(&transcript(&written(&new).unwrap(), format)), expected, "{format}");
            left_out += 1;
        }
    }
    assert!(left_out >= 6, "{left_out}");
}

#[test]
fn a_new_text_stands_where_it_is_put() {
    let mut put = 0;
    for (format, text) in samples() {
        let before = said(&transcript(&text, format));
        for at in 0..=before.len() {
            let mut new = transcript(&text, format);
            let note = Message::user("[note \"日\"]");
            new.conversations_mut()[0].entries.insert(at, TranscriptEntry::new(note.clone()));
            let Ok(out) = written(&new) else { continue };
            let mut expected = before.clone();
            expected.insert(at, ("user".to_owned(), note.parts().to_vec()));
            let again = said(&transcript(&out, format));
            // A new message is written between records, never into a record of several messages.
            if again != expected {
                // Joined with a neighbour of its role: see the tests of the module.
                if format == Format::BedrockConverse {
                    let parts = || again.iter().flat_map(|(_, parts)| parts);
                    let others: Vec<_> = parts().filter(|part| **part != note.parts()[0]).cloned().collect();
                    assert_eq!(parts().count(), others.len() + 1, "{out}");
                    assert_eq!(
                        others,
                        before.iter().flat_map(|(_, parts)| parts.clone()).collect::<Vec<_>>()
                    );
                    continue;
                }
                let is_note = |(role, parts): &(String, Vec<Part>)| role == "user" && *parts == note.parts();
                assert_eq!(again.iter().filter(|said| is_note(said)).count(), 1, "{format}: {out}");
                continue;
            }
            put += 1;
        }
    }
    assert!(put > 40, "{put}");
}

#[test]
fn what_is_no_text_or_of_another_role_is_refused() {
    for (format, text) in samples() {
        let picture = Media::new(MediaKind::Image, "image/png", MediaSource::Base64("AA==".into()));
        for new in [
            Message::new(Role::User, vec![Part::Media(picture)]),
            Message::new(Role::Developer, vec![Part::Text("a".into())]),
        ] {
            let mut changed = transcript(&text, format);
            changed.conversations_mut()[0].entries.push(TranscriptEntry::new(new));
            assert_eq!(written(&changed), Err(WireErrorKind::Unsupported), "{format}");
        }
    }
}

#[test]
fn a_result_that_is_emptied_is_not_written_as_it_was() {
    let (mut emptied, mut refused) = (0, 0);
    for (format, text) in samples() {
        let before = said(&transcript(&text, format));
        for (at, (_, parts)) in before.iter().enumerate() {
            for (place, part) in parts.iter().enumerate() {
                let Part::ToolResult(result) = part else { continue };
                if result.parts.is_empty() {
                    continue;
                }
                let mut new = transcript(&text, format);
                let mut parts = parts.clone();
                let mut emptied_result = ToolResult::new(result.call_id.clone(), Vec::new());
                emptied_result.is_error = result.is_error;
                parts[place] = Part::ToolResult(emptied_result);
                let entry = &mut new.conversations_mut()[0].entries[at];
                *entry = entry.clone().with_message(entry.message().clone().with_parts(parts));
                let Ok(out) = written(&new) else {
                    refused += 1;
                    continue;
                };
                let again = said(&transcript(&out, format));
                let is_empty = |part: &Part| match part {
                    Part::Text(text) => text.is_empty(),
                    _ => false,
                };
                let Part::ToolResult(now) = &again[at].1[place] else { panic!("{format}: {out}") };
                assert!(now.parts.iter().all(is_empty), "{format}: {out}");
                emptied += 1;
            }
        }
    }
    assert!(emptied >= 12 && refused == 0, "{emptied} {refused}");
}
