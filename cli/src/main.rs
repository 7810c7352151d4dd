//! `epitome`: shrink, inspect and store the transcripts of LLM agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    epitome_cli::main()
}
