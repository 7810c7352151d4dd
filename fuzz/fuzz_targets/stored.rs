//! Any text: the stored form of a message or a record is an answer or an error, and an answer is stored again.
#![no_main]

use epitome_std::history::stored::{decode, decode_record, encode, encode_record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(message) = decode(text) {
        assert_eq!(decode(&encode(&message).unwrap()).unwrap(), message);
    }
    if let Ok(record) = decode_record(text) {
        assert_eq!(decode_record(&encode_record(&record).unwrap()).unwrap(), record);
    }
});
