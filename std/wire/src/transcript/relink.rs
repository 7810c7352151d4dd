//! Records that name the record before them, when that one is left out.

use std::collections::{HashMap, HashSet};

use super::{Conversation, Place, RecordId, Transcript};
use crate::WireError;

/// How the records of a format name each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    /// The name of a record, and that of the record before it.
    pub(crate) names: fn(&str) -> Option<Names>,
    /// The record with another before it.
    pub(crate) linked: fn(&str, Option<&str>) -> Result<String, WireError>,
}

/// The name of a record, and that of the record before it.
pub(crate) type Names = (String, Option<String>);

/// The records of a conversation, some of which have been left out.
#[derive(Debug)]
pub(super) struct Links {
    chain: Chain,
    /// Every record of the text by its name.
    records: HashMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    parent: Option<String>,
    at: usize,
    /// Whether the conversation still has it; `None` if it never had, because the record holds no message, or those of others.
    is_kept: Option<bool>,
}

impl Links {
    /// The links of a conversation; `None` if nothing has been left out of it.
    pub(super) fn of(transcript: &Transcript, conversation: &Conversation, chain: Chain) -> Option<Self> {
        let entries = &conversation.entries;
        if entries.len() >= conversation.pieces && entries.iter().all(|entry| entry.record().is_some()) {
            return None;
        }
        let kept: HashSet<RecordId> = entries.iter().filter_map(|entry| entry.record()).collect();
        // What another conversation holds is not left out of this one.
        let own: HashSet<RecordId> = conversation.as_read().map(|(id, _)| id).collect();
        let mut holding = HashMap::new();
        for (id, record) in (0_u32..).map(RecordId).zip(&transcript.records) {
            if let Place::Element { list, at } = record.place {
                holding.insert((list, at), id);
            }
        }
        let mut records = HashMap::new();
        for (number, list) in (0_u32..).zip(&transcript.lists) {
            for (at, range) in (0_u32..).zip(&list.elements) {
                let Some((name, parent)) = (chain.names)(transcript.slice(range.clone())) else { continue };
                let id = holding.get(&(number, at));
                let is_kept = id.filter(|id| own.contains(id)).map(|id| kept.contains(id));
                records.entry(name).or_insert(Known { parent, at: at as usize, is_kept });
            }
        }
        Some(Self { chain, records })
    }

    /// The record `text`, linked to what is before it now; `None` if that is what it says.
    pub(super) fn relink(&self, text: &str) -> Result<Option<String>, WireError> {
        let Some((_, parent)) = (self.chain.names)(text) else { return Ok(None) };
        let (mut moved, mut here, mut bound) = (None, parent.as_deref(), usize::MAX);
        while let Some(known) = here.and_then(|name| self.records.get(name)) {
            // A record before it stands before it, or the names run in a circle.
            if known.at >= bound || known.is_kept == Some(true) {
                break;
            }
            bound = known.at;
            here = known.parent.as_deref();
            if known.is_kept == Some(false) {
                moved = Some(here);
            }
        }
        moved.map(|parent| (self.chain.linked)(text, parent)).transpose()
    }
}

/// The records of a list after what is before them in it, when others are left out of it. A record that holds no message is in
/// no conversation, so that [`Links`] never meets it.
///
/// `stays` says of each element of the list whether it is still there. Gives the element and the new text of each that names
/// one that is not.
pub(super) fn bridged<'t>(
    chain: Chain,
    elements: impl Iterator<Item = &'t str>,
    stays: &[bool],
) -> Result<Vec<(usize, String)>, WireError> {
    let names: Vec<_> = elements.map(|text| (text, (chain.names)(text))).collect();
    let mut known = HashMap::new();
    for (at, (_, names)) in names.iter().enumerate() {
        if let Some((name, _)) = names {
            known.entry(name.as_str()).or_insert(at);
        }
    }
    let is_there = |at: usize| stays.get(at).copied().unwrap_or_default();
    let mut new = Vec::new();
    // What each record that is left out leads to. It is known before the records behind it ask, so that no way is walked twice.
    let mut leads_to: Vec<Option<&str>> = Vec::with_capacity(names.len());
    for (at, (text, names)) in names.iter().enumerate() {
        let parent = names.as_ref().and_then(|(_, parent)| parent.as_deref());
        let above = parent.and_then(|name| known.get(name)).copied();
        // As in a relink: what stands behind is no record before it.
        let gone = above.filter(|above| *above < at && !is_there(*above));
        let here = gone.map_or(parent, |above| leads_to.get(above).copied().flatten());
        leads_to.push(here);
        if gone.is_some() && is_there(at) {
            new.push((at, (chain.linked)(text, here)?));
        }
    }
    Ok(new)
}
