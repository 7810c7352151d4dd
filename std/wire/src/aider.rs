//! Chat histories of aider: the markdown in `.aider.chat.history.md`.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, read};
//!
//! let text = concat!(
//!     "# aider chat started at 2026-05-22 09:00:00\n\n",
//!     "> Added a.py to the chat.  \n\n",
//!     "#### Add a greeting  \n#### in French  \n\n",
//!     "Done: it prints a greeting.\n",
//! );
//! let transcript = read(text, &ReadOptions::default())?;
//! let conversation = &transcript.conversations()[0];
//! let roles: Vec<_> = conversation.messages().map(|message| message.role()).collect();
//! assert_eq!((conversation.format, roles.as_slice()), (Format::Aider, &[Role::User, Role::User, Role::Assistant][..]));
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - A file is one conversation. aider adds each run to the file, and `--restore-chat-history` loads all runs. A line
//!   that begins with `# aider chat started at` begins a run, and is no message.
//! - Successive lines that begin with `#### ` are a message of the user. aider ends each of them with two spaces. A
//!   line without these spaces is a heading of the assistant. If no such line of the file has the spaces, an editor has
//!   removed them, and all such lines are the user's.
//! - Successive lines that begin with `> ` are output of the program: a message of a tool, and no request. Some
//!   versions of aider mark only the first line of an output of several lines. The other lines are read as the
//!   assistant's, as aider reads them.
//! - All other lines are the assistant's.
//! - A command to aider (`/add a.py`, `!ls`) is context. `/ask`, `/code`, `/architect`, `/context` and `/help` with a
//!   text are requests, and so is `/ok`.
//!
//! aider's own reader differs in three points. It leaves out the output of the program. It reads each line that begins
//! with `#### ` as the user's. It leaves out each line that begins with `# `, in answers too. A text that is written
//! back keeps these lines.
//!
//! The writer changes texts, leaves out messages, and adds texts. A new text of the assistant stands between empty
//! lines of output (`>` and two spaces), which aider writes too. Successive answers without a separator are one message
//! when the file is read again. A new or changed text of the assistant is refused if one of its lines begins like a
//! line of another speaker. The line that begins a run is left out with the last message of the run. If the run has no
//! message, the line is left out with the last message before it. The first such line of the file stays.
//!
//! Source: `split_chat_history_markdown` in `aider/utils.py`, `aider/io.py` and `aider/commands.py` of aider 0.86.3.dev (May 2026).

mod runs;
mod spec;

pub(crate) use runs::is_history;
pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::Aider.as_str();

#[cfg(test)]
mod tests;
