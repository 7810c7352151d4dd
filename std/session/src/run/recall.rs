//! Recall of hidden messages by the model.

use core::ops::{Range, RangeInclusive};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_core::Seq;
use epitome_core::message::Role;
use serde_json::{Value, json};

use super::live::Run;
use crate::compaction::OWN_TOOLS;
use crate::history::Unseen;
use crate::message::{Message, Part, Str, ToolCall};
use crate::provider::ContextProvider;
use crate::search::{MessageSearch, RECALL, Record, nearest_record, text_of};
use crate::session::{CONTEXT_SOURCE, SessionError, Tool};

/// The tool that [`RunSettings::with_recall`](super::RunSettings::with_recall) gives the model: it searches the
/// messages of the session that are hidden or shortened, and shows them in their original form.
///
/// - `{"query": "the port of the test server"}` shows the messages that are nearest to the words, by BM25.
/// - `{"messages": "120-124"}` shows messages by their numbers. With `"from": 1600` the first of them begins at that byte of its text.
/// - Both together search among these messages only: of a long message the piece that is nearest to the words is shown.
/// - `{"file": "src/lib.rs"}` shows the calls whose arguments name a file, and their results, the newest as far as
///   there is room. The end of a path is enough. With a query, it shows the nearest of them.
///
/// The stand-ins of a compaction contain the numbers: `[cleared; #57]` in the place of a result, `[12 lines cut; #57]`
/// in an excerpt, `[In full: recall_history, messages 12-80]` in a summary, a digest or a ledger. A search returns them
/// too. They are the numbers of the log, so that they hold in later runs. Only the session's own log is read, whatever
/// number a text names.
///
/// An answer has at most [`RecallTool::TOKENS_MAX`] tokens. It states that it is a record, and follows the rules of any
/// tool result: a later compaction may clear it. Pruned messages are gone, and are not found; nor are messages that
/// were taken back ([`rewind`](super::rewind), `clear`).
///
/// *Cost*: a search is one search of the store ([`HistoryStore::search`](crate::history::HistoryStore::search)). `file` reads the log.
///
/// ```
/// use epitome_std::run::{RecallTool, RunSettings};
///
/// let settings = RunSettings::new("helper").with_recall();
/// assert!(settings.recall);
/// assert_eq!(RecallTool::definition().name.as_str(), RecallTool::NAME);
/// ```
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "it has no fields")]
pub struct RecallTool;

impl RecallTool {
    /// Its name.
    pub const NAME: &str = RECALL;

    /// The most tokens of an answer.
    pub const TOKENS_MAX: u32 = 2_000;

    /// The definition that is sent to the model. It is the same in each request.
    #[must_use]
    pub fn definition() -> Tool {
        let description = "Reads the earlier part of this conversation that is no longer shown, or only in short. Give the number of a \
             message, which stands in the note in its place (57 for [cleared; #57]) or in a summary; or words to search for; or both; or the path of a file.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words of what was said, called or returned: names, paths, values." },
                "messages": { "type": "string", "description": "A number, 120, or a range, 120-124. With a query: where to search." },
                "file": { "type": "string", "description": "A path or its end: what calls read of this file, wrote to it or said of it." },
                "from": { "type": "integer", "description": "Where to begin in the first of these messages, in bytes." },
            },
            "additionalProperties": false,
        });
        let mut tool = Tool::new(Self::NAME, description, parameters);
        tool.metadata.insert(CONTEXT_SOURCE.into(), Value::from(OWN_TOOLS));
        tool
    }
}

/// The most messages that a search shows.
const FOUND_MAX: u32 = 8;

/// Request of a recall call.
enum Asked {
    /// Words, and the numbers of the messages to be searched.
    Query(String, RangeInclusive<u64>),
    /// Numbers, and the first byte to show of the first of these messages.
    Messages(RangeInclusive<u64>, usize),
    /// A path, perhaps words, and the numbers of the messages that are looked at.
    File(String, Option<String>, RangeInclusive<u64>),
}

/// Text of a message that is read by number: also earlier calls of this tool and their records, but no instructions.
fn text_by_number(message: &Message) -> String {
    match message.role() {
        Role::System | Role::Developer => String::new(),
        _ => text_of(message),
    }
}

