//! Load, log and list.

use core::ops::Range;
use std::fs::{self, File};

use epitome_core::{Revision, Seq};

use super::directory::{Access, Directory, END, Opened, wait_for};
use super::failure::Here;
use super::index::{AppendSlot, Shown, Span};
use super::known::{self, Known};
use super::lines::Lines;
use crate::files;
use crate::kernel::Extent;
use crate::line::{AppendLine, Line, SessionLine};
use crate::{
    AppendToken, Appended, Committed, CompactionRecord, Entry, KeptState, Live, Loaded, LogPage, Logged,
    LoggedAppend, Pruned, SessionId, SessionInfo, StoreError, StoreErrorKind, rules,
};

/// The message `seq` in its appended form.
pub(super) fn entry(
    known: &Known,
    lines: &mut Lines<'_>,
    seq: Seq,
    here: Here<'_>,
) -> Result<Entry, StoreError> {
    let span = known.index.slot(seq)?.line;
    match line(known, lines, (span.at, span.len), here)? {
        Line::Message(line) if line.seq == seq.0 => {
            line.entry().map_err(|error| here.corrupt(span.at, "a message cannot be read").with_source(error))
        }
        _ => Err(here.corrupt(span.at, "another line stands where a message stood")),
    }
}

/// The line at a known position.
fn line<'b>(
    known: &Known,
    lines: &'b mut Lines<'_>,
    (at, len): (u64, u64),
    here: Here<'_>,
) -> Result<Line<'b>, StoreError> {
    let data = lines.data(&known.file, at, len).map_err(|error| here.failed(error))?;
    let data = data.ok_or_else(|| here.corrupt(at, "a line is not as it was written"))?;
    serde_json::from_slice(data).map_err(|_| here.corrupt(at, "a line of an unknown kind"))
}

/// Calls `read` on a session, which must exist.
pub(super) fn with<T>(
    directory: &mut Directory,
    operation: &'static str,
    session: &SessionId,
    read: impl FnOnce(&Opened, &mut Lines<'_>, Here<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let Some(opened) = directory.readable(operation, session)? else { return Ok(None) };
    let mut lines = Lines::new(&opened.file, opened.size);
    let answer = read(&opened, &mut lines, opened.here(operation))?;
    directory.keep(session, opened);
    Ok(Some(answer))
}

pub(super) fn load(
    directory: &mut Directory,
    session: &SessionId,
    extent: Extent,
) -> Result<Loaded, StoreError> {
    let loaded = with(directory, "load", session, |opened, lines, here| {
        projection_of(&opened.known, lines, extent, here)
    });
    loaded?.ok_or_else(|| rules::not_found("load"))
}

/// The live projection, or the part of it that `extent` names.
pub(super) fn projection_of(
    known: &Known,
    lines: &mut Lines<'_>,
    extent: Extent,
    here: Here<'_>,
) -> Result<Loaded, StoreError> {
    let from = match extent {
        Extent::All => Seq(0),
        Extent::LastTurn => known.index.last_turn()?,
    };
    projection(known, lines, from, here)
}

fn projection(known: &Known, lines: &mut Lines<'_>, from: Seq, here: Here<'_>) -> Result<Loaded, StoreError> {
    let index = &known.index;
    lines.read_ahead_to(index.live_end(from)?);
    let mut loaded = Loaded::new(index.head(), index.revision());
    for (key, shown) in index.live(from) {
        loaded.live.push(match shown {
            Shown::Summary(_, entry) => {
                let covers = entry.message.attribution().derived_from.clone();
                Live::summary(key, (**entry).clone(), covers)
            }
            Shown::Message => {
                let entry = entry(known, lines, key, here)?;
                match index.shortened(key) {
                    Some(shortened) => {
                        Live::shortened(key, entry, shortened.stand_ins.clone(), shortened.count.clone())
                    }
                    None => Live::new(key, entry),
                }
            }
        });
    }
    loaded.unanswered = index.unanswered();
    Ok(loaded)
}

pub(super) fn state(directory: &mut Directory, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
    with(directory, "state", session, |opened, lines, here| kept_state(&opened.known, lines, here))?
        .ok_or_else(|| rules::not_found("state"))
}

pub(super) fn kept_state(
    known: &Known,
    lines: &mut Lines<'_>,
    here: Here<'_>,
) -> Result<Option<KeptState>, StoreError> {
    let Some(slot) = known.index.state() else { return Ok(None) };
    let Span { at, len } = slot.line;
    match line(known, lines, (at, len), here)? {
        Line::Append(AppendLine { state: Some(state), .. }) | Line::State(state) => {
            Ok(Some(state.into_kept()))
        }
        _ => Err(here.corrupt(at, "another line stands where a state stood")),
    }
}

pub(super) fn appended(
    directory: &mut Directory,
    session: &SessionId,
    token: &AppendToken,
) -> Result<Option<Appended>, StoreError> {
    let receipt = with(directory, "appended", session, |opened, _, _| Ok(opened.known.index.receipt(token)))?;
    Ok(receipt.flatten())
}

pub(super) fn log(
    directory: &mut Directory,
    session: &SessionId,
    range: &Range<Seq>,
    limit: u32,
) -> Result<LogPage, StoreError> {
    let page = with(directory, "log", session, |opened, lines, here| {
        let (known, index) = (&opened.known, &opened.known.index);
        let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit)))).min(index.head());
        let mut messages = Vec::new();
        if let Some(last) = end.0.checked_sub(1).filter(|last| *last >= range.start.0) {
            lines.read_ahead_to(index.slot(Seq(last))?.line.end());
        }
        for seq in (range.start.0..end.0).map(Seq) {
            let slot = index.slot(seq)?;
            let mut logged = Logged::new(seq, entry(known, lines, seq, here)?, slot.hidden_by);
            logged.pruned_by = index.pruned_by(slot);
            logged.edited_by = index.shortened(seq).map(|shortened| shortened.by);
            messages.push(logged);
        }
        let end = Seq(range.start.0.saturating_add(messages.len() as u64));
        Ok(LogPage::new(messages, rules::next_page(end, range.end, index.head())))
    });
    page?.ok_or_else(|| rules::not_found("log"))
}

