//! Execution of an operation on a connection of the pool, with retries.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use deadpool_postgres::{Pool, Timeouts};
use epitome_history::StoreError;
use epitome_history::remote::{RemoteOptions, retry};

use super::failure::Failure;
use super::lease::Lease;
use super::migrate;
use super::options::Names;

/// An operation with all its data. It can be run several times.
pub(super) trait Job: Send + Sync + 'static {
    /// The name of the operation in errors.
    fn name(&self) -> &'static str;

    /// Whether the operation needs the tables.
    const NEEDS_TABLES: bool = true;
    type Answer: Send + 'static;

    /// Runs the operation in one transaction. A transaction that is still open afterwards is rolled back.
    fn run(&self, lease: &Lease<'_>) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// The shared parts of all operations of a store.
pub(super) struct Shared {
    pool: Pool,
    names: Names,
    remote: RemoteOptions,
    /// Whether the caller has provided the pool, with its own limit for waits.
    pool_is_given: bool,
    /// Whether a check has found the tables, in this version.
    ready: AtomicBool,
}

impl Shared {
    pub(super) const fn new(pool: Pool, names: Names, remote: RemoteOptions, pool_is_given: bool) -> Self {
        Self { pool, names, remote, pool_is_given, ready: AtomicBool::new(false) }
    }

    /// Runs `job`, and retries it after `Unavailable`.
    pub(super) async fn call<J: Job>(self: Arc<Self>, job: J) -> Result<J::Answer, StoreError> {
        retry(&self.remote, job.name(), || self.attempt(&job)).await
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    async fn attempt<J: Job>(&self, job: &J) -> Result<J::Answer, StoreError> {
        let lease = self.lease().await.map_err(|failure| failure.of(job.name()))?;
        let answer = self.on(&lease, job).await;
        let is_sound = answer.as_ref().err().is_none_or(Failure::spares_the_connection);
        if !is_sound && !self.pool_is_given {
            // The other connections lead to the same server, which may be down. Without this, each of them would fail
            // separately.
            self.pool.retain(|_, _| false);
        }
        lease.finish(is_sound).await;
        answer.map_err(|failure| failure.of(job.name()))
    }

    async fn on<J: Job>(&self, lease: &Lease<'_>, job: &J) -> Result<J::Answer, Failure> {
        if J::NEEDS_TABLES && !self.ready.load(Ordering::Relaxed) {
            migrate::check(lease).await?;
            self.ready.store(true, Ordering::Relaxed);
        }
        job.run(lease).await
    }

    async fn lease(&self) -> Result<Lease<'_>, Failure> {
        let client = if self.pool_is_given {
            self.pool.get().await?
        } else {
            // The other half of the time is for the operation itself.
            let timeouts = Timeouts { wait: Some(self.remote.timeout / 2), create: None, recycle: None };
            self.pool.timeout_get(&timeouts).await?
        };
        Ok(Lease::new(client, &self.names, milliseconds(self.remote.timeout)))
    }
}

/// The time in milliseconds for Postgres, at least 1: 0 would mean no limit.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).clamp(1, i32::MAX.unsigned_abs())
}
