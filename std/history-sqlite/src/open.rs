//! Opening of a file: the checks of its owner and its access, and the settings for durable writes.

use core::cell::Cell;
use core::time::Duration;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use epitome_history::encryption::{self, CIPHER, Place as Sealed, Vault};
use epitome_history::files::FileId;
use epitome_history::rules::{corrupt, invalid};
use epitome_history::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior};
use uuid::Uuid;

use super::failure::{Failure, unavailable};
use super::schema::{APPLICATION_ID, SCHEMA, SCHEMA_VERSION};
use super::sql;
use super::sums;

/// Maximum time that an operation waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// Delay between two attempts: shorter than a write with its flush.
const BUSY_WAIT: Duration = Duration::from_millis(1);

/// More than the number of statements, so that none is prepared twice.
const STATEMENTS_MAX: usize = 96;

/// Maximum number of attempts to change to WAL. A failed attempt means that another process that opens the new file has
/// made progress.
const WAL_ATTEMPTS_MAX: usize = 32;

/// The path and the identity of an open file. SQLite keeps using a file that was removed or replaced, and later writes
/// are lost.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    id: FileId,
}

impl Place {
    fn of(path: &Path) -> Result<Self, StoreError> {
        let id =
            FileId::at(path).map_err(|error| unavailable("open: the file is lost").with_source(error))?;
        let id = id.ok_or_else(|| unavailable("open: there is no such file"))?;
        Ok(Self { path: path.to_owned(), id })
    }

    /// # Errors
    /// `Unavailable` if the path leads to another file now, or to none.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let path = self.path.display();
        match FileId::at(&self.path) {
            Ok(Some(id)) if id == self.id => Ok(()),
            Ok(_) => Err(unavailable(format!(
                "the file {path} was removed or replaced since it was opened, and what was written since may be lost; \
                 put it back, or open the store again"
            ))),
            Err(error) => {
                let context = format!("whether the file {path} is still there cannot be seen");
                Err(unavailable(context).with_source(error))
            }
        }
    }
}

/// An open file, and its own id. The keys of encrypted texts depend on the id.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) file: Uuid,
    /// Path and identity of the file; `None` for a store in memory.
    pub(super) place: Option<Place>,
}

pub(super) fn open(path: &Path, vault: &Vault) -> Result<Opened, StoreError> {
    let path = resolve(path)?;
    create(&path)?;
    let place = Place::of(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> Result<Opened, Failure> {
        let mut connection = Connection::open_with_flags(&path, flags)?;
        prepare(&mut connection)?;
        // Checked before the first write: the file may belong to another program.
        identify_alone(&connection)?;
        if connection.is_readonly("main")? {
            return Err(not_writable(&path).into());
        }
        let file = set_up(&connection, vault)?;
        Ok(Opened { connection, file, place: None })
    };
    let opened = open().map_err(|failure| failure.of("open"))?;
    place.check()?;
    Ok(Opened { place: Some(place), ..opened })
}

pub(super) fn open_in_memory() -> Result<Opened, StoreError> {
    let open = || -> Result<Opened, Failure> {
        let mut connection = Connection::open_in_memory()?;
        prepare(&mut connection)?;
        let file = set_up(&connection, &Vault::Plain)?;
        Ok(Opened { connection, file, place: None })
    };
    open().map_err(|failure| failure.of("open"))
}

/// Opens a file for reading. If its directory cannot be written, SQLite refuses to read a file that was written in WAL
/// mode, because it cannot coordinate readers and writers there. If there is no log beside the file, no writer has it
/// open. It is then read as an immutable file; a process that makes it writable again must open it again.
pub(super) fn open_read_only(path: &Path, vault: &Vault) -> Result<Opened, StoreError> {
    let path = resolve(path)?;
    let place = Place::of(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let checked = |connection| checked(connection, vault);
    let first = Connection::open_with_flags(&path, flags).map_err(Failure::from).and_then(checked);
    let cannot_open = matches!(&first, Err(Failure::Sqlite(error))
        if matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)));
    let opened = if cannot_open && !has_log(&path) {
        let uri = immutable(&path);
        let flags = flags | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(uri, flags).map_err(Failure::from).and_then(checked)
    } else {
        first
    };
    let opened = opened.map_err(|failure| failure.of("open"))?;
    place.check()?;
    Ok(Opened { place: Some(place), ..opened })
}

