//! The thread that owns the connection.
//!
//! Writes that wait at the same time run in one transaction, each in its own savepoint, and are answered after the
//! commit. Several appends then cost one write to the disk, and none fails because of another. Reads have separate
//! transactions, so that they do not fail together with writes for which the file is locked. A vacuum runs outside of
//! transactions.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use epitome_history::{StoreError, StoreErrorKind};
use futures::channel::{mpsc, oneshot};
use futures::{FutureExt, StreamExt};
use rusqlite::Connection;

use super::failure::{Failure, unavailable};
use super::open::Place;
use super::schema::APPLICATION_ID;

/// Maximum number of waiting jobs, far more than the callers that wait at the same time. Each job has a text in memory.
/// While another process keeps the file locked, dropped futures leave their jobs in the queue.
const WAITING_JOBS_MAX: usize = 4096;

/// Maximum number of jobs in one transaction, so that the first job does not wait for an endless sequence of others.
const BATCH_JOBS_MAX: usize = 64;

/// The access of a job to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Writes outside of a transaction.
    Alone,
}

/// A handle of the worker thread. When the handle is dropped, the thread finishes the jobs that were sent before,
/// closes the file and ends. Dropping the handle waits for the end, so that a program leaves a single file without a
/// log beside it.
pub(super) struct Worker {
    jobs: mpsc::UnboundedSender<Box<dyn Job>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs.close_channel();
        // The thread itself may drop the last handle, as a part of a job.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // Every waiting caller has already received an error for a panic of the thread.
            let _ = thread.join();
        }
    }
}

impl Worker {
    /// `place` is the path and identity of the connection's file, if it has one.
    pub(super) fn start(connection: Connection, place: Option<Place>) -> Result<Self, StoreError> {
        let (jobs, sent) = mpsc::unbounded();
        let waiting = Arc::new(AtomicUsize::new(0));
        let queue = Queue { sent, waiting: Arc::clone(&waiting), next: None };
        let thread = thread::Builder::new()
            .name("epitome-sqlite".into())
            .spawn(move || work(&connection, place.as_ref(), queue))
            .map_err(|error| unavailable("open: cannot start a thread").with_source(error))?;
        Ok(Self { jobs, waiting, thread: Some(thread) })
    }

    /// Runs `run` on the thread, and answers when the result is on the disk.
    ///
    /// The first poll of the future sends the job. If the future is dropped afterwards, the job is done and its answer
    /// is discarded.
    pub(super) async fn call<T, F>(
        &self,
        operation: &'static str,
        access: Access,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Call { operation, access, run: Some(run), result: None, reply };
        self.send(operation, Box::new(job))?;
        answer.await.map_err(|_| ended(operation))?
    }

    fn send(&self, operation: &str, job: Box<dyn Job>) -> Result<(), StoreError> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_JOBS_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(unavailable(format!("{operation}: too many jobs wait for the file; try again")));
        }
        self.jobs.unbounded_send(job).map_err(|_| ended(operation))
    }
}

/// The jobs in the order in which they were sent.
struct Queue {
    sent: mpsc::UnboundedReceiver<Box<dyn Job>>,
    waiting: Arc<AtomicUsize>,
    /// The first job that did not fit into the last batch.
    next: Option<Box<dyn Job>>,
}

impl Queue {
    /// Waits for the next jobs that share a transaction; `None` when the handle is dropped.
    fn batch(&mut self) -> Option<Vec<Box<dyn Job>>> {
        let first = match self.next.take() {
            Some(job) => job,
            None => futures::executor::block_on(self.sent.next())?,
        };
        let access = first.access();
        let mut batch = vec![first];
        while batch.len() < BATCH_JOBS_MAX
            && let Some(Some(job)) = self.sent.next().now_or_never()
        {
            if job.access() != access {
                self.next = Some(job);
                break;
            }
            batch.push(job);
        }
        self.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        Some(batch)
    }
}

fn ended(operation: &str) -> StoreError {
    unavailable(format!("{operation}: the store's thread has ended; open the store again"))
}

trait Job: Send {
    fn access(&self) -> Access;
    /// Runs the job. Returns whether it succeeded; if not, its writes must be rolled back.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Answers the caller; `lost` if the transaction around the work has failed.
    fn answer(self: Box<Self>, lost: Option<&Lost>);
}

/// The reason why a transaction has failed, for all its jobs.
struct Lost {
    kind: StoreErrorKind,
    context: String,
}

impl Lost {
    fn of(error: StoreError) -> Self {
        Self { kind: error.kind(), context: error.to_string() }
    }
}

