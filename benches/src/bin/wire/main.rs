//! Costs of reading and writing the wire formats, and results for a folder of transcripts.
//!
//! `wire` measures generated conversations in each format, and compares with `serde_json::Value` on the same text;
//! `--smoke` uses small conversations, to check the assertions. `wire --stream MB` reads session files of so many
//! megabytes line by line, `wire --many N` reads and writes texts of so many messages. `wire FOLDER` prints a row for
//! every file under the folder: its format, its messages and calls, whether it is written back unchanged, and the
//! losses of a conversion to the format of each provider.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

mod files;
mod sessions;
mod speed;
mod stream;

use std::path::Path;
use std::process::ExitCode;

use epitome::wire::{CONVERSION_TARGETS, Format};

/// The formats that a conversation can be converted to.
const TARGETS: [Format; 7] = CONVERSION_TARGETS;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => speed::run(100_000, 7),
        ["--smoke"] => {
            speed::run(500, 2);
            stream::run(20);
            stream::many(20_000);
            stream::long(2);
        }
        ["--stream", megabytes] => stream::run(megabytes.parse().unwrap()),
        ["--stream-read", format, file] => stream::read_lines(format, Path::new(file)),
        ["--many", messages] => {
            stream::many(messages.parse().unwrap());
            stream::long(10);
        }
        ["--peak", file] => speed::peak(Path::new(file)),
        [folder] if !folder.starts_with('-') => files::run(Path::new(folder)),
        _ => {
            println!("wire [--smoke | --stream MEGABYTES | --many MESSAGES | FOLDER]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
