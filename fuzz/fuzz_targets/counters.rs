//! Any text: the fast exact counter agrees with the reference, and with itself however the text comes.
#![no_main]

use epitome_core::TokenCounter;
use epitome_std::tokens::{FastTiktoken, StreamCounter, Tiktoken};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for (fast, reference) in [
        (FastTiktoken::o200k_base(), Tiktoken::o200k_base()),
        (FastTiktoken::cl100k_base(), Tiktoken::cl100k_base()),
    ] {
        let tokens = fast.count(text);
        assert_eq!(tokens, reference.count(text));
        let bounds = fast.bounds(text);
        assert!(bounds.lower <= tokens && tokens <= bounds.upper);
        assert_eq!(fast.count_up_to(text, tokens), Some(tokens));
        let mut stream = StreamCounter::new(fast);
        for (at, character) in text.char_indices() {
            stream.push(character.encode_utf8(&mut [0; 4]));
            let end = at + character.len_utf8();
            // Each prefix of a short text, and the whole of a long one.
            if text.len() < 256 || end == text.len() {
                assert_eq!(stream.tokens(), fast.count(&text[..end]));
            }
        }
    }
});
