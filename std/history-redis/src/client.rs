//! Commands to a server, for providers that use Redis modules.

use core::fmt;
use core::num::NonZeroUsize;

use ::redis::{Cmd, Value};
use epitome_history::remote::retry;
use epitome_history::{RemoteOptions, StoreError};

use super::connection::{Connections, Maker};
use super::{RedisServer, failure};

/// Sends commands to a Redis server over one connection, with time limits and retries. Errors contain no text of the
/// server.
///
/// Providers that use modules of the server use this client. Use [`RedisStore`](super::RedisStore) to keep sessions.
/// The client runs on tokio.
///
/// ```no_run
/// use epitome_history::RemoteOptions;
/// use epitome_redis::{RedisClient, RedisServer};
///
/// # async fn example() -> Result<(), epitome_history::StoreError> {
/// let client = RedisClient::new(&RedisServer::from_url("redis://127.0.0.1/")?, RemoteOptions::default())?;
/// let size = client.ask("size", &redis::cmd("DBSIZE"), &|_| None).await?;
/// assert_eq!(size, redis::Value::Int(0));
/// # Ok(())
/// # }
/// ```
pub struct RedisClient {
    connections: Connections,
    remote: RemoteOptions,
    place: String,
}

impl RedisClient {
    /// Makes a client for this server. It connects when the first command is sent.
    ///
    /// # Errors
    /// `Invalid` if the address or the login is not valid.
    pub fn new(server: &RedisServer, remote: RemoteOptions) -> Result<Self, StoreError> {
        let maker = Maker::new(server.clone().in_resp2(), &remote)?;
        let connections = Connections::new(maker, NonZeroUsize::MIN);
        Ok(Self { connections, remote, place: server.place() })
    }

    /// Sends this command, and returns its answer. The command may be sent again if the server did not answer. A
    /// refusal of the server is passed to `explain`, which may return a more precise error.
    ///
    /// # Errors
    /// `Unavailable` if the server is down, starting or full, after the retries of the options; `Invalid` if it refuses
    /// the command or the password; the errors of `explain`.
    ///
    /// # Cancel safety
    /// If the future is dropped, the command may have been done.
    pub async fn ask(
        &self,
        operation: &str,
        command: &Cmd,
        explain: &(dyn Fn(&str) -> Option<StoreError> + Sync),
    ) -> Result<Value, StoreError> {
        let attempt = || async {
            let answer = self.connections.answer(operation, command).await?;
            answer.map_err(|error| {
                let explained = failure::refusal(&error).and_then(|text| explain(&text));
                explained.unwrap_or_else(|| failure::of_redis(operation, &error))
            })
        };
        retry(&self.remote, operation, attempt).await
    }
}

impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient").field("place", &self.place).finish_non_exhaustive()
    }
}
