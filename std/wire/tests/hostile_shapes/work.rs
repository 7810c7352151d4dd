//! The work of programs on these texts.

use std::io::Cursor;
use std::sync::Arc;

use epitome_core::{OpenCallTree, Pending, Profile, Repairer, Validator};
use epitome_wire::{
    CONVERSION_TARGETS, Conversation, Format, Outline, ReadOptions, SessionLines, Transcript, WireErrorKind,
    convert, read, write_back,
};

/// The work on one text.
pub(crate) type Work = fn(&str, Format);

/// The kinds of work, by their names in the table.
pub(crate) const WORK: [(&str, Work); 5] = [
    ("list", list),
    ("outline", outline),
    ("write", write),
    ("convert", convert_to_all),
    ("validate", validate),
];

/// One of them has the most rules, the other the fewest.
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

/// Writes the file without one message of its active conversation.
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

/// Finds the violations of a provider's rules, and plans the repair.
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
