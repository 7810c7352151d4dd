//! The connection pool of a store that opens its own connections.

use core::time::Duration;
use std::sync::Arc;

use deadpool_postgres::{ConfigConnectImpl, Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use epitome_history::rules::invalid;
use epitome_history::{StoreError, StoreErrorKind};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::login::Login;
use super::{PostgresOptions, PostgresServer};

/// A pool that opens its connections when they are needed.
pub(super) fn pool(server: &PostgresServer, options: &PostgresOptions) -> Result<Pool, StoreError> {
    let mut config = server.config().clone();
    if config.get_application_name().is_none() {
        config.application_name("epitome");
    }
    notice_dead_connections(&mut config, options.remote.timeout);
    let manager = if needs_tls(&config) {
        manager(server, config, ConfigConnectImpl { tls: tls(&options.root_certificates)? })
    } else {
        manager(server, config, ConfigConnectImpl { tls: NoTls })
    };
    Pool::builder(manager)
        .max_size(options.remote.connections_max.get())
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| {
            StoreError::new(StoreErrorKind::Invalid, "open: no pool can be made").with_source(error)
        })
}

fn manager(server: &PostgresServer, config: Config, connect: impl Connect + 'static) -> Manager {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    match server.password() {
        None => Manager::from_connect(config, connect, recycling),
        Some(password) => {
            Manager::from_connect(config, Login { connect, password: password.clone() }, recycling)
        }
    }
}

/// Sets `config` to detect a dead server soon, so that its connections are not used. Settings of the url stay.
fn notice_dead_connections(config: &mut Config, timeout: Duration) {
    let by_default = Config::new();
    if config.get_keepalives_idle() == by_default.get_keepalives_idle() {
        config.keepalives_idle(KEEPALIVES_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVES_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVES_RETRIES);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(timeout);
    }
}

/// Together with the next two limits, a connection counts as dead after a minute: the shortest time for which many
/// firewalls keep an idle connection.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_RETRIES: u32 = 3;

fn needs_tls(config: &Config) -> bool {
    let is_remote = |host: &Host| matches!(host, Host::Tcp(_));
    config.get_ssl_mode() != SslMode::Disable && config.get_hosts().iter().any(is_remote)
}

/// TLS settings that accept certificates from issuers that the system trusts, and from the issuers in `pem`.
fn tls(pem: &[u8]) -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = RootCertStore::empty();
    // A system without certificates still accepts those in `pem`. Without any certificates, every server is refused.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let unread = "open: a root certificate cannot be read; it must be in PEM";
        let certificate = certificate.map_err(|_| invalid(unread))?;
        roots.add(certificate).map_err(|_| invalid(unread))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("open: no version of TLS can be used").with_source(error))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_connections_are_noticed_as_the_url_says_or_soon() {
        let noticed = |url: &str| {
            let mut config: Config = url.parse().unwrap();
            notice_dead_connections(&mut config, Duration::from_secs(5));
            let keepalives = (config.get_keepalives_idle(), config.get_keepalives_interval());
            (
                keepalives.0,
                keepalives.1.unwrap(),
                config.get_keepalives_retries(),
                config.get_tcp_user_timeout().copied(),
            )
        };
        let [five, ten, thirty] = [5, 10, 30].map(Duration::from_secs);
        assert_eq!(noticed("postgres://h/d"), (thirty, ten, Some(3), Some(five)));
        let own = "postgres://h/d?keepalives_idle=5&keepalives_interval=30&keepalives_retries=9&tcp_user_timeout=10";
        assert_eq!(noticed(own), (five, thirty, Some(9), Some(ten)));
    }
}
