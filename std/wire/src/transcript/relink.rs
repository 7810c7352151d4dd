//! Links of records that name the record before them, if that record is left out, or a new one is inserted before them.

use std::collections::{HashMap, HashSet};

use epitome_message::{Message, Part};

use super::{Conversation, Place, SourceRecordId, Transcript};
use crate::WireError;
use crate::json::{self, ValueKind};
use crate::rewrite::form;

/// The links between the records of a format that name each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    /// The keys of the record's id and of the id of the record before it.
    pub(crate) keys: [&'static str; 2],
    /// The key of the first record that a compaction keeps, in the record of the compaction.
    pub(crate) first_kept: Option<&'static str>,
    /// Whether the conversation of the last record is the active one.
    pub(crate) by_last: bool,
    /// The key that is `true` in records of side chains.
    pub(crate) aside: Option<&'static str>,
    /// The functions that write a new record; `None` if a new message is refused.
    pub(crate) new: Option<NewRecords>,
}

impl Chain {
    /// The id of a record, and that of the record before it.
    pub(crate) fn names(&self, raw: &str) -> Option<(String, Option<String>)> {
        let found = Some(raw).filter(|raw| ValueKind::of(raw) == ValueKind::Object)?;
        let [name, parent] = json::fields(found, &self.keys).ok()?;
        let is_text = |raw: &&str| ValueKind::of(raw) == ValueKind::Text;
        let [name, parent] =
            [name, parent].map(|raw| raw.filter(is_text).map(|raw| json::decode(raw).into_owned()));
        Some((name?, parent))
    }

    /// Fails if another conversation than before would be active, because the end of this one was left out.
    pub(super) fn goes_on(
        &self,
        transcript: &Transcript,
        conversation: &Conversation,
        is_there: impl Fn(SourceRecordId) -> bool,
    ) -> Result<(), WireError> {
        let Some(end) = conversation.as_read().map(|(id, _)| id).max() else { return Ok(()) };
        let has = |id| conversation.entries.iter().any(|entry| entry.record() == Some(id));
        let is_new = conversation.entries.last().is_some_and(|entry| entry.record().is_none());
        if !self.by_last || !conversation.active || is_new || has(end) {
            return Ok(());
        }
        let records = transcript.records.iter().zip((0_u32..).map(SourceRecordId));
        let holding = records.filter(|(record, _)| record.pieces > 0).map(|(_, id)| id);
        let (mut was, mut is) = (None, None);
        for id in holding.filter(|id| !self.is_aside(transcript.record(*id))) {
            was = Some(id);
            is = was.filter(|id| is_there(*id)).or(is);
        }
        match is {
            Some(last) if was == Some(end) && !has(last) => Err(WireError::unsupported(
                "the end of this conversation cannot be left out: the file would go on with another of its conversations",
            )),
            None => Err(WireError::unsupported("a session file without a message could not be read again")),
            Some(_) => Ok(()),
        }
    }

    pub(crate) fn is_aside(&self, raw: &str) -> bool {
        self.aside.is_some_and(|key| matches!(json::field(raw, key), Ok(Some("true"))))
    }

    /// The record `raw`, linked to the record with the id `parent`, or to none. A record without a link stays
    /// unchanged.
    pub(super) fn linked(&self, raw: &str, parent: Option<&str>) -> Result<String, WireError> {
        let [_, key] = self.keys;
        if json::field(raw, key)?.is_none() {
            return Ok(raw.to_owned());
        }
        json::patch(raw, &[(key, Some(parent.map_or_else(|| "null".to_owned(), json::quote)))])
    }
}

/// The functions that write a new record in a format with ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewRecords {
    /// Makes an id in the form of the format, from a number that looks random.
    pub(crate) name: fn(u128) -> String,
    pub(crate) write: fn(&NewRecord<'_>) -> Result<String, WireError>,
    /// Whether `write` also serves conversations whose records have no ids. Otherwise the writer of the format serves
    /// them.
    pub(crate) unnamed: bool,
}

