//! Common functions of the tests of formats.

use epitome_message::{Message, Part};

use crate::openai_chat::tests::shown;
use crate::{Conversation, Format, ReadOptions, Transcript, detect, read, write_back};

/// The transcript of a text. Checks that the text is recognised as this format, and written back unchanged.
pub(crate) fn transcript_of(text: &str, format: Format) -> Transcript {
    assert_eq!(detect(text).unwrap().format, format);
    let transcript = read(text, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text);
    transcript
}

/// The current text of a transcript.
pub(crate) fn written(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    write_back(transcript, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Each message of a conversation in words.
pub(crate) fn shown_in(conversation: &Conversation) -> Vec<String> {
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    conversation.messages().map(of).collect()
}

/// Replaces the parts of a message of a conversation.
pub(crate) fn change(conversation: &mut Conversation, at: usize, parts: Vec<Part>) {
    let message = conversation.entries[at].message().clone().with_parts(parts);
    conversation.entries[at] = conversation.entries[at].clone().with_message(message);
}
