//! The index of words of a session: the fields of a hash.

use std::sync::Arc;

use epitome_core::{Head, Seq};
use epitome_history::words::{Block, BlockRows, KeptWords, SPAN, SessionWords};
use epitome_history::{SessionId, StoreError};
use epitome_message::search::Term;

use super::keys::{Key, SessionKeys};
use super::script::{Args, Call, SCRIPTS};
use super::{RedisStore, Shared};

/// Maximum number of rows that are read at once: each has some thousand bytes, and the server does nothing else meanwhile.
const ROWS_MAX: usize = 512;

/// The name of a block, under which its first terms are. A row has the name, a point and its number.
pub(super) fn name(block: Block) -> String {
    format!("{}.{}", block.first, block.span)
}

/// The blocks that may have one of these messages, in both sizes.
pub(super) fn blocks_of(seqs: &[Seq]) -> Vec<Block> {
    let mut blocks: Vec<Block> = seqs.iter().flat_map(|seq| Block::all_of(*seq)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

/// By block its rows: each first term, as four bytes, and the row behind it.
type Reply = Option<(String, Vec<Option<Vec<Option<Vec<u8>>>>>)>;

async fn words(
    store: &Shared,
    keys: &SessionKeys,
    blocks: &[Block],
    terms: &[Term],
) -> Result<Option<KeptWords>, StoreError> {
    let mut kept: Option<KeptWords> = None;
    for some in blocks.chunks((ROWS_MAX / terms.len().max(1)).max(1)) {
        let mut args = Args::default();
        args.list(some.iter().map(|block| name(*block)));
        args.list(terms.iter().map(|term| term.0.to_string()));
        let call = Call { script: &SCRIPTS.words, keys, args };
        let found: Reply = store.connections.call("search", &call).await?;
        let Some((stamp, rows)) = found else { return Ok(None) };
        let rows = rows.into_iter().map(|rows| block_rows(rows?));
        match &mut kept {
            None => kept = Some(KeptWords { stamp, rows: rows.collect() }),
            // The rows before a prune are of another time.
            Some(kept) if kept.stamp != stamp => kept.rows.extend(some.iter().map(|_| None)),
            Some(kept) => kept.rows.extend(rows),
        }
    }
    Ok(kept)
}

/// `None` if a row is missing.
fn block_rows(found: Vec<Option<Vec<u8>>>) -> Option<BlockRows> {
    let row = |own: &[Option<Vec<u8>>]| match own {
        [Some(first), Some(row)] => {
            let first = u32::from_be_bytes(first.as_slice().try_into().ok()?);
            Some((Term::from_bits(first), row.clone()))
        }
        _ => None,
    };
    found.chunks(2).map(row).collect()
}

async fn keep(
    store: &Shared,
    keys: &SessionKeys,
    stamp: &str,
    block: Block,
    rows: &BlockRows,
) -> Result<(), StoreError> {
    let mut args = Args::of([stamp.to_owned()]);
    let inner = (block.first..block.end()).step_by(SPAN as usize);
    args.list(inner.map(|first| name(Block { first, span: SPAN })).chain([name(block)]));
    let firsts = rows.iter().flat_map(|(first, _)| first.0.to_be_bytes()).collect();
    args.bytes([name(block).into_bytes(), firsts]);
    args.bytes(rows.iter().map(|(_, row)| row.clone()));
    store.connections.call("search", &Call { script: &SCRIPTS.keep_words, keys, args }).await
}

impl SessionWords for RedisStore {
    async fn head(&self, session: &SessionId) -> Result<Option<Head>, StoreError> {
        let head = move |shared: Arc<Shared>, keys: Arc<SessionKeys>| async move {
            let mut command = ::redis::cmd("HGET");
            command.arg(keys.one(Key::Session)).arg("head");
            let head: Option<u64> = shared.connections.ask("search", &command).await?;
            Ok(head.map(Seq))
        };
        self.read("search", session, head).await
    }

    async fn words(
        &self,
        session: &SessionId,
        blocks: &[Block],
        terms: &[Term],
    ) -> Result<Option<KeptWords>, StoreError> {
        let (blocks, terms) = (blocks.to_vec(), terms.to_vec());
        let read = move |shared: Arc<Shared>, keys: Arc<SessionKeys>| {
            let (blocks, terms) = (blocks.clone(), terms.clone());
            async move { words(&shared, &keys, &blocks, &terms).await }
        };
        self.read("search", session, read).await
    }

    async fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> Result<(), StoreError> {
        let (stamp, rows) = (stamp.to_owned(), Arc::new(rows));
        let write = move |shared: Arc<Shared>, keys: Arc<SessionKeys>| {
            let (stamp, rows) = (stamp.clone(), Arc::clone(&rows));
            async move { keep(&shared, &keys, &stamp, block, &rows).await }
        };
        self.read("search", session, write).await
    }
}

/// Removes the index of a session. The next search makes it anew.
pub(super) async fn forget(store: &Shared, keys: &SessionKeys) -> Result<(), StoreError> {
    let mut command = ::redis::cmd("UNLINK");
    command.arg(keys.one(Key::Words));
    store.connections.ask("reindex", &command).await
}
