//! Any bytes as a text of a format: an answer or an error, and a text that is read is written back as it was. The format is the one that
//! `EPITOME_FUZZ_FORMAT` names; without it, each input is tried as each format. `./check fuzz` runs it once for each.
#![no_main]

use std::sync::LazyLock;

use epitome_std::wire::Format;
use libfuzzer_sys::fuzz_target;

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| match std::env::var("EPITOME_FUZZ_FORMAT") {
    Ok(name) => vec![Format::by_name(&name).expect("EPITOME_FUZZ_FORMAT is the name of a format")],
    Err(_) => Format::ALL.to_vec(),
});

fuzz_target!(|bytes: &[u8]| {
    for format in FORMATS.iter() {
        epitome_fuzz::round_trip(bytes, *format);
        if *format == Format::OpenaiChat {
            epitome_fuzz::messages_of_chat(bytes);
        }
    }
});
