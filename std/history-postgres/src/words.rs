//! The rows of the index of words, and their maintenance. Each session has its own blocks, by the numbers of its
//! messages.

use epitome_core::Seq;
use epitome_history::rows::int;
use epitome_history::words::{Block, Indexed, SPAN, WIDE_SPAN, blocks, left_of_row, torn};
use epitome_history::{SessionId, StoreErrorKind, stored};
use epitome_message::search::Postings;
use tokio_postgres::Row;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::row::{self, digest, ordinal};
use super::sql;

/// Indexes the blocks that an append of the messages from `first` to before `head` has completed. Damage of the index,
/// or of a text, does not prevent writes of messages.
pub(super) async fn written(lease: &Lease<'_>, id: i64, first: Seq, head: Seq) -> Result<(), Failure> {
    let (mut last, head) = (int(first.0) / SPAN * SPAN + SPAN - 1, int(head.0));
    while last < head {
        if let Some(block) = Block::ended_by(last) {
            index(lease, id, block, |_| false).await?;
        }
        if let Some(wide) = Block::wide_ended_by(last) {
            widen(lease, id, wide).await?;
        }
        last += SPAN;
    }
    Ok(())
}

/// Writes the rows of a block: the terms of its messages, without the messages for which `is_gone` returns true.
async fn index(
    lease: &Lease<'_>,
    id: i64,
    block: Block,
    is_gone: impl Fn(u32) -> bool,
) -> Result<(), Failure> {
    let [texts] = lease.prepare([sql::TEXTS]).await?;
    let mut indexed = Indexed::new();
    let visit = |row: &Row| {
        let (seq, anchor): (i64, i64) = (row.try_get(0)?, row.try_get(2)?);
        let place = block.place(seq)?;
        if !is_gone(place) {
            add(&mut indexed, place, (id, anchor), seq, row.try_get(1)?);
        }
        Ok(())
    };
    lease.each_row(&texts, &[&id, &block.first, &block.end()], visit).await?;
    let mut all = [indexed];
    earlier(lease, &mut all).await?;
    let [indexed] = all;
    keep(lease, id, block, rows_of(indexed.finish())).await
}

/// A group: its session, and its first message.
pub(super) type Group = (i64, i64);

/// Adds the terms of the stored message `seq` of a group. A message that cannot be read has no terms here: a reader of
/// the message gets the error.
pub(super) fn add(indexed: &mut Indexed<Group>, place: u32, (session, anchor): Group, seq: i64, text: &str) {
    let Ok(message) = stored::decode(text) else { return };
    indexed.add(place, &message);
    indexed.add_tools(place, &message, (session, anchor), (seq, anchor));
}

/// Adds the calls of indexed results whose own messages are not indexed here.
pub(super) async fn earlier(lease: &Lease<'_>, all: &mut [Indexed<Group>]) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for (at, indexed) in all.iter().enumerate() {
        missing.extend(indexed.missing().into_iter().map(|(group, last)| (at, group, last)));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let [texts] = lease.prepare([sql::EARLIER_IN_GROUPS]).await?;
    let sessions: Vec<i64> = missing.iter().map(|(_, (session, _), _)| *session).collect();
    let anchors: Vec<i64> = missing.iter().map(|(_, (_, anchor), _)| *anchor).collect();
    let lasts: Vec<i64> = missing.iter().map(|(.., last)| *last).collect();
    let visit = |row: &Row| {
        let found = ordinal(row, 0)?.and_then(|at| missing.get(at));
        if let (Some((at, group, _)), Ok(message)) = (found, stored::decode(row.try_get(2)?))
            && let Some(indexed) = all.get_mut(*at)
        {
            indexed.add_calls(&message, *group, row.try_get(1)?);
        }
        Ok(())
    };
    lease.each_row(&texts, &[&sessions, &anchors, &lasts], visit).await
}

/// Merges all smaller blocks within a block. If one of them is damaged, indexes the texts again.
async fn widen(lease: &Lease<'_>, id: i64, wide: Block) -> Result<(), Failure> {
    let merged = merged(&words(lease, id, wide).await?, wide);
    forget_all(lease, id, wide).await?;
    match merged {
        Err(failure) if is_damage(&failure) => index(lease, id, wide, |_| false).await,
        merged => keep(lease, id, wide, rows_of(merged?)).await,
    }
}

/// Whether a failure is a damaged row.
fn is_damage(failure: &Failure) -> bool {
    matches!(failure, Failure::Store(error) if error.kind() == StoreErrorKind::Corrupt)
}

