//! The connections of a store.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use ::redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
#[cfg(feature = "cluster")]
use ::redis::cluster_async::ClusterConnection;
use ::redis::{Client, Cmd, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use epitome_history::rules::corrupt;
use epitome_history::{RemoteOptions, StoreError};

use super::failure::{of_redis, spoils};
use super::script::Call;

/// A way to one server, or to those of a cluster. Any number of requests are on their way at once.
#[derive(Clone)]
pub(super) enum Connection {
    Single(ConnectionManager),
    #[cfg(feature = "cluster")]
    Cluster(ClusterConnection),
}

/// The connections, used in turn.
pub(super) struct Connections {
    pool: Mutex<Pool>,
    maker: Option<Maker>,
}

struct Pool {
    /// Made when they are first needed.
    connections: Vec<Option<Connection>>,
    next: usize,
    /// Counts how often all of them were given up.
    epoch: u64,
}

/// Makes connections.
pub(super) struct Maker {
    client: Client,
    timeout: Duration,
}

/// A connection while it is used, and when it was taken.
struct Lease {
    epoch: u64,
    connection: Connection,
}

impl Maker {
    pub(super) const fn new(client: Client, options: &RemoteOptions) -> Self {
        Self { client, timeout: options.timeout }
    }

    /// A connection that is made when it is first used. Who uses it tries again, not the connection; and an answer that
    /// does not come in time is an error of the connection a little before it is one of the operation, so that the
    /// connection is known to be the one that does not work.
    fn make(&self) -> RedisResult<Connection> {
        let timeout = self.timeout.mul_f32(0.9);
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout));
        Ok(Connection::Single(ConnectionManager::new_lazy_with_config(self.client.clone(), config)?))
    }
}

impl Connections {
    /// At most so many connections, made by `maker`.
    pub(super) fn new(maker: Maker, count: NonZeroUsize) -> Self {
        let connections = (0..count.get()).map(|_| None).collect();
        Self { pool: Mutex::new(Pool { connections, next: 0, epoch: 0 }), maker: Some(maker) }
    }

    /// This connection, which mends itself.
    pub(super) fn given(connection: Connection) -> Self {
        let connections = vec![Some(connection)];
        Self { pool: Mutex::new(Pool { connections, next: 0, epoch: 0 }), maker: None }
    }

    /// The answer of a script.
    pub(super) async fn call<T: FromRedisValue>(
        &self,
        operation: &str,
        call: &Call<'_>,
    ) -> Result<T, StoreError> {
        let mut script = call.script.prepare_invoke();
        script.key(call.keys.all()).arg(call.args.as_slice());
        let mut lease = self.lease().map_err(|error| of_redis(operation, &error))?;
        let answer = script.invoke_async(&mut lease.connection).await;
        self.read(operation, &lease, answer)
    }

    /// The answer to a command.
    pub(super) async fn ask<T: FromRedisValue>(
        &self,
        operation: &str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let mut lease = self.lease().map_err(|error| of_redis(operation, &error))?;
        let answer = command.query_async(&mut lease.connection).await;
        self.read(operation, &lease, answer)
    }

    fn lease(&self) -> RedisResult<Lease> {
        let gone = || RedisError::from((::redis::ErrorKind::Client, "there is no connection"));
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pool.next;
        pool.next = at.wrapping_add(1).checked_rem(pool.connections.len()).unwrap_or_default();
        let slot = pool.connections.get_mut(at).ok_or_else(gone)?;
        let connection = match (&*slot, &self.maker) {
            (Some(connection), _) => connection.clone(),
            (None, Some(maker)) => slot.insert(maker.make()?).clone(),
            (None, None) => return Err(gone()),
        };
        Ok(Lease { epoch: pool.epoch, connection })
    }

    fn read<T: FromRedisValue>(
        &self,
        operation: &str,
        lease: &Lease,
        answer: RedisResult<Value>,
    ) -> Result<T, StoreError> {
        let answer = answer.map_err(|error| {
            if spoils(&error) {
                self.replace(lease);
            }
            of_redis(operation, &error)
        })?;
        // The error would repeat what was found.
        T::from_redis_value(answer)
            .map_err(|_| corrupt(format!("{operation}: what is stored is not what this store writes")))
    }

    /// Gives all connections up, unless somebody has done so since this one was taken: when a server has gone away, the
    /// others are as good as it is, and would cost an attempt each to find out.
    fn replace(&self, lease: &Lease) {
        if self.maker.is_none() {
            return;
        }
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.epoch == lease.epoch {
            pool.epoch = pool.epoch.wrapping_add(1);
            pool.connections.iter_mut().for_each(|connection| *connection = None);
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(commands, offset, count),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
