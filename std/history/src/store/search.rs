//! The values of a search: its limits, and its results.

use core::ops::Range;
use std::collections::BTreeSet;

use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_message::{Message, Part, ToolCall, ToolResult};

use super::{Logged, SessionId};
use crate::Timestamp;

/// A search for the messages that are nearest to some words, in the logs of a store.
///
/// Hidden and shortened messages are searched in their appended form: texts, tool calls and the texts of tool results.
/// Instructions (system, developer), pruned messages and answers of the recall tool are never found.
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_history::{LogSearch, SearchScope};
///
/// let search = LogSearch::new("the port of the test server").in_sessions("alice/").of_role(Role::Tool).with_limit(3);
/// assert_eq!(search.scope, SearchScope::Prefix("alice/".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogSearch {
    /// The words, in any script.
    pub words: Box<str>,
    /// The sessions to search.
    pub scope: SearchScope,
    /// The sequence numbers to search in each session, ascending and disjoint; `None` for all.
    pub ranges: Option<Vec<Range<Seq>>>,
    /// The revisions whose hidden messages the search leaves out, for example those of `rewind` and `clear`. If there are none, the
    /// search also finds messages that a user has taken back.
    pub not_hidden_by: BTreeSet<Revision>,
    /// The role of the messages to search; `None` for all.
    pub role: Option<Role>,
    /// The tool whose calls and results are searched; `None` for all messages. A message with calls or results of
    /// several tools belongs to each of them. A result belongs to the tool of its call, which is earlier in its group.
    pub tool: Option<Box<str>>,
    /// The earliest append time of the messages; `None` for all. An append without a time has that of the append before it. Appends
    /// before the first one with a time are left out only if that has a time before this one.
    pub since: Option<Timestamp>,
    /// The maximum number of results.
    pub limit: u32,
}

/// The sessions in the scope of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchScope {
    /// All sessions of the store.
    All,
    /// The sessions whose ids begin with this text. If each id begins with its owner and a slash (`alice/`), these are the sessions of
    /// one owner. Without the slash, `alice` also matches `alice2/1`.
    Prefix(Box<str>),
    /// One session.
    Session(SessionId),
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FoundMessage {
    /// The session.
    pub session: SessionId,
    /// The message in its appended form.
    pub logged: Logged,
}

impl FoundMessage {
    /// Makes a result from the message `logged` of a session.
    #[must_use]
    pub const fn new(session: SessionId, logged: Logged) -> Self {
        Self { session, logged }
    }
}

impl LogSearch {
    /// The default maximum number of results.
    pub const LIMIT: u32 = 8;

    /// A search for these words in all sessions of the store.
    #[must_use]
    pub fn new(words: impl Into<Box<str>>) -> Self {
        Self {
            words: words.into(),
            scope: SearchScope::All,
            ranges: None,
            not_hidden_by: BTreeSet::new(),
            role: None,
            tool: None,
            since: None,
            limit: Self::LIMIT,
        }
    }

    /// Searches one session only.
    #[must_use]
    pub fn in_session(mut self, session: impl Into<SessionId>) -> Self {
        self.scope = SearchScope::Session(session.into());
        self
    }

    /// Searches only sessions whose ids begin with `prefix`.
    #[must_use]
    pub fn in_sessions(mut self, prefix: impl Into<Box<str>>) -> Self {
        self.scope = SearchScope::Prefix(prefix.into());
        self
    }

    /// Searches only messages with these sequence numbers.
    #[must_use]
    pub fn in_ranges(mut self, mut ranges: Vec<Range<Seq>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, kept| {
            let meets = next.start <= kept.end;
            if meets {
                kept.end = kept.end.max(next.end);
            }
            meets
        });
        self.ranges = Some(ranges);
        self
    }

    /// Leaves out the messages that these revisions have hidden.
    #[must_use]
    pub fn without_hidden_by(mut self, revisions: BTreeSet<Revision>) -> Self {
        self.not_hidden_by = revisions;
        self
    }

    /// Searches only messages of this role.
    #[must_use]
    pub const fn of_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Searches only calls of the tool with this name, and their results.
    ///
    /// ```
    /// use epitome_history::LogSearch;
    ///
    /// let search = LogSearch::new("panicked at").of_tool("run_tests");
    /// assert_eq!(search.tool.as_deref(), Some("run_tests"));
    /// ```
    #[must_use]
    pub fn of_tool(mut self, name: impl Into<Box<str>>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Searches only messages that were appended at this time or later.
    #[must_use]
    pub const fn since(mut self, time: Timestamp) -> Self {
        self.since = Some(time);
        self
    }

    /// Sets the maximum number of results.
    #[must_use]
    pub const fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Whether this session is in the scope of the search.
    #[doc(hidden)]
    #[must_use]
    pub fn has_session(&self, session: &SessionId) -> bool {
        match &self.scope {
            SearchScope::All => true,
            SearchScope::Prefix(prefix) => session.as_str().starts_with(&**prefix),
            SearchScope::Session(only) => session == only,
        }
    }

    /// Whether a message matches the search, apart from its session, its tool, its time and its words.
    #[doc(hidden)]
    #[must_use]
    pub fn has_message(&self, logged: &Logged) -> bool {
        self.has_number(logged.seq)
            && logged.pruned_by.is_none()
            && logged.hidden_by.is_none_or(|by| !self.not_hidden_by.contains(&by))
            && self.role.is_none_or(|role| role == logged.entry.message.role())
    }

    /// Whether this sequence number is in the scope of the search.
    #[doc(hidden)]
    #[must_use]
    pub fn has_number(&self, seq: Seq) -> bool {
        let Some(ranges) = &self.ranges else { return true };
        let next = ranges.partition_point(|range| range.end <= seq);
        ranges.get(next).is_some_and(|range| range.contains(&seq))
    }
}

/// The calls in a message.
pub(crate) fn calls(message: &Message) -> impl Iterator<Item = &ToolCall> {
    message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    })
}

/// The results in a message.
pub(crate) fn results(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.parts().iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    })
}