fn checked(mut connection: Connection, vault: &Vault) -> Result<Opened, Failure> {
    prepare(&mut connection)?;
    match identify_alone(&connection)? {
        Identity::Ours { version: SCHEMA_VERSION } => {
            let file = unlock(&connection, vault)?;
            Ok(Opened { connection, file, place: None })
        }
        Identity::Ours { version } => Err(of_older(version).into()),
        Identity::Empty => Err(invalid("open: the file is empty; open it for writing first").into()),
    }
}

/// An absolute path, so that SQLite does not interpret it as a special name (`:memory:`).
fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let path = std::path::absolute(path).map_err(|error| invalid("open: no path").with_source(error))?;
    if path.is_dir() {
        return Err(invalid("open: the path is a directory; name a file in it"));
    }
    Ok(path)
}

/// Creates the file if there is none, readable by its owner only; SQLite gives its companion files the same
/// permissions. An existing file is not opened here: closing it would release the locks of every connection of this
/// process to it.
fn create(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(_) if path.exists() => Ok(()),
        Err(error) => Err(unavailable("open: the file cannot be created").with_source(error)),
    }
}

fn not_writable(path: &Path) -> StoreError {
    let path = path.display();
    unavailable(format!("open: {path} cannot be written; make it writable, or open it read-only"))
}

/// Whether the file has a log: a writer may have it open, or has ended without a checkpoint.
fn has_log(path: &Path) -> bool {
    let beside = |suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        fs::metadata(name)
    };
    beside("-shm").is_ok() || beside("-wal").is_ok_and(|log| log.len() > 0)
}

/// `path` as a URI that declares the file immutable.
fn immutable(path: &Path) -> String {
    let mut uri = String::from("file:");
    if !path.has_root() || cfg!(windows) {
        uri.push('/');
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b':' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// Waits for a lock. `refused` is the number of refusals so far. Returns whether to try again. All waits have the same
/// length: SQLite's own waits grow, so that the connection that has waited longest would try least often and get the
/// lock last.
#[expect(
    clippy::disallowed_methods,
    reason = "the thread is the connection's own, or that of who opens the file and waits"
)]
fn wait_for_lock(refused: i32) -> bool {
    let now = Instant::now();
    if refused == 0 {
        WAITS_SINCE.set(now);
    }
    let is_early = WAITS.get() && now.duration_since(WAITS_SINCE.get()) < BUSY_TIMEOUT;
    if is_early {
        thread::sleep(BUSY_WAIT);
    }
    is_early
}

/// Calls `run`, on the thread of a connection. Meanwhile, the connections of this thread fail at once if another
/// connection has a lock.
pub(super) fn without_waiting<T>(run: impl FnOnce() -> T) -> T {
    WAITS.set(false);
    let done = run();
    WAITS.set(true);
    done
}

thread_local! {
    /// The time at which the present wait of this thread began.
    static WAITS_SINCE: Cell<Instant> = Cell::new(Instant::now());

    /// Whether this thread waits for locks.
    static WAITS: Cell<bool> = const { Cell::new(true) };
}