struct Call<T, F> {
    operation: &'static str,
    access: Access,
    run: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Failure> + Send,
{
    fn access(&self) -> Access {
        self.access
    }

    fn run(&mut self, connection: &Connection) -> bool {
        let Some(run) = self.run.take() else { return false };
        let result = run(connection).map_err(|failure| failure.of(self.operation));
        let done = result.is_ok();
        self.result = Some(result);
        done
    }

    fn answer(self: Box<Self>, lost: Option<&Lost>) {
        let answer = match (self.result, lost) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(value)), None) => Ok(value),
            (_, Some(lost)) => Err(StoreError::new(lost.kind, lost.context.clone())),
            (None, None) => Err(ended(self.operation)),
        };
        // The caller may have dropped the future.
        let _ = self.reply.send(answer);
    }
}

fn work(connection: &Connection, place: Option<&Place>, mut queue: Queue) {
    let is_there = || place.map_or(Ok(()), Place::check).map_err(Lost::of);
    while let Some(mut batch) = queue.batch() {
        // A write to a file that was removed meanwhile is not acknowledged.
        let done = is_there().and_then(|()| transact(connection, &mut batch)).and_then(|()| is_there());
        let lost = done.err();
        for job in batch {
            job.answer(lost.as_ref());
        }
    }
}

fn transact(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), Lost> {
    if batch.iter().any(|job| job.access() == Access::Alone) {
        for job in batch {
            job.run(connection);
        }
        return Ok(());
    }
    let writes = batch.iter().any(|job| job.access() == Access::Write);
    // A transaction that reads first and writes later can fail halfway because another process writes first.
    step(connection, if writes { "BEGIN IMMEDIATE" } else { "BEGIN DEFERRED" })?;
    let done = commit(connection, batch);
    if done.is_err() && !connection.is_autocommit() {
        // If this fails too, SQLite has already rolled the transaction back.
        let _ = step(connection, "ROLLBACK");
    }
    done
}

fn commit(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), Lost> {
    let (mut is_repeated, mut is_changed) = (false, false);
    for job in batch {
        match isolated(connection, job.as_mut())? {
            Done::Unchanged => is_repeated = true,
            Done::Changed => is_changed = true,
            Done::Nothing => {}
        }
    }
    if is_repeated && !is_changed {
        // The process that wrote the original may have ended before its log was on the disk. A commit without changes
        // does not reach the disk, so one page is written.
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(lost)?;
    }
    step(connection, "COMMIT")
}

/// The effect of a job on the file.
enum Done {
    /// The job has read, or was refused.
    Nothing,
    /// The job was acknowledged: the file already had its result.
    Unchanged,
    Changed,
}

fn isolated(connection: &Connection, job: &mut dyn Job) -> Result<Done, Lost> {
    if job.access() == Access::Read {
        job.run(connection);
        return Ok(Done::Nothing);
    }
    step(connection, "SAVEPOINT job")?;
    let before = connection.total_changes();
    let done = match job.run(connection) {
        false => Done::Nothing,
        true if connection.total_changes() == before => Done::Unchanged,
        true => Done::Changed,
    };
    if matches!(done, Done::Nothing) {
        step(connection, "ROLLBACK TO job")?;
    }
    step(connection, "RELEASE job")?;
    Ok(done)
}

fn step(connection: &Connection, sql: &'static str) -> Result<(), Lost> {
    let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    done.map(|_| ()).map_err(lost)
}

fn lost(error: rusqlite::Error) -> Lost {
    Lost::of(Failure::from(error).of("the transaction"))
}

#[cfg(test)]
mod tests {
    use futures::future::{join, join4, join5};

    use super::*;

