//! Undoing compactions, and deleting what is hidden.

use epitome_core::{Revision, Seq};

use super::directory::{Access, Directory, Opened};
use super::failure::Here;
use super::index::{Span, Undone};
use super::known::Known;
use super::line::{self, Line, PruneLine, UNDOING_VERSION, UncompactLine};
use super::lines::Lines;
use super::write::{Acknowledges, again, finish, write};
use super::{read, rewrite};
use crate::history::{Entry, Pruned, SessionId, StoreError, rules};

pub(super) fn uncompact(
    directory: &mut Directory,
    session: &SessionId,
    made: Revision,
) -> Result<Revision, StoreError> {
    let mut opened = opened(directory, "uncompact", session)?;
    let undone = match prepare(directory, &mut opened, made) {
        Ok(Prepared::Undo(undone)) => undone,
        Ok(Prepared::Known(undone_by)) => return finish(directory, session, opened, Ok(undone_by)),
        Err(error) => return finish(directory, session, opened, Err(error)),
    };
    let revision = opened.known.index.revision().next();
    let line = Line::Uncompact(UncompactLine { revision: revision.0, made: made.0 });
    if opened.known.version < UNDOING_VERSION {
        // What is known is of the old file, and forgotten with it.
        rewrite::rewrite(directory, &opened, session, Revision(0), Some(&line))?;
        return Ok(revision);
    }
    let written = line::encode(&line)
        .and_then(|text| write(directory, &mut opened, session, &[text], Acknowledges::Commit))
        .and_then(|_| opened.known.index.uncompact(undone, revision));
    finish(directory, session, opened, written.map(|()| revision))
}

fn opened(
    directory: &mut Directory,
    operation: &'static str,
    session: &SessionId,
) -> Result<Opened, StoreError> {
    let opened = directory.opened(operation, session, Access::Write)?;
    opened.filter(|opened| opened.known.index.head().0 > 0).ok_or_else(|| rules::not_found(operation))
}

enum Prepared {
    /// It was undone before, by this revision.
    Known(Revision),
    Undo(Undone),
}

fn prepare(directory: &Directory, opened: &mut Opened, made: Revision) -> Result<Prepared, StoreError> {
    if let Some(undone_by) = opened.known.index.check_uncompact(made)? {
        again(directory, opened, Acknowledges::Commit)?;
        return Ok(Prepared::Known(undone_by));
    }
    let mut lines = Lines::new(&opened.file, opened.size);
    undoing(&opened.known, &mut lines, made, opened.here("uncompact")).map(Prepared::Undo)
}

/// What comes back when the record that made `made` is undone: it is there, and may be.
///
/// # Errors
/// `Pruned` if something that it hid was pruned.
pub(super) fn undoing(
    known: &Known,
    lines: &mut Lines<'_>,
    made: Revision,
    here: Here<'_>,
) -> Result<Undone, StoreError> {
    let index = &known.index;
    let line = |made| index.record_at(made).map_or(Span { at: 0, len: 0 }, |kept| kept.line);
    let record = read::record(known, lines, line(made), here)?;
    index.nothing_pruned(made, &record)?;
    let wanted = index.stand_ins_wanted(made, &record);
    let mut edits = Vec::new();
    if !wanted.is_empty() {
        for kept in index.held().take_while(|kept| kept.revision < made) {
            let record = read::record(known, lines, kept.line, here)?;
            let of_these = record.edits.into_iter().filter(|edit| wanted.contains(&edit.seq));
            edits.extend(of_these.map(|edit| (kept.revision, edit)));
        }
    }
    let mut restored = rules::restored_edits(&wanted, edits.iter().map(|(by, edit)| (*by, edit)));
    let mut undone = Undone {
        made,
        edits: wanted.into_iter().map(|seq| (seq, restored.remove(&seq))).collect(),
        summaries: Vec::new(),
    };
    for slot in index.summaries_hidden_by(made) {
        let record = read::record(known, lines, line(slot.made), here)?;
        let summary = record.summaries.into_iter().find(|summary| summary.key == slot.key);
        let summary =
            summary.ok_or_else(|| here.corrupt(line(slot.made).at, "a record has lost a summary"))?;
        // A summary is a group of its own, in the turn of the first message that it covers.
        let turn = index.slot(slot.key)?.turn;
        undone.summaries.push(Entry::new(summary.message, slot.key, turn, summary.count));
    }
    Ok(undone)
}

pub(super) fn prune(
    directory: &mut Directory,
    session: &SessionId,
    through: Revision,
) -> Result<Pruned, StoreError> {
    let mut opened = opened(directory, "prune", session)?;
    let index = &opened.known.index;
    if let Err(error) = rules::check_prune(through, index.revision()) {
        return finish(directory, session, opened, Err(error));
    }
    let pruned = index.prunable(through);
    if pruned.messages == 0 && pruned.summaries == 0 {
        let before = rules::pruned_before(index.prunes(None).iter().copied(), through, index.revision());
        let done = again(directory, &mut opened, Acknowledges::Commit).map(|()| before);
        return finish(directory, session, opened, done);
    }
    // What is known is of the old file, and forgotten with it.
    let line = Line::Prune(PruneLine::of(pruned));
    rewrite::rewrite(directory, &opened, session, through, Some(&line))?;
    Ok(pruned)
}

/// Whether a message is pruned, or would be through `through`.
pub(super) fn is_pruned(known: &Known, seq: Seq, through: Revision) -> bool {
    known.index.slot(seq).is_ok_and(|slot| slot.pruned > 0 || slot.is_prunable(through))
}
