//! The index of words of a session, in a file beside that of the session.
//!
//! The file can be deleted at any time: a search makes it anew. So nothing in it is synced to the disk, and what is damaged counts as missing.
//! It begins with a mark and the id of the session's file. Blocks follow, each with its first message, its span, the first terms and the
//! lengths of its rows, a checksum of all this, and the rows, each with a checksum. A block replaces those before it that have a part of its messages.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use epitome_core::Head;
use epitome_message::search::Term;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::directory::{Access, Directory, END, wait_for};
use super::{JsonlStore, read};
use crate::words::{Block, BlockRows, KeptWords, SessionWords, row_with};
use crate::{SessionId, StoreError};

/// Suffix of the name, behind that of the session's file.
const SUFFIX: &str = ".words";

const MARK: &[u8; 8] = b"epiwords";

const SUM_BYTES: usize = 8;

/// Length of the beginning of a block: its first message, its span, the number of its rows.
const BLOCK_BYTES: usize = 20;

/// Length of the first term of a row and the length of the row.
const ENTRY_BYTES: usize = 8;

/// Maximum number of rows of a block. One of ordinary texts has some hundreds.
const ROWS_MAX: u32 = 1 << 20;

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(SUFFIX);
    PathBuf::from(name)
}

/// Removes the index of the session in the file at `path`.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(beside(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the indexes of all sessions of a directory.
pub(super) fn remove_all(folder: &Path) -> io::Result<()> {
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        let name = path.to_str().and_then(|path| path.strip_suffix(SUFFIX));
        if let Some(session) = name.filter(|name| name.ends_with(END)) {
            remove(Path::new(session))?;
        }
    }
    Ok(())
}

fn sum(file: Uuid, at: u64, data: &[&[u8]]) -> [u8; SUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update(file.as_bytes());
    hash.update(at.to_le_bytes());
    data.iter().for_each(|data| hash.update(data));
    let digest: [u8; 32] = hash.finalize().into();
    let mut sum = [0; SUM_BYTES];
    sum.copy_from_slice(digest.first_chunk::<SUM_BYTES>().unwrap_or(&[0; SUM_BYTES]));
    sum
}

/// The rows of a block: their first terms, places and lengths.
type Rows = Vec<(Term, u64, u32)>;

/// The file, as far as it is as it was written.
struct WordsFile {
    file: Uuid,
    blocks: BTreeMap<Block, Rows>,
    /// Where the next block is written; 0 if the file is of another session's file, or was never begun.
    end: u64,
}

impl WordsFile {
    fn read(words: &File, file: Uuid) -> io::Result<Self> {
        let mut found = Self { file, blocks: BTreeMap::new(), end: 0 };
        let size = words.metadata()?.len();
        let mut reader = BufReader::new(words);
        reader.rewind()?;
        let mut begin = [0; MARK.len() + 16];
        if size < begin.len() as u64 {
            return Ok(found);
        }
        reader.read_exact(&mut begin)?;
        if begin != *[&MARK[..], file.as_bytes()].concat() {
            return Ok(found);
        }
        found.end = begin.len() as u64;
        while let Some((block, rows, end)) = found.block(&mut reader, size)? {
            reader.seek(SeekFrom::Start(end))?;
            found.blocks.retain(|other, _| !block.holds(*other));
            found.blocks.insert(block, rows);
            found.end = end;
        }
        Ok(found)
    }

    /// The block at the end of those that were read, and where it ends; `None` if there is none.
    fn block(&self, reader: &mut impl Read, size: u64) -> io::Result<Option<(Block, Rows, u64)>> {
        let left = size.saturating_sub(self.end);
        if left < (BLOCK_BYTES + SUM_BYTES) as u64 {
            return Ok(None);
        }
        let mut begin = [0; BLOCK_BYTES];
        reader.read_exact(&mut begin)?;
        let mut rest = &begin[..];
        let (first, span, count) = (long(&mut rest), long(&mut rest), int(&mut rest));
        let entries = u64::from(count).saturating_mul(ENTRY_BYTES as u64);
        if count > ROWS_MAX || entries.saturating_add((BLOCK_BYTES + SUM_BYTES) as u64) > left {
            return Ok(None);
        }
        let mut directory = vec![0; count as usize * ENTRY_BYTES];
        reader.read_exact(&mut directory)?;
        let mut own = [0; SUM_BYTES];
        reader.read_exact(&mut own)?;
        if own != sum(self.file, self.end, &[&begin, &directory]) {
            return Ok(None);
        }
        let mut at = self.end.saturating_add(entries).saturating_add((BLOCK_BYTES + SUM_BYTES) as u64);
        let mut rows = Rows::with_capacity(count as usize);
        let mut rest = &directory[..];
        for _ in 0..count {
            let (term, length) = (Term::from_bits(int(&mut rest)), int(&mut rest));
            rows.push((term, at, length));
            at = at.saturating_add(u64::from(length)).saturating_add(SUM_BYTES as u64);
        }
        let block = Block { first: first.cast_signed(), span: span.cast_signed() };
        Ok((at <= size).then_some((block, rows, at)))
    }