/// A new record.
#[derive(Debug)]
pub(crate) struct NewRecord<'a> {
    pub(crate) message: &'a Message,
    /// The id of the record; `None` if the records of the file have none.
    pub(crate) name: Option<&'a str>,
    pub(crate) parent: Option<&'a str>,
    /// An adjacent record, which has the fields of every record of the file.
    pub(crate) like: &'a str,
}

/// The records of a conversation from which some have been left out.
#[derive(Debug)]
pub(super) struct Links<'t> {
    transcript: &'t Transcript,
    chain: Chain,
    /// Every record of the text by its id.
    records: HashMap<String, Known>,
    /// For an element, the record that is before it in the conversation now, and that record's element.
    before: HashMap<u32, (u32, SourceRecordId)>,
    /// See [`Links::is_cut`].
    cuts: HashSet<u32>,
    /// Whether some of the messages have ids and others follow the record before them.
    is_mixed: bool,
    /// Whether none of the messages has an id.
    is_unnamed: bool,
}

#[derive(Debug)]
struct Known {
    parent: Option<String>,
    at: u32,
    /// Whether the conversation still has the record. `None` if it never had it, because the record holds no message,
    /// or messages of other conversations.
    is_kept: Option<bool>,
}

impl<'t> Links<'t> {
    /// The links of a conversation; `None` if no message was left out and none is new.
    pub(super) fn of(transcript: &'t Transcript, conversation: &Conversation, chain: Chain) -> Option<Self> {
        let entries = &conversation.entries;
        if entries.len() >= conversation.pieces && entries.iter().all(|entry| entry.record().is_some()) {
            return None;
        }
        let kept: HashSet<SourceRecordId> = entries.iter().filter_map(|entry| entry.record()).collect();
        // A record of another conversation is not left out of this one.
        let own: HashSet<SourceRecordId> = conversation.as_read().map(|(id, _)| id).collect();
        let mut holding = HashMap::new();
        for (id, record) in (0_u32..).map(SourceRecordId).zip(&transcript.records) {
            if let Place::Element { list, at } = record.place {
                holding.insert((list, at), id);
            }
        }
        let (mut records, mut named, mut unnamed, mut is_unnamed) = (HashMap::new(), false, false, true);
        for (number, list) in (0_u32..).zip(&transcript.lists) {
            for (at, range) in (0_u32..).zip(&list.elements) {
                let id = holding.get(&(number, at));
                let Some((name, parent)) = chain.names(transcript.slice(range.clone())) else {
                    unnamed |= id.is_some();
                    continue;
                };
                named |= id.is_some();
                let is_kept = id.filter(|id| own.contains(id)).map(|id| kept.contains(id));
                is_unnamed &= is_kept.is_none();
                records.entry(name).or_insert(Known { parent, at, is_kept });
            }
        }
        let place = |id: SourceRecordId| match transcript.records.get(id.0 as usize)?.place {
            Place::Element { at, .. } => Some(at),
            _ => None,
        };
        let places: Vec<u32> = conversation.as_read().filter_map(|(id, _)| place(id)).collect();
        let way = way(&records, places.iter().max().copied());
        let mut cuts = cuts(&places);
        // If the last record names no other, the order of the file decides.
        cuts.retain(|at| way.len() < 2 || way.contains(at));
        let kept = || entries.iter().filter_map(|entry| Some((place(entry.record()?)?, entry.record()?)));
        let before = kept().zip(kept().skip(1)).map(|(before, (at, _))| (at, before));
        let before = before.filter(|(at, before)| before.0 < *at).collect();
        let is_mixed = named && unnamed;
        Some(Self { transcript, chain, records, before, cuts, is_mixed, is_unnamed })
    }

    /// The record `text`, linked to the record before it now; `None` if this link is already there.
    pub(super) fn relink(&self, text: &str) -> Result<Option<String>, WireError> {
        let Some((name, parent)) = self.chain.names(text) else { return Ok(None) };
        let moved = self.moved(&name, parent.as_deref());
        let linked = moved.map(|parent| self.chain.linked(text, parent.as_deref())).transpose()?;
        Ok(self.first_kept(linked.as_deref().unwrap_or(text), &name)?.or(linked))
    }

