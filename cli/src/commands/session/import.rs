//! `epitome session import`: a transcript's messages, appended to a session.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome::core::{Basis, Seq, TokenCounter, Tokens, Turn};
use epitome::history::{
    Append, AppendToken, Entry, History, HistoryStoreExt as _, StoreError, StoreErrorKind, TokenCount,
    check_export,
};
use epitome::message::Message;
use epitome::session::{IdSource as _, UuidSource};
use futures::executor::block_on;
use sha2::{Digest as _, Sha256};

use super::store::{Access, Store, id, in_store, open, refused};
use crate::amount::counted;
use crate::args::{InputArgs, OneSessionArgs};
use crate::failure::{Failure, Result};
use crate::output::to_json;
use crate::progress::Progress;
use crate::scan;
use crate::transcript::{Input, STDIN, stdin};

/// Appends the conversation of `input`, unless the session began with the same import. A repeated import whose end was
/// not seen therefore adds nothing.
pub(super) fn run(input: &InputArgs, args: &OneSessionArgs, append: bool, tokenizer: &str) -> Result<String> {
    // Standard input can be read only once.
    let input = &*Input::resolve(input)?;
    let stdin = (input.path() == Path::new("-")).then(stdin).transpose()?;
    if let Some(restored) = restore(input, stdin.as_deref(), args, append)? {
        return Ok(restored);
    }
    let (messages, digest) = read(input, stdin, args)?;
    let counter = scan::counter(tokenizer)?;
    let store = open(&args.store, Access::Create)?;
    let stored = |error| in_store(&args.store, error);
    let counter: Arc<dyn TokenCounter + Send + Sync> = counter.into();
    let opened = || block_on(History::open(store.clone(), id(args), counter.clone())).map_err(stored);
    let mut history = opened()?;
    let mut count = messages.len() as u64;
    if append {
        // Another process that appends the same messages now does not repeat this append.
        let own = format!("{digest}/{}", UuidSource.new_id());
        let mut more = 1..APPENDS_MAX;
        while let Err(error) = appended(&mut history, &own, messages.clone()) {
            // A conflict: another writer appended first.
            if error.kind() != StoreErrorKind::Conflict || more.next().is_none() {
                return Err(stored(error));
            }
            history = opened()?;
        }
    } else if history.head() == Seq(0) {
        appended(&mut history, &digest, messages).map_err(stored)?;
    } else if is_done(&store, args, &token(&digest, Seq(0)), messages)? {
        count = 0;
    } else {
        return Err(Failure::input(format!(
            "session {:?} has {} already: give another name, or add all messages of the transcript behind these with \
             --append",
            args.session,
            counted(history.head().0, "message")
        )));
    }
    if args.json {
        return to_json(
            &serde_json::json!({ "session": args.session, "imported": count, "messages": history.head().0 }),
        );
    }
    let tokens = counted(history.index().tokens(), "token");
    Ok(match count {
        0 => format!("imported before into session {:?}, which shows {tokens} now", args.session),
        count => format!(
            "{} imported into session {:?}, which shows {tokens} now",
            counted(count, "message"),
            args.session
        ),
    })
}

/// Maximum number of tries of an append while others append to the same session.
const APPENDS_MAX: u32 = 100;

/// Appends the messages after those of `history`.
fn appended(
    history: &mut History,
    digest: &str,
    messages: Vec<Message>,
) -> core::result::Result<(), StoreError> {
    let token = token(digest, history.head());
    let mut progress = Progress::of_messages("counting", messages.len() as u64);
    let mut tell = |counted: usize| progress.reach(counted as u64);
    block_on(history.append_telling(&token, messages, &mut tell)).map(|_| ())
}