fn merged(rows: &[Row], wide: Block) -> Result<Postings, Failure> {
    let mut postings = Postings::new();
    for row in rows {
        let moved = wide.place(row.try_get(0)?)?;
        postings.add_row(row.try_get(2)?, moved, |_| false).map_err(torn)?;
    }
    Ok(postings)
}

/// The rows of the blocks that begin within a block.
async fn words(lease: &Lease<'_>, id: i64, block: Block) -> Result<Vec<Row>, Failure> {
    let [words] = lease.prepare([sql::WORDS]).await?;
    lease.rows(&words, &[&id, &block.first, &block.end()]).await
}

/// Deletes the rows of the blocks that begin within a block.
async fn forget_all(lease: &Lease<'_>, id: i64, block: Block) -> Result<(), Failure> {
    let [drop] = lease.prepare([sql::DROP_WORDS]).await?;
    lease.execute(&drop, &[&id, &block.first, &block.end()]).await?;
    Ok(())
}

/// Maximum number of rows per statement. Each row has some thousand bytes.
const PIECE_ROWS_MAX: usize = 1_024;

/// Rows of a block by their keys.
type WordRows = (Vec<i64>, Vec<Vec<u8>>);

fn rows_of(postings: Postings) -> WordRows {
    postings.into_rows().into_iter().map(|(term, row)| (i64::from(term.0), row)).unzip()
}

async fn keep(lease: &Lease<'_>, id: i64, block: Block, (terms, rows): WordRows) -> Result<(), Failure> {
    let [keep] = lease.prepare([sql::KEEP_WORDS]).await?;
    for (terms, rows) in terms.chunks(PIECE_ROWS_MAX).zip(rows.chunks(PIECE_ROWS_MAX)) {
        lease.execute(&keep, &[&id, &block.first, &block.span, &terms, &rows]).await?;
    }
    Ok(())
}

/// Removes the terms of these messages from the index of a session with this head.
pub(super) async fn forget(lease: &Lease<'_>, id: i64, head: Seq, seqs: &[Seq]) -> Result<(), Failure> {
    let last = int(head.0) - 1;
    let mut numbers: Vec<i64> = seqs.iter().map(|seq| int(seq.0)).collect();
    numbers.sort_unstable();
    for gone in numbers.chunk_by(|one, other| Block::of(*one, last) == Block::of(*other, last)) {
        let Some(block) = gone.first().and_then(|number| Block::of(*number, last)) else { continue };
        let is_gone = |place: u32| gone.binary_search(&(block.first + i64::from(place))).is_ok();
        match left(&words(lease, id, block).await?, is_gone) {
            // A damaged block is indexed again.
            Err(failure) if is_damage(&failure) => {
                forget_all(lease, id, block).await?;
                index(lease, id, block, is_gone).await?;
            }
            left => keep(lease, id, block, left?).await?,
        }
    }
    Ok(())
}

/// The rows that contain one of the removed messages, without these messages, by their keys.
fn left(rows: &[Row], is_gone: impl Fn(u32) -> bool) -> Result<WordRows, Failure> {
    let (mut terms, mut left) = (Vec::new(), Vec::new());
    for row in rows {
        if let Some(row_left) = left_of_row(row.try_get(2)?, &is_gone)? {
            terms.push(row.try_get(1)?);
            left.push(row_left);
        }
    }
    Ok((terms, left))
}

/// Rebuilds the index of a session from a message on, up to the end of a wide block. Returns the beginning of the next
/// one.
#[derive(Debug)]
pub(super) struct ReindexJob {
    pub(super) session: SessionId,
    pub(super) first: i64,
}

impl Job for ReindexJob {
    type Answer = Option<i64>;

    fn name(&self) -> &'static str {
        "reindex"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Option<i64>, Failure> {
        lease.begin(Access::Write).await?;
        let [lock] = lease.prepare([sql::LOCK_SESSION]).await?;
        let found = lease.row(&lock, &[&digest(self.session.as_str()).as_slice()]).await?;
        let mut next = None;
        if let Some(session) = found.as_ref().map(row::session).transpose()? {
            let (id, head) = (session.id, int(session.counters.head.0));
            let some = Block { first: self.first, span: WIDE_SPAN };
            forget_all(lease, id, some).await?;
            for block in blocks(head - 1).0.filter(|block| (some.first..some.end()).contains(&block.first)) {
                index(lease, id, block, |_| false).await?;
            }
            next = Some(some.end()).filter(|next| *next < head);
        }
        lease.commit().await?;
        Ok(next)
    }
}
