//! The lines of a file as a forest of messages.

use std::borrow::Cow;
use std::collections::HashMap;

use epitome_core::message::Role;

use super::line::{Boundary, Line};
use crate::message::{Message, Part, Str};
use crate::wire::WireError;
use crate::wire::expect::share;
use crate::wire::forest::{self, Forest};
use crate::wire::json;
use crate::wire::transcript::{RecordId, Transcript};
use crate::wire::{anthropic, usage as reports};

/// All lines that have a name and a place in a tree.
#[derive(Debug, Default)]
pub(super) struct Session<'a> {
    pub(super) forest: Forest,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) names: HashMap<Cow<'a, str>, usize>,
    pub(super) titles: HashMap<Cow<'a, str>, Cow<'a, str>>,
}

/// A line.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) uuid: Cow<'a, str>,
    pub(super) is_side: bool,
    /// Where the conversation begins anew: what did it, and the line that it went on from before.
    pub(super) cut: Option<Cut<'a>>,
    pub(super) record: Option<RecordId>,
    pub(super) messages: Vec<Message>,
    pub(super) usage: Option<epitome_core::Usage>,
}

#[derive(Debug)]
pub(super) struct Cut<'a> {
    pub(super) before: Option<usize>,
    pub(super) boundary: Boundary<'a>,
}

impl<'a> Session<'a> {
    /// Reads the lines `text`, a slice of the source of `transcript`.
    pub(super) fn read(transcript: &mut Transcript, text: &'a str) -> Result<Self, WireError> {
        let mut session = Self::default();
        forest::for_each_line(transcript, text, |transcript, at, raw| session.push(transcript, at, raw))?;
        Ok(session)
    }

    fn push(
        &mut self,
        transcript: &mut Transcript,
        (list, at): (u32, usize),
        raw: &'a str,
    ) -> Result<(), WireError> {
        let line = Line::of(raw)?;
        if let Some((title, leaf)) = line.title {
            self.titles.insert(leaf, title);
            return Ok(());
        }
        let Some(uuid) = line.uuid.filter(|uuid| !self.names.contains_key(uuid)) else { return Ok(()) };
        let find = |name: &Option<Cow<'_, str>>| name.as_ref().and_then(|name| self.names.get(name)).copied();
        let (parent, logical) = (find(&line.parent), find(&line.logical));
        let after_boundary =
            parent.and_then(|parent| self.nodes.get(parent)).is_some_and(|node| node.cut.is_some());
        let cut = match line.boundary {
            Some(boundary) => Some(Cut { before: logical.or(parent), boundary }),
            None if line.is_summary && !after_boundary => {
                Some(Cut { before: parent.or(logical), boundary: Boundary::default() })
            }
            None => None,
        };
        let mut node = Node {
            uuid: uuid.clone(),
            is_side: line.is_side,
            cut,
            record: None,
            messages: Vec::new(),
            usage: None,
        };
        if let Some(message) = line.message {
            node.read(transcript, (list, at), (raw, message))?;
        }
        let number = self.forest.push(parent.filter(|_| node.cut.is_none()));
        self.nodes.push(node);
        self.names.insert(uuid, number);
        Ok(())
    }

    pub(super) fn node(&self, node: usize) -> Option<&Node<'a>> {
        self.nodes.get(node)
    }

    pub(super) fn holds(&self, node: usize) -> bool {
        self.node(node).is_some_and(|node| node.record.is_some())
    }
}

impl Node<'_> {
    fn read(
        &mut self,
        transcript: &mut Transcript,
        (list, at): (u32, usize),
        (raw, message): (&str, &str),
    ) -> Result<(), WireError> {
        let source = std::sync::Arc::clone(&transcript.source);
        let (messages, usage) = json::nested(raw, message, "/message", |message| {
            anthropic::messages_and_usage(&source, message)
        })?;
        self.record = Some(transcript.element(list, at, messages.len()));
        let id = share(&source, &self.uuid);
        let mut id = Some(id);
        self.messages = messages
            .into_iter()
            .map(|message| match id.take() {
                Some(id) => message.with_id(id),
                None => message,
            })
            .collect();
        // A report that cannot be read is none: the messages are what counts.
        self.usage = usage.and_then(|raw| reports::of(raw).ok());
        Ok(())
    }

    /// The response that it is a line of.
    pub(super) fn response(&self) -> Option<&str> {
        self.messages
            .first()
            .filter(|message| message.role() == Role::Assistant)
            .and_then(Message::response_id)
    }

    /// The calls that it answers, if that is all that it does.
    pub(super) fn answers(&self) -> Option<Vec<&Str>> {
        let answer = |message: &'_ Message| message.role() == Role::Tool;
        if self.messages.is_empty() || !self.messages.iter().all(answer) {
            return None;
        }
        let parts = self.messages.iter().flat_map(|message| message.parts());
        Some(
            parts
                .filter_map(
                    |part| if let Part::ToolResult(result) = part { Some(&result.call_id) } else { None },
                )
                .collect(),
        )
    }

    /// The calls that it makes.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Str> {
        let parts = self.messages.iter().flat_map(|message| message.parts());
        parts.filter_map(|part| if let Part::ToolCall(call) = part { Some(&call.id) } else { None })
    }
}
