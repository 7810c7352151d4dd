//! The checks of the targets that need more than a few lines: texts of a wire format ([`round_trip`]), and the
//! libraries for C.

pub mod call;
pub mod kernel;

use epitome_std::message::Message;
use epitome_std::wire::document::{Piece, Pointer, conversation, each, utf8};
use epitome_std::wire::openai_chat::{self, ChatView};
use epitome_std::wire::{Format, ReadOptions, Transcript, convert, read, write_back};

/// Any bytes as a text of this format: an error, or a text that is written back unchanged. If every message is patched,
/// the text can be read again and has the same content. Any conversion of it can be read.
pub fn round_trip(bytes: &[u8], format: Format) {
    let Ok(text) = utf8(bytes) else { return };
    let options = ReadOptions::default().with_from(format);
    let Ok(mut transcript) = read(text, &options) else { return };
    assert_eq!(written(&transcript).as_deref(), Some(text));
    for to in [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini] {
        for conversation in transcript.conversations() {
            if let Ok(converted) = convert(conversation.messages(), to) {
                read(converted.text, &ReadOptions::default().with_from(to)).unwrap();
            }
        }
    }
    let before = parts(&transcript);
    for entry in transcript.conversations_mut().iter_mut().flat_map(|conversation| &mut conversation.entries)
    {
        let message = entry.message().clone();
        let parts = message.parts().to_vec();
        *entry = entry.clone().with_message(message.with_parts(parts));
    }
    if let Some(again) = written(&transcript) {
        assert_eq!(parts(&read(again, &options).unwrap()), before);
    }
}

fn written(transcript: &Transcript) -> Option<String> {
    let mut out = Vec::new();
    write_back(transcript, &mut out).ok()?;
    Some(String::from_utf8(out).unwrap())
}

fn parts(transcript: &Transcript) -> Vec<Vec<epitome_std::message::Part>> {
    let messages = transcript.conversations().iter().flat_map(|conversation| conversation.messages());
    messages.map(Message::parts).map(<[_]>::to_vec).collect()
}

/// Any bytes: the search for a conversation, and the read of a message in it, give a result or an error. A text that is
/// read is written back unchanged.
pub fn messages_of_chat(bytes: &[u8]) {
    let Ok(text) = utf8(bytes) else { return };
    if let (Ok(pointer), Ok(elements)) = (Pointer::parse(text), each(text)) {
        elements.flatten().for_each(|element| drop(element.at(&pointer)));
    }
    let Ok(found) = conversation(text) else { return };
    let mut whole = Vec::new();
    found.splice((0..found.len()).map(Piece::Original), &mut whole).unwrap();
    assert_eq!(whole, text.as_bytes());
    for message in found.iter() {
        let view = ChatView::parse(message);
        let read = openai_chat::read(message);
        assert_eq!(view.is_ok(), read.is_ok());
        let Ok(read) = read else { continue };
        assert_eq!(openai_chat::write(&read).unwrap(), message);
        // After a change the message is written anew. The new text can be read, and has the same parts.
        if let Ok(anew) = openai_chat::write(&read.clone().with_parts(read.parts().to_vec())) {
            assert_eq!(openai_chat::read(&anew).unwrap().parts(), read.parts());
        }
    }
}
