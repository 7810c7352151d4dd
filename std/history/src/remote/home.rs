//! The runtime on which a store's operations run.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::mpsc;
use std::thread;

use futures::channel::oneshot;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use super::unavailable;
use crate::StoreError;
use crate::rules::invalid;

/// A tokio runtime for the operations of a store. The caller can await them on any executor.
///
/// If the caller's future is dropped, the operation is dropped too, when the runtime next runs it.
pub struct Home {
    handle: Handle,
    /// The thread of an own runtime; `None` for the runtime of the caller.
    own: Option<Own>,
}

struct Own {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Home {
    /// Uses the runtime of the caller.
    pub fn current() -> Result<Self, StoreError> {
        let none = "open: there is no tokio runtime here; call this within one, or open the store by its url";
        let handle = Handle::try_current().map_err(|error| invalid(none).with_source(error))?;
        Ok(Self { handle, own: None })
    }

    /// Starts an own runtime on a thread with this name. Dropping the value ends the runtime, and waits for its end.
    pub fn start(name: &str) -> Result<Self, StoreError> {
        let failed = |error| unavailable("open: no thread can be started").with_source(error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let serve = move || serve(&runtime, stopped);
        let thread = thread::Builder::new().name(name.into()).spawn(serve).map_err(failed)?;
        Ok(Self { handle, own: Some(Own { stop: Some(stop), thread: Some(thread) }) })
    }

    /// Runs `operation` on the runtime.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        Running(self.handle.spawn(operation)).await
    }

    /// Runs `operation` on the runtime and blocks the calling thread until it is done. Do not call it on the runtime's
    /// own thread.
    pub fn wait<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = mpsc::channel();
        self.handle.spawn(async move {
            // The receiver is gone only if the waiting thread has panicked.
            let _ = answer.send(operation.await);
        });
        answered.recv().unwrap_or_else(|_| Err(ended()))
    }
}

fn serve(runtime: &Runtime, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async {
        // The sender sends nothing; dropping it ends the wait.
        let _ = stopped.await;
        // Dropped connections close when the runtime polls them once more.
        tokio::task::yield_now().await;
    });
}

fn ended() -> StoreError {
    unavailable("the operation was lost: its runtime has ended, or it has panicked")
}

impl Drop for Own {
    fn drop(&mut self) {
        self.stop.take();
        // An operation may hold the last handle of its own store, so this can be the runtime's own thread.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // Every waiting caller has already received an error for a panic of the thread.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").field("own", &self.own.is_some()).finish_non_exhaustive()
    }
}

/// A running operation. Dropping this value aborts it.
struct Running<T>(JoinHandle<Result<T, StoreError>>);

impl<T> Future for Running<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let joined = ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(joined.unwrap_or_else(|_| Err(ended())))
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use futures::FutureExt;
    use futures::executor::block_on;

    use super::*;
    use crate::StoreErrorKind;

    #[test]
    fn operations_are_awaited_on_any_executor_and_have_the_runtimes_clock() {
        let home = Home::start("test").unwrap();
        let slow = || async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(7)
        };
        assert_eq!(block_on(home.run(slow())).unwrap(), 7);
        assert_eq!(home.wait(slow()).unwrap(), 7);
        // It also works inside another executor.
        assert_eq!(block_on(async { home.wait(slow()) }).unwrap(), 7);
    }

    #[test]
    fn an_operation_is_dropped_with_its_caller() {
        let home = Home::start("test").unwrap();
        let (held, dropped) = mpsc::channel::<()>();
        let endless = home.run(async move {
            let _held = held;
            core::future::pending::<()>().await;
            Ok(())
        });
        assert!(endless.now_or_never().is_none());
        assert!(dropped.recv().is_err());
    }

    #[test]
    fn a_panic_and_an_ended_runtime_are_errors() {
        let home = Home::start("test").unwrap();
        let panics = home.run(async {
            assert!(core::hint::black_box(false), "on purpose");
            Ok(())
        });
        assert_eq!(block_on(panics).unwrap_err().kind(), StoreErrorKind::Unavailable);

        let runtime = Builder::new_current_thread().build().unwrap();
        let borrowed = runtime.block_on(async { Home::current() }).unwrap();
        drop(runtime);
        assert_eq!(block_on(borrowed.run(async { Ok(()) })).unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(borrowed.wait(async { Ok(()) }).unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(Home::current().unwrap_err().kind(), StoreErrorKind::Invalid);
    }

    #[test]
    fn dropping_it_ends_what_runs() {
        let home = Home::start("test").unwrap();
        let (held, dropped) = mpsc::channel::<()>();
        home.handle.spawn(async move {
            let _held = held;
            core::future::pending::<()>().await;
        });
        drop(home);
        assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
