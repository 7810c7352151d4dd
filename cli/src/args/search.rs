//! The command lines of `search` and `mcp`.

use clap::Args as ClapArgs;
use core::num::NonZeroUsize;
use core::str::FromStr;
use epitome::core::message::Role;

use super::{OptionalStoreArgs, RedactArgs, StoreArgs};
use crate::amount::{Age, positive};

#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    /// The words to search for, in any script; likely words of the answer help too
    #[arg(value_name = "WORDS", required_unless_present = "messages", conflicts_with = "messages")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Only in this session: its id, or a beginning of the id that no other session has
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only messages of this role
    #[arg(long, value_name = "ROLE", value_parser = ["user", "assistant", "tool"])]
    pub(crate) role: Option<String>,
    /// Only calls of this tool and their results
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only sessions of agents that were written within this time: 90m, 12h, 30d, 8w; of a store, messages that were appended within it
    #[arg(long, value_name = "TIME")]
    pub(crate) age: Option<Age>,
    /// Print these messages of the session instead: a number from a search (120), or a range (120-124)
    #[arg(long, value_name = "WHICH", requires = "session", conflicts_with_all = ["role", "tool", "age", "limit"])]
    pub(crate) messages: Option<Numbers>,
    /// Begin in the first of these messages at this byte
    #[arg(long, value_name = "BYTE", requires = "messages", default_value_t = 0)]
    pub(crate) from: usize,
    /// The most messages to show, the nearest ones
    #[arg(long, value_name = "N", default_value = "8", value_parser = positive::<NonZeroUsize>)]
    pub(crate) limit: NonZeroUsize,
    /// The most tokens to show; --json shows all of each piece
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) tokens: u32,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

/// Which sessions there are: those of agents in the user's home, or those of a store.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ScopeArgs {
    /// Only sessions of agents in this project: a folder, or the last part of its name
    #[arg(long, value_name = "P", conflicts_with = "store")]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    store: OptionalStoreArgs,
}

impl ScopeArgs {
    /// The store from the command line, if one was given.
    pub(crate) fn store(&self) -> Option<StoreArgs> {
        self.store.given()
    }
}

#[cfg(feature = "mcp")]
#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

/// A range of message numbers of a session, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match [first, last].map(|number| number.trim().parse::<u64>()) {
            [Ok(first), Ok(last)] if first <= last => Ok(Self { first, last }),
            _ => Err("expected the number of a message (120) or a range (120-124)".into()),
        }
    }
}

impl SearchArgs {
    pub(crate) fn role(&self) -> Option<Role> {
        let role = self.role.as_deref()?;
        [Role::User, Role::Assistant, Role::Tool].into_iter().find(|one| one.as_str() == role)
    }
}
