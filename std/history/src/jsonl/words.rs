//! The index of words of a session, in a file beside the session's file.
//!
//! The index can be deleted at any time: a search writes it again. It is therefore never synced to the disk, and a
//! damaged block counts as missing. The file begins with a mark and the id of the session's file; blocks follow. A
//! block has these fields: its first message, its span, a line checksum, the first terms and the lengths of its rows, a
//! checksum of these fields, and the rows, each with a checksum. The line checksum is that of the append line of the
//! block's last message. It shows whether the session's file was cut and has other lines now. A block replaces earlier
//! blocks whose messages it contains.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use epitome_core::{Head, Seq};
use epitome_message::search::Term;
use uuid::Uuid;

use super::directory::{Access, END, Opened, wait_for};
use super::frame::{self, Sum};
use super::lines::Lines;
use super::{JsonlStore, read};
use crate::words::{
    Block, BlockRows, KeptWords, SPAN, SUM_BYTES, SessionWords, WIDE_SPAN, checksum, rows_with,
};
use crate::{SessionId, StoreError};

/// Suffix of the index file's name, after the name of the session's file.
const SUFFIX: &str = ".words";

const MARK: &[u8; 8] = b"epiwords";

/// Length of the beginning of a block: its first message, its span, the line checksum and the number of its rows.
const BLOCK_BYTES: usize = 20 + frame::SUM_BYTES;

/// Length of an entry: the first term of a row and the length of the row.
const ENTRY_BYTES: usize = 8;

/// Maximum number of rows of a block. A block of ordinary texts has some hundreds.
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
        let name = found?.file_name();
        let session = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(session) = session.filter(|session| session.ends_with(END)) {
            remove(&folder.join(session))?;
        }
    }
    Ok(())
}

/// The checksum of `data` at an offset of the file.
fn sum(file: Uuid, at: u64, data: &[&[u8]]) -> [u8; SUM_BYTES] {
    let mut all: Vec<&[u8]> = vec![file.as_bytes()];
    let at = at.to_le_bytes();
    all.push(&at);
    all.extend(data);
    checksum(&all)
}

/// A block: the checksum of the append line of its last message, and its rows with their first terms, offsets and
/// lengths.
struct Found {
    line: Sum,
    rows: Vec<(Term, u64, u32)>,
}

/// The undamaged beginning of an index file.
struct WordsFile {
    file: Uuid,
    blocks: BTreeMap<Block, Found>,
    /// The offset of the next block; 0 if the index belongs to another session's file, or has no content.
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
        while let Some((block, own, end)) = found.block(&mut reader, size)? {
            reader.seek(SeekFrom::Start(end))?;
            found.blocks.retain(|other, _| !block.holds(*other));
            found.blocks.insert(block, own);
            found.end = end;
        }
        Ok(found)
    }

    /// The block at `end`, and the offset of its end; `None` if there is no whole block.
    fn block(&self, reader: &mut impl Read, size: u64) -> io::Result<Option<(Block, Found, u64)>> {
        let left = size.saturating_sub(self.end);
        if left < (BLOCK_BYTES + SUM_BYTES) as u64 {
            return Ok(None);
        }
        let mut begin = [0; BLOCK_BYTES];
        reader.read_exact(&mut begin)?;
        let mut rest = &begin[..];
        let (first, span) = (long(&mut rest).cast_signed(), long(&mut rest).cast_signed());
        let (line, count) = (take(&mut rest).unwrap_or_default(), int(&mut rest));
        let entries = u64::from(count).saturating_mul(ENTRY_BYTES as u64);
        if count > ROWS_MAX || entries.saturating_add((BLOCK_BYTES + SUM_BYTES) as u64) > left {
            return Ok(None);
        }
        let mut directory = vec![0; count as usize * ENTRY_BYTES];
        reader.read_exact(&mut directory)?;
        let mut own = [0; SUM_BYTES];
        reader.read_exact(&mut own)?;
        let is_block = [SPAN, WIDE_SPAN].contains(&span) && (0..i64::MAX - span).contains(&first);
        if !is_block || first % span != 0 || own != sum(self.file, self.end, &[&begin, &directory]) {
            return Ok(None);
        }
        let mut at = self.end.saturating_add(entries).saturating_add((BLOCK_BYTES + SUM_BYTES) as u64);
        let mut rows = Vec::with_capacity(count as usize);
        let mut rest = &directory[..];
        for _ in 0..count {
            let (term, length) = (Term::from_bits(int(&mut rest)), int(&mut rest));
            rows.push((term, at, length));
            at = at.saturating_add(u64::from(length)).saturating_add(SUM_BYTES as u64);
        }
        Ok((at <= size).then_some((Block { first, span }, Found { line, rows }, at)))
    }

    /// The rows of a block that can contain one of the terms. `None` if there is no such block for these lines, or one
    /// of the rows is damaged.
    fn rows(&self, words: &File, place: Place, terms: &[Term]) -> io::Result<Option<BlockRows>> {
        let own = self.blocks.get(&place.block).filter(|own| own.line == place.line);
        let Some(Found { rows, .. }) = own else { return Ok(None) };
        let (mut words, mut found) = (words, BlockRows::new());
        for (first, at, length) in rows_with(rows, |row| row.0, terms) {
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

    /// The bytes of a block at the end of the file. A new file begins with the mark.
    fn bytes(&self, Place { block, line }: Place, rows: &BlockRows) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.end == 0 {
            bytes.extend_from_slice(MARK);
            bytes.extend_from_slice(self.file.as_bytes());
        }
        let (begin, from) = (bytes.len(), self.end.saturating_add(bytes.len() as u64));
        bytes.extend_from_slice(&block.first.to_le_bytes());
        bytes.extend_from_slice(&block.span.to_le_bytes());
        bytes.extend_from_slice(&line);
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

/// A block, and the checksum of the append line of its last message.
#[derive(Clone, Copy)]
struct Place {
    block: Block,
    line: Sum,
}

impl Place {
    /// `None` if the session has fewer messages. The line of an append contains its token.
    fn of(block: Block, opened: &Opened, lines: &mut Lines<'_>) -> Option<Self> {
        let last = Seq((block.end() - 1).unsigned_abs());
        let line = opened.known.index.appends(last).first()?.line;
        lines.read_ahead_to(0);
        Some(Self { block, line: lines.sum(line.at).ok()?? })
    }
}

/// Opens the index beside `path`. A path that is not a regular file is an error.
fn open(path: &Path, options: &OpenOptions, access: Access) -> io::Result<File> {
    let path = beside(path);
    if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("the index of words is no file"));
    }
    let words = options.open(path)?;
    wait_for(&words, access)?;
    Ok(words)
}

