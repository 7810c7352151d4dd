//! Any bytes as a text of each format that has no target of its own: an answer or an error, and what is read is written back as it
//! was. One program is built for all of them, and tries each input as each of them. `./check fuzz` begins with the seeds of all formats.
#![no_main]

use epitome_std::wire::Format;
use libfuzzer_sys::fuzz_target;

const FORMATS: [Format; 14] = [
    Format::AiSdk,
    Format::BedrockConverse,
    Format::OtelGenai,
    Format::Cline,
    Format::Cursor,
    Format::OpenCode,
    Format::PydanticAi,
    Format::Adk,
    Format::Continue,
    Format::CopilotCli,
    Format::CopilotChat,
    Format::ChatGpt,
    Format::ClaudeAi,
    Format::ShareGpt,
];

fuzz_target!(|bytes: &[u8]| {
    for format in FORMATS {
        epitome_fuzz::round_trip(bytes, format);
    }
});
