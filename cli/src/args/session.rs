//! The command line of `session`.

use core::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use epitome::wire::Format;

use super::{InputArgs, PlanArgs, RedactArgs, SummaryArgs, names};
use crate::amount::{Age, positive};
use crate::pins::Pin;
use crate::settings::store_url;

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct StoreArgs {
    /// The store: sqlite:PATH (a file), jsonl:DIR (a directory), or postgres://.. or redis://.. (a server; only if the program
    /// was built with it) [default: the environment variable EPITOME_STORE, else store in the settings file]
    #[arg(long, value_name = "URL", value_parser = store_url)]
    pub(crate) store: String,
    /// A file with the key of an encrypted store, 64 hexadecimal digits; sqlite: and jsonl: are encrypted from their first
    /// import on or never [default: the digits in the environment variable EPITOME_KEY, if it is set; for the store in the settings
    /// file, key-file there]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// A store instead of files.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OptionalStoreArgs {
    /// Only sessions of this store: sqlite:PATH (a file), jsonl:DIR (a directory), or a server, as `epitome session` takes it
    #[arg(long, value_name = "URL", value_parser = store_url)]
    store: Option<String>,
    /// A file with the key of an encrypted store, 64 hexadecimal digits [default: the digits in the environment variable
    /// EPITOME_KEY, if it is set]
    #[arg(long, value_name = "FILE", requires = "store")]
    key_file: Option<PathBuf>,
}

impl OptionalStoreArgs {
    pub(crate) fn given(&self) -> Option<StoreArgs> {
        let store = self.store.clone()?;
        Some(StoreArgs { store, key_file: self.key_file.clone() })
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OneSessionArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The session's name [default: the environment variable EPITOME_SESSION, but not to delete texts]
    #[arg(long, value_name = "ID")]
    pub(crate) session: String,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "inspect")]
#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The session to begin with [default: the list of all sessions]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The port of the server [default: one that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

/// The key of the store that a session is copied to.
#[derive(Debug, ClapArgs)]
pub(crate) struct CopyKeyArgs {
    /// A file with the key of the other store, in the form of --key-file
    #[arg(long, value_name = "FILE", requires = "to")]
    pub(crate) to_key_file: Option<PathBuf>,
    /// The other store is not encrypted, though this one is
    #[arg(long, requires = "to", conflicts_with = "to_key_file")]
    pub(crate) plain: bool,
}

/// The part of a session that stays.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub(crate) struct KeepArgs {
    /// Keep at most this many of the newest visible messages
    #[arg(long, value_name = "N")]
    pub(crate) messages: Option<u64>,
    /// Keep the messages that were stored within this time: 90m, 12h, 30d, 8w
    #[arg(long, value_name = "TIME")]
    pub(crate) age: Option<Age>,
}

/// The hidden messages whose texts are deleted.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub(crate) struct HiddenArgs {
    /// The messages that this revision or an earlier one has hidden
    #[arg(long, value_name = "N")]
    pub(crate) through: Option<u64>,
    /// All hidden messages
    #[arg(long)]
    pub(crate) all: bool,
}

