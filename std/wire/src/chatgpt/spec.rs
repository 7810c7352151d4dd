//! Recognises and reads exports.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_message::{Str, WireText};

use super::message::{Said, Speech};
use crate::body::Body;
use crate::branches::{Branches, Ordered, parents_first};
use crate::document::Pointer;
use crate::expect::{expect_object, member_text, optional_text, present, share};
use crate::exports;
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::Transcript;
use crate::{Format, WireError, WireErrorKind};

/// The row of ChatGPT in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::ChatGpt,
    &["mapping", "current_node", "title"],
    (sign, read),
    Writer::ReadOnly,
);

fn sign(body: &Body<'_>) -> Fit {
    exports::fit(body, "its conversations have a `mapping` of messages", |raw| {
        exports::value_of(raw, "mapping", ValueKind::Object).ok().flatten().and_then(is_mapping)
    })
}

/// Whether the members of `mapping` are nodes and one of them has a message. `None` if one of them is no node.
fn is_mapping(mapping: &str) -> Option<bool> {
    let (mut all, mut any) = (true, false);
    let scanned = json::raw_members(mapping, |_, node| {
        let known = match ValueKind::of(node) {
            ValueKind::Object => json::fields(node, &["message", "parent", "children"]).ok(),
            _ => None,
        };
        all &= known.is_some_and(|node| node.iter().any(Option::is_some));
        any |= known
            .and_then(|[message, ..]| message)
            .is_some_and(|message| ValueKind::of(message) == ValueKind::Object);
        Ok(())
    });
    (scanned.is_ok() && all).then_some(any)
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    exports::for_each(transcript, body, |transcript, path, raw| {
        conversation(transcript, (path, raw), body.leaf())
    })
}

/// A node of a conversation.
struct Node<'a> {
    name: Str,
    /// The message and its content.
    message: Option<(&'a str, Said)>,
}

/// Adds the conversation `raw` at `path`, and its branches. Returns whether `leaf` is its id, or the id of one of its
/// messages.
fn conversation(
    transcript: &mut Transcript,
    (path, raw): (&str, &str),
    leaf: Option<&str>,
) -> Result<bool, WireError> {
    let mapping = exports::messages_of(raw, "mapping", ValueKind::Object)?;
    let source = Arc::clone(&transcript.source);
    let nodes = json::nested(raw, mapping, "/mapping", |mapping| nodes(&source, mapping))?;
    let answers = answers(&nodes);
    let answered: HashSet<_> = answers.iter().flatten().copied().collect();
    let mut branches = Branches::default();
    for (at, (place, answers)) in nodes.iter().zip(&answers).enumerate() {
        let node = &place.node;
        let call = answers.and_then(|call| nodes.get(call)).map(|call| call.node.name.clone());
        let said = node.message.as_ref().and_then(|(raw, said)| {
            let message = said.message(&node.name, call, answered.contains(&at))?;
            let wire = WireText::new(Format::ChatGpt.shared_name(), share(&source, raw));
            Some((transcript.value(raw, 1), vec![message.with_wire(wire)]))
        });
        branches.push((place.at, place.parent), node.name.clone(), said);
    }
    drop(nodes);
    let id = match exports::name(&source, raw, "conversation_id")? {
        id if id.is_empty() => exports::name(&source, raw, "id")?,
        id => id,
    };
    let label = exports::name(&source, raw, "title")?;
    let current = member_text(&source, raw, "current_node")?;
    Ok(branches.add_to(transcript, (Format::ChatGpt, path), (id, label), (leaf, current)))
}

/// The nodes of a mapping, each behind its parent, with the number of the parent.
fn nodes<'a>(source: &Arc<str>, mapping: &'a str) -> Result<Vec<Ordered<Node<'a>>>, WireError> {
    let mut found = Vec::new();
    json::members(mapping, |key, node| {
        let name = share(source, &key);
        let read = |node: &'a str| {
            expect_object(node, "a node")?;
            let [message, parent] = json::fields(node, &["message", "parent"])?;
            let message = present(node, message, "message", |raw| Ok((raw, Said::of(source, raw)?)))?;
            let parent = optional_text(node, parent, "parent")?.map(|parent| share(source, &parent));
            Ok((parent, message))
        };
        let (parent, message) = json::nested(mapping, node, Pointer::default().join(&name), read)?;
        found.push((parent, Node { name, message }));
        Ok(())
    })?;
    let names: HashMap<_, _> = found.iter().map(|(_, node)| node.name.clone()).zip(0_usize..).collect();
    if names.len() < found.len() {
        return Err(WireError::new(
            WireErrorKind::DuplicateKey,
            "two messages of `mapping` have the same key",
        ));
    }
    let number = |parent: Option<Str>| parent.and_then(|parent| names.get(&parent).copied());
    parents_first(found.into_iter().map(|(parent, node)| (number(parent), node)).collect())
}

/// For each node with a result, the node of its call: the last call on the path to it, if exactly one result answers
/// the call on every path behind the call.
fn answers(nodes: &[Ordered<Node<'_>>]) -> Vec<Option<usize>> {
    let parents: HashSet<_> = nodes.iter().filter_map(|node| node.parent).collect();
    // The open call at each node.
    let mut open: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
    let (mut answers, mut left_open) = (Vec::with_capacity(nodes.len()), HashSet::new());
    for (at, Ordered { parent, node, .. }) in nodes.iter().enumerate() {
        let before = parent.and_then(|parent| open.get(parent).copied().flatten());
        let speech = node.message.as_ref().map_or(Speech::Nothing, |(_, said)| said.speech());
        let (answer, now) = match speech {
            Speech::Nothing => (None, before),
            Speech::Call => (None, Some(at)),
            Speech::Result => (before, None),
            Speech::Text => (None, None),
        };
        left_open.extend(before.filter(|_| matches!(speech, Speech::Call | Speech::Text)));
        left_open.extend(now.filter(|_| !parents.contains(&at)));
        answers.push(answer);
        open.push(now);
    }
    answers.into_iter().map(|call| call.filter(|call| !left_open.contains(call))).collect()
}
