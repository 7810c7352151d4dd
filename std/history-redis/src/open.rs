//! Reaching a server, and the version of what lies there.

use ::redis::cmd;
use epitome_history::remote::retry;
use epitome_history::rules::invalid;
use epitome_history::{StoreError, StoreErrorKind};

use super::connection::{Connections, Maker};
#[cfg(feature = "cluster")]
use super::failure::of_redis;
use super::keys::Prefix;
use super::{RedisOptions, RedisServer, Shared};

/// The way to this server.
pub(super) fn by_server(server: &RedisServer, options: &RedisOptions) -> Result<Shared, StoreError> {
    let maker = Maker::new(server.clone(), &options.remote)?;
    shared(Connections::new(maker, options.remote.connections_max), server.place(), options)
}

pub(super) fn shared(
    connections: Connections,
    place: String,
    options: &RedisOptions,
) -> Result<Shared, StoreError> {
    let prefix = Prefix::new(&options.prefix)?;
    Ok(Shared { connections, prefix, ttl: options.ttl_text(), remote: options.remote, place })
}

/// A connection to the cluster of which `urls` name some servers. It finds the others, and mends itself.
#[cfg(feature = "cluster")]
pub(super) async fn cluster(
    urls: &[&str],
    options: &RedisOptions,
) -> Result<::redis::cluster_async::ClusterConnection, StoreError> {
    let info = |url: &&str| Ok(RedisServer::from_url(url)?.client(None)?.get_connection_info().clone());
    let infos = urls.iter().map(info);
    let client = ::redis::cluster::ClusterClientBuilder::new(infos.collect::<Result<Vec<_>, StoreError>>()?)
        .connection_timeout(options.remote.timeout)
        .response_timeout(options.remote.timeout)
        .build()
        .map_err(|error| of_redis("open", &error))?;
    retry(&options.remote, "open", || async {
        client.get_async_connection().await.map_err(|error| of_redis("open", &error))
    })
    .await
}

/// Asks the server for the version of the layout, and sets it where there is none.
pub(super) async fn greet(store: &Shared) -> Result<(), StoreError> {
    retry(&store.remote, "open", || async {
        let key = store.prefix.layout();
        let mut set = cmd("SET");
        set.arg(&key).arg(LAYOUT).arg("NX");
        let mut get = cmd("GET");
        get.arg(&key);
        let mut found: Option<String> = store.connections.ask("open", &get).await?;
        if found.is_none() {
            // Another store may be faster.
            store.connections.ask::<()>("open", &set).await?;
            found = store.connections.ask("open", &get).await?;
        }
        check(found.as_deref())
    })
    .await
}

fn check(found: Option<&str>) -> Result<(), StoreError> {
    match found.map(str::parse::<u64>) {
        Some(Ok(LAYOUT)) => Ok(()),
        Some(Ok(newer)) if newer > LAYOUT => Err(StoreError::new(
            StoreErrorKind::Invalid,
            format!("open: written by a newer version: layout {newer}, this one reads up to {LAYOUT}"),
        )),
        Some(Ok(older)) => Err(invalid(format!(
            "open: written by an older version: layout {older}, this one has {LAYOUT}; export its sessions with that \
             version, and import them under another prefix"
        ))),
        _ => Err(StoreError::new(
            StoreErrorKind::Corrupt,
            "open: the key that says how the others are laid out holds something else",
        )),
    }
}

/// The version of the layout of keys, and the highest that this release reads.
const LAYOUT: u64 = 2;