/// The rows of these blocks in the index of a session. An index that cannot be read has none.
fn kept(opened: &Opened, places: &[Option<Place>], terms: &[Term]) -> Vec<Option<BlockRows>> {
    let read = || -> io::Result<Vec<Option<BlockRows>>> {
        let words = open(&opened.path, OpenOptions::new().read(true), Access::Read)?;
        let found = WordsFile::read(&words, opened.known.file.id)?;
        places.iter().map(|place| place.map_or(Ok(None), |place| found.rows(&words, place, terms))).collect()
    };
    read().unwrap_or_else(|_| vec![None; places.len()])
}

/// Writes a block to the end of the index of a session, unless another search has done so.
fn write(opened: &Opened, place: Place, rows: &BlockRows) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut words = open(&opened.path, &options, Access::Write)?;
    let found = WordsFile::read(&words, opened.known.file.id)?;
    let terms: Vec<Term> = rows.iter().map(|(first, _)| *first).collect();
    if found.rows(&words, place, &terms)?.is_some_and(|own| own == *rows) {
        return Ok(());
    }
    words.set_len(found.end)?;
    words.seek(SeekFrom::Start(found.end))?;
    words.write_all(&found.bytes(place, rows))
}

fn stamp(opened: &Opened) -> String {
    opened.known.file.id.simple().to_string()
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
            read::with(directory, "search", session, |opened, lines, _| {
                let places: Vec<_> = blocks.iter().map(|block| Place::of(*block, opened, lines)).collect();
                Ok(KeptWords { stamp: stamp(opened), rows: kept(opened, &places, &terms) })
            })
        };
        self.read("search", session, words).await
    }

    async fn keep_words(
        &self,
        session: &SessionId,
        expected: &str,
        block: Block,
        rows: BlockRows,
    ) -> Result<(), StoreError> {
        let expected = expected.to_owned();
        // The lock of the session's file prevents a prune from replacing that file meanwhile.
        let keep = move |directory: &mut _, session: &_| {
            let written = read::with(directory, "search", session, |opened, lines, here| {
                let place = Place::of(block, opened, lines).filter(|_| stamp(opened) == expected);
                let written = place.map_or(Ok(()), |place| write(opened, place, &rows));
                // The session's file was read, so the knowledge about it stays valid.
                Ok(written.map_err(|error| here.failed(error)))
            });
            written?.unwrap_or(Ok(()))
        };
        self.read("search", session, keep).await
    }
}