    /// The compaction `text` with the first record that it still keeps. `None` if it names this record already, or is
    /// no compaction.
    fn first_kept(&self, text: &str, name: &str) -> Result<Option<String>, WireError> {
        let Some(key) = self.chain.first_kept else { return Ok(None) };
        let first = json::field(text, key)?.and_then(|first| self.records.get(&*json::decode(first)));
        if first.is_none_or(|first| first.is_kept != Some(false)) {
            return Ok(None);
        }
        let end = self.records.get(name).map_or(0, |own| own.at);
        let behind = |(_, known): &(&String, &Known)| known.is_kept == Some(true) && known.at < end;
        let next = self.records.iter().filter(behind).min_by_key(|(_, known)| known.at);
        next.map(|(name, _)| json::patch(text, &[(key, Some(json::quote(name)))])).transpose()
    }

    /// The id of the record that is now before the record `name`, whose parent had the id `parent`. `None` if the
    /// parent is unchanged.
    fn moved(&self, name: &str, parent: Option<&str>) -> Option<Option<String>> {
        let (mut moved, mut bound) = (None, u32::MAX);
        let mut next = parent.and_then(|name| self.records.get(name));
        while let Some(known) = next {
            // A record's parent is earlier in the file, otherwise the ids form a circle.
            if known.at >= bound || known.is_kept == Some(true) {
                break;
            }
            bound = known.at;
            let here = known.parent.as_deref();
            next = here.and_then(|name| self.records.get(name));
            if known.is_kept == Some(false) {
                moved = Some((here, next));
            }
        }
        let (parent, known) = moved?;
        // With parallel calls, the other calls and their answers may be off the path to that record.
        let own = self.records.get(name).and_then(|own| self.before.get(&own.at));
        let beside = own.filter(|(at, _)| known.is_none_or(|known| known.at < *at));
        let beside = beside.and_then(|(_, id)| self.chain.names(self.transcript.record(*id)));
        Some(beside.map(|(name, _)| name).or_else(|| parent.map(str::to_owned)))
    }

    /// Whether no record of the conversation has a name.
    pub(super) const fn is_unnamed(&self) -> bool {
        self.is_unnamed
    }

    /// Whether a new record right before this element has the same place in the file and in the conversation. It has
    /// not if it is among the answers to several parallel calls, or before the messages that a compaction kept.
    pub(super) fn is_cut(&self, at: u32) -> bool {
        self.cuts.contains(&at)
    }

    /// The id of the record that is now before the record `text`; `None` if records have no ids.
    pub(super) fn parent_now(&self, text: &str) -> Option<Option<String>> {
        let (name, parent) = self.chain.names(text)?;
        Some(self.moved(&name, parent.as_deref()).unwrap_or(parent))
    }

    /// The id of the record `text`, the element `at`, as a parent of another record; `None` if records have no ids.
    pub(super) fn own_name(&self, text: &str, at: u32) -> Result<Option<Option<String>>, WireError> {
        let Some((name, _)) = self.chain.names(text) else { return Ok(None) };
        match self.records.get(&name) {
            Some(known) if known.at != at => Err(form("a new message behind one of two records of one name")),
            _ => Ok(Some(Some(name))),
        }
    }

    /// The record `text`, linked to the record with the id `parent`.
    pub(super) fn linked(&self, text: &str, parent: Option<&str>) -> Result<String, WireError> {
        self.chain.linked(text, parent)
    }

    /// New records behind the record `parent`, each linked to the one before it, and the id of the last one.
    pub(super) fn new_records(
        &self,
        messages: &[Message],
        mut parent: Option<Option<String>>,
        like: &str,
        names: &mut HashSet<String>,
    ) -> Result<(Vec<String>, Option<Option<String>>), WireError> {
        let records = self.chain.new.filter(|_| !self.is_mixed).ok_or_else(|| form("a new message"))?;
        let mut written = Vec::with_capacity(messages.len());
        for message in messages {
            let before = parent.as_ref().map(Option::as_deref);
            let name = before.map(|before| self.new_name(records, message, before, names));
            let before = before.flatten();
            let record = NewRecord { message, name: name.as_deref(), parent: before, like };
            written.push((records.write)(&record)?);
            parent = name.map(Some);
        }
        Ok((written, parent))
    }

