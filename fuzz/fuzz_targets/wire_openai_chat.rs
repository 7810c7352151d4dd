//! Any bytes: finding and reading a conversation is an answer or an error, and what is read is written back as it was.
#![no_main]

use epitome_std::wire::Format;
use epitome_std::wire::document::{Piece, Pointer, conversation, each, utf8};
use epitome_std::wire::openai_chat::{ChatView, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = utf8(bytes) else { return };
    if let (Ok(pointer), Ok(elements)) = (Pointer::parse(text), each(text)) {
        elements.flatten().for_each(|element| drop(element.at(&pointer)));
    }
    epitome_fuzz::round_trip(bytes, Format::OpenaiChat);
    let Ok(found) = conversation(text) else { return };
    let mut whole = Vec::new();
    found.splice((0..found.len()).map(Piece::Original), &mut whole).unwrap();
    assert_eq!(whole, text.as_bytes());
    for message in found.iter() {
        let view = ChatView::parse(message);
        assert_eq!(view.is_ok(), read(message).is_ok());
        if let Ok(message_read) = read(message) {
            assert_eq!(write(&message_read).unwrap(), message);
            // Once touched, it is written anew; what that gives can be read, and is then stable.
            if let Ok(anew) = write(&message_read.clone().with_parts(message_read.parts().to_vec())) {
                let again = read(&anew).unwrap();
                assert_eq!(again.parts(), message_read.parts());
            }
        }
    }
});
