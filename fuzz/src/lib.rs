//! What the fuzz targets of the wire formats have in common.

use epitome_std::message::Message;
use epitome_std::wire::document::utf8;
use epitome_std::wire::{Format, ReadOptions, Transcript, convert, read, write_back};

/// Any bytes as a text of this format: an error, or what is written back as it was; and when every message is patched, what
/// can be read again and says the same. Any conversion of it can be read.
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
