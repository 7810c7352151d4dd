//! The store on Redis: the storage contract, on one server and on a cluster, and what a server may do to it.
//!
//! `EPITOME_TEST_REDIS` is the url of a server, `EPITOME_TEST_REDIS_CLUSTER` those of some of a cluster's, with commas;
//! `tests/servers.sh` starts both. What has no server is skipped, and says so, unless `EPITOME_REQUIRE` names `redis`.

#[cfg(feature = "redis-cluster")]
mod cluster;
mod contract;
mod crash;
mod faults;
mod keys;
mod mock;
mod passwords;
pub(crate) mod server;
