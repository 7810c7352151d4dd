//! The values of a search: what limits it, and a message that it has found.

use core::ops::Range;
use std::collections::BTreeSet;

use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_message::{Message, Part};

use super::{Entry, Logged, SessionId};
use crate::Timestamp;

/// A search for the messages that are nearest to some words, in the logs of a store.
///
/// Hidden and shortened messages are searched as they were appended: texts, tool calls and the texts of tool results. Instructions
/// (system, developer), pruned messages and answers of the recall tool are never found.
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
    /// The sessions that are searched.
    pub scope: SearchScope,
    /// The sequence numbers that are searched in each session, ascending and apart; `None` for all.
    pub ranges: Option<Vec<Range<Seq>>>,
    /// The revisions whose hidden messages the search leaves out, for example those of `rewind` and `clear`. If there are none, the
    /// search also finds messages that a user has taken back.
    pub not_hidden_by: BTreeSet<Revision>,
    /// The role of the messages that are searched; `None` for all.
    pub role: Option<Role>,
    /// The tool whose calls and results are searched; `None` for all messages. A message with calls or results of several tools belongs
    /// to each of them.
    pub tool: Option<Box<str>>,
    /// The earliest append time of the messages; `None` for all. An append without a time has that of the append before it. Appends
    /// before the first one with a time are left out only if that has a time before this one.
    pub since: Option<Timestamp>,
    /// The most messages that are found.
    pub limit: u32,
}

/// The sessions that a search looks at.
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

/// A message that a search has found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FoundMessage {
    /// The session.
    pub session: SessionId,
    /// The message, as it was appended.
    pub logged: Logged,
}

impl FoundMessage {
    /// The message `logged` of a session.
    #[must_use]
    pub const fn new(session: SessionId, logged: Logged) -> Self {
        Self { session, logged }
    }
}

impl LogSearch {
    /// The most messages that are found, unless the caller says otherwise.
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
    pub fn in_session(mut self, session: SessionId) -> Self {
        self.scope = SearchScope::Session(session);
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

    /// Sets the most messages that are found.
    #[must_use]
    pub const fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Whether the search looks at this session.
    #[doc(hidden)]
    #[must_use]
    pub fn has_session(&self, session: &SessionId) -> bool {
        match &self.scope {
            SearchScope::All => true,
            SearchScope::Prefix(prefix) => session.as_str().starts_with(&**prefix),
            SearchScope::Session(only) => session == only,
        }
    }

    /// Whether the search looks at this message of such a session, by all but its tool, its time and its words.
    #[doc(hidden)]
    #[must_use]
    pub fn has_message(&self, logged: &Logged) -> bool {
        self.has_number(logged.seq)
            && logged.pruned_by.is_none()
            && logged.hidden_by.is_none_or(|by| !self.not_hidden_by.contains(&by))
            && self.role.is_none_or(|role| role == logged.entry.message.role())
    }

    /// Whether the search looks at this message by its tool; `None` if the first message of its group says so.
    #[doc(hidden)]
    #[must_use]
    pub fn has_tool(&self, logged: &Logged) -> Option<bool> {
        let Entry { message, anchor, orphan, .. } = &logged.entry;
        let has = self.has_tool_in_group(message, None);
        (has || *anchor == logged.seq || *orphan || !has_result(message)).then_some(has)
    }

    /// Whether the search looks at a message of a group that begins with `first`, by its tool.
    #[doc(hidden)]
    #[must_use]
    pub fn has_tool_in_group(&self, message: &Message, first: Option<&Message>) -> bool {
        let Some(tool) = &self.tool else { return true };
        tools(message, first).any(|own| own == &**tool)
    }

    /// Whether the search looks at this sequence number.
    #[doc(hidden)]
    #[must_use]
    pub fn has_number(&self, seq: Seq) -> bool {
        let Some(ranges) = &self.ranges else { return true };
        let next = ranges.partition_point(|range| range.end <= seq);
        ranges.get(next).is_some_and(|range| range.contains(&seq))
    }
}

/// Whether a message has a result of a tool.
pub(crate) fn has_result(message: &Message) -> bool {
    message.parts().iter().any(|part| matches!(part, Part::ToolResult(_)))
}

/// The names of the tools whose calls or results a message has. The calls of its results are in it, or in the first message of its group.
pub(crate) fn tools<'m>(message: &'m Message, first: Option<&'m Message>) -> impl Iterator<Item = &'m str> {
    let calls = |message: &'m Message| {
        message.parts().iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    };
    let is_answered = |id: &str| {
        let answers = |part: &Part| matches!(part, Part::ToolResult(result) if &*result.call_id == id);
        message.parts().iter().any(answers)
    };
    let answered = first.into_iter().flat_map(calls).filter(move |call| is_answered(&call.id));
    calls(message).chain(answered).map(|call| call.name.as_str())
}
