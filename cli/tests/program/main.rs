//! The program as its users run it: arguments and files in; exit code, output and messages out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in its helpers"
)]

mod bad_input;
mod bench;
mod budget;
mod canaries;
mod commands;
mod containers;
mod counting;
mod documents;
mod each;
mod eval;
mod evidence;
mod explain;
mod foreign;
mod formats;
mod handoff;
mod homes;
mod hook;
mod hostile;
mod inspect;
mod interrupt;
mod keyed;
mod lazy;
mod manners;
mod mcp;
mod models;
mod options;
mod output;
mod page;
mod prompts;
mod redact;
mod repaired;
mod report;
mod retained;
mod rounds;
mod samples;
mod search;
mod served;
mod sessions;
mod shorten;
mod show;
mod split;
mod stored;
mod summarizer;
mod support;
mod terminal;
mod written;