/// Messages that are not sent whole.
struct Left<'r> {
    /// The messages that are sent whole, by the numbers of the run.
    whole: HashSet<Seq>,
    /// The unseen messages of the stored history, if there is one.
    stored: Option<Unseen<'r>>,
}

impl Run<'_> {
    /// Answers a call of the tool. Both texts are for the model.
    pub(super) async fn recall_for(&mut self, call: &ToolCall) -> Result<Str, Str> {
        let failed =
            |_| Str::from("The earlier part of the conversation cannot be read now. Go on without it.");
        match asked(&call.arguments) {
            Some(Asked::Query(query, numbers)) => self.search(&query, numbers).await.map_err(failed),
            Some(Asked::Messages(numbers, from)) => self.read(numbers, from).await.map_err(failed),
            Some(Asked::File(path, query, numbers)) => {
                self.of_file(&path, query.as_deref(), numbers).await.map_err(failed)
            }
            None => Err("Give \"query\", words to search for, \"messages\", a number or a range like 120-124, or \"file\", a path."
                .into()),
        }
    }

    async fn search(&self, query: &str, among: RangeInclusive<u64>) -> Result<Str, SessionError> {
        let (left, mut found) = (self.left().await?, BTreeMap::new());
        if let Some(stored) = &left.stored {
            let nearest = stored.nearest(query, self.stored(&among), FOUND_MAX).await?;
            found.extend(nearest.into_iter().map(|logged| (logged.seq.0, Cow::Owned(logged.entry.message))));
        }
        let logged = self.log_numbers();
        found.extend(
            self.own(&left, &logged, &among).map(|(number, message)| (number, Cow::Borrowed(message))),
        );
        let mut search = MessageSearch::new(query);
        found.iter().for_each(|(number, message)| search.add(*number, message));
        let nearest = search.nearest(FOUND_MAX as usize);
        let nearest = nearest.iter().filter_map(|number| Some((*number, &**found.get(number)?)));
        let counter = &**self.settings.counter();
        let record = nearest_record(query, nearest, counter, RecallTool::TOKENS_MAX);
        Ok(record.map_or_else(|| "No hidden message has these words.".into(), Into::into))
    }

    async fn read(&self, numbers: RangeInclusive<u64>, from: usize) -> Result<Str, SessionError> {
        let (first, last) = (*numbers.start(), *numbers.end());
        let mut record = Record::new(&**self.settings.counter(), RecallTool::TOKENS_MAX);
        self.for_each_left(&self.left().await?, numbers, |number, message| {
            let text = text_by_number(message);
            let from = if number == first { from } else { 0 };
            text.is_empty() || record.push(number, &format!("#{number}"), &text, from..usize::MAX)
        })
        .await?;
        Ok(match record.is_empty() {
            true => format!("No message from {first} to {last} is hidden.").into(),
            false => record.into_text(&format!("messages {first} to {last}")).into(),
        })
    }

    /// Shows the calls that name a file, and their results: the newest, or those that are nearest to words.
    async fn of_file(
        &self,
        path: &str,
        query: Option<&str>,
        numbers: RangeInclusive<u64>,
    ) -> Result<Str, SessionError> {
        let mut calls = FileCalls::of(path);
        // A call can be visible while its result is hidden.
        let logged = self.log_numbers();
        for live in self.working.visible().live() {
            if let Some(number) = self.working.stored_number(live.key) {
                calls.add(number.0, &live.entry.message);
            }
        }
        for (_, number, entry) in self.working.own(&logged) {
            calls.add(number, &entry.message);
        }
        let mut found = BTreeMap::new();
        self.for_each_left(&self.left().await?, 0..=*numbers.end(), |number, message| {
            let parts = calls.add(number, message);
            if !parts.is_empty() && numbers.contains(&number) {
                found.insert(number, Message::new(message.role(), parts));
            }
            true
        })
        .await?;
        let counter = &**self.settings.counter();
        if let Some(query) = query {
            let mut search = MessageSearch::new(query);
            found.iter().for_each(|(number, message)| search.add(*number, message));
            let nearest = search.nearest(FOUND_MAX as usize);
            let nearest = nearest.iter().filter_map(|number| Some((*number, found.get(number)?)));
            let record = nearest_record(query, nearest, counter, RecallTool::TOKENS_MAX);
            return Ok(
                record.map_or_else(|| "No hidden call of this file has these words.".into(), Into::into)
            );
        }
        let mut record = Record::new(counter, RecallTool::TOKENS_MAX);
        for (number, message) in found.iter().rev() {
            if !record.push(*number, &format!("#{number}"), &text_by_number(message), 0..usize::MAX) {
                break;
            }
        }
        Ok(match record.is_empty() {
            true => "No hidden call names this file.".into(),
            false => record.into_text("calls of this file").into(),
        })
    }

    async fn left(&self) -> Result<Left<'_>, SessionError> {
        let whole = self.working.visible().live().iter().filter(|live| live.is_whole());
        let whole: HashSet<Seq> = whole.map(|live| live.key).collect();
        let primary = self.providers.primary_history();
        let stored = match primary.and_then(|primary| self.context.history(primary.source_id())) {
            Some(history) => {
                let seen = whole.iter().filter_map(|key| self.working.stored_number(*key));
                // Messages that the run has stored itself are found among its own.
                let seen = seen.chain(self.working.stored_here().iter().copied());
                Some(history.unseen_beside(seen.collect()).await?)
            }
            None => None,
        };
        Ok(Left { whole, stored })
    }

    /// Visits the hidden or shortened messages with these numbers, in order, until `visit` returns `false`.
    ///
    /// The stored messages have their numbers in the log; those of this run, which are not stored yet, have the next ones.
    async fn for_each_left(
        &self,
        left: &Left<'_>,
        numbers: RangeInclusive<u64>,
        mut visit: impl FnMut(u64, &Message) -> bool + Send,
    ) -> Result<(), SessionError> {
        if let Some(stored) = &left.stored
            && !stored.for_each(self.stored(&numbers), |seq, message| visit(seq.0, message)).await?
        {
            return Ok(());
        }
        let logged = self.log_numbers();
        for (number, message) in self.own(left, &logged, &numbers) {
            if !visit(number, message) {
                break;
            }
        }
        Ok(())
    }

    /// The numbers of the stored history among these.
    fn stored(&self, numbers: &RangeInclusive<u64>) -> Range<Seq> {
        Seq(*numbers.start())..Seq(numbers.end().saturating_add(1).min(self.working.stored_len()))
    }

    /// The messages of this run that are not sent whole, with their numbers.
    fn own<'r>(
        &'r self,
        left: &'r Left<'_>,
        logged: &'r BTreeMap<Seq, Seq>,
        numbers: &'r RangeInclusive<u64>,
    ) -> impl Iterator<Item = (u64, &'r Message)> {
        let own = self.working.own(logged);
        let own = own.filter(|(key, number, _)| numbers.contains(number) && !left.whole.contains(key));
        own.map(|(_, number, entry)| (number, &entry.message))
    }
}

