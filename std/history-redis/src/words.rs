//! The index of words of a session: the fields of a hash.

use std::sync::Arc;

use epitome_core::{Head, Seq};
use epitome_history::words::{Block, BlockRows, KeptWords, SPAN, SUM_BYTES, SessionWords, checksum};
use epitome_history::{SessionId, StoreError};
use epitome_message::search::Term;

use super::keys::{Key, SessionKeys};
use super::script::{Args, Call, SCRIPTS};
use super::{RedisStore, Shared};

/// The name of a block. The field with this name has the first terms of its rows. The field of a row has the name, a
/// point and the number of the row.
pub(super) fn name(block: Block) -> String {
    format!("{}.{}", block.first, block.span)
}

/// For each block, the first terms of its rows, and the number and the bytes of each requested row.
type Reply = Option<(String, Vec<Option<Vec<Option<Vec<u8>>>>>)>;

async fn words(
    store: &Shared,
    keys: &SessionKeys,
    blocks: &[Block],
    terms: &[Term],
) -> Result<Option<KeptWords>, StoreError> {
    let mut args = Args::default();
    args.list(blocks.iter().map(|block| name(*block)));
    args.list(terms.iter().map(|term| term.0.to_string()));
    let call = Call { script: &SCRIPTS.words, keys, args };
    let found: Reply = store.connections.call("search", &call).await?;
    let Some((stamp, found)) = found else { return Ok(None) };
    let rows = blocks.iter().zip(found).map(|(block, found)| rows(&stamp, *block, found?)).collect();
    Ok(Some(KeptWords { stamp, rows }))
}

/// The rows of a block; `None` if a row is missing or damaged.
fn rows(stamp: &str, block: Block, found: Vec<Option<Vec<u8>>>) -> Option<BlockRows> {
    let mut found = found.into_iter();
    let firsts = opened(stamp, block, 0, found.next()??)?;
    let mut rows = BlockRows::new();
    while let Some(number) = found.next() {
        let number: u32 = core::str::from_utf8(&number?).ok()?.parse().ok()?;
        let row = opened(stamp, block, number, found.next()??)?;
        let (first, _) = firsts.as_chunks::<4>().0.get((number as usize).checked_sub(1)?..)?.split_first()?;
        rows.push((Term::from_bits(u32::from_be_bytes(*first)), row));
    }
    Some(rows)
}

/// The checksum of the row `number` of a block. Number 0 is the list of first terms. The checksum stays valid when
/// other blocks are pruned.
fn sum(stamp: &str, block: Block, number: u32, bytes: &[u8]) -> [u8; SUM_BYTES] {
    let born = stamp.split(' ').next().unwrap_or_default();
    checksum(&[format!("{born} {} {number} ", name(block)).as_bytes(), bytes])
}

/// The bytes with their checksum appended.
fn sealed(stamp: &str, block: Block, number: u32, mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = sum(stamp, block, number, &bytes);
    bytes.extend_from_slice(&sum);
    bytes
}

/// The bytes without their checksum; `None` if they are damaged.
fn opened(stamp: &str, block: Block, number: u32, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let own: [u8; SUM_BYTES] = *bytes.last_chunk()?;
    bytes.truncate(bytes.len() - SUM_BYTES);
    (own == sum(stamp, block, number, &bytes)).then_some(bytes)
}

fn keeping(stamp: &str, block: Block, rows: BlockRows) -> Args {
    let mut args = Args::of([stamp.to_owned()]);
    let inner = (block.first..block.end()).step_by(SPAN as usize).map(|first| Block { first, span: SPAN });
    args.list(inner.filter(|inner| *inner != block).chain([block]).map(name));
    let firsts = rows.iter().flat_map(|(first, _)| first.0.to_be_bytes()).collect();
    args.bytes([name(block).into_bytes(), sealed(stamp, block, 0, firsts)]);
    args.bytes((1..).zip(rows).map(|(number, (_, row))| sealed(stamp, block, number, row)));
    args
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
        let (shared, keys) = (Arc::clone(&self.shared), self.shared.prefix.keys(session));
        let args = keeping(stamp, block, rows);
        // One attempt only: a search does not wait for a server that cannot write.
        let keep = async move {
            shared.connections.call("search", &Call { script: &SCRIPTS.keep_words, keys: &keys, args }).await
        };
        self.home.run(keep).await
    }
}

/// Removes the index of a session. The next search makes it again.
pub(super) async fn forget(store: &Shared, keys: &SessionKeys) -> Result<(), StoreError> {
    let mut command = ::redis::cmd("UNLINK");
    command.arg(keys.one(Key::Words));
    store.connections.ask("reindex", &command).await
}