/// The place to which a session is rewound, or at which another one branches off.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub(crate) struct PlaceArgs {
    /// The first message to leave out, by its number in the log
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
    /// Leave out this many of the latest turns: requests of the user, with all that followed
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroUsize>)]
    pub(crate) turns: Option<NonZeroUsize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions
    List {
        #[command(flatten)]
        store: StoreArgs,
        /// Report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the messages of the next request; with --json, as Chat Completions
    Show {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        redact: RedactArgs,
    },
    /// Append a transcript to a session, or restore a session from a file of `export`; a repetition of the first import changes
    /// nothing
    Import {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        session: OneSessionArgs,
        /// Append even if the session has messages already
        #[arg(long)]
        append: bool,
        /// The token counter: estimate, o200k_base, cl100k_base, o200k_harmony
        #[arg(long, value_name = "T", default_value = "estimate")]
        tokenizer: String,
    },
    /// Compact a session: nothing is deleted, the log keeps all of it
    Compact {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        plan: PlanArgs,
        #[command(flatten)]
        summary: SummaryArgs,
        /// A message that no strategy may hide or shorten, with its group: its number in the log (12), a range (3-5), id:ID of a
        /// call or response, source:NAME of its source; may be given more than once
        #[arg(long, value_name = "WHICH")]
        pin: Vec<Pin>,
        /// Report only
        #[arg(long)]
        dry_run: bool,
        /// End with exit code 6 and change nothing if the goal is missed
        #[arg(long)]
        require_goal: bool,
    },
    /// Print the full log, with the revision that hides each message; with --json, a line per message
    Log {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        redact: RedactArgs,
    },
    /// Show sessions in a browser as they grow: the log, what each revision has changed, the difference of two revisions. Starts a
    /// server on this machine that only reads, and prints its address; Ctrl-C ends it
    #[cfg(feature = "inspect")]
    Inspect(InspectArgs),
    /// Write a whole session to a file, for `import` into any store; with --to, the messages of the next request
    Export {
        #[command(flatten)]
        session: OneSessionArgs,
        /// The file; - is standard output
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
        /// Write the messages of the next request in this format, as convert does
        #[arg(long, value_name = "FORMAT", value_parser = names::target())]
        to: Option<Format>,
    },
    /// Copy a session to another store, or to another name
    Copy {
        #[command(flatten)]
        session: OneSessionArgs,
        /// The other store, in the form of --store [default: this store]
        #[arg(long, value_name = "URL", value_parser = store_url)]
        to: Option<String>,
        /// The other name [default: this name]
        #[arg(long = "as", value_name = "ID")]
        name: Option<String>,
        #[command(flatten)]
        key: CopyKeyArgs,
    },
    /// Print the messages that a compaction has hidden or shortened, as they were appended; with --json, a line per message
    Expand {
        #[command(flatten)]
        session: OneSessionArgs,
        /// The revision of the compaction, which log prints beside each message [default: the latest that is not undone]
        #[arg(long, value_name = "N")]
        revision: Option<u64>,
        #[command(flatten)]
        redact: RedactArgs,
    },
    /// Undo the latest compaction: the messages that it hid are visible again
    Uncompact {
        #[command(flatten)]
        session: OneSessionArgs,
        /// The revision of the compaction, so that a repeated command undoes no other one [default: the latest that is not
        /// undone]
        #[arg(long, value_name = "N")]
        revision: Option<u64>,
    },
    /// Hide a message and all later ones: nothing is deleted, and uncompact shows them again
    Rewind {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Hide all visible messages in one step: nothing is deleted, and uncompact shows them again
    Clear(OneSessionArgs),
    /// Hide the oldest messages and delete all hidden ones for good; only whole groups. System messages of the caller, pinned
    /// messages, the last request and open calls stay
    Retain {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        keep: KeepArgs,
        /// Only report how much would be deleted; reads the whole session
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete the texts of hidden messages for good; visible messages stay, and so do the places and sizes of hidden ones
    Prune {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        hidden: HiddenArgs,
        /// Only report how much would be deleted
        #[arg(long)]
        dry_run: bool,
    },
    /// Begin another session with the first messages of this one
    Fork {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        place: PlaceArgs,
        /// The name of the other session
        #[arg(long = "as", value_name = "ID")]
        name: String,
    },
    /// Check a session: do all that was done in it again, and compare
    Verify {
        #[command(flatten)]
        session: OneSessionArgs,
        /// First rebuild the store's index of words: the remedy if a search reports a damaged index
        #[arg(long)]
        reindex: bool,
    },
    /// Delete a session with everything that belongs to it
    #[command(visible_alias = "delete")]
    Erase {
        #[command(flatten)]
        session: OneSessionArgs,
        /// Only report how much would be deleted
        #[arg(long)]
        dry_run: bool,
    },
    /// Write the file of a sqlite: store anew without the space of deleted texts; other stores keep no such space
    Vacuum {
        #[command(flatten)]
        store: StoreArgs,
        /// Report as JSON
        #[arg(long)]
        json: bool,
    },
}

impl SessionCommand {
    /// The options of redaction, for a command that has them.
    pub(crate) const fn redact(&self) -> Option<&RedactArgs> {
        match self {
            Self::Show { redact, .. } | Self::Log { redact, .. } | Self::Expand { redact, .. } => {
                Some(redact)
            }
            #[cfg(feature = "inspect")]
            Self::Inspect(args) => Some(&args.redact),
            _ => None,
        }
    }
}