    fn worker() -> Worker {
        let connection = Connection::open_in_memory().unwrap();
        let schema = "PRAGMA foreign_keys = ON;
            CREATE TABLE t (x INTEGER UNIQUE, parent INTEGER REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(schema).unwrap();
        Worker::start(connection, None).unwrap()
    }

    fn insert(x: i64) -> impl FnOnce(&Connection) -> Result<(), Failure> {
        insert_both(x + 100, x)
    }

    fn insert_both(one: i64, other: i64) -> impl FnOnce(&Connection) -> Result<(), Failure> {
        move |connection| {
            connection.execute("INSERT INTO t (x) VALUES (?1)", [one])?;
            connection.execute("INSERT INTO t (x) VALUES (?1)", [other])?;
            Ok(())
        }
    }

    fn rows(connection: &Connection) -> Result<i64, Failure> {
        Ok(connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
    }

    #[test]
    fn jobs_that_wait_together_share_a_transaction_and_not_their_failures() {
        futures::executor::block_on(async {
            let worker = worker();
            let (hold, held) = std::sync::mpsc::channel::<()>();
            let block = worker.call("hold", Access::Read, move |_| {
                let _ = held.recv();
                Ok(())
            });
            let one = worker.call("one", Access::Write, insert(1));
            let again = worker.call("again", Access::Write, insert_both(7, 1));
            let two = worker.call("two", Access::Write, |connection| {
                insert(2)(connection)?;
                Ok(connection.total_changes())
            });
            let after = worker.call("after", Access::Read, |connection| {
                Ok((rows(connection)?, connection.is_autocommit()))
            });
            let release = async { drop(hold) };
            let ((_, one, again, two, after), ()) = join(join5(block, one, again, two, after), release).await;
            one.unwrap();
            assert_eq!(again.unwrap_err().kind(), StoreErrorKind::Corrupt);
            two.unwrap();
            assert_eq!(after.unwrap(), (4, false));
        });
    }

    /// A worker on a file that another connection keeps locked, and that connection.
    fn locked() -> (tempfile::NamedTempFile, Worker, Connection) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let connection = Connection::open(file.path()).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x INTEGER UNIQUE)").unwrap();
        connection.busy_timeout(core::time::Duration::ZERO).unwrap();
        let other = Connection::open(file.path()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        (file, Worker::start(connection, None).unwrap(), other)
    }

    #[test]
    fn a_read_does_not_fail_with_the_writes_beside_it() {
        let (_file, worker, _other) = locked();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let block = worker.call("hold", Access::Read, move |_| {
            let _ = held.recv();
            Ok(())
        });
        let write = worker.call("write", Access::Write, insert(1));
        let read = worker.call("read", Access::Read, rows);
        let again = worker.call("again", Access::Write, insert(2));
        let release = async { drop(hold) };
        let all = join(join4(block, write, read, again), release);
        let ((_, write, read, again), ()) = futures::executor::block_on(all);
        assert_eq!(write.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(read.unwrap(), 0);
        assert_eq!(again.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }

    #[test]
    fn a_caller_that_is_not_polled_holds_up_nobody_and_too_many_are_refused() {
        let worker = worker();
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let block = worker.call("hold", Access::Read, move |_| {
            let _ = held.recv();
            Ok(())
        });
        assert!(block.now_or_never().is_none());
        let call = || Box::pin(worker.call("rows", Access::Read, rows));
        let mut sleeping = Vec::new();
        let refused = loop {
            let mut sleeper = call();
            match (&mut sleeper).now_or_never() {
                None => sleeping.push(sleeper),
                Some(answer) => break answer,
            }
        };
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Unavailable);
        // The jobs of the first batch no longer wait.
        assert!((WAITING_JOBS_MAX - 1..WAITING_JOBS_MAX + BATCH_JOBS_MAX).contains(&sleeping.len()));
        drop(hold);
        let last = sleeping.pop().unwrap();
        assert_eq!(futures::executor::block_on(last).unwrap(), 0);
        assert_eq!(futures::executor::block_on(call()).unwrap(), 0);
    }

    #[test]
    fn a_lost_transaction_is_an_error_for_everyone_in_it() {
        futures::executor::block_on(async {
            let worker = worker();
            let (hold, held) = std::sync::mpsc::channel::<()>();
            let block = worker.call("hold", Access::Read, move |_| {
                let _ = held.recv();
                Ok(())
            });
            let one = worker.call("one", Access::Write, insert(1));
            let breaks = worker.call("breaks", Access::Write, |connection| {
                connection.execute_batch("ROLLBACK")?;
                Ok(())
            });
            let release = async { drop(hold) };
            let (_, one, breaks, ()) = join4(block, one, breaks, release).await;
            assert!(one.is_err() && breaks.is_err());
            assert_eq!(worker.call("rows", Access::Read, rows).await.unwrap(), 0);
            // A violation that SQLite finds only at the commit leaves the transaction open.
            let dangling = |connection: &Connection| {
                Ok(connection.execute("INSERT INTO t (x, parent) VALUES (5, 99)", [])?)
            };
            assert!(worker.call("dangling", Access::Write, dangling).await.is_err());
            worker.call("one", Access::Write, insert(1)).await.unwrap();
            assert_eq!(worker.call("rows", Access::Read, rows).await.unwrap(), 2);
        });
    }

    #[test]
    fn what_was_sent_is_done_even_if_nobody_waits_and_the_store_is_dropped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let connection = Connection::open(file.path()).unwrap();
        connection.execute_batch("CREATE TABLE t (x INTEGER UNIQUE)").unwrap();
        let worker = Worker::start(connection, None).unwrap();
        for x in 0..10 {
            assert!(worker.call("insert", Access::Write, insert(x)).now_or_never().is_none());
        }
        // An answer without a receiver is dropped after the transaction.
        let (answer, dropped) = std::sync::mpsc::channel::<()>();
        let last = worker.call("last", Access::Read, move |_| Ok(answer));
        assert!(last.now_or_never().is_none());
        drop(worker);
        assert!(dropped.recv().is_err());
        assert_eq!(rows(&Connection::open(file.path()).unwrap()).unwrap(), 20);
    }
}
