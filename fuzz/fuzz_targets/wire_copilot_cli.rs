//! Any bytes as a text of this format: an answer or an error, and what is read is written back as it was.
#![no_main]

use epitome_std::wire::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| epitome_fuzz::round_trip(bytes, Format::CopilotCli));
