//! The work of programs on the texts.

use std::io::Cursor;
use std::sync::Arc;

use epitome_core::{OpenCallTree, Pending, Profile, Repairer, Validator};
use epitome_wire::{
    CONVERSION_TARGETS, Conversation, Format, Outline, ReadOptions, SessionLines, Transcript, WireErrorKind,
    convert, read, write_back,
};

/// The work on one text.
pub(crate) type Work = fn(&str, Format);

/// By what it is called in a table.
pub(crate) const WORK: [(&str, Work); 5] = [
    ("list", list),
    ("outline", outline),
    ("write", write),
    ("convert", convert_to_all),
    ("validate", validate),
];

/// One of them asks for most, the other for least.
const PROFILES: [Profile; 2] = [Profile::OpenaiChat, Profile::Gemini];

fn reading(text: &str, format: Format) -> Transcript {
    read(Arc::<str>::from(text), &ReadOptions::default().with_from(format)).unwrap()
}

/// Lists the conversations of a text, as `stats` does.
fn list(text: &str, format: Format) {
    let transcript = reading(text, format);
    let of = |one: &Conversation| one.entries.len() + one.compactions.len();
    assert!(transcript.conversations().iter().map(of).sum::<usize>() > 0);
    assert!(transcript.active().is_none_or(|active| active.messages().count() == active.entries.len()));
}

/// Outlines a text, as `sessions` does.
fn outline(text: &str, format: Format) {
    if !Outline::FORMATS.contains(&format) {
        return;
    }
    let mut lines = SessionLines::new(Cursor::new(text), format).unwrap();
    let outline = Outline::read(&mut lines, None).unwrap();
    assert!(!outline.conversations().is_empty());
}

/// Writes the file without a message of the conversation that goes on.
fn write(text: &str, format: Format) {
    let mut transcript = reading(text, format);
    transcript.conversations_mut()[0].entries.pop();
    match write_back(&transcript, &mut Vec::new()) {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), WireErrorKind::Unsupported, "{error}"),
    }
}

fn convert_to_all(text: &str, format: Format) {
    let transcript = reading(text, format);
    for to in CONVERSION_TARGETS {
        let converted = transcript.active().map(|active| convert(active.messages(), to).unwrap());
        assert!(converted.is_none_or(|converted| !converted.text.is_empty()));
    }
}

/// Looks for what a provider would refuse, and plans how it becomes what a provider takes.
fn validate(text: &str, format: Format) {
    let transcript = reading(text, format);
    for (profile, active) in PROFILES.iter().flat_map(|profile| Some((*profile, transcript.active()?))) {
        let (mut validator, mut repairer) = (Validator::<OpenCallTree>::new(profile), Repairer::default());
        for message in active.messages() {
            validator.push(message, &mut |_| {}).unwrap();
            repairer.push(message);
        }
        validator.finish(&mut |_| {});
        assert!(repairer.finish(profile, Pending::Over).len() >= active.entries.len().min(1));
    }
}
