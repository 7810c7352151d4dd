//! The store on Redis: the storage contract, on one server and on a cluster, and faults of a server.
//!
//! `EPITOME_TEST_REDIS` is the URL of a server. `EPITOME_TEST_REDIS_CLUSTER` has the URLs of some servers of a cluster,
//! separated by commas. `tests/servers.sh` starts both. A test without a server is skipped with a message, unless
//! `EPITOME_REQUIRE` names `redis`.

#[cfg(feature = "redis-cluster")]
mod cluster;
mod contract;
mod crash;
mod faults;
mod keys;
mod mock;
mod passwords;
pub(crate) mod server;