/// Request in the arguments of a call; `None` if they cannot be read.
fn asked(arguments: &str) -> Option<Asked> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let text = |name: &str| match arguments.get(name)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let query = text("query").filter(|query| !query.is_empty());
    let file = text("file").filter(|path| !path.is_empty());
    let Some(messages) = text("messages").filter(|text| !text.is_empty()) else {
        return match (file, query) {
            (Some(file), query) => Some(Asked::File(file, query, 0..=u64::MAX)),
            (None, query) => query.map(|query| Asked::Query(query, 0..=u64::MAX)),
        };
    };
    let (first, last) = messages.split_once('-').unwrap_or((&messages, &messages));
    // Notes and records name a message `#57`.
    let number = |text: &str| text.trim().trim_start_matches('#').parse::<u64>().ok();
    let numbers = number(first)?..=number(last)?;
    if numbers.is_empty() {
        return None;
    }
    let from = text("from").and_then(|from| from.parse().ok()).unwrap_or_default();
    Some(match (file, query) {
        (Some(file), query) => Asked::File(file, query, numbers),
        (None, Some(query)) => Asked::Query(query, numbers),
        (None, None) => Asked::Messages(numbers, from),
    })
}

/// The calls whose arguments name a file.
struct FileCalls<'p> {
    path: &'p str,
    /// By id and by the number of the message, whether a call names the file.
    calls: HashMap<Str, BTreeMap<u64, bool>>,
}