fn prepare(connection: &mut Connection) -> Result<(), Failure> {
    connection.busy_handler(Some(wait_for_lock))?;
    sums::register(connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without this setting, the bundled SQLite may plan by the values of parameters, and then prepares a statement
    // again for other values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // The schema of the file may not call functions of the program that have side effects.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Deleted texts are overwritten: they do not stay in unused parts of pages.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    Ok(())
}

/// Makes acknowledged writes durable, and creates the tables if there are none. Returns the file's own id.
fn set_up(connection: &Connection, vault: &Vault) -> Result<Uuid, Failure> {
    // Each commit is written to the log, and the log to the disk, before it is acknowledged. If the file system does
    // not support WAL, SQLite stays with its rollback journal, which is durable under FULL too.
    use_wal(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Without this, macOS does not wait until the drive has written the bytes.
    connection.pragma_update(None, "fullfsync", true)?;

    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have created the tables meanwhile.
    match identify(&transaction)? {
        Identity::Ours { version: SCHEMA_VERSION } => {}
        Identity::Ours { version } => return Err(of_older(version).into()),
        Identity::Empty => {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            if !vault.is_plain() {
                lock(&transaction, vault)?;
            }
        }
    }
    // A file whose form differs from the expected one is not changed.
    let file = unlock(&transaction, vault)?;
    transaction.commit()?;
    Ok(file)
}

fn of_older(version: i64) -> StoreError {
    invalid(format!(
        "open: written by an older version: schema {version}, this one has {SCHEMA_VERSION}; export its sessions with \
         that version, and import them into another file"
    ))
}

/// Writes into a new file that its texts are encrypted, with a check text.
fn lock(connection: &Connection, vault: &Vault) -> Result<(), Failure> {
    let file = Uuid::new_v4();
    let check = vault.seal(file, CHECKED).close(Sealed::CHECK, String::new())?;
    connection.execute(sql::NEW_ENCRYPTION, (file.as_bytes(), CIPHER, check))?;
    Ok(())
}

/// Returns the file's own id, after a check that `vault` fits the file.
fn unlock(connection: &Connection, vault: &Vault) -> Result<Uuid, Failure> {
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
    let found = connection.query_row(sql::ENCRYPTION, [], row).optional()?;
    if let Some((_, cipher, _)) = found.as_ref().filter(|(_, cipher, _)| cipher != CIPHER) {
        let context =
            format!("open: encrypted with {cipher:?}, this version knows {CIPHER}; use a newer one");
        return Err(invalid(context).into());
    }
    let file = found.as_ref().map_or_else(Uuid::nil, |(file, ..)| Uuid::from_bytes(*file));
    let check = found.as_ref().map(|(_, _, check)| &**check);
    encryption::check(vault, &vault.seal(file, CHECKED), check, "open: the file")?;
    Ok(file)
}

/// The session id of the key for the file's check text. A session may have the same id.
const CHECKED: &[u8] = b"";

/// Changes the file to WAL, once in its life. The change needs exclusive access, and SQLite does not wait for it as it
/// does in other steps.
fn use_wal(connection: &Connection) -> Result<(), Failure> {
    let change = || connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    for _ in 0..WAL_ATTEMPTS_MAX {
        match change() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                // This transaction waits until the other connections are done.
                Transaction::new_unchecked(connection, TransactionBehavior::Exclusive)?.commit()?;
            }
            changed => return Ok(changed?),
        }
    }
    Ok(change()?)
}

#[derive(Debug, PartialEq, Eq)]
enum Identity {
    Empty,
    Ours { version: i64 },
}

/// Reads in one transaction, because another process may be creating the schema.
fn identify_alone(connection: &Connection) -> Result<Identity, Failure> {
    identify(&*connection.unchecked_transaction()?)
}

fn identify(connection: &Connection) -> Result<Identity, Failure> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version, tables) {
        (0, 0, 0) => Ok(Identity::Empty),
        (APPLICATION_ID, version @ 1..=SCHEMA_VERSION, 1..) => Ok(Identity::Ours { version }),
        (APPLICATION_ID, version, _) if version > SCHEMA_VERSION => Err(StoreError::new(
            StoreErrorKind::Invalid,
            format!(
                "open: written by a newer version: schema {version}, this one reads up to {SCHEMA_VERSION}"
            ),
        )
        .into()),
        (APPLICATION_ID, ..) => Err(corrupt("open: the file has lost its schema").into()),
        _ => Err(invalid("open: the database belongs to another program; name another file").into()),
    }
}
