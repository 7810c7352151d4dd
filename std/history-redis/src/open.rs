//! Connections to a server, and the version of its keys.

use ::redis::cmd;
use epitome_history::remote::retry;
use epitome_history::rules::invalid;
use epitome_history::{StoreError, StoreErrorKind};

use super::connection::{Connections, Maker};
#[cfg(feature = "cluster")]
use super::failure::of_redis;
use super::keys::Prefix;
use super::{RedisOptions, RedisServer, Shared};

/// Makes the connections to this server.
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

/// Connects to the cluster; `urls` are some of its servers. The connection finds the others, and reconnects by itself.
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

/// Reads the version of the layout from the server, and sets it if there is none.
pub(super) async fn greet(store: &Shared) -> Result<(), StoreError> {
    retry(&store.remote, "open", || async {
        let key = store.prefix.layout();
        let mut set = cmd("SET");
        set.arg(&key).arg(LAYOUT).arg("NX");
        let mut get = cmd("GET");
        get.arg(&key);
        let mut found: Option<String> = store.connections.ask("open", &get).await?;
        if found.is_none() {
            // Another store may set it first.
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

/// The version of the layout of keys: the highest one that this release reads.
const LAYOUT: u64 = 2;
