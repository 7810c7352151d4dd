//! New connections whose password comes from a function.

use core::future::{Ready, ready};

use deadpool_postgres::Connect;
use epitome_history::{Password, StoreError};
use futures::future::BoxFuture;
use secrecy::ExposeSecret as _;
use tokio::io::{Empty, empty};
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{NoTlsStream, TlsConnect};
use tokio_postgres::{Client, Config, Error};

type Connected = Result<(Client, JoinHandle<()>), Error>;

/// Requests the password for each new connection.
pub(super) struct Login<C> {
    pub(super) connect: C,
    pub(super) password: Password,
}

impl<C: Connect> Connect for Login<C> {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Connected> {
        let mut config = config.clone();
        Box::pin(async move {
            match self.password.now().await {
                Ok(password) => {
                    config.password(password.expose_secret());
                    self.connect.connect(&config).await
                }
                Err(error) => refused(error).await,
            }
        })
    }
}

/// Wraps the error of a password in an error of Postgres, as its source.
///
/// The pool returns only errors of Postgres, and among them only those of a TLS handshake can have a custom source.
/// This function therefore makes a TLS handshake fail, without a network.
async fn refused(error: StoreError) -> Connected {
    let mut config = Config::new();
    config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let (client, connection) = config.connect_raw(empty(), Refusal(error)).await?;
    let ended = async {
        let _ = connection.await;
    };
    Ok((client, tokio::spawn(ended)))
}

struct Refusal(StoreError);

impl TlsConnect<Empty> for Refusal {
    type Stream = NoTlsStream;
    type Error = StoreError;
    type Future = Ready<Result<NoTlsStream, StoreError>>;

    fn connect(self, _: Empty) -> Self::Future {
        ready(Err(self.0))
    }
}