/// Creates a session from an export; `None` if the input is no export.
fn restore(
    input: &InputArgs,
    stdin: Option<&[u8]>,
    args: &OneSessionArgs,
    append: bool,
) -> Result<Option<String>> {
    let path = input.path();
    match stdin {
        Some(bytes) => restore_from(Cursor::new(bytes), Path::new(STDIN), args, append),
        None => match File::open(path) {
            // An input that cannot be read twice is no export.
            Ok(file) if file.metadata().is_ok_and(|file| file.is_file()) => {
                restore_from(&file, path, args, append)
            }
            _ => Ok(None),
        },
    }
}

/// Creates a session from an open export. The export is read to its end before anything is stored.
fn restore_from(
    mut file: impl Read + Seek + Send,
    path: &Path,
    args: &OneSessionArgs,
    append: bool,
) -> Result<Option<String>> {
    let mut first = [0; EXPORT.len()];
    if file.read_exact(&mut first).is_err() || first != *EXPORT {
        return Ok(None);
    }
    if append {
        return Err(Failure::input("--append: an export is a whole session; give --session another name"));
    }
    if args.session.is_empty() {
        return Err(Failure::input("--session: a session needs a name"));
    }
    file.rewind().map_err(|error| Failure::io(path, &error))?;
    check_export(&mut BufReader::new(&mut file))
        .map_err(|error| Failure::from(error).during(path.display()))?;
    file.rewind().map_err(|error| Failure::io(path, &error))?;
    let store = open(&args.store, Access::Create)?;
    let done = block_on(store.import(&id(args), &mut BufReader::new(&mut file)));
    let done = done.map_err(|error| refused(&args.store, error))?;
    let (messages, records) = (done.head.0, done.records);
    Ok(Some(if args.json {
        to_json(&serde_json::json!({
            "session": args.session, "imported": messages, "messages": messages, "compactions": records,
        }))?
    } else {
        let (messages, records) = (counted(messages, "message"), counted(records, "compaction"));
        format!("session {:?} is what was exported: {messages}, {records}", args.session)
    }))
}

/// The beginning of every export.
const EXPORT: &[u8; 20] = br#"{"epitome_session":{"#;

/// The messages, and the digest of their texts.
fn read(input: &InputArgs, stdin: Option<Vec<u8>>, args: &OneSessionArgs) -> Result<(Vec<Message>, String)> {
    let source = match stdin {
        Some(bytes) => Input::from_bytes(PathBuf::from(STDIN), bytes, input)?,
        None => Input::open(input)?,
    };
    if input.part.each {
        return Err(Failure::input("a session holds one conversation: name it with --at instead of --each"));
    }
    if args.session.is_empty() {
        return Err(Failure::input("--session: a session needs a name"));
    }
    let (mut messages, mut hash) = (Vec::new(), Sha256::new());
    let mut conversation = source.conversation(input)?;
    conversation.mention_others();
    conversation.for_each(|message| {
        let text = message.text();
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
        messages.push(message.to_message().map_err(|error| Failure::wire(source.path(), &error))?);
        Ok(())
    })?;
    let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((messages, digest))
}

/// Idempotency key of an import: the same messages at the same place are the same import.
fn token(digest: &str, head: Seq) -> AppendToken {
    AppendToken::new(format!("import-{digest}-at-{head}"))
}

/// Whether the store has acknowledged an append with this key, even if the caller has not seen the answer.
fn is_done(
    store: &Store,
    args: &OneSessionArgs,
    token: &AppendToken,
    messages: Vec<Message>,
) -> Result<bool> {
    // No session has this head: the store appends nothing, and can only acknowledge a known key.
    let nowhere = Seq(u64::MAX);
    let count = TokenCount::new(Tokens(0), Basis::Estimated, "".into());
    let entry = |message| Entry::new(message, Seq(0), Turn(0), count.clone());
    let entries: Vec<_> = messages.into_iter().map(entry).collect();
    match block_on(store.append(&id(args), &Append::new(token, nowhere, &entries))) {
        Ok(_) => Ok(true),
        // `Invalid`: a fork has only the first messages of the import.
        Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Invalid) => Ok(false),
        Err(error) => Err(in_store(&args.store, error)),
    }
}
