//! Doing an operation: on a connection of the pool, as often as it takes.

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

/// An operation with all that it needs: it can be done again.
pub(super) trait Job: Send + Sync + 'static {
    /// Its name in errors.
    fn name(&self) -> &'static str;

    /// Whether the tables must be there.
    const NEEDS_TABLES: bool = true;
    type Answer: Send + 'static;

    /// Does it in one transaction. One that it leaves open is rolled back.
    fn run(&self, lease: &Lease<'_>) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// The shared parts of all operations of a store.
pub(super) struct Shared {
    pool: Pool,
    names: Names,
    remote: RemoteOptions,
    /// Whether the pool is the caller's, who says how long one waits for it.
    pool_is_given: bool,
    /// Whether the tables have been seen to be there, in this version.
    ready: AtomicBool,
}

impl Shared {
    pub(super) const fn new(pool: Pool, names: Names, remote: RemoteOptions, pool_is_given: bool) -> Self {
        Self { pool, names, remote, pool_is_given, ready: AtomicBool::new(false) }
    }

    /// Does `job`, again where it is `Unavailable`.
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
            // The others lead to the same server, which may not be there any more, and would be given up one by one.
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
            // The other half of the time is for what is then to be done.
            let timeouts = Timeouts { wait: Some(self.remote.timeout / 2), create: None, recycle: None };
            self.pool.timeout_get(&timeouts).await?
        };
        Ok(Lease::new(client, &self.names, milliseconds(self.remote.timeout)))
    }
}

/// The time as Postgres takes it: 0 would be no bound.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).clamp(1, i32::MAX.unsigned_abs())
}