pub(super) fn records(
    directory: &mut Directory,
    session: &SessionId,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Committed>, StoreError> {
    let records = with(directory, "records", session, |opened, lines, here| {
        let known = &opened.known;
        let mut records = Vec::new();
        for kept in known.index.records(after).iter().take(limit as usize) {
            let record = record(known, lines, kept.line, here)?;
            records.push(Committed::new(kept.revision, record).undone(kept.undone_by));
        }
        Ok(records)
    });
    records?.ok_or_else(|| rules::not_found("records"))
}

/// The record in the line at `span`.
pub(super) fn record(
    known: &Known,
    lines: &mut Lines<'_>,
    span: Span,
    here: Here<'_>,
) -> Result<CompactionRecord, StoreError> {
    match line(known, lines, (span.at, span.len), here)? {
        Line::Commit(line) => known::record(&line, span.at, here),
        _ => Err(here.corrupt(span.at, "another line stands where a record stood")),
    }
}

pub(super) fn prunes(
    directory: &mut Directory,
    session: &SessionId,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Pruned>, StoreError> {
    let prunes = with(directory, "prunes", session, |opened, _, _| {
        Ok(opened.known.index.prunes(after).iter().take(limit as usize).copied().collect())
    });
    prunes?.ok_or_else(|| rules::not_found("prunes"))
}

pub(super) fn appends(
    directory: &mut Directory,
    session: &SessionId,
    from: Seq,
    limit: u32,
) -> Result<Vec<LoggedAppend>, StoreError> {
    let appends = with(directory, "appends", session, |opened, lines, here| {
        let slots = opened.known.index.appends(from).iter().take(limit as usize);
        let logged =
            |slot: &AppendSlot| match line(&opened.known, lines, (slot.line.at, slot.line.len), here)? {
                Line::Append(line) => {
                    Ok(LoggedAppend::new(AppendToken::new(line.token), slot.appended, slot.time))
                }
                _ => Err(here.corrupt(slot.line.at, "another line stands where an append ended")),
            };
        slots.map(logged).collect()
    });
    appends?.ok_or_else(|| rules::not_found("appends"))
}

pub(super) fn list(
    directory: &mut Directory,
    after: Option<&SessionId>,
    limit: u32,
) -> Result<Vec<SessionInfo>, StoreError> {
    let mut named = named(directory)?;
    named.retain(|named| after.is_none_or(|after| named.id > *after));
    named.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    let mut infos = Vec::new();
    for Named { id, damage } in named {
        if infos.len() as u64 >= u64::from(limit) {
            break;
        }
        let info = match damage {
            Some(error) => Err(error),
            None => with(directory, "list", &id, |opened, _, _| Ok(opened.known.index.info(&id))),
        };
        infos.extend(SessionInfo::or_damaged(id, info)?);
    }
    Ok(infos)
}

/// A session that has a file.
struct Named {
    /// The id of the session. For a damaged file, the id that its name stands for.
    id: SessionId,
    damage: Option<StoreError>,
}

/// All sessions that have a file. If the file name is not an id, the file contains the id.
fn named(directory: &Directory) -> Result<Vec<Named>, StoreError> {
    let here = Here { operation: "list", path: directory.folder() };
    let mut named = Vec::new();
    for found in fs::read_dir(directory.folder()).map_err(|error| here.failed(error))? {
        let name = found.map_err(|error| here.failed(error))?.file_name();
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(END)) else { continue };
        if stem.starts_with('~') {
            match named_inside(directory, &name, stem) {
                Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                    named.push(Named { id: SessionId::new(stem), damage: Some(error) });
                }
                inside => named.extend(inside?.map(|id| Named { id, damage: None })),
            }
        } else if files::file_stem(stem) == stem {
            named.push(Named { id: SessionId::new(stem), damage: None });
        }
    }
    Ok(named)
}

/// The id in a file whose name is not an id; `None` if the file was deleted or has no first line.
fn named_inside(
    directory: &Directory,
    name: &std::ffi::OsStr,
    stem: &str,
) -> Result<Option<SessionId>, StoreError> {
    let path = directory.folder().join(name);
    let here = Here { operation: "list", path: &path };
    match first_line(here)?.map(|header| header.id) {
        Some(id) if files::file_stem(&id) != stem => {
            Err(here.corrupt(0, "it holds another session than its name says"))
        }
        id => Ok(id.map(SessionId::new)),
    }
}

/// The first line of a file; `None` if the file was deleted or has no first line.
pub(super) fn first_line(here: Here<'_>) -> Result<Option<SessionLine>, StoreError> {
    let opened = File::open(here.path).and_then(|file| {
        // The first line is written only once, but another process may be writing it now.
        wait_for(&file, Access::Read)?;
        let size = file.metadata()?.len();
        Ok((file, size))
    });
    let (file, size) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(here.failed(error)),
    };
    known::header(&mut Lines::new(&file, size), here)
}
