//! The new contents of a list of records.

use std::collections::HashMap;

use super::relink::{Chain, left_out};
use super::{List, Transcript};
use crate::WireError;

/// An item of a list: an unchanged element, or a text that replaces an element or follows one.
#[derive(Debug, Clone)]
pub(super) enum Output {
    Kept(usize),
    Text(Option<usize>, String),
}

/// The new contents of a list, with the element before each item.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The element, the order behind it, and the item.
    rows: Vec<(usize, usize, Output)>,
    /// See [`List::free`].
    free: bool,
}

impl Contents {
    pub(super) fn of<'l>(
        lists: &'l mut HashMap<u32, Self>,
        transcript: &Transcript,
        list: u32,
    ) -> &'l mut Self {
        let free = transcript.lists.get(list as usize).is_some_and(|list| list.free);
        lists.entry(list).or_insert_with(|| Self { rows: Vec::new(), free })
    }

    /// Adds the replacement of the element `at`, or a new text, behind the previous item of the conversation.
    pub(super) fn push(
        &mut self,
        cursor: &mut Option<usize>,
        at: Option<usize>,
        text: Option<Option<String>>,
    ) {
        let key = match at {
            Some(at) if self.free => at,
            _ => (*cursor).max(at).unwrap_or(0),
        };
        if at.is_some() {
            *cursor = Some(key);
        }
        // A new text stands behind the element that it follows.
        let order = if self.free && at.is_some() { 0 } else { self.rows.len().saturating_add(1) };
        match (at, text) {
            (Some(at), None) => self.rows.push((key, order, Output::Kept(at))),
            (at, Some(Some(text))) => self.rows.push((key, order, Output::Text(at, text))),
            (_, Some(None)) | (None, None) => {}
        }
    }

    /// Adds a new text right before the element `at`, in a list with its own order.
    pub(super) fn push_before(&mut self, at: usize, text: String) {
        let place = at.checked_sub(1).map(|before| (before, self.rows.len().saturating_add(1)));
        let (key, order) = place.unwrap_or((0, 0));
        self.rows.push((key, order, Output::Text(None, text)));
    }

    /// Adds the unchanged elements.
    pub(super) fn keep(&mut self, stays: &[bool]) {
        let others = stays.iter().enumerate().filter(|(_, stays)| **stays);
        self.rows.extend(others.map(|(at, _)| (at, 0, Output::Kept(at))));
        self.rows.sort_by_key(|(key, order, _)| (*key, *order));
    }

    /// Links each unchanged element to the element before it now.
    pub(super) fn bridge(
        &mut self,
        transcript: &Transcript,
        list: &List,
        chain: Chain,
    ) -> Result<(), WireError> {
        let mut stays = vec![false; list.elements.len()];
        for (_, _, output) in &self.rows {
            if let Output::Kept(at) | Output::Text(Some(at), _) = output
                && let Some(stays) = stays.get_mut(*at)
            {
                *stays = true;
            }
        }
        if stays.iter().all(|stays| *stays) {
            return Ok(());
        }
        let slice = |at: usize| list.elements.get(at).map_or("", |range| transcript.slice(range.clone()));
        let gone = left_out(chain, (0..stays.len()).map(slice), &stays);
        for (_, _, output) in &mut self.rows {
            let (at, text) = match output {
                Output::Kept(at) => (Some(*at), slice(*at)),
                Output::Text(at, text) => (*at, text.as_str()),
            };
            let parent = chain.names(text).and_then(|(_, parent)| gone.get(&parent?));
            if let Some(parent) = parent.filter(|parent| at.is_none_or(|at| parent.at < at)) {
                *output = Output::Text(at, chain.linked(text, parent.before.as_deref())?);
            }
        }
        Ok(())
    }

    /// Whether the new contents differ from the list.
    pub(super) fn changes(&self, list: &List) -> bool {
        let kept = self.rows.iter().map(|(_, _, output)| match output {
            Output::Kept(at) => Some(*at),
            Output::Text(..) => None,
        });
        !kept.eq((0..list.elements.len()).map(Some))
    }

    pub(super) fn into_outputs(self) -> Vec<Output> {
        self.rows.into_iter().map(|(_, _, output)| output).collect()
    }
}
