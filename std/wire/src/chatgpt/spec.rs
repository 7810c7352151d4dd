//! Exports, told and read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_message::{Str, WireText};

use super::message::{Said, Speech};
use crate::branches::{Branches, parents_first};
use crate::document::Pointer;
use crate::expect::{expect_object, member_text, optional_text, present, share};
use crate::exports;
use crate::json::{self, Kind};
use crate::spec::{Body, Fit, FormatName, FormatSpec, Reader, Writer};
use crate::transcript::Transcript;
use crate::{Format, WireError, WireErrorKind};

/// The row of ChatGPT.
pub(crate) const SPEC: FormatSpec = FormatSpec {
    name: FormatName::BuiltIn(Format::ChatGpt),
    keys: &["mapping", "current_node", "title"],
    reader: Reader::Own { sign, read },
    writer: Writer::ReadOnly,
    fresh: None,
    chain: None,
    log: None,
    outliner: None,
};

fn sign(body: &Body<'_>) -> Fit {
    exports::fit(body, "its conversations have a `mapping` of messages", |raw| {
        exports::value_of(raw, "mapping", Kind::Object).is_ok_and(|mapping| mapping.is_some_and(is_mapping))
    })
}

/// Whether the members of `mapping` are nodes.
fn is_mapping(mapping: &str) -> bool {
    let mut all = true;
    let scanned = json::raw_members(mapping, |_, node| {
        let known = match Kind::of(node) {
            Kind::Object => json::fields(node, &["message", "parent", "children"]).ok(),
            _ => None,
        };
        all &= known.is_some_and(|[message, parent, children]| {
            message.is_some() || parent.is_some() || children.is_some()
        });
        Ok(())
    });
    scanned.is_ok() && all
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    exports::for_each(transcript, body, |transcript, path, raw| {
        conversation(transcript, (path, raw), body.leaf)
    })
}

/// A node of a conversation.
struct Node<'a> {
    name: Str,
    /// The message, and what it says.
    message: Option<(&'a str, Said)>,
}

/// Adds the conversation `raw`, which stands at `path`, and its branches. Whether `leaf` is its id, or that of one of its
/// messages.
fn conversation(
    transcript: &mut Transcript,
    (path, raw): (&str, &str),
    leaf: Option<&str>,
) -> Result<bool, WireError> {
    expect_object(raw, "a conversation")?;
    let source = Arc::clone(&transcript.source);
    let Some(mapping) = exports::value_of(raw, "mapping", Kind::Object)? else {
        let found = json::describe(raw);
        return Err(WireError::shape(format!(
            "expected a conversation with `mapping`, an object, found {found}"
        )));
    };
    let nodes = json::nested(raw, mapping, "/mapping", |mapping| nodes(&source, mapping))?;
    let answers = answers(&nodes);
    let answered: HashSet<_> = answers.iter().flatten().copied().collect();
    let ends = [leaf.map(Str::from), member_text(&source, raw, "current_node")?];
    let mut branches = Branches::default();
    let mut end = [None; 2];
    for (at, ((parent, node), answers)) in nodes.iter().zip(&answers).enumerate() {
        let call = answers.and_then(|call| nodes.get(call)).map(|(_, call)| call.name.clone());
        let said = node.message.as_ref().and_then(|(raw, said)| {
            let message = said.message(&node.name, call, answered.contains(&at))?;
            let wire = WireText::new(Format::ChatGpt.shared_name(), share(&source, raw));
            Some((transcript.value(raw, 1), vec![message.with_wire(wire)]))
        });
        let number = branches.push((node.name.clone(), *parent), said);
        for (end, name) in end.iter_mut().zip(&ends) {
            if name.as_ref() == Some(&node.name) {
                *end = Some(number);
            }
        }
    }
    drop(nodes);
    let [leaf_end, current] = end;
    let place = (Format::ChatGpt, path, transcript.conversations.len());
    let mut is_leaf = false;
    let mut found = branches.conversations(place, leaf_end.or(current));
    if let Some(first) = found.first_mut() {
        let id = member_text(&source, raw, "conversation_id")?;
        first.id = id.or(member_text(&source, raw, "id")?).unwrap_or_default();
        is_leaf = leaf == Some(&*first.id);
        first.label = member_text(&source, raw, "title")?.unwrap_or_default();
    }
    transcript.push_all(found);
    Ok(leaf_end.is_some() || is_leaf)
}

/// The nodes of a mapping, each behind its parent, which is a number among them.
fn nodes<'a>(source: &Arc<str>, mapping: &'a str) -> Result<Vec<(Option<usize>, Node<'a>)>, WireError> {
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

/// For each node that is a result, the node of its call: the last on the way to it that no other result on the way answers.
fn answers(nodes: &[(Option<usize>, Node<'_>)]) -> Vec<Option<usize>> {
    let mut open: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
    let mut answers = Vec::with_capacity(nodes.len());
    for (at, (parent, node)) in nodes.iter().enumerate() {
        let before = parent.and_then(|parent| open.get(parent).copied().flatten());
        let kind = node.message.as_ref().map_or(Speech::Nothing, |(_, said)| said.speech());
        let (answer, now) = match kind {
            Speech::Nothing => (None, before),
            Speech::Call => (None, Some(at)),
            Speech::Result => (before, None),
            Speech::Text => (None, None),
        };
        answers.push(answer);
        open.push(now);
    }
    answers
}
