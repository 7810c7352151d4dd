//! The thread that owns the connection.
//!
//! Jobs that wait together are done in one transaction, each in a savepoint of its own, and are answered when it is
//! committed: several appends then cost one write to the disk, and none can fail because of another.

use std::thread;

use futures::channel::{mpsc, oneshot};
use futures::lock::Mutex;
use futures::{FutureExt, SinkExt, StreamExt};
use rusqlite::Connection;

use super::failure::{Failure, unavailable};
use crate::history::{StoreError, StoreErrorKind};

/// How many jobs may wait; the next caller waits until there is room.
const QUEUE_JOBS_MAX: usize = 64;

/// How many jobs one transaction holds, so that the first of them is not kept waiting by an endless row of others.
const BATCH_JOBS_MAX: usize = 64;

/// What a job does to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// A handle on the thread. The thread does what was sent to it before the handle was dropped, closes the file and ends;
/// dropping the handle waits for that, so that a program's last statement leaves one file behind and no log beside it.
pub(super) struct Worker {
    jobs: Mutex<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs.get_mut().close_channel();
        // The thread itself may drop the last handle, with a job that holds one.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic there has been an error to everyone who waited.
            let _ = thread.join();
        }
    }
}

impl Worker {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (jobs, waiting) = mpsc::channel(QUEUE_JOBS_MAX);
        let thread = thread::Builder::new()
            .name("epitome-sqlite".into())
            .spawn(move || work(&connection, waiting))
            .map_err(|error| unavailable("open: cannot start a thread").with_source(error))?;
        Ok(Self { jobs: Mutex::new(jobs), thread: Some(thread) })
    }

    /// Does `run` on the thread, and answers when it is on the disk.
    ///
    /// Dropped before the job is sent, nothing happens; afterwards, the job is done and its answer is thrown away.
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
        // One sender for all callers: a channel grants each of its senders a place of its own.
        self.jobs.lock().await.send(Box::new(job)).await.map_err(|_| ended(operation))?;
        answer.await.map_err(|_| ended(operation))?
    }
}

fn ended(operation: &str) -> StoreError {
    unavailable(format!("{operation}: the store's thread has ended; open the store again"))
}

trait Job: Send {
    fn access(&self) -> Access;
    /// Does the work. Returns whether it was done; otherwise what it wrote is to be undone.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Answers the caller; `lost` if the transaction around the work has failed.
    fn answer(self: Box<Self>, lost: Option<&Lost>);
}

/// Why a transaction has failed, for everyone in it.
struct Lost {
    kind: StoreErrorKind,
    context: String,
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
        // Nobody may be waiting any more.
        let _ = self.reply.send(answer);
    }
}

fn work(connection: &Connection, mut waiting: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(first) = futures::executor::block_on(waiting.next()) {
        let mut batch = vec![first];
        while batch.len() < BATCH_JOBS_MAX
            && let Some(Some(job)) = waiting.next().now_or_never()
        {
            batch.push(job);
        }
        let lost = transact(connection, &mut batch).err();
        for job in batch {
            job.answer(lost.as_ref());
        }
    }
}

fn transact(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), Lost> {
    let writes = batch.iter().any(|job| job.access() == Access::Write);
    // A transaction that reads first and writes later can fail half way because another process was faster.
    step(connection, if writes { "BEGIN IMMEDIATE" } else { "BEGIN DEFERRED" })?;
    let done = batch
        .iter_mut()
        .try_for_each(|job| isolated(connection, job.as_mut()))
        .and_then(|()| step(connection, "COMMIT"));
    if done.is_err() && !connection.is_autocommit() {
        // If this fails too, SQLite has given the transaction up by itself.
        let _ = step(connection, "ROLLBACK");
    }
    done
}

fn isolated(connection: &Connection, job: &mut dyn Job) -> Result<(), Lost> {
    if job.access() == Access::Read {
        job.run(connection);
        return Ok(());
    }
    step(connection, "SAVEPOINT job")?;
    if !job.run(connection) {
        step(connection, "ROLLBACK TO job")?;
    }
    step(connection, "RELEASE job")
}

fn step(connection: &Connection, sql: &'static str) -> Result<(), Lost> {
    let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    done.map(|_| ()).map_err(|error| {
        let error = Failure::from(error).of("the transaction");
        Lost { kind: error.kind(), context: error.to_string() }
    })
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
        Worker::start(connection).unwrap()
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
            // What is found wrong only at the end leaves the transaction open.
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
        let worker = Worker::start(connection).unwrap();
        for x in 0..10 {
            assert!(worker.call("insert", Access::Write, insert(x)).now_or_never().is_none());
        }
        // The answer that nobody takes is dropped after the transaction.
        let (answer, dropped) = std::sync::mpsc::channel::<()>();
        let last = worker.call("last", Access::Read, move |_| Ok(answer));
        assert!(last.now_or_never().is_none());
        drop(worker);
        assert!(dropped.recv().is_err());
        assert_eq!(rows(&Connection::open(file.path()).unwrap()).unwrap(), 20);
    }
}
