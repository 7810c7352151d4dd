//! The connections of a store.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use ::redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
#[cfg(feature = "cluster")]
use ::redis::cluster_async::ClusterConnection;
use ::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisFuture, RedisResult, Value,
};
use epitome_history::rules::corrupt;
use epitome_history::{RemoteOptions, StoreError};
use tokio::sync::OnceCell;

use super::RedisServer;
use super::failure::{of_redis, spoils};
use super::script::Call;

/// A connection to one server, or to the servers of a cluster. It carries any number of requests at the same time.
#[derive(Clone)]
pub(super) enum Connection {
    Single(ConnectionManager),
    /// A connection whose password came from a function. It does not reconnect, because a new connection may need
    /// another password.
    LoggedIn(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(ClusterConnection),
}

/// The connections, used in turn.
pub(super) struct Connections {
    pool: Mutex<Pool>,
    maker: Option<Maker>,
}

struct Pool {
    slots: Vec<Slot>,
    next: usize,
    /// Number of times that all connections were given up.
    epoch: u64,
}

/// A connection that is made when it is first needed, by one operation; other operations wait for it.
type Slot = Arc<OnceCell<Connection>>;

/// Makes connections.
pub(super) struct Maker {
    server: RedisServer,
    /// The client for logins without a password function.
    client: Client,
    timeout: Duration,
}

/// A connection in use, and the epoch at which it was taken.
struct Lease {
    epoch: u64,
    connection: Connection,
}

impl Maker {
    pub(super) fn new(server: RedisServer, options: &RemoteOptions) -> Result<Self, StoreError> {
        let client = server.client(None)?;
        // A late answer is an error of the connection shortly before it is one of the operation, so that the broken
        // connection is recognized.
        Ok(Self { server, client, timeout: options.timeout.mul_f32(0.9) })
    }

    async fn make(&self, operation: &str) -> Result<Connection, StoreError> {
        match self.server.password() {
            None => self.make_lazy().map_err(|error| of_redis(operation, &error)),
            Some(password) => {
                let client = self.server.client(Some(&password.now().await?))?;
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(self.timeout))
                    .set_response_timeout(Some(self.timeout));
                let made = client.get_multiplexed_async_connection_with_config(&config).await;
                Ok(Connection::LoggedIn(made.map_err(|error| of_redis(operation, &error))?))
            }
        }
    }

    /// A connection that connects at its first use. The operations retry, not the connection.
    fn make_lazy(&self) -> RedisResult<Connection> {
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        Ok(Connection::Single(ConnectionManager::new_lazy_with_config(self.client.clone(), config)?))
    }
}

impl Connections {
    /// Makes at most `count` connections with `maker`.
    pub(super) fn new(maker: Maker, count: NonZeroUsize) -> Self {
        let slots = (0..count.get()).map(|_| Slot::default()).collect();
        Self { pool: Mutex::new(Pool { slots, next: 0, epoch: 0 }), maker: Some(maker) }
    }

    /// Uses this connection, which reconnects by itself.
    pub(super) fn given(connection: Connection) -> Self {
        let slots = vec![Arc::new(OnceCell::new_with(Some(connection)))];
        Self { pool: Mutex::new(Pool { slots, next: 0, epoch: 0 }), maker: None }
    }

    /// The answer of a script.
    pub(super) async fn call<T: FromRedisValue>(
        &self,
        operation: &str,
        call: &Call<'_>,
    ) -> Result<T, StoreError> {
        let mut script = call.script.prepare_invoke();
        script.key(call.keys.all()).arg(call.args.as_slice());
        let mut lease = self.lease(operation).await?;
        let answer = script.invoke_async(&mut lease.connection).await;
        read(operation, self.looked_at(&lease, answer))
    }

    /// The answer to a command.
    pub(super) async fn ask<T: FromRedisValue>(
        &self,
        operation: &str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        read(operation, self.answer(operation, command).await?)
    }

    /// The answer to a command as the server sends it; an error if there is no connection.
    pub(super) async fn answer(
        &self,
        operation: &str,
        command: &Cmd,
    ) -> Result<RedisResult<Value>, StoreError> {
        let mut lease = self.lease(operation).await?;
        let answer = command.query_async(&mut lease.connection).await;
        Ok(self.looked_at(&lease, answer))
    }

    async fn lease(&self, operation: &str) -> Result<Lease, StoreError> {
        let gone = || of_redis(operation, &(::redis::ErrorKind::Client, "there is no connection").into());
        let (epoch, slot) = self.turn();
        let slot = slot.ok_or_else(gone)?;
        let make = || async { self.maker.as_ref().ok_or_else(gone)?.make(operation).await };
        let connection = slot.get_or_try_init(make).await?.clone();
        Ok(Lease { epoch, connection })
    }

    /// The present epoch, and the next slot in turn.
    fn turn(&self) -> (u64, Option<Slot>) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pool.next;
        pool.next = at.wrapping_add(1).checked_rem(pool.slots.len()).unwrap_or_default();
        (pool.epoch, pool.slots.get(at).cloned())
    }

    fn looked_at(&self, lease: &Lease, answer: RedisResult<Value>) -> RedisResult<Value> {
        answer.inspect_err(|error| {
            if spoils(error) {
                self.replace(lease);
            }
        })
    }

    /// Gives up all connections, unless another operation has done so since this one was taken. If a server is down,
    /// its other connections are broken too, and each of them would cost an attempt.
    fn replace(&self, lease: &Lease) {
        if self.maker.is_none() {
            return;
        }
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.epoch == lease.epoch {
            pool.epoch = pool.epoch.wrapping_add(1);
            // An operation that waits for a connection in an old slot keeps that slot.
            pool.slots.iter_mut().for_each(|slot| *slot = Slot::default());
        }
    }
}

fn read<T: FromRedisValue>(operation: &str, answer: RedisResult<Value>) -> Result<T, StoreError> {
    let answer = answer.map_err(|error| of_redis(operation, &error))?;
    // The error of the conversion is left out, because it would repeat the value.
    T::from_redis_value(answer)
        .map_err(|_| corrupt(format!("{operation}: what is stored is not what this store writes")))
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            Self::LoggedIn(connection) => connection.req_packed_command(command),
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
            Self::LoggedIn(connection) => connection.req_packed_commands(commands, offset, count),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::LoggedIn(connection) => connection.get_db(),
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
