//! The pool of connections of a store that was opened by its url.

use core::str::FromStr;
use core::time::Duration;
use std::sync::Arc;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use epitome_history::rules::invalid;
use epitome_history::{StoreError, StoreErrorKind};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::options::PostgresOptions;

/// A pool that makes its connections when they are needed.
pub(super) fn pool(url: &str, options: &PostgresOptions) -> Result<Pool, StoreError> {
    // The reason may repeat a part of the url, and with it a password.
    let mut config = Config::from_str(url).map_err(|_| {
        invalid("open: the url cannot be read; `postgres://USER:PASSWORD@HOST:PORT/DATABASE`")
    })?;
    if config.get_application_name().is_none() {
        config.application_name("epitome");
    }
    notice_dead_connections(&mut config, options.remote.timeout);
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = if needs_tls(&config) {
        Manager::from_config(config, tls(&options.root_certificates)?, recycling)
    } else {
        Manager::from_config(config, NoTls, recycling)
    };
    Pool::builder(manager)
        .max_size(options.remote.connections_max.get())
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| {
            StoreError::new(StoreErrorKind::Invalid, "open: no pool can be made").with_source(error)
        })
}

/// A server that is gone without a word is noticed soon, and its connections are not given out. What the url says of that
/// stays.
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

/// With what follows, dead after a minute: as long as many firewalls remember a silent connection at least.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_RETRIES: u32 = 3;

fn needs_tls(config: &Config) -> bool {
    let is_remote = |host: &Host| matches!(host, Host::Tcp(_));
    config.get_ssl_mode() != SslMode::Disable && config.get_hosts().iter().any(is_remote)
}

/// Whoever is spoken to over TLS must have a certificate of an issuer that the system trusts, or one of `pem`.
fn tls(pem: &[u8]) -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = RootCertStore::empty();
    // A system without any still has those that are named here; with none at all every server is refused.
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