    /// The rows of a block that can have one of the terms; `None` if it has none, or one of them is damaged.
    fn rows(&self, words: &mut &File, block: Block, terms: &[Term]) -> io::Result<Option<BlockRows>> {
        let Some(rows) = self.blocks.get(&block) else { return Ok(None) };
        let mut found = BlockRows::new();
        for (first, at, length) in terms.iter().filter_map(|term| row_with(rows, |row| row.0, *term)) {
            if found.last().is_some_and(|(last, _)| last == first) {
                continue;
            }
            let (mut row, mut own) = (vec![0; *length as usize], [0; SUM_BYTES]);
            words.seek(SeekFrom::Start(*at))?;
            words.read_exact(&mut row)?;
            words.read_exact(&mut own)?;
            if own != sum(self.file, *at, &[&row]) {
                return Ok(None);
            }
            found.push((*first, row));
        }
        Ok(Some(found))
    }

    /// The bytes of a block at the end of the file.
    fn bytes(&self, block: Block, rows: &BlockRows) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.end == 0 {
            bytes.extend_from_slice(MARK);
            bytes.extend_from_slice(self.file.as_bytes());
        }
        let (begin, from) = (bytes.len(), self.end.saturating_add(bytes.len() as u64));
        bytes.extend_from_slice(&block.first.to_le_bytes());
        bytes.extend_from_slice(&block.span.to_le_bytes());
        bytes.extend_from_slice(&(rows.len() as u32).to_le_bytes());
        for (first, row) in rows {
            bytes.extend_from_slice(&first.0.to_le_bytes());
            bytes.extend_from_slice(&(row.len() as u32).to_le_bytes());
        }
        let own = sum(self.file, from, &[bytes.get(begin..).unwrap_or_default()]);
        bytes.extend_from_slice(&own);
        for (_, row) in rows {
            let at = self.end.saturating_add(bytes.len() as u64);
            bytes.extend_from_slice(row);
            bytes.extend_from_slice(&sum(self.file, at, &[row]));
        }
        bytes
    }
}

fn long(rest: &mut &[u8]) -> u64 {
    take(rest).map_or(0, u64::from_le_bytes)
}

fn int(rest: &mut &[u8]) -> u32 {
    take(rest).map_or(0, u32::from_le_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*taken)
}

/// The rows that the file beside `path` has of these blocks. A file that cannot be read has none.
fn kept(path: &Path, file: Uuid, blocks: &[Block], terms: &[Term]) -> Vec<Option<BlockRows>> {
    let read = || -> io::Result<Vec<Option<BlockRows>>> {
        let words = File::open(beside(path))?;
        wait_for(&words, Access::Read)?;
        let found = WordsFile::read(&words, file)?;
        blocks.iter().map(|block| found.rows(&mut &words, *block, terms)).collect()
    };
    read().unwrap_or_else(|_| vec![None; blocks.len()])
}

/// Writes a block to the end of the file beside `path`.
fn write(path: &Path, file: Uuid, block: Block, rows: &BlockRows) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut words = options.open(beside(path))?;
    wait_for(&words, Access::Write)?;
    let found = WordsFile::read(&words, file)?;
    words.set_len(found.end)?;
    words.seek(SeekFrom::Start(found.end))?;
    words.write_all(&found.bytes(block, rows))
}

fn stamp(file: Uuid) -> String {
    file.simple().to_string()
}

fn keep(
    directory: &mut Directory,
    session: &SessionId,
    expected: &str,
    block: Block,
    rows: &BlockRows,
) -> Result<(), StoreError> {
    // The lock of the session's file keeps a prune from replacing that file meanwhile.
    let done = read::with(directory, "search", session, |opened, _, here| {
        let file = opened.known.file.id;
        if stamp(file) != expected {
            return Ok(());
        }
        write(&opened.path, file, block, rows).map_err(|error| here.failed(error))
    });
    done.map(|_| ())
}

impl SessionWords for JsonlStore {
    async fn head(&self, session: &SessionId) -> Result<Option<Head>, StoreError> {
        let head = |directory: &mut _, session: &_| {
            read::with(directory, "search", session, |opened, _, _| Ok(opened.known.index.head()))
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
        let words = move |directory: &mut _, session: &_| {
            read::with(directory, "search", session, |opened, _, _| {
                let file = opened.known.file.id;
                Ok(KeptWords { stamp: stamp(file), rows: kept(&opened.path, file, &blocks, &terms) })
            })
        };
        self.read("search", session, words).await
    }

    async fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> Result<(), StoreError> {
        let stamp = stamp.to_owned();
        let keep = move |directory: &mut _, session: &_| keep(directory, session, &stamp, block, &rows);
        self.read("search", session, keep).await
    }
}
