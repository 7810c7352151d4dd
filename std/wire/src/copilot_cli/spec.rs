//! Recognises, reads and writes logs of events.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_message::Str;

use super::event::{CHAIN, Change, agent, body, change, pieces};
use crate::body::{Body, Content};
use crate::document;
use crate::expect::member_text;
use crate::json::{self, ValueKind};
use crate::rewrite::pinned;
use crate::slots;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Relation, ToolCompaction, Transcript};
use crate::{Format, WireError};

/// The row of Copilot CLI in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::CopilotCli, &[], (sign, read), Writer::Slots(pieces)).with_chain(CHAIN);

fn sign(body: &Body<'_>) -> Fit {
    let Content::Lines(text) = &body.content else { return Fit::No };
    let mut is_known = false;
    for line in document::lines(text).take(SAMPLE_MAX) {
        let found = match ValueKind::of(line.text()) {
            ValueKind::Object => json::fields(line.text(), &["type", "data", "id", "parentId"]).ok(),
            _ => None,
        };
        let Some([Some(kind), Some(data), Some(_), Some(_)]) = found else { return Fit::No };
        if ValueKind::of(data) != ValueKind::Object {
            return Fit::No;
        }
        is_known |= KINDS.contains(&kind);
    }
    match is_known {
        true => Fit::Certain("its events have `type`, `data` and `parentId`"),
        false => Fit::No,
    }
}

/// The messages of one agent, during their reading.
struct Thread {
    conversation: Conversation,
    compactions: Vec<ToolCompaction>,
    /// Number of messages that a compaction in progress will replace.
    begun: Option<usize>,
    /// The conversations before each removal of messages.
    before: Vec<Conversation>,
}

impl Thread {
    fn new(conversation: Conversation) -> Self {
        Self { conversation, compactions: Vec::new(), begun: None, before: Vec::new() }
    }

    /// Takes out the first messages, and records the compaction.
    fn compact(&mut self, count: usize, mut compaction: ToolCompaction) {
        let entries = &mut self.conversation.entries;
        let count = count.min(entries.len());
        let mut before = Conversation::new(Format::CopilotCli, "");
        before.entries = entries.drain(..count).collect::<Vec<_>>().into();
        before.active = false;
        compaction.dropped = Some(count as u64);
        for earlier in &mut self.compactions {
            earlier.at = earlier.at.saturating_sub(count);
        }
        compaction.at = entries.len();
        self.conversation.pieces = compaction.at;
        before.pieces = count;
        before.label = Str::from(format!("before compaction {}", self.before.len().saturating_add(1)));
        self.before.extend(Some(before).filter(|_| count > 0));
        self.compactions.push(compaction);
        self.begun = None;
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let source = Arc::clone(body.source);
    let Content::Lines(text) = &body.content else {
        return Err(WireError::shape("expected lines of events, found one JSON value"));
    };
    let list = transcript.forest(text);
    let mut threads = vec![Thread::new(Conversation::new(Format::CopilotCli, ""))];
    let mut of_agents: HashMap<Str, usize> = HashMap::new();
    let base = transcript.conversations.len();
    for at in 0..transcript.count(list) {
        let raw = source.get(transcript.place(list, at)).unwrap_or_default();
        json::nested(text, raw, "", |raw| {
            json::check(raw)?;
            let number = match agent(&source, raw)? {
                None => 0,
                Some(agent) => *of_agents.entry(agent.clone()).or_insert_with(|| {
                    let mut side = Conversation::new(Format::CopilotCli, "");
                    (side.id, side.relation, side.active) = (agent, Relation::SideChain(base), false);
                    threads.push(Thread::new(side));
                    threads.len().saturating_sub(1)
                }),
            };
            match threads.get_mut(number) {
                Some(thread) => event(transcript, thread, (list, at), &source, raw),
                None => Ok(()),
            }
        })?;
    }
    for (number, mut thread) in threads.into_iter().enumerate() {
        thread.conversation.compactions = thread.compactions.into();
        if number > 0 && thread.conversation.entries.is_empty() && thread.before.is_empty() {
            continue;
        }
        let own = transcript.push(thread.conversation);
        for mut before in thread.before {
            before.relation = Relation::Branch(own);
            transcript.push(before);
        }
    }
    Ok(())
}

fn event(
    transcript: &mut Transcript,
    thread: &mut Thread,
    (list, at): (u32, usize),
    source: &Arc<str>,
    raw: &str,
) -> Result<(), WireError> {
    let (kind, data) = body(raw)?;
    if kind == "\"session.start\"" {
        thread.conversation.id = member_text(source, data, "sessionId")?.unwrap_or_default();
    }
    let change = change(source, raw)?;
    let said = thread.conversation.entries.len();
    let must_stay = matches!(change, Change::Compacted(_) | Change::Cleared);
    match change {
        Change::None => {}
        Change::CompactionBegins => thread.begun = Some(said),
        Change::Compacted(compaction) => thread.compact(thread.begun.unwrap_or(said), compaction),
        Change::Cleared => {
            let mut compaction = ToolCompaction::new(0);
            compaction.trigger = Str::from("clear");
            thread.compact(said, compaction);
        }
        Change::Truncated(mut compaction) => {
            compaction.at = said;
            thread.compactions.push(compaction);
        }
    }
    let messages = slots::messages(source, raw, Format::CopilotCli, pieces)?;
    if !messages.is_empty() {
        let record = transcript.element(list, at, messages.len());
        if must_stay {
            transcript.must_stay(record);
        }
        thread.conversation.extend(record, if must_stay { pinned(messages) } else { messages });
    }
    Ok(())
}

/// Maximum number of lines to search for signs of the format.
const SAMPLE_MAX: usize = 256;

/// Types of events that identify the format, as JSON.
const KINDS: &[&str] = &[
    "\"session.start\"",
    "\"user.message\"",
    "\"assistant.message\"",
    "\"tool.execution_start\"",
    "\"tool.execution_complete\"",
];
