//! Calls of `epitome_call`, in the form of a C program.

use core::mem::MaybeUninit;
use core::{ptr, slice};
use std::ffi::CString;

use epitome_c::{EPITOME_BAD_ARGUMENT, epitome_answer, epitome_answer_free, epitome_call};

/// Longer inputs find nothing that these do not.
const INPUT_BYTES_MAX: usize = 8 * 1024;
/// More words than the options of any command.
const WORDS_MAX: usize = 24;
/// A word that stands for a null pointer.
const NULL: &[u8] = b"\0null";

/// Commands that need no file except their transcript.
const COMMANDS: [&str; 7] = ["compact", "convert", "eval", "handoff", "show", "stats", "validate"];
/// Options of these commands that name no file, no program and no service. A value stands in the same word:
/// `--keep=30%`.
const OPTIONS: [&str; 31] = [
    "--at",
    "--by",
    "--canaries",
    "--dry-run",
    "--each",
    "--from",
    "--full",
    "--goal",
    "--grep",
    "--help",
    "--json",
    "--keep",
    "--lazy",
    "--leaf",
    "--lost",
    "--model",
    "--pause",
    "--pin",
    "--profile",
    "--redact",
    "--repair",
    "--reserve",
    "--rounds",
    "--strategy",
    "--to",
    "--tokenizer",
    "--tokens",
    "--trigger",
    "--turn",
    "--why",
    "--window",
];
/// The options that select a conversation of the transcript.
const PART: [&str; 4] = ["--at", "--each", "--from", "--leaf"];

/// Runs one input of the target.
///
/// # Panics
/// If the library violates its header.
pub fn call(bytes: &[u8]) {
    if bytes.len() > INPUT_BYTES_MAX {
        return;
    }
    let (line, input) = bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len()));
    let words: Vec<_> = line.split(|byte| *byte == b'\t').collect();
    if words.len() > WORDS_MAX || !leaves_files_alone(&words) {
        return;
    }
    let input = input.get(1..).unwrap_or_default();
    let (code, output, diagnostics) = answer(&words, input);
    assert_eq!(code == EPITOME_BAD_ARGUMENT, is_refused(&words), "{diagnostics}");
    if code == EPITOME_BAD_ARGUMENT {
        assert!(output.is_empty() && diagnostics.starts_with("epitome_call: argument "), "{diagnostics}");
        return;
    }
    // The command uses no file and no store, so none can fail.
    assert!(matches!(code, 0..=3 | 5), "{code}: {diagnostics}");
    if code > 1 {
        assert!(output.is_empty(), "{code}: {diagnostics}");
        assert!(diagnostics.starts_with("epitome: ") || diagnostics.starts_with("error: "), "{diagnostics}");
    }
    if code <= 1 && is_json(&words) {
        assert!(serde_json::from_slice::<serde_json::Value>(&output).is_ok(), "{}", output.escape_ascii());
    }
    if code == 0 {
        reads_again(&words, &output);
    }
}

/// The exit code, the output and the diagnostics.
fn answer(words: &[&[u8]], input: &[u8]) -> (i32, Vec<u8>, String) {
    let texts: Vec<_> =
        words.iter().map(|word| (*word != NULL).then(|| CString::new(up_to_zero(word)).unwrap())).collect();
    let pointers: Vec<_> =
        texts.iter().map(|text| text.as_ref().map_or(ptr::null(), |text| text.as_ptr())).collect();
    let mut answer = MaybeUninit::<epitome_answer>::uninit();
    // SAFETY: each pointer has as many bytes as its length, or is null.
    let code = unsafe {
        epitome_call(pointers.as_ptr(), pointers.len(), input.as_ptr(), input.len(), answer.as_mut_ptr())
    };
    // SAFETY: the call has written it.
    let mut answer = unsafe { answer.assume_init() };
    let output = text(answer.output, answer.output_len);
    let diagnostics = String::from_utf8(text(answer.diagnostics, answer.diagnostics_len)).unwrap();
    for _ in 0..2 {
        // SAFETY: it is an answer; the second time, one that was freed.
        unsafe { epitome_answer_free(&raw mut answer) };
        assert!(answer.output.is_null() && answer.diagnostics.is_null());
        assert_eq!((answer.output_len, answer.diagnostics_len), (0, 0));
    }
    (code, output, diagnostics)
}

fn text(start: *mut u8, len: usize) -> Vec<u8> {
    assert!(!start.is_null());
    // SAFETY: by the header, there are this many bytes and a zero.
    let bytes = unsafe { slice::from_raw_parts(start, len + 1) };
    assert_eq!(bytes.last(), Some(&0));
    bytes.split_last().unwrap().1.to_vec()
}

/// True if this command line can access no file of the machine that it runs on, and start nothing there.
///
/// A command has `-` in the place of each file, and only options of [`OPTIONS`]. A first word that is no known command
/// must not begin with a letter, so that a command of a later version is excluded too.
fn leaves_files_alone(words: &[&[u8]]) -> bool {
    if is_refused(words) {
        return true;
    }
    let Some((command, rest)) = words.split_first() else { return true };
    if !COMMANDS.iter().any(|known| known.as_bytes() == *command) {
        let is_option = command.starts_with(b"--") && rest.is_empty();
        return is_option
            || command.first().is_none_or(|first| !first.is_ascii_alphabetic() && *first != b'-');
    }
    let is_output = |at: usize| at > 0 && rest.get(at - 1).is_some_and(|before| *before == b"-o");
    rest.iter().enumerate().all(|(at, word)| match *word {
        b"-" => true,
        b"-o" => rest.get(at + 1).is_some_and(|next| *next == b"-") && !is_output(at),
        _ => OPTIONS.iter().any(|known| known.as_bytes() == name(word)),
    })
}

/// True if the library must refuse these words unread.
fn is_refused(words: &[&[u8]]) -> bool {
    words.iter().any(|word| *word == NULL || core::str::from_utf8(up_to_zero(word)).is_err())
}

/// A word up to its first zero, which is the whole word for C.
fn up_to_zero(word: &[u8]) -> &[u8] {
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// An option without its value.
fn name(word: &[u8]) -> &[u8] {
    word.split(|byte| *byte == b'=').next().unwrap_or_default()
}

fn has(words: &[&[u8]], option: &str) -> bool {
    words.iter().any(|word| name(word) == option.as_bytes())
}

/// True if the whole output is a report in JSON.
fn is_json(words: &[&[u8]]) -> bool {
    let reports = [&b"compact"[..], b"eval", b"stats", b"validate"].contains(&words[0]);
    reports && has(words, "--json") && !has(words, "-o") && !has(words, "--help")
}

/// Checks that the output of `compact` in the form of its input can be read, with the conversations that the command
/// line selects.
fn reads_again(words: &[&[u8]], output: &[u8]) {
    let differs = ["--to", "--dry-run", "--help"].iter().any(|option| has(words, option));
    if words[0] != b"compact" || !has(words, "-o") || differs {
        return;
    }
    let part = words.iter().filter(|word| PART.iter().any(|known| known.as_bytes() == name(word)));
    let stats: Vec<_> = [&b"stats"[..], b"-"].into_iter().chain(part.copied()).collect();
    let (code, _, diagnostics) = answer(&stats, output);
    assert_eq!(code, 0, "{diagnostics}{}", output.escape_ascii());
}