    /// An id that no record has. The same changes result in the same id.
    fn new_name(
        &self,
        records: NewRecords,
        message: &Message,
        parent: Option<&str>,
        names: &mut HashSet<String>,
    ) -> String {
        let mut hash = fnv(FNV_BASIS, parent.unwrap_or_default());
        hash = fnv(hash, &names.len().to_string());
        for part in message.parts() {
            if let Part::Text(text) = part {
                hash = fnv(hash, text);
            }
        }
        loop {
            let name = (records.name)(hash);
            if !self.records.contains_key(&name) && names.insert(name.clone()) {
                return name;
            }
            hash = fnv(hash, "again");
        }
    }
}

/// The elements on the path from the last record of a conversation to the first, along the links. The answers to
/// several parallel calls are off this path.
fn way(records: &HashMap<String, Known>, last: Option<u32>) -> HashSet<u32> {
    let mut here = records.values().find(|known| Some(known.at) == last);
    let mut way = HashSet::new();
    let mut bound = u32::MAX;
    while let Some(known) = here.filter(|known| known.at < bound) {
        bound = known.at;
        way.insert(bound);
        here = known.parent.as_ref().and_then(|parent| records.get(parent));
    }
    way
}

/// The places, in their own order, with all smaller places before them and all greater places behind them.
fn cuts(places: &[u32]) -> HashSet<u32> {
    let mut least_behind = vec![u32::MAX; places.len()];
    let mut least = u32::MAX;
    for (behind, place) in least_behind.iter_mut().zip(places).rev() {
        *behind = least;
        least = least.min(*place);
    }
    let (mut cuts, mut most) = (HashSet::new(), None);
    for (place, behind) in places.iter().zip(least_behind) {
        // A record of several messages has one place.
        if Some(*place) > most && *place <= behind {
            cuts.insert(*place);
        }
        most = most.max(Some(*place));
    }
    cuts
}

/// FNV-1a of 128 bits (draft-eastlake-fnv).
fn fnv(hash: u128, text: &str) -> u128 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(FNV_PRIME))
}

/// A number that looks random. The same text results in the same number.
pub(crate) fn fingerprint(text: &str) -> u128 {
    fnv(FNV_BASIS, text)
}

const FNV_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A number as a UUID of version 8, whose meaning only its program defines (RFC 9562).
pub(crate) fn uuid(hash: u128) -> String {
    let hash = hash & !(0xf << 76) & !(0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let hex = format!("{hash:032x}");
    let piece = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [piece(0, 8), piece(8, 12), piece(12, 16), piece(16, 20), piece(20, 32)].join("-")
}

/// An omitted record of a list.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) at: usize,
    /// The id of the nearest kept record before it.
    pub(super) before: Option<String>,
}

/// The omitted records of a list, by their ids. A record without messages is in no conversation, so that [`Links`] does
/// not contain it.
///
/// `stays` has a flag for each element of the list: whether it is still there.
pub(super) fn left_out<'t>(
    chain: Chain,
    elements: impl Iterator<Item = &'t str>,
    stays: &[bool],
) -> HashMap<String, LeftOut> {
    let (mut known, mut gone) = (HashSet::new(), HashMap::<String, LeftOut>::new());
    for ((at, text), stays) in elements.enumerate().zip(stays) {
        let Some((name, parent)) = chain.names(text) else { continue };
        if !known.insert(name.clone()) || *stays {
            continue;
        }
        // As in a relink: a record further behind is no record before it.
        let above = parent.as_ref().and_then(|parent| gone.get(parent));
        let before = above.map_or(parent.clone(), |above| above.before.clone());
        gone.insert(name, LeftOut { at, before });
    }
    gone
}
