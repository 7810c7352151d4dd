//! The thread that reads and writes the files.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use futures::channel::oneshot;

use super::directory::Directory;
use crate::{StoreError, StoreErrorKind};

/// Maximum number of waiting jobs, each with its texts in memory: far more than the callers that wait at the same time.
const WAITING_JOBS_MAX: usize = 4096;

type Job = Box<dyn FnOnce(&mut Directory) + Send>;

/// A handle of the worker thread. When the handle is dropped, the thread finishes the jobs that were sent before and
/// ends. Dropping the handle waits for the end.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: Option<mpsc::Sender<Job>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
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
    pub(super) fn start(mut directory: Directory) -> Result<Self, StoreError> {
        let (jobs, sent) = mpsc::channel::<Job>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let thread = thread::Builder::new()
            .name("epitome-jsonl".into())
            .spawn(move || {
                for job in sent {
                    left.fetch_sub(1, Ordering::Relaxed);
                    job(&mut directory);
                }
            })
            .map_err(|error| unavailable("open: cannot start a thread").with_source(error))?;
        Ok(Self { jobs: Some(jobs), waiting, thread: Some(thread) })
    }

    /// Runs `run` on the thread.
    ///
    /// The first poll of the future sends the job. If the future is dropped afterwards, the job is done and its answer
    /// is discarded.
    pub(super) async fn call<T, F>(&self, operation: &'static str, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Directory) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(move |directory: &mut Directory| {
            // The caller may have dropped the future.
            let _ = reply.send(run(directory));
        });
        self.send(operation, job)?;
        answer.await.map_err(|_| ended(operation))?
    }

    fn send(&self, operation: &str, job: Job) -> Result<(), StoreError> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_JOBS_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(unavailable(format!("{operation}: too many jobs wait for the files; try again")));
        }
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(|| ended(operation))
    }
}

fn ended(operation: &str) -> StoreError {
    unavailable(format!("{operation}: the store's thread has ended; open the store again"))
}

fn unavailable(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, context)
}