impl<'p> FileCalls<'p> {
    fn of(path: &'p str) -> Self {
        let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
        Self { path, calls: HashMap::new() }
    }

    /// Adds the calls of a message. Returns those that name the file, and the results that answer such calls.
    fn add(&mut self, number: u64, message: &Message) -> Vec<Part> {
        let mut of_file = Vec::new();
        for part in message.parts() {
            let is_of_file = match part {
                Part::ToolCall(call) => {
                    // A call of this tool names the requested file: it does not count.
                    let names = &*call.name != RecallTool::NAME && self.is_named_in(&call.arguments);
                    self.calls.entry(call.id.clone()).or_default().insert(number, names);
                    names
                }
                Part::ToolResult(result) => {
                    // An id may be used again: take the latest call before the result.
                    let calls = self.calls.get(&result.call_id);
                    let latest = calls.and_then(|calls| calls.range(..=number).next_back());
                    latest.is_some_and(|(_, names)| *names)
                }
                _ => false,
            };
            if is_of_file {
                of_file.push(part.clone());
            }
        }
        of_file
    }

    /// Whether a text in the arguments of a call names the file.
    fn is_named_in(&self, arguments: &str) -> bool {
        match serde_json::from_str(arguments) {
            Ok(arguments) => self.is_in(&arguments),
            Err(_) => names_file(arguments, self.path),
        }
    }

    fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => names_file(text, self.path),
            Value::Array(values) => values.iter().any(|value| self.is_in(value)),
            Value::Object(members) => members.values().any(|value| self.is_in(value)),
            _ => false,
        }
    }
}

/// Whether a text has a path, one that ends with it or one within it: `lib.rs` is in `src/lib.rs`, but not in `mylib.rs` or `lib.rs.bak`.
fn names_file(text: &str, path: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(path)).filter(|_| !path.is_empty()) {
        let (begin, end) = (from.saturating_add(at), from.saturating_add(at).saturating_add(path.len()));
        let before = text.get(..begin).and_then(|before| before.chars().next_back());
        let mut after = text.get(end..).unwrap_or_default().chars();
        let (next, behind) = (after.next(), after.next());
        let goes_on = next.is_some_and(is_name) || (next == Some('.') && behind.is_some_and(is_name));
        let is_dotted = before == Some('.') || before.is_some_and(is_name);
        if !goes_on && !is_dotted {
            return true;
        }
        from = begin.saturating_add(path.chars().next().map_or(1, char::len_utf8));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::FileCalls;

    #[test]
    fn a_path_is_named_whole_or_from_a_folder_on() {
        let is_named = |arguments: &str, path: &str| FileCalls::of(path).is_named_in(arguments);
        let arguments = r#"{"path":"./src/lib.rs","command":"cat\tsrc/main.rs; ls docs/","all":["a\nb.rs", "caf\u00e9.md"]}"#;
        let named = [
            "src/lib.rs",
            "lib.rs",
            "./src/lib.rs",
            "main.rs",
            "docs",
            "src",
            "docs/",
            "b.rs",
            "caf\u{e9}.md",
        ];
        for path in named {
            assert!(is_named(arguments, path), "{path}");
        }
        for path in
            ["ib.rs", "src/lib", "lib.r", "rs", "main.rs.bak", "doc", "/lib.rsx", "path", "command", ""]
        {
            assert!(!is_named(arguments, path), "{path}");
        }
        assert!(is_named("xa/a/a", "a/a") && !is_named(r#"{"path":"src/lib.rs.bak"}"#, "lib.rs"));
        assert!(is_named("Read lib.rs.", "lib.rs") && is_named(r"C:\src\lib.rs", r"src\lib.rs"));
    }
}
